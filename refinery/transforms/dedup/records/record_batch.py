"""Record batches: many fixed-width rows in one bytes element, so no shuffle moves one row at a time.

A batch is one tag byte (the kind of its rows) and the rows, little-endian and unpadded. Every step of deduplication is
a pure generator `(key, batches) -> (key, batch), ...`, run by `MapRecordBatches`. Rows for many keys it yields as they
are (`KeyedRows`): there may be more keys than rows of one element, so the rows of many elements are held back and cut
into batches together. A locator says where a document is: number of its signatures/ part << 32 | row. Parts of
reference corpora are numbered after the run's own.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import orjson
from numpy.typing import DTypeLike, NDArray

from refinery.loader.format import removals
from refinery.transforms.core.document import ID_BYTES
from refinery.transforms.dedup.records.rank import RANK_BYTES

Rows = NDArray[Any]
Batch = tuple[int, bytes]  # key, and rows for it

BATCH_BYTES = 1 << 20  # of a batch, at most: far below the runners' limits, far above their cost per element
# Of rows and keys that a step holds back, at most; three times as much while they are cut. At 100 TB of crawl a step
# writes to 10^5 keys: 20 rows of 16 bytes for each.
HELD_BYTES = 48 << 20
PIECE_BYTES = 512  # of memory that rows held back take beside themselves, however few

HEADER, IDENTITIES, REMOVALS, COPIES, HASHES, CANDIDATES, BANDS, LINKS, LABELS, MEMBERS = range(10)
NEIGHBOURS, JOINED, CHILDREN, FACTS = range(10, 14)  # components/contraction.py
PROPOSALS, SHINGLES = range(14, 16)  # exact_jaccard.py
LINES, CUTS = range(16, 18)  # line_duplicates.py
REFERENCE_IDS = 18
ANCHORS, WINDOWS, REPEATS, SPANS = range(19, 23)  # substring_duplicates.py
CAPTURES, CHOSEN = range(23, 25)  # exact_duplicates.py, of addresses
HOLDERS = 25  # chunk_copies/find.py

ID = [("id_high", "<u8"), ("id_low", "<u8")]
ADDRESS = [("address_high", "<u8"), ("address_low", "<u8")]
RANK = [("priority", "<u8"), ("preference", "<u8"), ("tie", "<u8")]

# The first document in rank of a part and source that has this id, and how many of them have it.
IDENTITY = np.dtype([*ID, *RANK, ("locator", "<u8"), ("source", "<u4"), ("documents", "<u4")])
# The best document of a part with this address, how many it has there, and in what order it comes: smaller is better.
CAPTURE = np.dtype(
    [
        *ADDRESS,
        *((name, "<u8") for name in ("first", "second", "third")),
        *ID,
        ("tie", "<u8"),
        ("locator", "<u8"),
        ("documents", "<u4"),
    ]
)
# The document of all that is kept of this address. tie: of its rank, the same for all documents of one record.
CHOICE = np.dtype([*ADDRESS, *ID, ("tie", "<u8")])
# The document at `locator` is removed in favour of the one with this id; `reason` is a position in REASONS, `scope` one
# of SOURCE, CORPUS and, where the kept document is in reference corpus i, REFERENCE + i. OF_FIRST_COPY: that of the
# part's first document with the same id, CORPUS where this is kept.
REMOVAL = np.dtype([("locator", "<u8"), *ID, ("similarity", "<f4"), ("reason", "u1"), ("scope", "u1")])
# The document at `locator` represents so many more documents of that source.
COPY = np.dtype([("locator", "<u8"), ("source", "<u4"), ("documents", "<u4")])
# A document in one band.
HASH = np.dtype([("hash", "<u8"), ("locator", "<u8")])
# A document in a band that some other document shares.
CANDIDATE = np.dtype([("hash", "<u8"), ("locator", "<u8"), ("band", "<u2")])
# Two documents that are similar, by their sketches.
LINK = np.dtype([("member", "<u8"), ("representative", "<u8")])
# The document at `locator` belongs to the component with that label.
LABEL = np.dtype([("locator", "<u8"), ("component", "<u8")])
# That line (counted from 0) of the document at `locator` is cut out.
CUT = np.dtype([("locator", "<u8"), ("line", "<u4")])
# Those characters (from `begin` up to `end`) of the document at `locator` are repeated elsewhere.
SPAN = np.dtype([("locator", "<u8"), ("begin", "<u4"), ("end", "<u4")])


@dataclass(frozen=True)
class KeyedRows:
    """Rows on their way to many keys, not yet cut into batches: rows[i] is for keys[i]. Keys are 0 or more."""

    keys: NDArray[Any]
    tag: int
    rows: Rows


KeyedBatch = Batch | KeyedRows

REASONS = ("", *removals.REASONS)
URL_DUP, EXACT, NEAR_IN_SOURCE, NEAR, COPY_OF_DENIED = 1, 2, 3, 4, 5
SCOPES = ("", removals.SOURCE, removals.CORPUS)
OF_FIRST_COPY, SOURCE, CORPUS, REFERENCE = range(4)


def header(part: int, url: str, rows: int) -> Batch:
    """The batch that holds the url and size of a part, under the part's key."""
    return part, bytes([HEADER]) + orjson.dumps([url, rows])


def read_header(batches: Iterable[bytes]) -> tuple[str, int]:
    """(url, rows) of the part. Raises ValueError without a header."""
    for batch in batches:
        if batch[0] == HEADER:
            url, rows = orjson.loads(batch[1:])
            return url, rows
    raise ValueError("no header among the batches of a part")


def gather(batches: Iterable[bytes], tag: int, dtype: DTypeLike) -> Rows:
    """All rows of one kind, in the order of the batches (which is arbitrary: sort them). Copies them once."""
    joined = b"".join(memoryview(batch)[1:] for batch in batches if batch[0] == tag)
    return np.frombuffer(joined, dtype)


def scatter(keys: NDArray[Any], tag: int, rows: Rows) -> Iterator[KeyedRows]:
    """Rows for their keys, of which there may be many; nothing if there are no rows. They are not copied."""
    if len(rows):
        yield KeyedRows(keys, tag, rows)


class HeldRows:
    """The rows that the elements of a bundle have for many keys, until there are enough to be cut into batches.

    Memory: `most` bytes of rows and keys, or what one element has if that is more; three times as much while they are
    cut.
    """

    def __init__(self, most: int = HELD_BYTES) -> None:
        self.most = most
        self.pieces: dict[int, list[KeyedRows]] = {}
        self.size = 0

    def pass_on(self, outputs: Iterable[KeyedBatch | bytes]) -> Iterator[Batch | bytes]:
        """What a step yields, with its `KeyedRows` held back; when these are too many, all that is held, as batches."""
        for output in outputs:
            if not isinstance(output, KeyedRows):
                yield output
                continue
            self.pieces.setdefault(output.tag, []).append(output)
            self.size += output.rows.nbytes + output.keys.nbytes + PIECE_BYTES
            if self.size >= self.most:
                yield from self.release()

    def release(self) -> Iterator[Batch]:
        """Batches of all rows that are held, by kind, each in ascending order of keys; rows of one key keep their
        order.
        """
        held, self.pieces, self.size = self.pieces, {}, 0
        for tag in sorted(held):
            yield from cut_by_key(*joined(held.pop(tag)))


def joined(pieces: list[KeyedRows]) -> tuple[NDArray[Any], int, Rows]:
    """Keys, kind and rows of pieces of one kind. Empties the list. Several times as fast as np.concatenate, which works
    out a common type of each two pieces."""
    rows = np.empty(sum(len(piece.rows) for piece in pieces), pieces[0].rows.dtype)
    keys, tag = np.concatenate([piece.keys for piece in pieces]), pieces[0].tag
    end = len(rows)
    while pieces:
        last = pieces.pop().rows
        rows[end - len(last) : end] = last
        end -= len(last)
    return keys, tag, rows


def form_batches(outputs: Iterable[KeyedBatch | bytes]) -> Iterator[Any]:
    """What a step yields for a bundle, with the rows for many keys as batches."""
    held = HeldRows()
    yield from held.pass_on(outputs)
    yield from held.release()


def cut_by_key(keys: NDArray[Any], tag: int, rows: Rows) -> Iterator[Batch]:
    """Rows as batches of their keys, in ascending order of keys; rows of one key keep their order."""
    order = order_of(keys)
    ordered, rows = keys[order], rows[order]
    del keys, order
    bounds = [0, *(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1).tolist(), len(rows)]
    names = ordered[bounds[:-1]].tolist()
    del ordered
    head, width = bytes([tag]), rows.dtype.itemsize
    most = max(1, (BATCH_BYTES - 1) // width) * width
    data = rows.view(np.uint8).data
    for key, (first, last) in zip(names, pairwise(bounds), strict=True):
        for start in range(first * width, last * width, most):
            yield key, head + data[start : min(start + most, last * width)]


def places_by_key(keys: NDArray[Any]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Each distinct key and the positions where it occurs, both ascending. keys: at least one, none negative."""
    order = order_of(keys)
    ordered = keys[order]
    bounds = [0, *(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1).tolist(), len(keys)]
    for first, last in pairwise(bounds):
        yield int(ordered[first]), order[first:last]


def order_of(keys: NDArray[Any]) -> NDArray[np.int64]:
    """Positions of the keys in ascending order, those of one key too. keys: at least one, none negative."""
    if keys.max() < 1 << 16:
        keys = keys.astype(np.uint16)  # numpy sorts 16-bit numbers by radix, some seven times as fast
    return np.argsort(keys, kind="stable")


def cut(key: int, tag: int, rows: Rows) -> Iterator[Batch]:
    """Rows of one key as batches of at most BATCH_BYTES."""
    step = max(1, (BATCH_BYTES - 1) // rows.dtype.itemsize)
    for start in range(0, len(rows), step):
        yield key, bytes([tag]) + rows[start : start + step].tobytes()


def ranges(hashes: NDArray[np.uint64], partitions: int) -> NDArray[np.int64]:
    """The partition of each 64-bit hash: equal ranges of its upper half."""
    return (((hashes >> np.uint64(32)) * np.uint64(partitions)) >> np.uint64(32)).astype(np.int64)


def part_of(locators: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The part of each locator."""
    return (locators >> np.uint64(32)).astype(np.int64)


def row_of(locators: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The row of each locator inside its part."""
    return (locators & np.uint64(0xFFFFFFFF)).astype(np.int64)


def set_numbers(rows: Rows, names: Iterable[str], data: NDArray[np.uint8]) -> None:
    """Fill 64-bit columns of `rows` from big-endian bytes, so numbers compare as the bytes do."""
    numbers = np.ascontiguousarray(data).view(">u8")
    for index, name in enumerate(names):
        rows[name] = numbers[:, index]


def set_id(rows: Rows, ids: NDArray[np.uint8]) -> None:
    """ids: uint8 of shape (rows, ID_BYTES)."""
    set_numbers(rows, ("id_high", "id_low"), ids.reshape(-1, ID_BYTES))


def set_rank(rows: Rows, ranks: NDArray[np.uint8]) -> None:
    """ranks: uint8 of shape (rows, RANK_BYTES)."""
    set_numbers(rows, ("priority", "preference", "tie"), ranks.reshape(-1, RANK_BYTES))


def sort_by(rows: Rows, *names: str) -> Rows:
    """Rows in ascending order of these columns; the first named is the primary key."""
    return rows[np.lexsort([rows[name] for name in reversed(names)])]


def starts_of(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """True where a row of sorted columns differs from the row before it; the first row is True."""
    first = np.ones(len(columns[0]), np.bool_)
    rest = first[1:]
    np.not_equal(columns[0][1:], columns[0][:-1], out=rest)
    for column in columns[1:]:
        rest |= column[1:] != column[:-1]
    return first


def group_bounds(groups: NDArray[Any]) -> NDArray[np.int64]:
    """Where each group of a sorted column starts, and its end."""
    return np.append(np.flatnonzero(starts_of(groups)), len(groups)).astype(np.int64)


def split_repeated(values: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of the values that are there once, and of the others, equal ones side by side."""
    order = np.argsort(values)
    ordered = values[order]
    same = np.zeros(len(values) + 1, np.bool_)
    same[1:-1] = ordered[1:] == ordered[:-1]
    several = same[1:] | same[:-1]
    return order[~several], order[several]


def add_up(copies: Rows) -> Rows:
    """COPY rows with one row per (locator, source), sorted."""
    if not len(copies):
        return copies
    rows = sort_by(copies, "locator", "source")
    first = np.flatnonzero(starts_of(rows["locator"], rows["source"]))
    total = rows[first]
    total["documents"] = np.add.reduceat(rows["documents"], first)
    return total
