"""Tokens of a batch that are in cached blocks: read, compared with their checksums and widened by a kernel."""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from refinery.loader.format.block_checksums import CHECKSUM_BLOCK
from refinery.loader.native import pages
from refinery.loader.order.arrays import I64
from refinery.loader.read.remote.block_file import PAGE
from refinery.loader.read.remote.open_blocks import OpenBlocks
from refinery.loader.read.remote.remote_file import RemoteFile


class _Piece(NamedTuple):
    """Tokens that are in one block, from its token `first` on, and where they belong."""

    shard: int
    block: int
    first: int
    tokens: int
    row: int
    place: int


def gather_cached(
    opened: OpenBlocks, files: Callable[[int], RemoteFile], pieces: I64, itemsize: int, row: int, out: I64
) -> tuple[I64, int]:
    """Copy those of `pieces` whose blocks are in the cache, verified. Returns the others, cut where blocks end, and the
    number of blocks that were in the cache.

    pieces: row, shard, first token, tokens and place in the row, int64 [n, 5]. files: the file of a number. itemsize:
    bytes of a token. out: int64 [rows, tokens], rows from `row` on. Raises FormatError. Cost: 4 us per piece, and
    without the GIL reading and hashing the pages that they touch, once. No more blocks are open at a time than `opened`
    keeps: those of a batch could be more than the process may open, or the whole cache.
    """
    size = CHECKSUM_BLOCK // itemsize
    inside: list[_Piece] = []
    left: list[tuple[int, int, int, int, int]] = []
    for its_row, shard, start, count, place in pieces.tolist():
        if start < 0 or (start + count) * itemsize > files(shard).size:  # the reader of the others says so
            left.append((its_row, shard, start, count, place))
            continue
        while count > 0:
            block, first = divmod(start, size)
            taken = min(count, size - first)
            inside.append(_Piece(shard, block, first, taken, its_row, place))
            start, count, place = start + taken, count - taken, place + taken
    inside.sort()  # pieces of the same pages follow each other
    blocks = [place for place, _ in groupby(inside, _block_of)]
    begin = hits = 0
    for number in range(0, len(blocks), opened.most):
        lot = blocks[number : number + opened.most]
        end = bisect_right(inside, lot[-1], begin, key=_block_of)
        others, found = _gather_lot(opened, files, lot, inside[begin:end], itemsize, row, out)
        left += [(p.row, p.shard, p.block * size + p.first, p.tokens, p.place) for p in others]
        begin, hits = end, hits + found
    return np.array(left, np.int64).reshape(-1, 5), hits


def _block_of(piece: _Piece) -> tuple[int, int]:
    return piece.shard, piece.block


def _gather_lot(
    opened: OpenBlocks,
    files: Callable[[int], RemoteFile],
    lot: Sequence[tuple[int, int]],
    inside: Sequence[_Piece],
    itemsize: int,
    row: int,
    out: I64,
) -> tuple[list[_Piece], int]:
    """`gather_cached` of the pieces inside some blocks, by shard and block."""
    held = opened.hold([(files(shard), block) for shard, block in lot])
    try:
        blocks = [(block.descriptor, block.length, block.table) for block in held if block is not None]
        there = {place: i for i, place in enumerate(p for p, block in zip(lot, held, strict=True) if block)}
        moved, own, others = array("q"), [], []
        for piece in inside:
            which = there.get((piece.shard, piece.block))
            if which is None:
                others.append(piece)
            else:
                moved.extend((piece.row, which, piece.first, piece.tokens, piece.place))
                own.append(piece)
        others += [own[i] for i in pages.gather(blocks, PAGE, itemsize, moved, row, out)]  # read again, then repaired
    finally:
        opened.release(held)
    return others, len(blocks)
