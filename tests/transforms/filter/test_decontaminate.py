"""Items of benchmarks in documents: found however they are written, dropped or cut, and counted."""

import json
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.loader.format.funnel import check_funnel
from refinery.pipelines.run.funnel import build_funnel
from refinery.transforms.core.answers import Answer
from refinery.transforms.core.document import Document, Drop
from refinery.transforms.core.job.report import merge_records
from refinery.transforms.filter.decontaminate import (
    DECONTAMINATE,
    MAX_WORD,
    DecontaminateParams,
    covered,
    cut_spans,
    judge_contamination,
    load_benchmarks,
)
from tests.beam import make_document, merge_side_outputs, run_and_collect

QUESTION = (
    "A farmer has seventeen red hens in a barn, and each of them lays three eggs on every second day of the week. "
    "How many eggs can he sell at the market after a fortnight?"
)
OTHER = "Which river flows past the small town where the inventor of the steam plough was born in the year 1830?"
FILLER = "Nothing of what stands here was ever asked in an examination of any kind, said the old teacher. " * 8


@pytest.fixture
def params(tmp_path: Path) -> DecontaminateParams:
    rows = [{"id": "hens", "question": QUESTION, "answer": "119"}, {"id": 7, "question": OTHER, "answer": "none"}]
    (tmp_path / "farm.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return DecontaminateParams(benchmarks=({"path": str(tmp_path / "farm.jsonl")},))


def judge(text: str, params: DecontaminateParams) -> Any:
    return judge_contamination(make_document(text), load_benchmarks(params), params)


@pytest.mark.parametrize(
    "text",
    [
        QUESTION,
        QUESTION.upper(),
        QUESTION.replace(" ", "\n\t "),
        QUESTION.replace(",", " --").replace(".", "!!"),
        f"«{QUESTION.replace(' ', '_')}»",
        FILLER + QUESTION + FILLER,
        " ".join(QUESTION.split()[4:20]),
        " ".join(QUESTION.split()[:15]) + " [...]",
    ],
)
def test_an_item_is_found_however_it_is_written(text: str, params: DecontaminateParams) -> None:
    assert judge(text, params) == Answer(Drop("benchmark-overlap"), ("farm/hens",))


def test_a_text_without_items_stays_as_it_is(params: DecontaminateParams) -> None:
    doc = make_document(FILLER + " ".join(QUESTION.split()[:12]))
    assert judge_contamination(doc, load_benchmarks(params), params) is doc


def test_items_are_cut_out_with_what_is_around_them(params: DecontaminateParams) -> None:
    cut = params.replace(action="cut", margin=0, min_chars=50)
    found = judge(f"{FILLER}\n{QUESTION}\n{FILLER}", cut)
    assert found.found == ("farm/hens",) and found.result.meta == {"benchmark_cuts": 1}
    assert found.result.text == f"{FILLER.strip()}\n\n{FILLER.strip()}"
    assert judge(found.result.text, cut) == make_document(found.result.text)
    wide = judge(f"{FILLER}\n{QUESTION}\n{FILLER}", cut.replace(margin=200)).result.text
    assert 300 < len(found.result.text) - len(wide) <= 400 + 4 * MAX_WORD
    assert judge(QUESTION, cut).result == Drop("little-beside-benchmark")
    assert judge(f"{FILLER}\n{QUESTION}\n" * 3, cut.replace(max_cuts=2)).result == Drop("many-benchmark-cuts")


@given(
    st.text("ab \n", max_size=80),
    st.lists(st.tuples(st.integers(0, 80), st.integers(0, 20)), min_size=1, max_size=5),
    st.integers(0, 9),
)
def test_what_is_cut_is_gone_and_nothing_is_added(text: str, places: list[tuple[int, int]], margin: int) -> None:
    spans = [[min(start, len(text)), min(start + size, len(text))] for start, size in places]
    cut, cuts = cut_spans(text, spans, margin, 0)
    gone = {i for start, end in spans for i in range(max(0, start - margin), min(len(text), end + margin))}
    rest = [c for i, c in enumerate(text) if i not in gone and not c.isspace()]
    left = iter(rest)
    assert all(c in left for c in cut if not c.isspace())  # a subsequence of what lies outside the cuts
    assert 1 <= cuts <= len(spans)


def test_every_document_is_counted_and_every_item_is_named(params: DecontaminateParams) -> None:
    docs = [make_document(text, f"f@{i}") for i, text in enumerate([QUESTION, OTHER, QUESTION + OTHER, FILLER])]

    def build(pipeline: beam.Pipeline) -> list[beam.PCollection]:
        return [pipeline | beam.Create(docs) | DECONTAMINATE(params), merge_side_outputs(pipeline)]

    kept, records = run_and_collect(build)
    assert [doc.text for doc in kept] == [FILLER]
    rejects = [json.loads(record) for record in records if b'"reject"' in record]
    assert sorted(row["found"] for row in rejects) == ["farm/7", "farm/hens", "farm/hens, farm/7"]
    (row,) = build_funnel(
        merge_records(r for r in records if b'"reject"' not in r)["counters"], ["decontaminate"], ["s"]
    )
    assert check_funnel([row]) == [] and row["dropped"]["benchmark-overlap"]["documents"] == 3
    assert (row["found"]["farm"]["items"], row["found"]["farm"]["documents"]) == (2, 3)


def test_ignored_texts_prove_nothing(params: DecontaminateParams, tmp_path: Path) -> None:
    (tmp_path / "known.txt").write_text(QUESTION)
    lenient = params.replace(ignore=(str(tmp_path / "known.txt"),))
    assert isinstance(judge(QUESTION, lenient), Document)
    assert judge(OTHER, lenient).found == ("farm/7",)


def test_note_says_how_much_and_drops_nothing(params: DecontaminateParams) -> None:
    note = params.replace(action="note")
    found = judge(f"{QUESTION}\n{OTHER}", note)
    assert set(found.found) == {"farm/hens", "farm/7"}
    assert found.result.meta["benchmark_items"] == 2 and found.result.meta["benchmark_share"] > 0.95
    part = judge(f"{FILLER}\n{QUESTION}\n{FILLER}", note)
    assert part.result.text == f"{FILLER}\n{QUESTION}\n{FILLER}" and part.result.meta["benchmark_items"] == 1
    assert part.result.meta["benchmark_share"] == pytest.approx(len(QUESTION) / len(part.result.text), abs=0.02)
    assert judge(FILLER, note).meta == {"benchmark_items": 0, "benchmark_share": 0.0}
    assert [n.name for n in DECONTAMINATE.asked_notes(note)] == ["benchmark_items", "benchmark_share"]
    assert not DECONTAMINATE.asked_notes(params)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9)), max_size=8))
def test_covered_counts_every_character_once(spans: list[tuple[int, int]]) -> None:
    listed = [[start, start + length] for start, length in spans]
    assert covered(listed) == len({at for start, end in listed for at in range(start, end)})
