"""Rows of one key in order, however many: in memory up to a bound, beyond it by an external merge sort on local disk.

What the runner hands to a step as one group may be larger than its memory. Rows are taken batch by batch; whenever
SORT_BYTES are held they are sorted and written to a temporary file that has no name, so it is gone with the
process, however that ends. The files are then merged, a block of about half of SORT_BYTES at a time.
"""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from refinery.loader.storage.full_disk import naming_scratch

Rows = NDArray[Any]

SORT_BYTES = 256 << 20  # rows held at once; sorting takes about as much again
SPLIT_ROWS = 1 << 16  # a group is divided into pieces once so many of its rows are there


@dataclass(frozen=True)
class Block:
    """Rows in order. facts: all columns but one. payload: that column, a contiguous row each; width 0 without one."""

    facts: Rows
    payload: Rows

    def __len__(self) -> int:
        return len(self.facts)

    def __getitem__(self, rows: Any) -> "Block":
        return Block(self.facts[rows], self.payload[rows])


@dataclass(frozen=True)
class Piece:
    """Rows of whole groups; or, `split`, of one large group that comes in several pieces, of which this is the `last`
    or not. The last piece may be empty."""

    block: Block
    split: bool = False
    last: bool = True


def join(first: Block, second: Block) -> Block:
    """The rows of both, one after the other."""
    if not len(first):
        return second
    if not len(second):
        return first
    return Block(np.concatenate([first.facts, second.facts]), np.concatenate([first.payload, second.payload]))


@dataclass(frozen=True)
class _Run:
    """Sorted rows in a file: all facts, then all payloads."""

    file: IO[bytes]
    rows: int
    empty: Block

    def read(self, first: int, rows: int) -> Block:
        rows = min(rows, self.rows - first)
        facts = self._column(self.empty.facts, 0, first, rows)
        return Block(facts, self._column(self.empty.payload, self.rows * facts.dtype.itemsize, first, rows))

    def _column(self, like: Rows, offset: int, first: int, rows: int) -> Rows:
        column = np.empty((rows, *like.shape[1:]), like.dtype)
        width = column.dtype.itemsize * int(np.prod(like.shape[1:], dtype=np.int64))
        self.file.seek(offset + first * width)
        if self.file.readinto(_bytes_of(column)) != column.nbytes:  # type: ignore[attr-defined]
            raise OSError("a temporary file is shorter than what was written to it")
        return column


def _bytes_of(array: Rows) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


class RowSorter:
    """Sorts rows of `dtype` by the columns of `order`, the first of which is the primary key.

    payload: a wide column apart from the others, not among `order`. limit: bytes held in memory at once; peak memory is
    about twice that, whatever the number of rows, and disk as much as the rows take.
    """

    def __init__(self, dtype: DTypeLike, order: Sequence[str], payload: str = "", limit: int = 0) -> None:
        self.order = tuple(order)
        self.payload = payload
        self.limit = limit or SORT_BYTES
        self.nothing: Rows = np.empty(0, dtype)
        names = [name for name in self.nothing.dtype.names or () if name != payload]
        facts = np.empty(0, [(name, self.nothing.dtype[name]) for name in names])
        self.empty = Block(facts, self.nothing[payload] if payload else np.empty((0, 0), np.uint8))
        self.held: list[Rows] = []
        self.size = 0
        self.runs: list[_Run] = []

    def add(self, rows: Rows) -> None:
        """Take in rows, in any order. Raises DiskFull, which names the place, where no room is left to sort them."""
        self.held.append(rows)
        self.size += rows.nbytes
        if self.size >= self.limit:
            with naming_scratch(tempfile.gettempdir(), "sorted rows"):
                self._spill()

    def blocks(self) -> Iterator[Block]:
        """All rows in order: one block where they fit in memory. Once."""
        if self.runs and self.held:
            with naming_scratch(tempfile.gettempdir(), "sorted rows"):
                self._spill()
        if self.runs:
            yield from self._merge()
        else:
            yield self._take()

    def _spill(self) -> None:
        block = self._take()
        file = tempfile.TemporaryFile(prefix="refinery-")  # noqa: SIM115  the run closes it
        file.write(_bytes_of(block.facts))
        file.write(_bytes_of(block.payload))
        file.flush()
        self.runs.append(_Run(file, len(block), self.empty))

    def _take(self) -> Block:
        """The rows held, in order; the payload is copied once."""
        held, self.held, self.size = self.held, [], 0
        bounds = [0, *np.cumsum([len(rows) for rows in held], dtype=np.int64).tolist()]
        facts = np.empty(bounds[-1], self.empty.facts.dtype)
        for name in facts.dtype.names or ():
            for rows, first, end in zip(held, bounds, bounds[1:], strict=False):
                facts[name][first:end] = rows[name]
        order = np.lexsort([facts[name] for name in reversed(self.order)])
        facts = facts[order]
        payload = np.empty((bounds[-1], *self.empty.payload.shape[1:]), self.empty.payload.dtype)
        if self.payload:
            place = np.empty(len(order), np.int64)
            place[order] = np.arange(len(order))
            for number, (first, end) in enumerate(pairwise(bounds)):
                payload[place[first:end]] = held[number][self.payload]
                held[number] = self.nothing
        return Block(facts, payload)

    def _merge(self) -> Iterator[Block]:
        """A window of each run is sorted with the others; what comes after the end of a window waits for the next."""
        window = max(1, self.limit // (2 * self.nothing.dtype.itemsize * len(self.runs)))
        at = [0] * len(self.runs)
        while any(first < run.rows for first, run in zip(at, self.runs, strict=True)):
            parts = [run.read(first, window) for first, run in zip(at, self.runs, strict=True)]
            ends = np.cumsum([len(part) for part in parts])
            facts = np.concatenate([part.facts for part in parts])
            order = np.lexsort([facts[name] for name in reversed(self.order)])
            place = np.empty(len(order), np.int64)
            place[order] = np.arange(len(order))
            waiting = [
                int(place[end - 1])
                for end, part, first, run in zip(ends, parts, at, self.runs, strict=True)
                if first + len(part) < run.rows
            ]
            count = min(waiting, default=len(order) - 1) + 1
            payload = np.empty((count, *self.empty.payload.shape[1:]), self.empty.payload.dtype)
            for number, (part, end) in enumerate(zip(parts, ends.tolist(), strict=True)):
                places = place[end - len(part) : end]
                ready = int(np.searchsorted(places, count))
                payload[places[:ready]] = part.payload[:ready]
                at[number] += ready
            yield Block(facts[order[:count]], payload)
        for run in self.runs:
            run.file.close()


def group_pieces(blocks: Iterable[Block], key: str) -> Iterator[Piece]:
    """Blocks in order of the column `key` as pieces: groups of equal keys whole, and those of SPLIT_ROWS rows or more
    divided where a block ends.

    Memory: a block and SPLIT_ROWS rows.
    """
    rest: Block | None = None  # of a group that may go on
    divided: Any = None  # the key of a group of which pieces are out
    for block, is_last in _with_last(blocks):
        rows = join(rest, block) if rest is not None else block
        if divided is not None:
            end = int(np.searchsorted(rows.facts[key], divided, side="right"))
            is_over = is_last or end < len(rows)
            yield Piece(rows[:end], split=True, last=is_over)
            divided = None if is_over else divided
            rows = rows[end:]
        begin = len(rows) if is_last or not len(rows) else int(np.searchsorted(rows.facts[key], rows.facts[key][-1]))
        if begin:
            yield Piece(rows[:begin])
        rest = rows[begin:]
        if len(rest) >= SPLIT_ROWS:
            divided = rest.facts[key][0]
            yield Piece(rest, split=True, last=False)
            rest = rest[:0]


def _with_last(blocks: Iterable[Block]) -> Iterator[tuple[Block, bool]]:
    """Each block, and whether it is the last."""
    waiting = None
    for block in blocks:
        if waiting is not None:
            yield waiting, False
        waiting = block
    if waiting is not None:
        yield waiting, True
