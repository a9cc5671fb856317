"""What a user's reader yields is checked: a wrong type, a foreign origin, text that cannot be written never counts."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from refinery.transforms.core.answers import Damaged, Skipped
from refinery.transforms.core.document import RawDocument
from refinery.transforms.core.params import Params
from refinery.transforms.read.own_records import BadRecord, records_of
from refinery.transforms.read.plan import SourceParams, plan_source
from refinery.transforms.read.probe import probe_sources
from refinery.transforms.read.reader import Reader
from refinery.transforms.read.sources import NoReader, read_task
from refinery.transforms.read.task import LimitParams, ReadTask
from tests.transforms.read_fixtures import summary

LIMITS = LimitParams(max_record_bytes=100, max_meta_bytes=50)


class Options(Params):
    """Of the reader below."""

    end: str = "."
    """what is put behind a text"""


GIVEN: list[Any] = []  # what the reader yields: functions of the task are called


def read_given(task: ReadTask, source: Any, limits: LimitParams) -> Iterator[Any]:
    source.head(0, task.size)
    for each in GIVEN:
        yield each(task) if callable(each) else each


OWN = Reader(name="own", version=1, summary="", offset="", read=read_given, options=Options)
NO_ITERATOR = replace(OWN, read=lambda task, source, limits: None)
OWN_NAME = f"{__name__}:OWN"


def doc(task: ReadTask, offset: int = 0, content: Any = "Otters", **changes: Any) -> RawDocument:
    made = RawDocument(content, False, "", "", task.source, task.origin(offset), task.position(offset))
    return replace(made, **changes)


@pytest.fixture
def task(tmp_path: Path) -> ReadTask:
    (tmp_path / "a.own").write_bytes(b"0123456789")
    (made,) = plan_source(SourceParams(name="s", paths=(str(tmp_path / "a.own"),), format=OWN_NAME), 1 << 60)
    return replace(made, own_meta=("toxicity",))


def given(*records: Any) -> None:
    GIVEN[:] = records


WRONG: dict[str, tuple[Callable[[ReadTask], Any], str]] = {
    "no record": (lambda task: 3, "3 (an integer) yielded, RawDocument, Skipped or Damaged is allowed"),
    "None": (lambda task: None, "yielded, RawDocument, Skipped or Damaged is allowed"),
    "content": (lambda task: doc(task, content=3), "content: 3 (an integer) given, text or bytes is allowed"),
    "an array": (lambda task: doc(task, content=bytearray(b"x")), "content: "),
    "charset": (lambda task: doc(task, charset=None), "charset: "),
    "html": (lambda task: doc(task, is_html=1), "is_html: 1 (an integer) given, True or False is allowed"),
    "source": (
        lambda task: doc(task, source="other"),
        "source: 'other' (text) given, task.source, here 's', is allowed",
    ),
    "another file": (lambda task: doc(task, origin="b.own@0"), "origin: 'b.own@0' (text) given, task.origin(OFFSET)"),
    "no offset": (lambda task: doc(task, origin=f"{task.path}@x"), "task.origin(OFFSET) is allowed"),
    "a negative one": (lambda task: doc(task, -1), "task.origin(OFFSET) is allowed"),
    "digits": (lambda task: doc(task, origin=f"{task.path}@\u0663"), "task.origin(OFFSET) is allowed"),
    "position": (lambda task: doc(task, position=7), "position: 7 (an integer) given, task.position(0) is allowed"),
    "no mapping": (lambda task: doc(task, meta=[]), "meta: "),
    "a stage's note": (
        lambda task: doc(task, meta={"toxicity": 1}),
        "meta: 'toxicity' (text) given, a name that no stage",
    ),
    "a number as key": (lambda task: doc(task, meta={1: 1}), "meta: 1 (an integer) given"),
    "a list": (
        lambda task: doc(task, meta={"a": [1]}),
        "meta['a']: a list of 1 value given, text or a number is allowed",
    ),
    "found": (lambda task: doc(task, found=["x"]), "found: "),
    "a reason": (
        lambda task: Skipped("because", task.origin(0), 1),
        "reason: 'because' (text) given, one of empty, meta-too",
    ),
    "its origin": (lambda task: Skipped("empty", "x@0", 1), "origin: 'x@0' (text) given"),
    "its size": (lambda task: Skipped("empty", task.origin(0), -1), "size: -1 (an integer) given, a number of bytes"),
    "an error": (
        lambda task: Damaged("went wrong", task.origin(0)),
        "error: 'went wrong' (text) given, a name such as",
    ),
    "damaged text": (lambda task: Damaged("BadOwn", task.origin(0), "x"), "data: 'x' (text) given, bytes is allowed"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_record_of_the_file_is_refused(task: ReadTask, name: str) -> None:
    wrong, problem = WRONG[name]
    given(doc, wrong)
    with pytest.raises(BadRecord) as caught:
        list(read_task(task, LIMITS))
    assert problem in str(caught.value) and str(caught.value).startswith(f"{OWN_NAME}: "), str(caught.value)


def test_origins_rise(task: ReadTask) -> None:
    given(lambda task: doc(task, 3), lambda task: doc(task, 3))
    with pytest.raises(BadRecord, match=r"@3 behind .*@3, documents are needed in the order of the file"):
        list(read_task(task, LIMITS))
    given(lambda task: doc(task, 3), lambda task: Skipped("empty", task.origin(2), 0), lambda task: doc(task, 4))
    assert summary(read_task(task, LIMITS)) == ["text", "empty", "text"]


def test_nothing_to_iterate_over(task: ReadTask) -> None:
    with pytest.raises(BadRecord, match="returned, an iterator of records is needed"):
        list(records_of(replace(NO_ITERATOR, module="x:Y"), task, None, LIMITS))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"content": "lone \ud800"}, "!BadValue"),
        ({"url": "https://\udcff"}, "!BadValue"),
        ({"meta": {"a": "\udfff"}}, "!BadValue"),
        ({"meta": {"\udfff": 1}}, "!BadValue"),
        ({"meta": {"a": float("nan")}}, "!BadValue"),
        ({"meta": {"a": 1 << 64}}, "!BadValue"),
        ({"meta": {"a": (1 << 64) - 1, "b": True, "c": 0.5}}, "text"),
        ({"content": "x" * 101}, "too-large"),
        ({"content": "ä" * 51}, "too-large"),
        ({"content": b"x" * 100}, "text"),
        ({"content": " \n"}, "empty"),
        ({"content": b""}, "empty"),
        ({"meta": {"a": "x" * 50}}, "meta-too-large"),
        ({"url": "https://a.example/" + "x" * 50}, "meta-too-large"),
    ],
)
def test_a_record_is_held_to_the_limits_and_to_what_can_be_written(
    task: ReadTask, changes: dict[str, Any], word: str
) -> None:
    """It alone: the next one is read."""
    given(lambda task: doc(task, **changes), lambda task: doc(task, 5))
    assert summary(read_task(task, LIMITS)) == [word, "text"]


def test_a_reader_that_knows_no_sample_and_no_cap_is_held_to_them(task: ReadTask) -> None:
    given(*(lambda task, at=at: doc(task, at) for at in range(40)))
    assert len(list(read_task(replace(task, cap=3), LIMITS))) == 3
    sampled = replace(task, sample=0.5, seed=2)
    words = summary(read_task(sampled, LIMITS))
    assert words == ["text" if sampled.samples(task.origin(at)) else "not-sampled" for at in range(40)]
    assert 5 < words.count("text") < 35


def test_options_arrive_as_their_class(task: ReadTask) -> None:
    given(lambda task: doc(task, content=f"Otters{task.options.end}"))
    (plain,) = read_task(task, LIMITS)
    (asked,) = read_task(replace(task, options={"end": "!"}), LIMITS)
    assert (plain.content, asked.content) == ("Otters.", "Otters!")  # type: ignore[union-attr]
    with pytest.raises(ValueError, match=r"end: 3 .* given, text is allowed"):
        list(read_task(replace(task, options={"end": 3}), LIMITS))


def fail(task: ReadTask) -> Any:
    raise RuntimeError("the library\nfailed")


def test_before_a_run_mistakes_are_said_and_one_bad_file_is_not_the_source(task: ReadTask) -> None:
    given(doc, 3)
    assert "3 (an integer) yielded, RawDocument" in probe_sources([task], LIMITS)["s"]
    given(fail)
    assert probe_sources([task], LIMITS)["s"] == f"{task.path}: {OWN_NAME}: RuntimeError: the library failed"
    given(doc, fail)
    assert probe_sources([task], LIMITS) == {}


def test_a_format_in_python_is_a_name_or_a_reference() -> None:
    with pytest.raises(
        ValueError, match=r"format: 'jsonll' .text. given, one of auto, .* is allowed \(did you mean jsonl\?\)"
    ):
        SourceParams(name="s", paths=("x",), format="jsonll")
    with pytest.raises(ValueError, match="options: given with format 'jsonl', only your own reader can have options"):
        SourceParams(name="s", paths=("x",), format="jsonl", options={"a": 1})
    with pytest.raises(NoReader, match="format: module 'nowhere_at_all' cannot be imported"):
        list(read_task(ReadTask("x", "nowhere_at_all:X", "s", 0, 1), LIMITS))
    with pytest.raises(NoReader, match="has no declaration of a reader by that name"):
        list(read_task(ReadTask("x", f"{__name__}:LIMITS", "s", 0, 1), LIMITS))
