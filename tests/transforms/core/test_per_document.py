"""Every document is kept, dropped or dead, and counted once, also when bundles are replayed."""

from dataclasses import replace
from itertools import chain
from typing import Any

import apache_beam as beam
import orjson
import pytest
from apache_beam.utils.windowed_value import WindowedValue
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.loader.format.funnel import check_funnel
from refinery.pipelines.run.funnel import build_funnel, funnel_table
from refinery.transforms.core import live, per_document
from refinery.transforms.core.answers import Answer, Damaged, Skipped
from refinery.transforms.core.document import Document, Drop, RawDocument, hash64
from refinery.transforms.core.exchange.side_outputs import take_side_outputs
from refinery.transforms.core.job.report import merge_records
from refinery.transforms.core.per_document import PerDocument, PerFile
from refinery.transforms.core.rejects import RejectParams
from tests.beam import make_document, merge_side_outputs, run_and_collect
from tests.sampling import one_commit_in_four

ALL = RejectParams(rate=1.0)


def judge(doc: Document) -> Any:
    if doc.text.startswith("drop"):
        return Drop("is-bad")
    if doc.text.startswith("die"):
        raise KeyError("secret content must not leak")
    return replace(doc, text=doc.text.upper())


def run(texts: list[str], *flags: str, rejects: RejectParams = ALL) -> tuple[list[str], list[dict[str, Any]]]:
    docs = [make_document(text, f"f@{i}") for i, text in enumerate(texts)]

    def build(pipeline: beam.Pipeline) -> list[beam.PCollection]:
        kept = pipeline | beam.Create(docs) | PerDocument("stage", judge, rejects=rejects)
        return [kept, merge_side_outputs(pipeline)]

    kept, records = run_and_collect(build, *flags)
    return sorted(doc.text for doc in kept), [orjson.loads(record) for record in records]


def counts(records: list[dict[str, Any]]) -> dict[tuple[str, str], tuple[int, int]]:
    report = merge_records(orjson.dumps(s) for s in records if s["kind"] in ("counter", "seconds"))
    return {(t["outcome"], t["reason"]): (t["documents"], t["bytes"]) for t in report["counters"]}


@pytest.mark.parametrize("flags", [(), ("--direct_runner_bundle_repeat=2",)])
def test_every_document_is_counted_once(flags: tuple[str, ...]) -> None:
    kept, records = run(["good", "drop1", "die", "drop22", "gut é"], *flags)
    assert kept == ["GOOD", "GUT É"]
    assert counts(records) == {
        ("in", ""): (5, 4 + 5 + 3 + 6 + 6),
        ("kept", ""): (2, 10),
        ("dropped", "is-bad"): (2, 11),
        ("dead", "KeyError"): (1, 3),
    }


def test_dead_letters_carry_no_content() -> None:
    _, records = run(["die here"])
    (dead,) = [record for record in records if record["kind"] == "dead"]
    assert (dead["stage"], dead["error"], dead["origin"], dead["size"]) == ("stage", "KeyError", "f@0", 8)
    assert "secret" not in orjson.dumps(records).decode() and "die here" not in orjson.dumps(records).decode()


def test_rejects_are_sampled_by_hash_and_show_text_only_when_asked() -> None:
    texts = [f"drop {i}" for i in range(400)]
    _, records = run(texts, rejects=RejectParams(rate=0.25, excerpt_chars=6))
    sampled = {record["origin"]: record["excerpt"] for record in records if record["kind"] == "reject"}
    expected = {f"f@{i}" for i in range(400) if hash64("reject", "is-bad", f"f@{i}") < 0.25 * 2**64}
    assert set(sampled) == expected and 50 < len(expected) < 150
    assert sampled["f@" + min(expected)[2:]].startswith("drop ")
    _, records = run(texts, rejects=RejectParams(rate=1.0))
    assert all(record["excerpt"] == "" for record in records if record["kind"] == "reject")


def test_lone_surrogates_never_reach_a_side_output() -> None:
    def build(pipeline: beam.Pipeline) -> list[beam.PCollection]:
        docs = (
            pipeline
            | beam.Create([0])
            | beam.Map(lambda _: Document(b"\0" * 16, "drop \ud800", "\udfff", "s", "o\ud800", 0)).with_output_types(
                Document
            )
        )
        docs | PerDocument("stage", judge, rejects=RejectParams(rate=1.0, excerpt_chars=10))
        return [merge_side_outputs(pipeline)]

    (records,) = run_and_collect(build)
    assert [orjson.loads(record)["excerpt"] for record in records if b'"reject"' in record] == ["drop ?"]


def test_storage_that_fails_is_no_dead_letter() -> None:
    def read(task: Any) -> Any:
        yield RawDocument("text", False, "", "", "s", "file.x@0", 0)
        raise ConnectionResetError("by peer")

    with pytest.raises((RuntimeError, ConnectionResetError), match="by peer"):
        run_and_collect(lambda p: [p | beam.Create([0]) | beam.Map(lambda _: Task()) | PerFile("read", read)])


class Task:
    path, source = "file.x", "s"


def test_reader_that_gives_up_costs_one_dead_letter() -> None:
    def read(task: Any) -> Any:
        yield RawDocument("text", False, "", "", "s", "file.x@0", 0)
        yield Skipped("record-type", "file.x@1", 7)
        yield Damaged("BadRecord", "file.x@2", b"xy")
        raise UnicodeError("unheard of")

    def build(pipeline: beam.Pipeline) -> list[beam.PCollection]:
        docs = pipeline | beam.Create([0]) | beam.Map(lambda _: Task()) | PerFile("read", read)
        return [docs, merge_side_outputs(pipeline)]

    docs, records = run_and_collect(build)
    assert len(docs) == 1
    assert counts([orjson.loads(record) for record in records]) == {
        ("in", ""): (4, 4 + 7 + 2),
        ("kept", ""): (1, 4),
        ("dropped", "record-type"): (1, 7),
        ("dead", "BadRecord"): (1, 2),
        ("dead", "UnicodeError"): (1, 0),
    }


@one_commit_in_four
@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from(["good", "drop a", "die", "fine"]), max_size=30))
def test_conservation(texts: list[str]) -> None:
    kept, records = run(texts)
    found = counts(records)
    total = found.get(("in", ""), (0, 0))[0]
    assert total == len(texts)
    assert total == sum(n for (outcome, _), (n, _) in found.items() if outcome != "in")
    assert len(kept) == found.get(("kept", ""), (0, 0))[0]


@pytest.mark.parametrize(("field", "value"), [("rate", -0.1), ("rate", 1.1), ("excerpt_chars", -1)])
def test_impossible_parameters(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=field):
        RejectParams(**{field: value})


def test_take_side_outputs_hands_out_once() -> None:
    pipeline = beam.Pipeline()
    pipeline | beam.Create([make_document("x")]) | PerDocument("stage", judge)
    assert len(take_side_outputs(pipeline)) == 1
    assert take_side_outputs(pipeline) == []


def find_numbers(doc: Document) -> Document | Drop | Answer:
    names = tuple(f"number/{word}" for word in doc.text.split() if word.isdigit())
    answer = Drop("is-bad") if "drop" in doc.text else doc
    return Answer(answer, names) if names else answer


def test_findings_are_counted_by_group_and_name_and_drops_with_one_are_listed() -> None:
    def build(pipeline: beam.Pipeline) -> list[beam.PCollection]:
        docs = pipeline | beam.Create([make_document(text) for text in ("drop 7", "keep 7 8", "drop", "keep")])
        kept = docs | PerDocument("stage", find_numbers, rejects=RejectParams(rate=0.0))
        return [kept, merge_side_outputs(pipeline)]

    docs, records = run_and_collect(build)
    assert sorted(doc.text for doc in docs) == ["keep", "keep 7 8"]
    listed = [orjson.loads(record) for record in records if b'"reject"' in record]
    assert [(row["reason"], row["found"]) for row in listed] == [("is-bad", "number/7")]
    (row,) = build_funnel(merge_records(r for r in records if b'"reject"' not in r)["counters"], ["stage"], ["s"])
    assert row["found"] == {"number": {"documents": 2, "bytes": 14, "items": 2}}
    assert check_funnel([row]) == []
    assert "  = number: 2 items in 2 documents" in funnel_table([row], {}, 0)


def score_length(doc: Document) -> Document | Drop | Answer:
    return Answer(Drop("is-bad") if "drop" in doc.text else doc, series=doc.origin, value=float(len(doc.text)))


def test_numbers_are_counted_as_distributions_of_all_that_was_judged() -> None:
    texts = [("a" * 100, "en"), ("b" * 103, "en"), ("drop" * 25, "en"), ("c" * 9, "de")]

    def build(pipeline: beam.Pipeline) -> list[beam.PCollection]:
        docs = pipeline | beam.Create([make_document(text, origin) for text, origin in texts])
        kept = docs | PerDocument("stage", score_length, rejects=RejectParams(rate=0.0))
        return [kept, merge_side_outputs(pipeline)]

    docs, records = run_and_collect(build)
    assert len(docs) == 3
    (row,) = build_funnel(merge_records(records)["counters"], ["stage"], ["s"])
    assert row["scored"] == {"de": [[9.0, 1]], "en": [[100.0, 3]]}
    assert (row["in"]["documents"], row["kept"]["documents"]) == (4, 3)
    assert check_funnel([row]) == []
    lines = funnel_table([row], {}, 0)
    assert "  ~ en: 5% 100, 25% 100, 50% 100, 75% 100, 95% 100 of 3 documents" in lines
    assert "~ quantiles" in lines[-1]


def test_a_long_finding_names_the_first_ten() -> None:
    found = Answer(Drop("is-bad"), tuple(f"g/{i}" for i in range(25)))
    assert found.summary.startswith("g/0, g/1, ") and found.summary.endswith("g/9 and 15 more")


@pytest.mark.parametrize("size", [1, per_document.BATCH_BYTES // 3])
def test_documents_wait_for_others_up_to_a_number_and_a_size(size: int) -> None:
    judged: list[str] = []

    def note(doc: Document) -> Document:
        judged.append(doc.origin)
        return doc

    step = per_document._JudgeDocument("stage", note, None, ALL, Document)
    step.setup()
    step.start_bundle()
    docs = [make_document("a" * size, f"f@{i}") for i in range(2 * per_document.BATCH_DOCUMENTS + 1)]
    made = [step.process(doc) for doc in docs]
    together = min(per_document.BATCH_DOCUMENTS, -(-per_document.BATCH_BYTES // size))
    assert [len(each) for each in made] == [together if i % together == 0 else 0 for i in range(1, len(docs) + 1)]
    last = [each.value for each in step.finish_bundle() if isinstance(each, WindowedValue)]
    assert [*chain(*made), *last] == docs and judged == [doc.origin for doc in docs]


def test_the_file_of_a_document_that_waited_is_named_while_it_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[list[str]] = []
    monkeypatch.setattr(live, "watch_reading", told.append)
    judged: list[tuple[str, list[str]]] = []

    def note(doc: Document) -> Document:
        judged.append((doc.origin, told[-1]))
        return doc

    step = per_document._JudgeDocument("stage", note, None, ALL, Document)
    step.setup()
    step.start_bundle()
    for path in ("a", "b@b", "c"):
        with live.reading(path):
            for number in range(2):
                step.process(make_document("text", f"{path}@{number}"))
    step.process(make_document("text", "d@1"))  # of a file that was not read here
    assert told[-1] == [] and not judged
    list(step.finish_bundle())
    assert judged == [(f"{path}@{n}", [path]) for path in ("a", "b@b", "c") for n in range(2)] + [("d@1", [])]
    assert told[-1] == []
    live.forget_files()
    with live.working_on("a"):
        assert told[-1] == []
