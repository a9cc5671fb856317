"""Samples against one array of all tokens: positions, ranges, reading, document starts, tokens per shard."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.loader.format.indexed import Index
from refinery.loader.native import documents as kernel
from refinery.loader.read import samples as samples_module
from refinery.loader.read.samples import DocumentStarts, Domain, interleave

# Lengths of the documents of each shard; shards and documents may be empty.
SHARDS = st.lists(st.lists(st.integers(0, 9), max_size=8), min_size=1, max_size=6)


class Memory:
    """A source of shards numbered 0, 10, 20, ..., in which token t of all tokens has the id t."""

    def __init__(self, shards: Sequence[Sequence[int]]) -> None:
        sizes = [sum(lengths) for lengths in shards]
        starts = np.cumsum([0, *sizes])
        self.tokens = {10 * i: np.arange(starts[i], starts[i + 1]) for i in range(len(sizes))}
        self.loaded: list[int] = []
        self._lengths = shards

    def read_into(self, shard: int, start: int, out: np.ndarray) -> None:
        assert start >= 0 and start + len(out) <= len(self.tokens[shard])
        out[:] = self.tokens[shard][start : start + len(out)]

    def index(self, shard: int) -> Index:
        self.loaded.append(shard)
        lengths = np.array(self._lengths[shard // 10], np.int32)
        return Index(np.dtype("<u2"), lengths, 2 * (np.cumsum(lengths, dtype=np.int64) - lengths))

    def will_need(self, ranges: object) -> None: ...

    def done_with(self, ranges: object) -> None: ...

    def close(self) -> None: ...


def domain_of(shards: Sequence[Sequence[int]], length: int) -> Domain:
    return Domain("web", [(10 * i, sum(lengths)) for i, lengths in enumerate(shards)], length)


@given(SHARDS, st.integers(1, 12))
@settings(deadline=None)
def test_every_token_is_an_input_once_and_labels_follow(shards: list[list[int]], length: int) -> None:
    domain, source = domain_of(shards, length), Memory(shards)
    total = sum(map(sum, shards))
    assert (domain.tokens, domain.samples) == (total, -(-total // length))
    valid = domain.valid(np.arange(domain.samples))
    read = []
    for i in range(domain.samples):
        row = np.full(length + 1, -1)
        for _, number, begin, count, place in domain.pieces(np.array([i])).tolist():
            source.read_into(number, begin, row[place : place + count])
        read += row[: min(length, valid[i])].tolist()
        assert row[: valid[i]].tolist() == list(range(i * length, min(i * length + length + 1, total)))
        assert (row[valid[i] :] == -1).all()
    assert read == list(range(total))


@given(SHARDS, st.integers(1, 12), st.lists(st.integers(0, 40), max_size=6))
@settings(deadline=None)
def test_tokens_per_shard(shards: list[list[int]], length: int, chosen: list[int]) -> None:
    domain = domain_of(shards, length)
    some = [i for i in chosen if i < domain.samples]
    inputs = [t for i in some for t in range(i * length, min((i + 1) * length, domain.tokens))]
    expected = [sum(t in tokens for t in inputs) for tokens in Memory(shards).tokens.values()]
    assert domain.inputs_per_shard(np.array([*some, -1])).tolist() == expected
    assert (domain.inputs_per_shard(np.arange(domain.samples)) == np.diff(domain.starts)).all()


@given(SHARDS, st.integers(1, 12), st.data())
@settings(deadline=None)
def test_document_starts(shards: list[list[int]], length: int, data: st.DataObject) -> None:
    domain, source = domain_of(shards, length), Memory(shards)
    some = data.draw(st.lists(st.integers(-1, domain.samples - 1), max_size=5))
    begins = np.cumsum([0, *(n for lengths in shards for n in lengths)])[:-1]
    starts, counts = DocumentStarts(source.index).inside(domain.pieces(np.array(some, np.int64)), 0, len(some))
    ends = np.cumsum(counts)
    for i, sample in enumerate(some):
        row = starts[ends[i] - counts[i] : ends[i]].tolist()
        stop = min(sample * length + length + 1, domain.tokens)
        within = [b - sample * length for b in begins.tolist() if sample >= 0 and sample * length <= b < stop]
        # Empty documents start where another does, and those at a shard's end may be missing.
        assert sorted(set(row)) == sorted(set(within))
        assert row == sorted(row)


@given(
    st.lists(st.integers(0, 60), max_size=30).map(sorted),
    st.lists(st.tuples(st.integers(-5, 70), st.integers(-5, 70), st.integers(-9, 9)), max_size=8),
)
def test_the_kernel_finds_documents(offsets: list[int], ranges: list[tuple[int, int, int]]) -> None:
    begins, stops, shifts = np.array(ranges, np.int64).reshape(-1, 3).T.copy()
    starts, counts = kernel.find(np.array(offsets, np.int64), begins, stops, shifts)
    expected = [[offset + shift for offset in offsets if begin <= offset < stop] for begin, stop, shift in ranges]
    assert np.frombuffer(starts, np.int64).tolist() == [start for row in expected for start in row]
    assert np.frombuffer(counts, np.int64).tolist() == [len(row) for row in expected]


def test_the_kernel_rejects_other_arrays() -> None:
    one, two = np.zeros(1, np.int64), np.zeros(2, np.int64)
    for given_ in (
        (one, two, one, one),
        (one, one, two, one),
        (one, one, one, two),
        (np.zeros(2, np.int32), *[one] * 3),
    ):
        with pytest.raises(ValueError, match=r"(is|are) needed"):
            kernel.find(*given_)
    misaligned = np.zeros(17, np.uint8)[1:].view(np.int64)
    with pytest.raises(ValueError, match=r"(is|are) needed"):
        kernel.find(misaligned, two, two, two)
    starts, counts = kernel.find(np.array([9, 0, 9, 0]), np.array([0, -(2**63)]), np.array([5, 2**63 - 1]), two)
    assert len(starts) <= 8 * 8 and len(counts) == 16  # unsorted offsets: meaningless, but memory-safe


@given(st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=8), st.data())
def test_interleave(rows: list[list[int]], data: st.DataObject) -> None:
    owner = np.array([data.draw(st.integers(0, 2)) for _ in rows], np.int64)
    parts = []
    for part in range(3):
        places = np.flatnonzero(owner == part)
        mine = [rows[i] for i in places.tolist()]
        parts.append(
            (
                places,
                np.array([start for row in mine for start in row], np.int64),
                np.array([len(row) for row in mine], np.int64),
            )
        )
    starts, counts = interleave([part for part in parts if len(part[0])], len(rows))
    assert starts.tolist() == [start for row in rows for start in row] and counts.tolist() == [len(row) for row in rows]


def test_ranges() -> None:
    domain = domain_of([[5], [], [3, 3], [2]], 4)
    assert domain.ranges(0, 13) == [(0, 0, 5), (20, 0, 6), (30, 0, 2)]
    assert domain.ranges(4, 5) == [(0, 4, 5)]
    assert domain.ranges(6, 6) == []
    assert domain.sample_ranges(1, 2) == [(0, 4, 5), (20, 0, 4)]
    assert domain.sample_ranges(3, 4) == [(30, 1, 2)]


def test_an_empty_row() -> None:
    domain = domain_of([[50]], 4)
    assert domain.valid(np.array([-1, 0])).tolist() == [0, 5]
    assert domain.pieces(np.array([-1, 0])).tolist() == [[1, 0, 0, 5, 0]]


def test_indexes_are_kept_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    shards = [[4] * 5, [4] * 5, [4] * 5]
    domain, source = domain_of(shards, 4), Memory(shards)
    starts = DocumentStarts(source.index)
    for sample in (0, 1, 6, 0, 11, 0):
        starts.inside(domain.pieces(np.array([sample])), 0, 1)
    assert source.loaded == [0, 10, 20]
    monkeypatch.setattr(samples_module, "MAX_DOCUMENTS", 10)
    tight = DocumentStarts(source.index)
    for sample in (0, 6, 0, 11, 6, 0):
        found, _ = tight.inside(domain.pieces(np.array([sample])), 0, 1)
        assert found.tolist() == [0, 4]
    assert source.loaded[3:] == [0, 10, 20, 10, 0]


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(0, 120), st.integers(0, 60)), max_size=12),
)
def test_ranges_of_many_spans_are_those_of_each(shards: list[int], spans: list[tuple[int, int]]) -> None:
    domain = Domain("web", enumerate(shards), 4)
    spans = [(first, first + count) for first, count in spans if first <= sum(shards)]
    array = np.array(spans, np.int64).reshape(-1, 2)
    ranges, counts = domain.ranges_of(array[:, 0], array[:, 1])
    each = [domain.ranges(first, stop) for first, stop in spans]
    assert list(map(tuple, ranges.tolist())) == [part for parts in each for part in parts]
    assert counts.tolist() == [len(parts) for parts in each]
