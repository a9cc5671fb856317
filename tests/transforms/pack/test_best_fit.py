"""Packing against best-fit-decreasing as the textbook has it: one piece after another, a search through all rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.pack.best_fit import pack_best_fit


def naive(lengths: list[int], ranks: list[int], capacity: int) -> tuple[list[int], list[int]]:
    """Row of each piece, and the piece that opened each row."""
    order = sorted(range(len(lengths)), key=lambda piece: (-lengths[piece], ranks[piece]))
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
def pieces(draw: st.DrawFn) -> tuple[list[int], list[int], int]:
    capacity = draw(st.integers(1, 60))
    lengths = draw(st.lists(st.integers(1, capacity), max_size=80))
    return lengths, draw(st.permutations(range(len(lengths)))), capacity


@given(pieces())
def test_naive(made: tuple[list[int], list[int], int]) -> None:
    lengths, ranks, capacity = made
    packing = pack_best_fit(lengths, ranks, capacity)
    rows, openers = naive(lengths, list(ranks), capacity)
    assert (packing.rows.tolist(), packing.openers.tolist()) == (rows, openers)


@given(pieces(), st.randoms(use_true_random=False))
def test_order_of_pieces(made: tuple[list[int], list[int], int], random: object) -> None:
    """The pieces in another order go to the same rows, and no row holds more than its capacity."""
    lengths, ranks, capacity = made
    shuffled = list(range(len(lengths)))
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    first = pack_best_fit(lengths, ranks, capacity)
    again = pack_best_fit([lengths[i] for i in shuffled], [ranks[i] for i in shuffled], capacity)
    assert again.rows.tolist() == first.rows[shuffled].tolist()
    used = np.bincount(first.rows, weights=lengths, minlength=first.count) if lengths else np.zeros(0)
    assert len(used) == first.count and (used > 0).all() and (used <= capacity).all()


def test_large_against_naive() -> None:
    """Many rows and lengths at once, as documents have them."""
    lengths = np.minimum(np.random.default_rng(3).lognormal(5, 1.2, 4000).astype(np.int64) + 2, 1024).tolist()
    packing = pack_best_fit(lengths, range(4000), 1024)
    assert packing.rows.tolist() == naive(lengths, list(range(4000)), 1024)[0]
    assert sum(lengths) / (packing.count * 1024) > 0.999


def test_known() -> None:
    """8 and 2, 7 and 3, 6 and 4: the last 4 finds no room."""
    packing = pack_best_fit([6, 4, 8, 2, 3, 7, 4], range(7), 10)
    assert packing.rows.tolist() == [2, 2, 0, 0, 1, 1, 3]
    assert packing.openers.tolist() == [2, 5, 0, 6]


def test_nothing() -> None:
    assert pack_best_fit([], [], 8).count == 0


@pytest.mark.parametrize(
    ("lengths", "ranks", "message"),
    [
        ([9], [0], "lengths: 9 to 9 given, 1 to 8"),
        ([3, 0], [0, 1], "lengths: 0 to 3 given"),
        ([3, 3], [1, 1], "ranks: given twice"),
        ([3], [0, 1], "ranks: shape"),
    ],
)
def test_wrong(lengths: list[int], ranks: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pack_best_fit(lengths, ranks, 8)
