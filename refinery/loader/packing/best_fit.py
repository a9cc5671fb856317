"""Best-fit-decreasing packing of lengths into rows of one capacity, exact, for tens of millions at a time.

The longest piece comes first, of equal ones the one that was given first; each goes into the row with the least room
that still holds it, or opens a row (Johnson et al. 1974, "Worst-case performance bounds for simple one-dimensional
packing algorithms"; for language models Ding et al. 2024, "Fewer Truncations Improve Language Modeling",
arXiv:2404.10830, section 3). Corpora's packed rows and the rows that a stream packs are made by it.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from refinery.loader.native import best_fit as kernel
from refinery.loader.order.arrays import I64


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


def pack_best_fit(lengths: npt.ArrayLike, capacity: int, groups: npt.ArrayLike | None = None) -> Packing:
    """Rows of at most `capacity` for pieces of these lengths, [n].

    Of rows with the same room the one comes first that has had it for longest. groups: int64, ascending from 0 to n:
    pieces [groups[i], groups[i + 1]) are packed by themselves, and their rows come one group after another; None for a
    single group. Raises ValueError for a length outside 1 to capacity, and for a capacity of 2^24 or more.

    Cost: some 30 ns and 32 bytes a piece, 34 bytes for each length up to the capacity.
    """
    sizes = np.ascontiguousarray(lengths, np.int64)
    if len(sizes) and not 1 <= int(sizes.min()) <= int(sizes.max()) <= capacity:
        raise ValueError(f"lengths: {sizes.min()} to {sizes.max()} given, 1 to {capacity} is allowed")
    bounds = np.array([0, len(sizes)] if groups is None else groups, np.int64)
    rows, openers = np.empty(len(sizes), np.int64), np.empty(len(sizes), np.int64)
    count = kernel.pack(sizes, bounds, capacity, rows, openers)
    return Packing(rows, openers[:count].copy())
