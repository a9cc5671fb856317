"""What the rows of a domain are made of, where its documents are packed by best fit: pieces of documents, by block.

A domain's tokens are divided into blocks; a document is of the block that its first token is in, and each block's
documents are packed by themselves (refinery.loader.packing.layouts). So what is in a row is near in the files. A
document that is longer than a row is cut into pieces of a row from its beginning on, and the rest is packed. Every
token is in one piece.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from refinery.loader.order.arrays import I64
from refinery.loader.order.order import mix
from refinery.loader.packing.best_fit import pack_best_fit
from refinery.loader.read.samples import DocumentStarts, Domain

NOISE = 3 << 14  # of 2^16, where rows are packed anew in each epoch
SPARE = 300  # rows of a block for which it then has one more
MOST_PIECES = 2**31 - 1  # of a block: a layout numbers them with 32 bits
_CHUNK = 1 << 23  # tokens whose documents are packed in one call: small arrays, which stay in the cache
_GOLDEN = 0x9E3779B97F4A7C15


@dataclass(frozen=True, slots=True)
class RowTable:
    """Pieces of a domain, in the order of its tokens, and the rows that each block has in every epoch.

    starts: int64 [pieces], the domain's token that a piece begins with. reads: int32 [pieces], its tokens, one more
    where its document continues, because the extra token is the label of the row's last place. piece_bounds,
    row_bounds: int64 [blocks + 1], where the pieces and the rows of each block begin, and the end; each block has some.

    A block of documents far longer than a row may have fewer pieces than rows and spare ones. `trimmed` is without
    the rows that have no piece.
    """

    starts: I64
    reads: npt.NDArray[np.int32]
    piece_bounds: I64
    row_bounds: I64

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.row_bounds[-1])

    def documents(self, length: int) -> tuple[int, int]:
        """How many documents its pieces are of, and how many of these are cut; rows have `length` places."""
        goes_on = self.reads > length
        begins = np.append(True, ~goes_on[:-1])[: len(goes_on)]
        return int(np.count_nonzero(begins)), int(np.count_nonzero(begins & goes_on))

    def trimmed(self) -> "RowTable":
        """With at most a row for each piece of a block; this table itself if none has more."""
        rows = np.minimum(np.diff(self.row_bounds), np.diff(self.piece_bounds))
        if int(rows.sum()) == self.rows:
            return self
        return replace(self, row_bounds=np.append(0, np.cumsum(rows)).astype(np.int64))


def make_table(domain: Domain, documents: DocumentStarts, length: int, block: int, noise: int) -> RowTable:
    """The table for rows of `length` places of a domain's documents. block: tokens whose documents are packed together;
    noise: as of `layouts`. Raises ValueError for a block of too many pieces.

    Cost: reading the index of every shard, then some 0.2 us a document; memory: 12 bytes a piece, and as much again
    while they are put together, beside 30 MB.
    """
    zero = np.zeros(1, np.int64)
    tables = [RowTable(zero[:0], zero[:0].astype(np.int32), zero, zero)]
    tables += [
        pack_documents(begins, ends, length, block, noise) for begins, ends in _documents(domain, documents, block)
    ]
    bounds = []
    for name in ("piece_bounds", "row_bounds"):
        steps = [np.diff(getattr(table, name)) for table in tables]
        bounds.append(np.cumsum(np.concatenate([zero, *steps]), dtype=np.int64))
    if (most := int(np.diff(bounds[0]).max(initial=0))) >= MOST_PIECES:
        raise ValueError(
            f"packing: blocks of {block} tokens given, which have up to {most} pieces of documents; less than "
            f"{MOST_PIECES} are allowed, so choose a smaller BestFitParams(block=…)"
        )
    starts, reads = (np.concatenate([getattr(table, name) for table in tables]) for name in ("starts", "reads"))
    return RowTable(starts, reads, *bounds)


def _documents(domain: Domain, documents: DocumentStarts, block: int) -> Iterator[tuple[I64, I64]]:
    """(begins, ends) of all documents that have tokens, in order, those of a block never apart."""
    step = max(block, _CHUNK // block * block)
    waiting = np.empty(0, np.int64)  # of the last block that has any: where its last one ends is not known yet
    for first in range(0, domain.tokens, step):
        stop = min(first + step, domain.tokens)
        begins = np.concatenate([waiting, documents.between(domain, first, stop)])
        begins = begins[np.diff(begins, prepend=-1) > 0]  # one without tokens begins where the next one does
        split = int(np.searchsorted(begins, begins[-1] // block * block)) if len(begins) else 0
        if split:
            yield begins[:split], begins[1 : split + 1]
        waiting = begins[split:]
    if len(waiting):
        yield waiting, np.append(waiting[1:], domain.tokens)


def pack_documents(begins: I64, ends: I64, length: int, block: int, noise: int) -> RowTable:
    """The table of documents by their first tokens and ends, int64 [documents], ascending, none without tokens. block,
    noise: as of `make_table`. Cost: 0.2 us a document."""
    counts = -(-(ends - begins) // length)
    of = np.repeat(np.arange(len(begins)), counts)
    number = np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = begins[of] + number * length
    reads = np.minimum(ends[of] - starts, length + 1).astype(np.int32)
    blocks = begins[of] // block
    piece_bounds = np.append(np.flatnonzero(np.diff(blocks, prepend=-1)), len(blocks)).astype(np.int64)
    openers = pack_best_fit(np.minimum(reads, length), length, piece_bounds).openers
    rows = np.bincount(np.searchsorted(piece_bounds, openers, "right") - 1, minlength=len(piece_bounds) - 1)
    if noise:
        rows += rows // SPARE
    return RowTable(starts, reads, piece_bounds, np.append(0, np.cumsum(rows)).astype(np.int64))


def table_of_rest(table: RowTable, rest: I64, length: int) -> RowTable:
    """The table of what is in these spans of the domain's tokens, int64 [n, 2] ascending, in the same blocks, packed
    without noise. A piece that is cut has no label behind its last token."""
    sizes = np.minimum(table.reads, length).astype(np.int64)
    first = np.searchsorted(rest[:, 1], table.starts, "right")
    counts = np.maximum(np.searchsorted(rest[:, 0], table.starts + sizes) - first, 0)
    of = np.repeat(np.arange(len(sizes)), counts)
    span = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(len(of))
    starts = np.maximum(table.starts[of], rest[span, 0])
    reads = np.minimum(table.starts[of] + sizes[of], rest[span, 1]) - starts
    reads = np.where(reads == length, table.reads[of], reads).astype(np.int32)
    blocks = np.searchsorted(table.piece_bounds, of, "right") - 1
    piece_bounds = np.append(np.flatnonzero(np.diff(blocks, prepend=-1)), len(blocks)).astype(np.int64)
    openers = pack_best_fit(np.minimum(reads, length), length, piece_bounds).openers
    rows = np.bincount(np.searchsorted(piece_bounds, openers, "right") - 1, minlength=len(piece_bounds) - 1)
    return RowTable(starts, reads, piece_bounds, np.append(0, np.cumsum(rows)).astype(np.int64))


def epoch_key(epoch: int, noise: int) -> int:
    """The key of an epoch's rows, 63 bits; without noise the same in every epoch."""
    if not noise:
        return 1
    return int(mix(np.array([(epoch + 2) * _GOLDEN % 2**64], np.uint64))[0]) >> 1
