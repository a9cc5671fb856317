"""Layouts of blocks: the same from a ring of any size, in any order and thread, and wrong numbers are refused."""

import itertools
import sys
import threading
from types import FrameType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.loader.native import layouts as kernel
from refinery.loader.native import row_pieces
from refinery.loader.order.arrays import I64
from refinery.loader.packing import layouts
from refinery.loader.packing.best_fit_domain import BestFitDomain
from refinery.loader.packing.layouts import Layouts
from refinery.loader.packing.row_table import NOISE, RowTable, pack_documents
from tests.native.kernel_calls import call, i8


def tables() -> tuple[RowTable, int]:
    sizes = np.random.default_rng(4).integers(1, 90, 400)
    ends = np.cumsum(sizes)
    return pack_documents(ends - sizes, ends, 64, 700, NOISE), int(ends[-1])


TABLE, TOKENS = tables()


def made() -> Layouts:
    return Layouts(TABLE, i8(0, TOKENS // 2, TOKENS), 64, NOISE)


def made_small() -> Layouts:
    before = layouts.MOST
    try:
        layouts.MOST = 1
        return made()
    finally:
        layouts.MOST = before


ROW = st.integers(-1, TABLE.rows - 1)


@given(st.lists(st.tuples(st.lists(ROW, max_size=60), st.integers(0, 9)), max_size=12))
def test_a_small_ring_is_as_good(asked: list[tuple[list[int], int]]) -> None:
    """Layouts that were pushed out are made again; rows of more blocks than there is room for come in parts."""
    large, small = made(), made_small()
    assert small._size < large._size
    for rows, epoch in asked:
        assert small.find(i8(*rows), epoch).tolist() == large.find(i8(*rows), epoch).tolist()


def test_every_piece_is_in_one_row_of_each_epoch() -> None:
    for epoch in range(20):
        row, part, start, size, place = made().find(np.arange(TABLE.rows), epoch).T
        first = start + np.array([0, TOKENS // 2])[part]
        begins = np.isin(first, TABLE.starts)  # the other half of the one piece that is in both parts does not
        assert np.array_equal(np.sort(first[begins]), TABLE.starts)
        assert (np.bincount(row, minlength=TABLE.rows) > 0).all()
        inputs = np.minimum(size, 64 - place)
        assert (np.bincount(row, weights=inputs) <= 64).all() and inputs.sum() == TOKENS


def test_threads_and_forked_children() -> None:
    one, rows = made(), np.arange(TABLE.rows)
    expected = [made().find(rows, epoch).tolist() for epoch in range(4)]
    found: dict[int, Any] = {}
    threads = [threading.Thread(target=lambda k=k: found.update({k: one.find(rows, k % 4).tolist()})) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[k] for k in range(8)] == expected * 2
    one._lock.acquire()  # by a thread of the parent that the child does not have
    one._process = -1
    assert one.find(rows, 3).tolist() == expected[3]


def test_an_interrupt_at_any_line_changes_nothing() -> None:
    """A training loop in a notebook may be stopped between the ring's change and the note of it, and go on later."""
    rows = np.random.default_rng(1).integers(0, TABLE.rows, (30, 3))
    expected = [made().find(some, 0).tolist() for some in rows]
    for line in itertools.count():
        small, left = made_small(), line

        def trace(frame: FrameType, event: str, _: object) -> Any:
            nonlocal left
            if frame.f_code.co_filename != layouts.__file__ or frame.f_code.co_name not in (
                "_find",
                "_lay_out",
                "_room",
                "_drop",
            ):
                return None
            left -= event == "line"
            if left < 0:
                raise KeyboardInterrupt
            return trace

        for some in rows[:9]:
            small.find(some, 0)
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            small.find(rows[9], 0)
            interrupted = False
        except KeyboardInterrupt:
            interrupted = True
        finally:
            sys.settrace(before)
        assert [small.find(some, 0).tolist() for some in rows[9:]] == expected[9:], line
        if not interrupted:
            break
    assert line > 20


def test_threads_share_what_was_found_last() -> None:
    """What another thread replaces between a look and its use is not used."""
    domain = BestFitDomain.__new__(BestFitDomain)
    domain._last = i8(1, 2), i8(11, 12)

    class Replacing:
        def __array__(self, *_: object, **__: object) -> I64:
            domain._last = i8(3), i8(13)
            return i8(1, 2)

    assert domain._pieces(Replacing()).tolist() == [11, 12]  # type: ignore[arg-type]


def test_known() -> None:
    assert np.frombuffer(call(row_pieces.find, {}), np.int64).reshape(-1, 5).tolist() == [
        [0, 0, 0, 3, 0],
        [2, 2, 4, 2, 0],
    ]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"reads": np.array([3, 6, 2], np.int32)}, "reads: 6 given, 1 to 5"),
        ({"reads": np.array([3, 0, 2], np.int32)}, "reads: 0 given"),
        ({"reads": np.zeros(2, np.int32)}, "as many values"),
        ({"wanted": i8(0, 2)}, "wanted: 2 given, 0 to 1"),
        ({"wanted": i8(-1, 0)}, "wanted: -1 given"),
        ({"at": i8(0, 6)}, "wanted: block 1 has pieces 2 to 3"),
        ({"at": i8(-1, 5)}, "wanted: block 0"),
        ({"piece_bounds": i8(0, 4, 3)}, "wanted: block 0"),
        ({"piece_bounds": i8(-1, 2, 3)}, "wanted: block 0"),
        ({"row_bounds": i8(0, 3, 4)}, "wanted: block 0"),
        ({"row_bounds": i8(0, 1, 2)}, "row_bounds: block 0 has another number of rows"),
    ],
)
def test_wrong_blocks(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(kernel.lay_out, changed)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rows": i8(3)}, "rows: 3 given, -1 to 2"),
        ({"rows": i8(-2)}, "rows: -2 given"),
        ({"slots": i8(-1, 5)}, "layouts: none of the block of row 1"),
        ({"slots": i8(4, 5)}, "layouts: none"),
        ({"slots": i8(0)}, "sizes that fit"),
        ({"piece_bounds": i8(2, 4, 3)}, "layouts: none"),
        ({"layouts": np.array([0, 1, 3, 1, 0, 0, 1, 0], np.int32)}, "layouts: none"),
        ({"layouts": np.array([0, 2, 1, 1, 0, 0, 1, 0], np.int32)}, "layouts: none"),
        ({"layouts": np.array([0, 1, 2, 1, 2, 0, 1, 0], np.int32)}, "layouts: none"),
        ({"layouts": np.array([0, 1, 2, 1, -1, 0, 1, 0], np.int32)}, "layouts: none"),
        ({"starts": i8(-1, 3, 7)}, "layouts: none"),
        ({"starts": i8(7, 3, 7)}, "layouts: none"),
        ({"reads": np.array([0, 4, 2], np.int32)}, "layouts: none"),
        ({"parts": i8(0, 9, 3)}, "parts: ascending"),
        ({"row_bounds": i8(0, 4, 3)}, "row_bounds: ascending"),
    ],
)
def test_wrong_layouts(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(row_pieces.find, changed)
