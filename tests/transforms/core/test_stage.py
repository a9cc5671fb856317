"""A declaration: mistakes are refused where they are made, and what it declares is what happens."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import apache_beam as beam
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.transforms.core.answers import Answer, BadDocument
from refinery.transforms.core.document import Document, Drop, document_id
from refinery.transforms.core.job.report import merge_records
from refinery.transforms.core.params import Count, Params, Share
from refinery.transforms.core.rejects import RejectParams
from refinery.transforms.core.stage import Note, Reason, Stage
from tests.beam import make_document, merge_side_outputs, run_and_collect
from tests.sampling import examples


class DigitsParams(Params):
    max_ratio: Share = 0.3


def judge_digits(doc: Document, params: DigitsParams) -> Document | Drop:
    if sum(map(str.isdigit, doc.text)) > params.max_ratio * len(doc.text):
        return Drop("digit-ratio")
    return replace(doc, meta={**doc.meta, "digits": 1})


DIGITS = Stage(
    name="many-digits",
    version=1,
    summary="Drop documents that are mostly digits.",
    params=DigitsParams,
    judge=judge_digits,
    notes=(Note("digits", int, "was looked at"),),
    reasons=(Reason("digit-ratio", "more than `max_ratio` of the characters are digits"),),
)

# --- mistakes -------------------------------------------------------------------------------------------------------


@dataclass
class NoParams:
    max_ratio: float = 0.3


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"name": "Many digits"}, "stage: name 'Many digits' given, kebab-case is allowed"),
    ({"name": "many_digits"}, "stage: name 'many_digits' given, kebab-case is allowed"),
    ({"name": ""}, "stage: name '' given, kebab-case is allowed"),
    ({"version": 0}, "stage many-digits: version 0 given, 1 or more is allowed"),
    ({"params": None}, "stage many-digits: a judge without params given, a subclass of Params is needed"),
    ({"params": NoParams}, "stage many-digits: params .*NoParams.* given, a subclass of Params is needed"),
    ({"params": DigitsParams()}, "stage many-digits: params .* given, a subclass of Params is needed"),
    ({"reasons": DIGITS.reasons * 2}, "stage many-digits: reason 'digit-ratio' given twice"),
    ({"reasons": DIGITS.reasons[0]}, "stage many-digits: reasons of type Reason given, a tuple is allowed"),
    ({"concerns": ("weather",)}, "stage many-digits: concern 'weather' given, some of rights, .* is allowed"),
    ({"libraries": ("numpy")}, "stage many-digits: libraries of type str given, a tuple is allowed"),
]


@pytest.mark.parametrize(("changes", "message"), MISTAKES, ids=[next(iter(case[0])) for case in MISTAKES])
def test_a_wrong_declaration_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        replace(DIGITS, **changes)


@pytest.mark.parametrize("name", ["", "Digits", "digit_ratio", "-digits", "digits-", "a--b", "ä", "a\n"])
def test_reasons_are_kebab_case(name: str) -> None:
    with pytest.raises(ValueError, match=r"^reason: .* given, kebab-case is allowed$"):
        Reason(name, "whatever")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("Digits", int, ""), "^note: 'Digits' given, a lower-case name is allowed$"),
        (("1st", int, ""), "^note: '1st' given"),
        (("digits", bool, ""), "^note digits: type .*bool.* given, str, float or int is allowed$"),
        (("digits", list, ""), "^note digits: type .*list.* given"),
    ],
)
def test_notes_have_a_name_and_a_scalar_type(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Note(*arguments)


@pytest.mark.parametrize("mistake", [("score", float), ("source", str), ("length", str)])
def test_categories_are_texts_of_their_own(mistake: tuple[str, type]) -> None:
    assert Note("kind", str, "of text", category=True).category
    with pytest.raises(ValueError, match="category given, of texts other than source and length only"):
        Note(*mistake, "what it is", category=True)


def test_sections_follow_from_the_name() -> None:
    assert (DIGITS.key, DIGITS.sections) == ("many_digits", ("many_digits",))
    other = replace(DIGITS, section="digits", uses=("limits",))
    assert (other.key, other.sections) == ("digits", ("digits", "limits"))
    composite: Stage[Params] = Stage(name="read", version=1, summary="Reads.", uses=("sources",))
    assert (composite.key, composite.sections) == ("", ("sources",))


def test_a_composite_cannot_be_applied_by_itself() -> None:
    composite: Stage[Params] = Stage(name="read", version=1, summary="Reads.")
    with pytest.raises(TypeError, match="stage read is a composite"):
        composite()


# --- in a pipeline --------------------------------------------------------------------------------------------------


def run(
    stage: Stage[Any], texts: Iterable[str], params: Any = None, *flags: str
) -> tuple[list[Document], dict[tuple[str, str], tuple[int, int]], list[dict[str, Any]]]:
    """What a pipeline of a user's own gets of it: documents, counters by outcome and reason, other side outputs."""
    docs = [make_document(text, f"f@{i}") for i, text in enumerate(texts)]

    def build(pipeline: beam.Pipeline) -> list[beam.PCollection]:
        kept = pipeline | beam.Create(docs) | stage(params, RejectParams(rate=1.0))
        return [kept, merge_side_outputs(pipeline)]

    kept, records = run_and_collect(build, *flags)
    side = [orjson.loads(record) for record in records]
    report = merge_records(orjson.dumps(s) for s in side if s["kind"] in ("counter", "seconds"))
    assert {counter["stage"] for counter in report["counters"]} <= {stage.name}
    counts = {(t["outcome"], t["reason"]): (t["documents"], t["bytes"]) for t in report["counters"]}
    others = [record for record in side if record["kind"] not in ("counter", "seconds")]
    return sorted(kept, key=lambda doc: (doc.origin, doc.position)), counts, others


def test_a_declaration_is_a_transform() -> None:
    kept, counts, others = run(DIGITS, ["ab", "a123", "12 monkeys"])
    assert [(doc.text, doc.meta) for doc in kept] == [("ab", {"digits": 1}), ("12 monkeys", {"digits": 1})]
    assert counts == {("in", ""): (3, 16), ("kept", ""): (2, 12), ("dropped", "digit-ratio"): (1, 4)}
    assert [(each["kind"], each["stage"], each["reason"]) for each in others] == [
        ("reject", "many-digits", "digit-ratio")
    ]
    kept, _, _ = run(DIGITS, ["ab", "a123", "12 monkeys"], DigitsParams(max_ratio=1.0))
    assert len(kept) == 3


def test_two_declarations_compose_in_one_pipeline() -> None:
    words = replace(DIGITS, name="few-digits", reasons=())

    def build(pipeline: beam.Pipeline) -> list[beam.PCollection]:
        docs = pipeline | beam.Create([make_document("a1"), make_document("ab")])
        return [docs | DIGITS(DigitsParams(max_ratio=0.6)) | words(DigitsParams(max_ratio=0.5))]

    [kept] = run_and_collect(build)
    assert sorted(doc.text for doc in kept) == ["a1", "ab"]


class WordsParams(Params):
    least: Count = 1


def load_words(params: WordsParams) -> frozenset[str]:
    LOADED.append(params)
    return frozenset(("the", "mill")[: params.least])


def judge_words(doc: Document, words: frozenset[str], params: WordsParams) -> Document | Drop:
    return doc if len(words & set(doc.text.split())) >= params.least else Drop("few-words")


LOADED: list[WordsParams] = []


def test_what_a_stage_prepares_reaches_its_judge() -> None:
    stage = Stage(
        name="words",
        version=1,
        summary="Drop documents without the words.",
        params=WordsParams,
        prepare=load_words,
        judge=judge_words,
        reasons=(Reason("few-words", "not enough of them"),),
    )
    LOADED.clear()
    kept, _, _ = run(stage, ["the mill", "the dog", "a cat"], WordsParams(least=2))
    assert [doc.text for doc in kept] == ["the mill"]
    assert set(map(str, LOADED)) == {str(WordsParams(least=2))} and len(LOADED) < 3  # once a worker, not a document


# --- what a stage must not do ---------------------------------------------------------------------------------------


def test_an_undeclared_reason_is_a_dead_letter() -> None:
    stage = replace(DIGITS, reasons=(Reason("another", "whatever"),))
    kept, counts, others = run(stage, ["ab", "123"])
    assert [doc.text for doc in kept] == ["ab"]
    assert counts == {("in", ""): (2, 5), ("kept", ""): (1, 2), ("dead", "UndeclaredReason"): (1, 3)}
    assert [(each["kind"], each["error"], each["origin"]) for each in others] == [("dead", "UndeclaredReason", "f@1")]


@pytest.mark.parametrize("answer", [None, True, "text", b"", []])
def test_an_answer_that_is_no_document_is_a_dead_letter(answer: Any) -> None:
    stage = replace(DIGITS, judge=lambda doc, params: answer)
    kept, counts, _ = run(stage, ["ab", "123"])
    assert kept == []
    assert counts == {("in", ""): (2, 5), ("dead", "NoDocument"): (2, 5)}


def noting(value: Any) -> Any:
    return lambda doc, params: replace(doc, meta={**doc.meta, "digits": value})


@pytest.mark.parametrize(
    ("judge", "error"),
    [
        (noting(1 << 70), "BadValue"),
        (noting(float("nan")), "BadValue"),
        (noting("\ud800"), "BadValue"),
        (lambda doc, params: replace(doc, text="\ud800"), "BadValue"),
        (lambda doc, params: replace(doc, url="\ud800"), "BadValue"),
        (noting("x" * (1 << 20)), "NotesTooLong"),
        (lambda doc, params: replace(doc, url="x" * (1 << 21)), "NotesTooLong"),
    ],
)
def test_what_cannot_be_written_costs_that_document(judge: Any, error: str) -> None:
    stage = replace(DIGITS, judge=lambda doc, params: doc if doc.text == "ab" else judge(doc, params), module="own:IT")
    kept, counts, others = run(stage, ["ab", "123"])
    assert [doc.text for doc in kept] == ["ab"]
    assert counts == {("in", ""): (2, 5), ("kept", ""): (1, 2), ("dead", error): (1, 3)}
    assert [(each["kind"], each["error"], each["origin"]) for each in others] == [("dead", error, "f@1")]


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        (lambda doc, params: replace(doc, source="b"), r"source: 'b' \(text\) given, the document's own \('.*"),
        (lambda doc, params: replace(doc, origin="f@2"), r"origin: 'f@2' \(text\) given, the document's own .*"),
        (lambda doc, params: replace(doc, position=7), r"position: 7 \(an integer\) given, the document's own .*"),
        (lambda doc, params: replace(doc, id=b"1"), "id: a value of type bytes given, 16 bytes is allowed"),
        (lambda doc, params: replace(doc, url=None), r"url: null given, text is allowed"),
        (lambda doc, params: replace(doc, text=b"x"), "text: a value of type bytes given, text is allowed"),
        (lambda doc, params: replace(doc, meta=None), "meta: null given, a mapping is allowed"),
        (lambda doc, params: replace(doc, meta={1: 2}), r"meta: 1 \(an integer\) given, a name is allowed"),
        (noting(None), r"meta\['digits'\]: null given, text or a number is allowed"),
        (noting([1]), r"meta\['digits'\]: a list of 1 value given, text or a number is allowed"),
    ],
)
def test_a_stage_of_ones_own_that_breaks_a_promise_ends_the_run_by_its_name(judge: Any, said: str) -> None:
    stage = replace(DIGITS, judge=judge, module="own:IT")
    with pytest.raises(BadDocument, match=f"^stage own:IT: {said}"):
        run(stage, ["ab"])
    splitting = replace(stage, splits=True, judge=lambda doc, params: [doc, judge(doc, params)])
    with pytest.raises(BadDocument, match=f"^stage own:IT: {said}"):
        run(splitting, ["ab"])


def test_a_document_that_a_stage_changes_in_place_is_noticed() -> None:
    def judge(doc: Any, params: DigitsParams) -> Any:
        doc.meta["digits"] = 1
        return doc

    stage = replace(DIGITS, judge=judge, module="own:IT")
    doc = make_document("ab", meta={"pages": 1})
    with pytest.raises(BadDocument, match=r"^stage own:IT: it changes the document .*; use `dataclasses.replace`"):
        run_and_collect(lambda pipeline: [pipeline | beam.Create([doc]) | stage(), merge_side_outputs(pipeline)])


# --- splitting ------------------------------------------------------------------------------------------------------


class SplitParams(Params):
    separator: str = "|"


def split_text(doc: Document, params: SplitParams) -> Iterable[Document] | Drop:
    """Parts of a text that are not empty; "!" where it begins and "?" are mistakes of every kind."""
    if doc.text == "drop":
        return Drop("unwanted")
    if doc.text == "raise":
        raise KeyError(doc.text)
    return parts(doc, params)


def parts(doc: Document, params: SplitParams) -> Iterable[Document]:
    for index, text in enumerate(filter(None, doc.text.split(params.separator))):
        if text == "late":
            raise OverflowError(text)
        yield replace(doc, text=text, id=document_id(text), position=index)


SPLIT = Stage(
    name="split",
    version=1,
    summary="Make a document of each part.",
    params=SplitParams,
    judge=split_text,
    splits=True,
    reasons=(Reason("unwanted", "it is"),),
)


@pytest.mark.parametrize("flags", [(), ("--direct_runner_bundle_repeat=2",)])
def test_split_documents_are_counted_as_created(flags: tuple[str, ...]) -> None:
    kept, counts, _ = run(SPLIT, ["a|bb|ccc", "one", "drop", "raise", "x|y", "x|late", "|"], None, *flags)
    assert [doc.text for doc in kept] == ["a", "bb", "ccc", "one", "x", "y"]
    assert counts == {
        ("in", ""): (7, 8 + 3 + 4 + 5 + 3 + 6 + 1),
        ("kept", ""): (6, 6 + 3 + 2),
        ("created", ""): (3, 0),
        ("dropped", "unwanted"): (1, 4),
        ("dead", "KeyError"): (1, 5),
        ("dead", "OverflowError"): (1, 6),  # in the middle of it: all parts of a document or none
        ("dead", "NothingSplit"): (1, 1),
    }


def test_nothing_is_created_where_each_document_stays_one() -> None:
    _, counts, _ = run(SPLIT, ["a", "b"])
    assert counts == {("in", ""): (2, 2), ("kept", ""): (2, 2)}


def test_a_single_document_is_no_split() -> None:
    kept, counts, _ = run(replace(SPLIT, judge=lambda doc, params: doc), ["a"])
    assert (kept, counts) == ([], {("in", ""): (1, 1), ("dead", "TypeError"): (1, 1)})
    kept, counts, _ = run(replace(SPLIT, judge=lambda doc, params: doc.text), ["ab"])
    assert (kept, counts) == ([], {("in", ""): (1, 2), ("dead", "NoDocument"): (1, 2)})


def test_a_split_comes_in_an_answer_and_its_first_part_may_be_the_document() -> None:
    doubled = replace(SPLIT, judge=lambda doc, params: Answer((doc, replace(doc, text="more")), ("half/b",)))
    kept, counts, _ = run(doubled, ["ab"])
    assert [doc.text for doc in kept] == ["ab", "more"]
    assert (counts["kept", ""], counts["created", ""]) == ((2, 2 + 4), (1, 0))


@settings(max_examples=examples(20), deadline=None)
@given(st.lists(st.sampled_from(["a", "a|b", "a|b|c|d", "|", "", "drop", "raise", "a|late"]), max_size=25))
def test_conservation(texts: list[str]) -> None:
    kept, counts, _ = run(SPLIT, texts)
    found = dict.fromkeys(("in", "created", "kept", "dropped", "dead"), 0)
    for (outcome, _), (documents, _) in counts.items():
        found[outcome] += documents
    assert found["in"] == len(texts)
    assert found["in"] + found["created"] == found["kept"] + found["dropped"] + found["dead"]
    assert found["kept"] == len(kept)
    good = [text for text in texts if text not in ("drop", "raise", "a|late")]
    assert sorted(doc.text for doc in kept) == sorted(part for text in good for part in text.split("|") if part)
