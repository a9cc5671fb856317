"""Samples against one long array of all tokens: places, ranges, reading, document starts, tokens per shard."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loader import samples as samples_module
from loader.indexed import Index
from loader.samples import DocumentStarts, Domain

# Lengths of the documents of each shard; shards and documents may be empty.
SHARDS = st.lists(st.lists(st.integers(0, 9), max_size=8), min_size=1, max_size=6)


class Memory:
    """A source of shards that are numbered 0, 10, 20, ...: token t of all is the number t."""

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
    shard, start, valid, whole = domain.locate(np.arange(domain.samples))
    read = []
    for i in range(domain.samples):
        row = np.full(length + 1, -1)
        domain.read(source, i, row)
        read += row[: min(length, valid[i])].tolist()
        assert row[: valid[i]].tolist() == list(range(i * length, min(i * length + length + 1, total)))
        assert (row[valid[i] :] == -1).all()
        assert source.tokens[int(shard[i])][int(start[i])] == i * length
        assert whole[i] == (start[i] + length + 1 <= len(source.tokens[int(shard[i])]))
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
    starts, counts = DocumentStarts(source.index).inside(domain, some)
    ends = np.cumsum(counts)
    for i, sample in enumerate(some):
        row = starts[ends[i] - counts[i] : ends[i]].tolist()
        stop = min(sample * length + length + 1, domain.tokens)
        within = [b - sample * length for b in begins.tolist() if sample >= 0 and sample * length <= b < stop]
        # Empty documents start where another does, and those at a shard's end need not show.
        assert sorted(set(row)) == sorted(set(within))
        assert row == sorted(row)


def test_ranges() -> None:
    domain = domain_of([[5], [], [3, 3], [2]], 4)
    assert domain.ranges(0, 13) == [(0, 0, 5), (20, 0, 6), (30, 0, 2)]
    assert domain.ranges(4, 5) == [(0, 4, 5)]
    assert domain.ranges(6, 6) == []
    assert domain.sample_ranges(1, 2) == [(0, 4, 5), (20, 0, 4)]
    assert domain.sample_ranges(3, 4) == [(30, 1, 2)]


def test_an_empty_row() -> None:
    _, _, valid, whole = domain_of([[50]], 4).locate(np.array([-1, 0]))
    assert valid.tolist() == [0, 5] and whole.tolist() == [False, True]


def test_indexes_are_kept_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    shards = [[4] * 5, [4] * 5, [4] * 5]
    domain, source = domain_of(shards, 4), Memory(shards)
    starts = DocumentStarts(source.index)
    for sample in (0, 1, 6, 0, 11, 0):
        starts.inside(domain, [sample])
    assert source.loaded == [0, 10, 20]
    monkeypatch.setattr(samples_module, "MAX_DOCUMENTS", 10)
    tight = DocumentStarts(source.index)
    for sample in (0, 6, 0, 11, 6, 0):
        found, _ = tight.inside(domain, [sample])
        assert found.tolist() == [0, 4]
    assert source.loaded[3:] == [0, 10, 20, 10, 0]
