"""Pieces of a view's rows, cut by the kernel, against a list of every token, and selections that were forged."""

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.loader.errors import FormatError
from refinery.loader.format.selection import PADDING, SEGMENT, PackedRuns, Selection, header_bytes, pack_runs
from refinery.loader.view.selected_domain import SelectedDomain

LENGTH = 9
Runs = list[tuple[int, int]]


def selection_of(segments: list[tuple[int, Runs]]) -> bytes:
    """A selection.bin; segments: tokens of the shard, and runs in it, none for all of it."""
    rows, blocks, data, token = [], [], b"", 0
    for turn, (size, runs) in enumerate(segments, 1):
        tokens = sum(length for _, length in runs) or size
        rows.append((0, 0, turn, 0, turn, len(runs), max(len(runs), 1), tokens))
        if runs:
            found: PackedRuns = pack_runs(*np.array(runs, np.int64).T)
            begins = len(data) + np.append(0, found.ends[:-1])
            blocks += list(zip(found.tokens + token, found.starts, begins << 16 | found.widths, strict=True))
            data += found.data
        token += tokens
    table = np.array(blocks, "<i8").reshape(-1, 3).T.tobytes()
    head = header_bytes(len(rows), len(blocks), len(data)) + np.array(rows, SEGMENT).tobytes()
    return head + table + data + bytes(PADDING)


def domain_of(data: bytes, sizes: list[int], first: int = 0) -> SelectedDomain:
    selection = Selection(np.frombuffer(data, np.uint8), "here")
    count = len(sizes)
    return SelectedDomain(
        "web", selection, first, first + count, numbers=10 * np.arange(count), sizes=np.array(sizes, np.int64),
        labels=np.zeros(count, np.int64), sequence_length=LENGTH, fetched=16,
    )  # fmt: skip


def some_segments(chance: random.Random) -> list[tuple[int, Runs]]:
    found = []
    for _ in range(chance.randint(1, 5)):
        runs, at = [], chance.randint(0, 3)
        for _ in range(chance.choice((0, 1, 3, 64, 65, 200))):
            length = chance.choice((1, 2, 5, 30))
            runs.append((at, length))
            at += length + chance.choice((1, 2, 90))
        found.append((at + chance.randint(1, 4), runs))
    return found


@given(st.integers(0, 2**32))
def test_pieces_have_every_token_in_order(seed: int) -> None:
    chance = random.Random(seed)
    segments = some_segments(chance)
    first = chance.randrange(len(segments))
    domain = domain_of(selection_of(segments), [size for size, _ in segments[first:]], first)
    tokens = [
        (10 * i, token)
        for i, (size, runs) in enumerate(segments[first:])
        for start, length in runs or [(0, size)]
        for token in range(start, start + length)
    ]
    assert domain.tokens == len(tokens)
    samples = [chance.randint(-1, domain.samples - 1) for _ in range(8)]
    found = domain.pieces(np.array(samples))
    assert found[:, 0].tolist() == sorted(found[:, 0].tolist())
    for row, sample in enumerate(samples):
        mine, read = found[found[:, 0] == row].tolist(), []
        for _, shard, start, count, place in mine:
            assert count > 0 and place == len(read)
            read += [(shard, token) for token in range(start, start + count)]
        begin = sample * LENGTH
        assert read == ([] if sample < 0 else tokens[begin : begin + LENGTH + 1])
        if sample >= 0:
            ranges = domain.sample_ranges(sample, sample + 1)
            assert ranges == [(shard, start, start + count) for _, shard, start, count, _ in mine]


@given(st.integers(0, 2**32))
def test_what_is_fetched_of_an_epoch_is_whole_blocks_once(seed: int) -> None:
    """Ranges of all spans of a segment, put together: no token twice, every run's, and all of each block of 16 that one
    touches. In any order and number of spans, the ranges of each are those of it alone."""
    chance = random.Random(seed)
    segments = some_segments(chance)
    domain = domain_of(selection_of(segments), [size for size, _ in segments])
    cuts = sorted({0, domain.tokens, *domain.starts.tolist(), *(chance.randint(0, domain.tokens) for _ in range(9))})
    spans = list(pairwise(cuts))
    order = chance.sample(range(len(spans)), len(spans))
    first, stop = np.array([spans[i] for i in order], np.int64).T
    found, counts = domain.ranges_of(first, stop)
    ends = np.cumsum(counts)
    for i, (begin, end) in enumerate(zip(first.tolist(), stop.tolist(), strict=True)):
        alone, _ = domain.ranges_of(np.array([begin]), np.array([end]))
        assert alone.tolist() == found[ends[i] - counts[i] : ends[i]].tolist()
    for number, (size, runs) in enumerate(segments):
        fetched = [t for shard, begin, end in found.tolist() if shard == 10 * number for t in range(begin, end)]
        assert len(fetched) == len(set(fetched))
        wanted = {t // 16 for start, length in runs or [(0, size)] for t in range(start, start + length)}
        assert {t // 16 for t in fetched} >= wanted
        touched = {t // 16 for t in fetched}
        assert set(fetched) == {t for block in touched for t in range(16 * block, min(16 * block + 16, size))}
    several, _ = domain.ranges_of(np.array([0]), np.array([domain.tokens + 5]))
    assert several.tolist() == domain.ranges_of(np.array([0]), np.array([domain.tokens]))[0].tolist()
    assert [len(each) for each in domain.ranges_of(np.empty(0, np.int64), np.empty(0, np.int64))] == [0, 0]


RUNS: Runs = [(3 * i, 2) for i in range(70)]
SIZE, AT = 300, 64 + 40  # tokens of the shard; where the blocks' table begins, of two


def forge(at: int, value: int) -> bytes:
    data = bytearray(selection_of([(SIZE, RUNS)]))
    data[at : at + 8] = (value & 2**64 - 1).to_bytes(8, "little")
    return bytes(data)


EXTREME = (-1, 1, 63, 127, 2**31, 2**47, 2**62, 2**63 - 1, -(2**63))


@pytest.mark.parametrize("column", range(6))
@pytest.mark.parametrize("value", EXTREME)
def test_forged_blocks_are_errors(column: int, value: int) -> None:
    """First tokens, starts and places of both blocks: an error, or the tokens that they say, inside of the shard."""
    domain = domain_of(forge(AT + 8 * column, value), [SIZE])
    try:
        found = domain.pieces(np.arange(domain.samples))
    except FormatError as error:
        assert "here: block" in str(error) and "damaged or forged" in str(error)
        return
    assert (found[:, 2] >= 0).all() and (found[:, 2] + found[:, 3] <= SIZE).all() and (found[:, 3] > 0).all()


@given(st.binary(min_size=8, max_size=60), st.integers(0, 80))
def test_any_bytes_for_runs(noise: bytes, at: int) -> None:
    data = bytearray(selection_of([(SIZE, RUNS)]))
    at = AT + min(at, len(data) - AT - len(noise) - PADDING)
    data[at : at + len(noise)] = noise
    domain = domain_of(bytes(data), [SIZE])
    try:
        found = domain.pieces(np.arange(domain.samples))
    except FormatError:
        return
    assert (found[:, 2] >= 0).all() and (found[:, 2] + found[:, 3] <= SIZE).all() and (found[:, 3] > 0).all()
    assert found[:, 3].sum() == domain.tokens + domain.samples - 1  # neighbouring samples share a token


def test_rows_outside_of_the_domain() -> None:
    domain: Any = domain_of(selection_of([(SIZE, RUNS)]), [SIZE])
    with pytest.raises(ValueError, match="begins and ends: row 1"):
        domain.cut(np.array([0, 5]), np.array([1, 141]))
