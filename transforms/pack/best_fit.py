"""Best-fit-decreasing packing of lengths into rows of one capacity, exact, for tens of millions at a time.

The longest piece comes first; each goes into the row with the least room that still holds it, or opens a row (Johnson
et al. 1974, "Worst-case performance bounds for simple one-dimensional packing algorithms"; for language models
Ding et al. 2024, "Fewer Truncations Improve Language Modeling", arXiv:2404.10830, section 3). Since equal lengths
come one after another, the pieces of one length and the rows of one room are handled together, as arrays: what a row
of room r takes of length l is r // l pieces, and no other row has less room in the meantime.
"""

from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Packing:
    """rows: int64 [n], the row of each piece; rows are numbered as they are opened. openers: int64 [count], the piece
    that opened each row, the longest of it."""

    rows: I64
    openers: I64

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.openers)


def pack_best_fit(lengths: npt.ArrayLike, ranks: npt.ArrayLike, capacity: int) -> Packing:
    """Rows of at most `capacity` for pieces of these lengths, [n] each. The same for any order of the pieces.

    ranks: int64, all different; they order pieces of the same length. Of rows with the same room the one comes first
    that has had it for longest. Raises ValueError for a length outside 1 to capacity, and for a rank given twice with
    the same length.

    Cost: a sort of the pieces, and one step of a few numpy calls for each length and group of rows that it meets: at
    most two groups more after each length, so at most n and at most capacity squared steps; 60 bytes a piece.
    """
    sizes, ties = np.asarray(lengths, np.int64), np.asarray(ranks, np.int64)
    if sizes.shape != ties.shape or sizes.ndim != 1:
        raise ValueError(f"ranks: shape {ties.shape} given, that of lengths, {sizes.shape}, is allowed")
    if len(sizes) and not 1 <= int(sizes.min()) <= int(sizes.max()) <= capacity:
        raise ValueError(f"lengths: {sizes.min()} to {sizes.max()} given, 1 to {capacity} is allowed")
    order = np.lexsort((ties, -sizes))
    if bool(((np.diff(sizes[order]) == 0) & (np.diff(ties[order]) == 0)).any()):
        raise ValueError("ranks: given twice for the same length, each once is allowed")
    rows = np.empty(len(sizes), np.int64)
    openers = []
    shelf = _Shelf(capacity)
    place = 0
    counts = np.bincount(sizes, minlength=1)
    for length in np.flatnonzero(counts)[::-1].tolist():
        stop = place + int(counts[length])
        while place < stop:
            opened = shelf.opened
            taken = shelf.place(length, stop - place)
            if shelf.opened > opened:  # each row's first piece
                each = capacity // length
                openers.append(order[place : place + len(taken) : each])
            rows[order[place : place + len(taken)]] = taken
            place += len(taken)
    return Packing(rows, np.concatenate([np.empty(0, np.int64), *openers]))


class _Shelf:
    """Rows by the room that they have left. opened: number of rows so far."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.opened = 0
        self._rooms: list[int] = []  # ascending: rooms that some row has
        self._rows: dict[int, deque[I64]] = {}  # room -> rows that have it, the longest first

    def place(self, length: int, count: int) -> I64:
        """Rows of the next pieces of `length`, of which `count` are left; at least one piece, as many as fit the first
        group of rows with the least room."""
        index = bisect_left(self._rooms, length)
        if index < len(self._rooms):
            room = self._rooms[index]
            each = room // length
            rows = self._take(index, -(-count // each))
        else:
            room, each = self.capacity, self.capacity // length
            rows = np.arange(self.opened, self.opened - (-count // each), dtype=np.int64)
            self.opened += len(rows)
        over = len(rows) * each - count  # pieces that the last row could have taken beside
        if over > 0:
            self._put(room - each * length, rows[:-1])
            self._put(room - (each - over) * length, rows[-1:])
        else:
            self._put(room - each * length, rows)
        return np.repeat(rows, each)[:count]

    def _take(self, index: int, most: int) -> I64:
        groups = self._rows[self._rooms[index]]
        rows = groups.popleft()
        if len(rows) > most:
            groups.appendleft(rows[most:])
        if not groups:
            del self._rows[self._rooms.pop(index)]
        return rows[:most]

    def _put(self, room: int, rows: I64) -> None:
        if room and len(rows):
            if room not in self._rows:
                insort(self._rooms, room)
                self._rows[room] = deque()
            self._rows[room].append(rows)
