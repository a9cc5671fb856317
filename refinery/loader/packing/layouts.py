"""Which pieces are in which row: packed block by block for each epoch, when a row of a block is first asked for.

A block is packed best fit decreasing, its pieces in the order of their lengths less a part by chance, up to
NOISE / 2^16 of it: length - floor(length h n / 2^32), where h is 16 bits of a hash of epoch and first token. So a
document meets others in each epoch, and rows are nearly as full. A block has the same number of rows in every epoch,
those of best fit decreasing and one more for each SPARE. Where that is too few, it is packed with half the noise, a
quarter, an eighth, at last with none; where rows are left, the first pieces that opened no row get one each. Without
noise, rows are those of best fit decreasing in every epoch.

So a row follows from the lengths of documents, the rows' length, the block and the epoch alone: not from seed, ranks or
what was read before. Its place among those of its block is a hash of the token that its first packed piece begins with:
otherwise rows of long documents would come before those of short ones.
"""

import os
import threading
from collections import deque

import numpy as np

from refinery.loader.errors import InternalError
from refinery.loader.native import layouts as kernel
from refinery.loader.native import row_pieces
from refinery.loader.order.arrays import I64, distinct
from refinery.loader.packing.row_table import RowTable, epoch_key

MOST = 1 << 26  # numbers of the ring, 256 MiB: what 3 * 10^10 tokens in documents of 500 take
_EPOCHS = 8  # whose layouts are kept at the same time


class Layouts:
    """Layouts of the blocks of a table, those made last in a ring of bounded size; another time they are made again.

    parts: where each shard's tokens begin in the domain's, and the end, int64. length: places of a row. noise: of 2^16,
    see above.

    Memory: 4 bytes for each piece and row, of two epochs; 256 MiB at most, or four of the largest block. Threads take
    turns; a forked child begins with an empty ring.
    """

    def __init__(self, table: RowTable, parts: I64, length: int, noise: int) -> None:
        self._table, self._parts, self._length, self._noise = table, parts, length, noise
        self._sizes: I64 = np.diff(table.piece_bounds) + np.diff(table.row_bounds) + 1
        largest, total = int(self._sizes.max(initial=1)), int(self._sizes.sum())
        self._size = max(min(2 * total, MOST), 4 * largest)
        self._begin()

    def _begin(self) -> None:
        self._process, self._lock = os.getpid(), threading.Lock()
        self._ring = np.empty(self._size, np.int32)  # takes memory only where it is written
        self._forget()

    def _forget(self) -> None:
        # by epoch: where each block's layout begins in the ring, -1 for none; (begin, epoch, block), the oldest first
        slots: dict[int, I64] = {}
        kept: deque[tuple[int, int, int]] = deque()
        self._slots, self._kept, self._head = slots, kept, 0

    def find(self, rows: I64, epoch: int) -> I64:
        """int64 [pieces, 5]: the pieces of these rows, row by row, ordered by their first tokens. Columns: place in
        `rows`, part, first token in it, tokens that are read, place in the row. A row of -1 has none.

        Cost: 0.1 us for each piece, and 60 ns for each of the blocks that are not in the ring.
        """
        if self._process != os.getpid():
            self._begin()
        with self._lock:
            try:
                return self._find(np.ascontiguousarray(rows), epoch)
            except ValueError as error:  # of a kernel
                self._forget()
                raise InternalError("packed rows", error) from error
            except BaseException:  # an interrupt may have come between a layout's place in the ring and the note of it
                self._forget()
                raise

    def _find(self, rows: I64, epoch: int) -> I64:
        table = self._table
        slots = self._slots_of(epoch)
        blocks = np.searchsorted(table.row_bounds, rows, "right") - 1
        blocks = blocks[rows >= 0]
        missing = np.flatnonzero(slots[blocks] < 0)
        if len(missing):
            needed = distinct(blocks)
            if len(rows) > 1 and int(self._sizes[needed].sum()) > self._size // 2:
                half = len(rows) // 2
                first, second = self._find(rows[:half], epoch), self._find(rows[half:], epoch)
                second[:, 0] += half
                return np.concatenate([first, second])
            while len(missing := needed[slots[needed] < 0]):  # the first turn may push out some that are needed
                self._lay_out(missing, epoch, slots)
        found = row_pieces.find(
            rows, table.row_bounds, table.piece_bounds, slots, self._ring, table.starts, table.reads, self._parts
        )
        return np.frombuffer(found, np.int64).reshape(-1, 5)

    def _slots_of(self, epoch: int) -> I64:
        if epoch not in self._slots:
            if len(self._slots) >= _EPOCHS:
                self._forget()
            self._slots[epoch] = np.full(len(self._sizes), -1, np.int64)
        return self._slots[epoch]

    def _lay_out(self, blocks: I64, epoch: int, slots: I64) -> None:
        """Make the layouts of blocks that have none."""
        table = self._table
        at = np.array([self._room(size) for size in self._sizes[blocks].tolist()], np.int64)
        packing = self._length, self._noise, epoch_key(epoch, self._noise)
        kernel.lay_out(
            table.starts, table.reads, table.piece_bounds, table.row_bounds, *packing, blocks, at, self._ring
        )
        slots[blocks] = at
        self._kept.extend((begin, epoch, block) for begin, block in zip(at.tolist(), blocks.tolist(), strict=True))

    def _room(self, size: int) -> int:
        """Where the next `size` numbers of the ring begin; layouts there are gone."""
        if self._head + size > self._size:
            self._drop(self._head, self._size)
            self._head = 0
        begin, self._head = self._head, self._head + size
        self._drop(begin, self._head)
        return begin

    def _drop(self, begin: int, end: int) -> None:
        while self._kept and begin <= self._kept[0][0] < end:
            _, epoch, block = self._kept.popleft()
            self._slots[epoch][block] = -1
