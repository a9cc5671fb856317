"""Which tokens of a domain are in which row, where its documents are packed by best fit: a table of pieces by row.

A domain's tokens are divided into blocks; a document is of the block that its first token is in, and each block's
documents are packed by themselves. So rows follow from the documents' lengths, the rows' length and the block alone,
whatever the seed, and what is in a row is near in the files. A document that is longer than a row is cut into pieces of
a row from its beginning on, and the rest is packed. Every token is in one row.

A row's place among those of its block is a hash of the token that its longest piece begins with: otherwise rows of long
documents would come before those of short ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from refinery.loader.order.arrays import I64
from refinery.loader.order.order import mix
from refinery.loader.packing.best_fit import pack_best_fit
from refinery.loader.tokens.samples import DocumentStarts, Domain

_CHUNK = 1 << 25  # tokens whose documents are packed in one call
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class RowTable:
    """Rows of a domain. bounds: int64 [rows + 1], where each row's pieces begin in the other two.

    starts: int64 [pieces], the domain's token that a piece begins with, ascending in each row. reads: int32 [pieces],
    its tokens, one more where its document goes on behind it: that is then the label of the row's last place.
    """

    bounds: I64
    starts: I64
    reads: npt.NDArray[np.int32]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.bounds) - 1


def make_table(domain: Domain, documents: DocumentStarts, length: int, block: int) -> RowTable:
    """The rows of `length` places for a domain's documents. block: tokens whose documents are packed together.

    Cost: reading the index of every shard, then some 0.3 us a document; memory: 12 bytes a piece and 8 a row, and as
    much again while they are put together, beside 30 MB.
    """
    pieces, last = np.zeros(1, np.int64), 0
    bounds, starts, reads = [pieces], [np.empty(0, np.int64)], [np.empty(0, np.int32)]
    for begins, ends in _documents(domain, documents, block):
        found = pack_documents(begins, ends, length, block)
        bounds.append(found.bounds[1:] + last)
        starts.append(found.starts)
        reads.append(found.reads)
        last += len(found.starts)
    return RowTable(np.concatenate(bounds), np.concatenate(starts), np.concatenate(reads))


def _documents(domain: Domain, documents: DocumentStarts, block: int) -> Iterator[tuple[I64, I64]]:
    """(begins, ends) of all documents that have tokens, in order, those of a block never apart."""
    step = max(block, _CHUNK // block * block)
    waiting = np.empty(0, np.int64)  # of the last block that has any: where its last one ends is not known yet
    for first in range(0, domain.tokens, step):
        stop = min(first + step, domain.tokens)
        begins = np.unique(np.concatenate([waiting, documents.between(domain, first, stop)]))
        split = int(np.searchsorted(begins, begins[-1] // block * block)) if len(begins) else 0
        if split:
            yield begins[:split], begins[1 : split + 1]
        waiting = begins[split:]
    if len(waiting):
        yield waiting, np.append(waiting[1:], domain.tokens)


def pack_documents(begins: I64, ends: I64, length: int, block: int) -> RowTable:
    """Rows of documents by their first tokens and ends, int64 [documents], ascending, none without tokens. block: as
    of `make_table`. Cost: 0.3 us a document."""
    counts = -(-(ends - begins) // length)
    of = np.repeat(np.arange(len(begins)), counts)
    number = np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = begins[of] + number * length
    sizes = np.minimum(ends[of] - starts, length)
    goes_on = starts + sizes < ends[of]
    blocks = begins[of] // block
    groups = np.append(np.flatnonzero(np.diff(blocks, prepend=-1)), len(blocks))
    packing = pack_best_fit(sizes, length, groups)
    keys = mix(starts[packing.openers].astype(np.uint64) * _GOLDEN + np.uint64(1))
    places = np.empty(packing.count, np.int64)
    places[np.lexsort((keys, blocks[packing.openers]))] = np.arange(packing.count)
    rows = places[packing.rows]
    content = np.argsort(rows, kind="stable")
    bounds = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=packing.count))]).astype(np.int64)
    return RowTable(bounds, starts[content], (sizes + goes_on)[content].astype(np.int32))
