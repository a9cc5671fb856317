from collections import Counter
from itertools import groupby, pairwise

import apache_beam as beam
import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.core.document import Document, Drop, document_id
from refinery.transforms.core.exchange.side_outputs import take_side_outputs
from refinery.transforms.core.rejects import RejectParams
from refinery.transforms.dedup.cut_lines import (
    CUT_LINES,
    LINE_CUTS,
    LINES,
    LineParams,
    cut_lines,
    cut_text,
    list_values,
)
from tests.beam import make_document, run_and_collect


@pytest.mark.parametrize(
    ("text", "numbers", "left"),
    [
        ("a\nb\nc", [], "a\nb\nc"),
        ("a\nb\nc", [1], "a\nc"),
        ("a\nb\nc", [0], "b\nc"),
        ("a\nb\nc", [2], "a\nb"),
        ("a\nb\nc", [0, 1, 2], ""),
        ("a", [0], ""),
        ("", [0], ""),
        ("a\n\nb\n\nc", [2], "a\n\nc"),
        ("a\n\nb\nc", [2], "a\n\nc"),
        ("a\n\nb\n\nc", [0], "b\n\nc"),
        ("a\n\nb\n\nc", [4], "a\n\nb"),
        ("a\n\nb\n\nc\n\nd", [2, 4], "a\n\nd"),
        ("a\n\n\nb\n\n\nc", [3], "a\n\nc"),
        ("a\n\n\nb\nc", [4], "a\n\n\nb"),
        ("a\n\n\nb\n\n\nc\nd", [6], "a\n\n\nb\n\nd"),
        ("\n\na\nb", [2], "b"),
        ("\n\na\nb", [3], "\n\na"),
        ("a\n \n\t\nb\nc", [3], "a\n \nc"),
        ("a\r\nb\r\nc\r\n", [1], "a\r\nc\r\n"),
        ("a\u2028b\nc", [1], "a\u2028b"),
        ("日本\n語\n人", [1], "日本\n人"),
        ("\ud800\nb", [1], "\ud800"),
    ],
)
def test_cuts(text, numbers, left):
    assert cut_text(text, numbers) == left


def brute_force(lines: list[str], gone: set[int]) -> list[str]:
    """Runs of cut and blank lines: with a cut in it, one blank line of the run stays, and none at either end."""
    runs = [list(run) for _, run in groupby(enumerate(lines), lambda pair: pair[0] in gone or not pair[1].strip())]
    left: list[str] = []
    for place, run in enumerate(runs):
        here = [line for number, line in run if number not in gone]
        if len(here) < len(run):
            here = here[:1] if 0 < place < len(runs) - 1 else []
        left += here
    return left


@given(st.lists(st.tuples(st.sampled_from(["", "", " ", "\r", "a", "b", "- "]), st.booleans()), min_size=1))
def test_cuts_equal_brute_force(rows):
    lines = [line for line, _ in rows]
    gone = {number for number, (_, cut) in enumerate(rows) if cut}
    assert cut_text("\n".join(lines), gone) == "\n".join(brute_force(lines, gone))


@pytest.mark.parametrize("numbers", [[3], [0, 3], [1_000_000], [-1]])
def test_a_line_that_is_not_there_is_an_error(numbers):
    with pytest.raises(ValueError, match="of a text of 3 lines"):
        cut_text("a\nb\nc", numbers)


def test_many_lines():
    text = "\n".join(["keep", "cut", ""] * 333_333)
    assert cut_text(text, range(1, 999_999, 3)).count("keep\n\nkeep") == 166_666
    assert cut_text(text, range(999_999)) == ""
    assert cut_text("x" * 10_000_000 + "\ncut", [1]) == "x" * 10_000_000


def cut_document(text: str, numbers: str, **meta: str | int) -> Document:
    return make_document(text, meta={**meta, CUT_LINES: numbers})


def test_a_document_without_cuts_is_itself():
    doc = make_document("short", meta={"copies": 1})
    assert cut_lines(doc, LineParams()) is doc


def test_the_id_stays_and_meta_tells():
    doc = cut_document("menu\nbody\nmenu", "0,2", copies=3)
    cut = cut_lines(doc, LineParams(min_chars=1))
    assert isinstance(cut, Document)
    assert (cut.text, dict(cut.meta)) == ("body", {"copies": 3, "lines_cut": 2})
    assert cut.id == document_id("menu\nbody\nmenu")
    assert CUT_LINES in doc.meta  # the element itself is untouched


@pytest.mark.parametrize(
    ("left", "min_chars", "kept"), [(299, 300, False), (300, 300, True), (1, 1, True), (0, 0, False), (1, 0, True)]
)
def test_too_little_is_dropped(left, min_chars, kept):
    answer = cut_lines(cut_document("é" * left + "\nmenu", "1"), LineParams(min_chars=min_chars))
    assert (answer == Drop("too-little-left")) is not kept


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"max_documents": 0}, "max_documents: 0 given, an integer from 1 to 4294967295 is allowed"),
        ({"max_documents": 2**32}, "max_documents: 4294967296 given"),
        ({"scope": "domain"}, "scope: 'domain' \\(text\\) given, one of source, corpus is allowed"),
        ({"min_line_words": 0}, "min_line_words: 0 given, an integer from 1 to 15 is allowed"),
        ({"min_line_words": 16}, "min_line_words: 16 given"),
        ({"min_chars": -1}, "min_chars: -1 given, 0 or more is allowed"),
    ],
)
def test_parameters_are_checked(values, message):
    with pytest.raises(ValueError, match=message):
        LineParams(**values)


def test_every_document_is_kept_dropped_or_dead():
    docs = [make_document(f"text number {n}\nmenu", f"f@{n}") for n in range(3)]
    docs += [make_document(f"text number {n}\nmenu", f"f@{n}", meta={CUT_LINES: "1"}) for n in range(3, 7)]
    docs += [make_document(f"{n}\nmenu", f"f@{n}", meta={CUT_LINES: "1"}) for n in range(7, 12)]
    docs += [make_document("text\nmenu", "f@12", meta={CUT_LINES: "2"})]  # verdicts of another text

    def build(pipeline):
        created = pipeline | beam.Create(docs).with_output_types(Document)
        kept = created | LINES(LineParams(min_chars=5), RejectParams(rate=1))
        return [kept, *take_side_outputs(pipeline)]

    kept, *side_outputs = run_and_collect(build)
    records = [orjson.loads(record) for side in side_outputs for record in side]
    counts: Counter[tuple[str, str]] = Counter()
    for record in records:
        if record["kind"] == "counter":
            counts[record["outcome"], record["reason"]] += record["documents"]
    assert counts == {("in", ""): 13, ("kept", ""): 7, ("dropped", "too-little-left"): 5, ("dead", "ValueError"): 1}
    assert sorted(doc.text for doc in kept if "lines_cut" in doc.meta) == [f"text number {n}" for n in range(3, 7)]


def test_numbers_as_meta():
    assert LINE_CUTS.noted([0, 3, 17]) == "0,3,17"
    assert LINE_CUTS.read({CUT_LINES: "0,3,17"}) == [(0,), (3,), (17,)]
    assert LINE_CUTS.read({}) == []


def test_lists_of_any_layout():
    column = pa.array([[1, 2], [], [3], [4, 5, 6], []], pa.list_(pa.uint32()))
    for chunks in ([column], [column[:0], column[:2], column[2:]], [column[1:4]], [column[3:], column[:1]]):
        expected = pa.chunked_array(chunks).to_pylist()
        offsets, values = list_values(pa.chunked_array(chunks))
        assert values.dtype == "uint32"
        assert [values[a:b].tolist() for a, b in pairwise(offsets)] == expected
    assert [len(part) for part in list_values(pa.chunked_array([], column.type))] == [1, 0]
    for bad in (pa.array([[1], None]), pa.array([[1, None]])):
        with pytest.raises(ValueError, match="nulls found"):
            list_values(pa.chunked_array([bad]))
