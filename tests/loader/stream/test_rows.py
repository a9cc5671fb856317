"""The kernel that puts rows together from pieces of shards, against numpy, and the arguments that it rejects."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.loader.native import rows

BLOCK = 8  # tokens that a flag stands for


@given(st.integers(0, 2**32), st.integers(0, 12), st.one_of(st.integers(0, 70), st.integers(0, 2000)), st.booleans())
def test_rows_are_what_numpy_says(seed: int, count: int, width: int, mixed: bool) -> None:
    """Pieces of several shards of both types, in any order, anywhere in their rows; nothing else is written."""
    draw = np.random.default_rng(seed)
    shards: dict[int, Any] = {}
    for number in range(-1, 3):
        dtype = np.dtype(draw.choice([np.uint16, np.int32, np.int64]) if mixed else np.int32)
        bounds = np.iinfo(dtype)
        tokens = draw.integers(bounds.min, bounds.max, int(draw.integers(0, 3000)), dtype, endpoint=True)
        shards[number * 2**40] = tokens, None if draw.random() < 0.5 else np.ones(len(tokens) // BLOCK + 1, np.bool_)
    first = int(draw.integers(0, 2**62))
    around = np.full((5, width), -7)
    expected = around.copy()
    pieces = []
    for _ in range(count):
        number = int(draw.choice(list(shards)))
        tokens, _ = shards[number]
        start = int(draw.integers(0, len(tokens) + 1))
        size = int(draw.integers(0, min(len(tokens) - start, width) + 1))
        row, place = int(draw.integers(0, 3)), int(draw.integers(0, width - size + 1))
        pieces.append((first + row, number, start, size, place))
        expected[1 + row, place : place + size] = tokens[start : start + size]
    assert rows.gather(shards, BLOCK, np.array(pieces, np.int64).reshape(-1, 5), first, around[1:-1]) is None
    assert (around == expected).all()


@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(2, 9000), st.sampled_from([np.uint16, np.int32, np.int64]))
def test_labels_are_the_rows_without_their_first_tokens(seed: int, count: int, width: int, dtype: Any) -> None:
    """Rows made of pieces that follow each other; what no piece covers is not written in either array."""
    draw = np.random.default_rng(seed)
    tokens = draw.integers(0, 60_000, 20_000).astype(dtype)
    out, labels = np.full((count, width), -7), np.full((count, width - 1), -7)
    pieces = []
    for row in range(count):
        ends = np.unique(draw.integers(0, width + 1, int(draw.integers(1, 6)))).tolist()
        for place, end in pairwise([0, *ends]):
            pieces.append((row, 0, int(draw.integers(0, len(tokens) - width)), end - place, place))
    shards = {0: (tokens, None)}
    assert rows.gather(shards, BLOCK, np.array(pieces, np.int64).reshape(-1, 5), 0, out, labels) is None
    expected = np.full_like(out, -7)
    for row, _, start, size, place in pieces:
        expected[row, place : place + size] = tokens[start : start + size]
    assert (out == expected).all() and (labels == expected[:, 1:]).all()


@pytest.mark.parametrize("dtype", [np.uint16, np.int32, np.int64])
def test_rows_that_no_cache_holds(dtype: Any) -> None:
    """4 MiB and more are written past the caches, in whole lines of 64 bytes and in parts of such."""
    width = 100_003
    tokens = np.random.default_rng(1).integers(0, 60_000, 3 * width).astype(dtype)
    out, labels = np.zeros((6, width), np.int64), np.zeros((6, width - 1), np.int64)
    pieces = [(row, 0, 17 * row, 5 + row, 0) for row in range(6)]
    pieces += [(row, 0, 1000 * row, width - 5 - row, 5 + row) for row in range(6)]
    assert rows.gather({0: (tokens, None)}, BLOCK, np.array(pieces), 0, out, labels) is None
    for row in range(6):
        assert (out[row, : 5 + row] == tokens[17 * row :][: 5 + row]).all()
        assert (out[row, 5 + row :] == tokens[1000 * row :][: width - 5 - row]).all()
    assert (labels == out[:, 1:]).all()


def test_pieces_at_the_end_of_their_memory() -> None:
    """Prefetching may run ahead, but nothing beyond an array is read as its token."""
    one = np.arange(33, dtype=np.int32)
    out = np.zeros((2, 33), np.int64)
    rows.gather({5: (one, None)}, 1, np.array([[0, 5, 0, 33, 0], [1, 5, 0, 33, 0]]), 0, out)
    assert (out == one).all()


def test_what_may_not_be_read_yet_is_named_and_nothing_copied() -> None:
    flags = bytearray(b"\1\0\1\1")
    shards = {0: (np.arange(30, dtype=np.uint16), flags)}
    pieces = np.array([[0, 0, 0, 8, 0], [0, 0, 16, 14, 8], [0, 0, 8, 0, 0], [0, 0, 7, 2, 3], [0, 0, 5, 20, 0]])
    out = np.full((1, 30), -1)
    assert rows.gather(shards, BLOCK, pieces, 0, out) == 3  # 7 and 8: the last of block 0, the first of block 1
    assert (out == -1).all()
    flags[1] = 1
    assert rows.gather(shards, BLOCK, pieces, 0, out) is None
    assert out[0, :22].tolist() == [*range(5, 25), 28, 29]


GOOD: dict[str, Any] = {"tokens": np.zeros(9, np.int32), "flags": bytes([1, 1]), "out": np.zeros((2, 9), np.int64)}
MOST = 2**63 - 1


@pytest.mark.parametrize(
    "piece",
    [
        (0, 1, 0, 1, 0), (0, -1, 0, 1, 0), (0, MOST, 0, 1, 0),
        (-1, 0, 0, 1, 0), (2, 0, 0, 1, 0), (MOST, 0, 0, 1, 0), (-MOST - 1, 0, 0, 1, 0),
        (0, 0, -1, 1, 0), (0, 0, 10, 0, 0), (0, 0, 9, 1, 0), (0, 0, MOST, 1, 0), (0, 0, -MOST - 1, 1, 0),
        (0, 0, 0, -1, 0), (0, 0, 0, 10, 0), (0, 0, 1, 9, 0), (0, 0, 1, MOST, 0), (0, 0, 5, MOST - 4, 0),
        (0, 0, 0, 1, -1), (0, 0, 0, 1, 9), (0, 0, 0, 2, 8), (0, 0, 0, 0, 10), (0, 0, 0, 1, MOST),
    ],
)  # fmt: skip
def test_pieces_outside_are_refused(piece: tuple[int, ...]) -> None:
    """Outside of the shards, a shard, the rows or a row, after one that is good: nothing is written."""
    out = np.full((2, 9), -1)
    pieces = np.array([(1, 0, 0, 9, 0), piece], np.int64)
    with pytest.raises(ValueError, match=r"^(pieces: piece 1 is|shards: nothing for shard)"):
        rows.gather({0: (GOOD["tokens"], GOOD["flags"])}, BLOCK, pieces, 0, out)
    assert (out == -1).all()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"tokens": np.zeros(9, np.uint64)}, "shards: items of 8 bytes"),
        ({"tokens": np.zeros(73, np.uint8)[1:].view(np.int64)}, "shards: .*aligned"),
        ({"tokens": np.zeros(9, np.uint32)}, "shards: items of 4 bytes"),
        ({"tokens": np.zeros(18, np.int32)[::2]}, "shards: "),
        ({"tokens": np.zeros(37, np.uint8)[1:].view(np.int32)}, "shards: .*aligned"),
        ({"flags": bytes(1)}, "flags: 1 given for shard 0, 2 are needed"),
        ({"flags": b""}, "flags: 0 given"),
        ({"flags": np.zeros(2, np.int32)}, "flags: an array of another type"),
        ({"out": np.zeros(18, np.int64)}, "1 dimensions given"),
        ({"out": np.zeros((1, 2, 9), np.int64)}, "3 dimensions given"),
        ({"entry": [1, 2]}, "shards: something else for shard 0"),
        ({"entry": (np.zeros(9, np.int32),)}, "shards: something else"),
        ({"pieces": np.zeros(4, np.int64)}, "pieces and out: 4 values"),
        ({"block": 0}, "block: 0 given"),
        ({"first": -1}, "first: -1 given"),
    ],
)
def test_other_arrays_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gather(changed)


def gather(changed: dict[str, Any]) -> Any:
    found: dict[str, Any] = {"block": BLOCK, "pieces": np.array([[0, 0, 0, 9, 0]]), "first": 0, **GOOD, **changed}
    entry = found.get("entry", (found["tokens"], found["flags"]))
    return rows.gather({0: entry}, found["block"], found["pieces"], found["first"], found["out"])


def test_shards_inside_the_batch_are_refused() -> None:
    out = np.zeros((2, 9), np.int64)
    with pytest.raises(ValueError, match="inside out"):
        gather({"out": out, "tokens": out.view(np.int32).ravel()[:9]})


@pytest.mark.parametrize("entry", [(None, None), (3, None), ("text", None), (np.zeros(9, np.int32), 3)])
def test_other_objects_are_refused(entry: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        gather({"entry": entry})
    with pytest.raises(TypeError):
        rows.gather([entry], 1, np.zeros((1, 5), np.int64), 0, np.zeros((2, 9), np.int64))  # type: ignore[arg-type]
