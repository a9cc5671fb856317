"""Packing against best-fit-decreasing as the textbook has it: one piece after another, a search through all rows."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.loader.native import best_fit as kernel
from refinery.loader.packing.best_fit import pack_best_fit


def naive(lengths: list[int], capacity: int) -> tuple[list[int], list[int]]:
    """Row of each piece, and the piece that opened each row."""
    order = sorted(range(len(lengths)), key=lambda piece: (-lengths[piece], piece))
    rows = [-1] * len(lengths)
    room: list[int] = []
    since: list[int] = []  # when each row got the room it has
    openers = []
    for time, piece in enumerate(order):
        fits = [row for row in range(len(room)) if room[row] >= lengths[piece]]
        if fits:
            row = min(fits, key=lambda row: (room[row], since[row]))
        else:
            row = len(room)
            room.append(capacity)
            since.append(0)
            openers.append(piece)
        rows[piece] = row
        room[row] -= lengths[piece]
        since[row] = time
    return rows, openers


@st.composite
def pieces(draw: st.DrawFn) -> tuple[list[int], int]:
    capacity = draw(st.integers(1, 60) | st.integers(60, 9000))
    return draw(st.lists(st.integers(1, capacity), max_size=80)), capacity


@given(pieces())
def test_naive(made: tuple[list[int], int]) -> None:
    lengths, capacity = made
    packing = pack_best_fit(lengths, capacity)
    assert (packing.rows.tolist(), packing.openers.tolist()) == naive(lengths, capacity)


@given(pieces(), st.lists(st.integers(0, 80), max_size=5))
def test_groups_are_packed_by_themselves(made: tuple[list[int], int], cuts: list[int]) -> None:
    lengths, capacity = made
    bounds = sorted([0, len(lengths), *(min(cut, len(lengths)) for cut in cuts)])
    rows: list[int] = []
    openers: list[int] = []
    for first, stop in pairwise(bounds):
        its, opened = naive(lengths[first:stop], capacity)
        rows += [len(openers) + row for row in its]
        openers += [first + piece for piece in opened]
    packing = pack_best_fit(lengths, capacity, bounds)
    assert (packing.rows.tolist(), packing.openers.tolist()) == (rows, openers)


def test_large_against_naive() -> None:
    """Many rows and lengths at once, as documents have them."""
    lengths = np.minimum(np.random.default_rng(3).lognormal(5, 1.2, 4000).astype(np.int64) + 2, 1024).tolist()
    packing = pack_best_fit(lengths, 1024)
    assert packing.rows.tolist() == naive(lengths, 1024)[0]
    assert sum(lengths) / (packing.count * 1024) > 0.999


def test_every_level_of_sizes() -> None:
    """Capacities above 64^2 and 64^3: what is next is found across their words, too."""
    capacity = 64**3 + 70
    lengths = [1, capacity, 64**2, capacity - 64**2, capacity - 1, 64**3, 65, 5]
    assert pack_best_fit(lengths, capacity).rows.tolist() == naive(lengths, capacity)[0] == [1, 0, 3, 3, 1, 2, 2, 2]


def test_known() -> None:
    """8 and 2, 7 and 3, 6 and 4: the last 4 finds no room."""
    packing = pack_best_fit([6, 4, 8, 2, 3, 7, 4], 10)
    assert packing.rows.tolist() == [2, 2, 0, 0, 1, 1, 3]
    assert packing.openers.tolist() == [2, 5, 0, 6]


def test_nothing() -> None:
    assert pack_best_fit([], 8).count == 0
    assert pack_best_fit([], 8, [0, 0, 0]).count == 0


@pytest.mark.parametrize(
    ("lengths", "capacity", "groups", "message"),
    [
        ([9], 8, None, "lengths: 9 to 9 given, 1 to 8"),
        ([3, 0], 8, None, "lengths: 0 to 3 given"),
        ([3], 1 << 24, None, "capacity: 16777216 given"),
        ([3, 3], 8, [0, 1], "groups: ascending values from 0 to 2"),
        ([3, 3], 8, [0, 2, 1, 2], "groups: ascending"),
        ([3, 3], 8, [], "groups: ascending"),
    ],
)
def test_wrong(lengths: list[int], capacity: int, groups: list[int] | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pack_best_fit(lengths, capacity, groups)


def test_the_kernel_checks_lengths_and_outputs_itself() -> None:
    two, bounds = np.array([3, 9], np.int64), np.array([0, 2], np.int64)
    with pytest.raises(ValueError, match="lengths: 9 given, 1 to 8"):
        kernel.pack(two, bounds, 8, np.empty(2, np.int64), np.empty(2, np.int64))
    with pytest.raises(ValueError, match="row_of and openers: 1 and 2 values given, 2 of each"):
        kernel.pack(two, bounds, 9, np.empty(1, np.int64), np.empty(2, np.int64))
