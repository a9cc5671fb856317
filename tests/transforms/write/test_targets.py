"""Targets: which documents a source keeps, and that nothing but ids and tokens decides it."""

import hashlib
from collections.abc import Sequence

import apache_beam as beam
import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.core.counters import Counters
from refinery.transforms.statistics.dropped import Dropped
from refinery.transforms.tokenize.encode import EncodedDocument
from refinery.transforms.write.document_batch import BATCH_SCHEMA
from refinery.transforms.write.find_cuts import FindCuts, add_sums
from refinery.transforms.write.targets import BYTES_PER_TOKEN, SLICES, cut_tables, expected_bytes, first_cut, slice_of
from tests.beam import run_and_collect

sizes = st.lists(st.integers(1, 50), max_size=60)


def id_of(number: int) -> bytes:
    return hashlib.blake2b(b"%d" % number, digest_size=16).digest()


def sums_of(tokens: Sequence[int]) -> np.ndarray:
    sums = np.zeros(SLICES, np.int64)
    for number, size in enumerate(tokens):
        sums[slice_of(id_of(number))] += size
    return sums


def kept(tokens: Sequence[int], target: int) -> set[int]:
    cut = first_cut(sums_of(tokens), target)
    return {number for number in range(len(tokens)) if slice_of(id_of(number)) < cut}


@given(sizes, st.integers(1, 3000))
def test_a_source_keeps_the_longest_beginning_that_the_target_holds(tokens: list[int], target: int) -> None:
    """Against a plain reading of the rule: slice after slice, as long as all fit."""
    expected: set[int] = set()
    total = 0
    for part in sorted({slice_of(id_of(number)) for number in range(len(tokens))}):
        inside = {number for number in range(len(tokens)) if slice_of(id_of(number)) == part}
        total += sum(tokens[number] for number in inside)
        if total > target:
            break
        expected |= inside
    assert kept(tokens, target) == expected


@given(sizes, st.integers(1, 3000), st.integers(0, 500))
def test_a_larger_target_keeps_what_a_smaller_one_kept(tokens: list[int], target: int, more: int) -> None:
    assert kept(tokens, target) <= kept(tokens, target + more)


def test_slices_are_pinned() -> None:
    """Another hash would be another corpus."""
    assert [slice_of(id_of(number)) for number in range(4)] == [40341, 43947, 38773, 3152]


@given(st.lists(st.lists(st.integers(0, 9), max_size=3), max_size=4))
def test_sums_do_not_depend_on_how_they_are_added(groups: list[list[int]]) -> None:
    every = [sums_of(group).tobytes() for group in groups]
    halves = [add_sums(every[:2]).tobytes(), add_sums(every[2:]).tobytes()]
    assert add_sums(every).tolist() == add_sums(halves).tolist() == add_sums(every[::-1]).tolist()


def test_cuts_are_found_in_a_pipeline_whatever_the_bundles() -> None:
    docs = [
        EncodedDocument(id_of(number), np.zeros(10 + number % 7, np.uint16), "ab"[number % 2], "u", "o", 9, {})
        for number in range(120)
    ]
    expected = first_cut(
        np.sum([np.bincount([slice_of(d.id)], [len(d.tokens)], SLICES) for d in docs if d.source == "a"], 0), 300
    )

    def build(pipeline: beam.Pipeline) -> list[beam.PCollection]:
        return [pipeline | beam.Create(docs) | beam.Reshuffle() | FindCuts({"a": 300, "none": 5})]

    assert run_and_collect(build) == [[("a", expected)]]
    assert 0 < expected < SLICES


def documents(numbers: Sequence[int], source: str) -> pa.Table:
    rows = [
        {"order": n, "id": id_of(n), "origin": f"o{n}", "url": "", "source": source, "text_bytes": n, "meta": "{}",
         "tokens": b"xx"} for n in numbers
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=BATCH_SCHEMA)


def test_every_document_is_kept_or_counted() -> None:
    cut = slice_of(id_of(5))
    counters, dropped = Counters("target"), Dropped()
    tables = [documents(range(10), "a"), documents(range(10, 15), "b"), documents([], "a")]
    tables = list(cut_tables(tables, {"a": cut}, counters, dropped))
    left = {n for n in range(10) if slice_of(id_of(n)) < cut}
    assert {row["text_bytes"] for row in tables[0].to_pylist()} == left
    assert [table.num_rows for table in tables[1:]] == [5, 0]
    gone = set(range(10)) - left
    assert {row[2] for row in dropped.examples["target", "over-target"].values()} == {f"o{n}" for n in gone}
    assert counters.counts == {
        ("a", "in", ""): [10, 45],
        ("a", "kept", ""): [len(left), sum(left)],
        ("a", "dropped", "over-target"): [len(gone), sum(gone)],
        ("b", "in", ""): [5, 60],
        ("b", "kept", ""): [5, 60],
    }


def test_shards_are_as_many_as_the_target_needs() -> None:
    found = expected_bytes({"a": {"documents": 9, "bytes": 1000}, "b": {"documents": 1, "bytes": 50}}, {"a": 100})
    assert found == {"a": {"documents": 9, "bytes": 100 * BYTES_PER_TOKEN}, "b": {"documents": 1, "bytes": 50}}
