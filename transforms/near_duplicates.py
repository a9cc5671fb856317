"""Near duplicates, first half: bands find candidates, sketches link them.

A band is `rows` values of a signature; two documents of Jaccard J agree in at least one of `bands` bands with
probability 1 - (1 - J^rows)^bands (Leskovec, Rajaraman, Ullman: Mining of Massive Datasets, section 3.4).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from transforms.document import ID_BYTES
from transforms.native import leaders
from transforms.packed import (
    BANDS,
    ID,
    LINK,
    LINKS,
    RANK,
    REMOVAL,
    REMOVALS,
    Block,
    Rows,
    cut,
    gather,
    ranges,
    read_header,
    row_of,
    scatter,
    set_id,
    set_rank,
    sort_by,
    starts_of,
)
from transforms.rank import RANK_BYTES
from transforms.signatures import fixed_width, read_signature_part

# A derived layout finds at least this share of the pairs that are exactly as similar as the threshold.
RECALL_AT_THRESHOLD = 0.75
# In a bucket up to this size every pair is tried; in a larger one a member meets this many leaders, see leaders.c.
BUCKET_LEADERS = 64
BATCH_ROWS = 16384  # documents whose bands are made at once: about 25 MB
SALT = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class NearParams:
    """When two documents are near duplicates.

    threshold: estimated Jaccard similarity of their shingles from which one of them is removed. bands, rows: how
    candidates are found; null derives them from the threshold and the number of permutations.
    """

    threshold: float = 0.75
    bands: int | None = 14  # 14 x 8: FineWeb, Penedo et al. 2024, section 3.4
    rows: int | None = 8

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise ValueError(f"threshold: {self.threshold} given, a number above 0 and up to 1 is allowed")
        for name, value in (("bands", self.bands), ("rows", self.rows)):
            if value is not None and value < 1:
                raise ValueError(f"{name}: {value} given, 1 or more, or null, is allowed")

    def layout(self, permutations: int) -> tuple[int, int]:
        """(bands, rows) for signatures of that many permutations; raises ValueError when they do not fit.

        With both null: as many rows as leave RECALL_AT_THRESHOLD, since longer bands mean fewer vain candidates.
        """
        if self.rows is None and self.bands is None:
            rows = 1
            while rows < permutations and found_share(self.threshold, permutations, rows + 1) >= RECALL_AT_THRESHOLD:
                rows += 1
            return permutations // rows, rows
        rows = self.rows if self.rows is not None else max(1, permutations // (self.bands or 1))
        bands = self.bands if self.bands is not None else max(1, permutations // rows)
        if bands * rows > permutations:
            raise ValueError(
                f"bands: {bands} bands of {rows} rows given, at most {permutations} values (permutations) are allowed"
            )
        return bands, rows

    def minimum(self, permutations: int) -> int:
        """The least number of equal values that makes an estimate reach the threshold."""
        return ceil(self.threshold * permutations - 1e-9)


def found_share(similarity: float, permutations: int, rows: int) -> float:
    """Share of the pairs of that Jaccard similarity that agree in a band, with as many bands as fit."""
    return 1.0 - (1.0 - similarity**rows) ** (permutations // rows)


def band_dtype(permutations: int) -> np.dtype:
    """A document in one band: 40 bytes and its sketch. `tie` has the id mixed in, so that the order is total."""
    return np.dtype([("hash", "<u8"), ("reference", "<u8"), *RANK, ("sketch", "u1", (sketch_bytes(permutations),))])


def sketch_bytes(permutations: int) -> int:
    """Bytes of a sketch: 4 bits per permutation, whole 64-bit words."""
    return (permutations + 15) // 16 * 8


def band_hashes(signatures: NDArray[np.uint32], bands: int, rows: int) -> NDArray[np.uint64]:
    """Multilinear hash of each band's values, mixed by the MurmurHash3 finalizer: uint64 of shape (documents, bands)."""
    powers = np.cumprod(np.full(rows, SALT, np.uint64), dtype=np.uint64)
    values = signatures[:, : bands * rows].reshape(-1, bands, rows).astype(np.uint64)
    hashes: NDArray[np.uint64] = (values * powers).sum(axis=2, dtype=np.uint64)
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        hashes ^= hashes >> np.uint64(33)
        hashes *= np.uint64(factor)
    hashes ^= hashes >> np.uint64(33)
    return hashes


def sketches(signatures: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """4 bits per value (the top of its product with 2^32 / golden ratio): uint8 of shape (documents, sketch_bytes)."""
    documents, permutations = signatures.shape
    nibbles = np.zeros((documents, 2 * sketch_bytes(permutations)), np.uint8)
    nibbles[:, :permutations] = (signatures * np.uint32(0x9E3779B1)) >> np.uint32(28)
    packed: NDArray[np.uint8] = nibbles[:, ::2] | nibbles[:, 1::2] << np.uint8(4)
    return packed


def band_blocks(
    part: int, blocks: list[bytes], params: NearParams, permutations: int, partitions: int
) -> Iterator[Block]:
    """A part's header and exact REMOVAL rows -> band rows of the other documents, by (band, range of band hash).

    bands * (40 + permutations / 2) bytes per document cross the shuffle: 1,344 at the defaults.
    Memory: one row group and BATCH_ROWS documents' band rows.
    """
    url, rows = read_header(blocks)
    bands, band_rows = params.layout(permutations)
    alive = np.ones(rows, np.bool_)
    alive[row_of(gather(blocks, REMOVALS, REMOVAL)["reference"])] = False
    for first, table in read_signature_part(url, rows, ("id", "rank", "signature")):
        chosen = np.flatnonzero(alive[first : first + table.num_rows])
        ids, ranks = fixed_width(table["id"], ID_BYTES), fixed_width(table["rank"], RANK_BYTES)
        packed = fixed_width(table["signature"], 4 * permutations).view("<u4")
        for start in range(0, len(chosen), BATCH_ROWS):
            batch = chosen[start : start + BATCH_ROWS]
            signatures = packed[batch]
            identity = np.empty(len(batch), np.dtype(ID))
            set_id(identity, ids[batch])
            out = np.empty(len(batch), band_dtype(permutations))
            set_rank(out, ranks[batch])
            out["tie"] ^= identity["id_high"]
            out["reference"] = np.uint64(part << 32) | (first + batch).astype(np.uint64)
            out["sketch"] = sketches(signatures)
            hashes = band_hashes(signatures, bands, band_rows)
            for band in range(bands):
                out["hash"] = hashes[:, band]
                yield from scatter(ranges(hashes[:, band], partitions) + band * partitions, BANDS, out)


def link_blocks(key: int, blocks: list[bytes], params: NearParams, permutations: int) -> Iterator[Block]:
    """Band rows of one (band, range) -> LINK rows under key 0 that join those in a bucket that look alike.

    Two rows are joined when their sketches agree in as many values as the threshold asks of whole signatures. Sketches
    agree wherever signatures do, and by chance in 1/16 of the other values; so no pair that the signatures would
    accept is lost, and pairs down to threshold - (1 - threshold) / 15 pass on average. The signatures decide later.
    Memory: twice the rows of the key. Time: see leaders.c; linear in a bucket's size.
    """
    rows = candidates(gather(blocks, BANDS, band_dtype(permutations)))
    if not len(rows):
        return
    bounds = np.append(np.flatnonzero(starts_of(rows["hash"])), len(rows)).astype(np.int64)
    sketch = np.ascontiguousarray(rows["sketch"])
    found = leaders.link(sketch, bounds, permutations, params.minimum(permutations), BUCKET_LEADERS)
    pairs = np.frombuffer(found, np.uint32).reshape(-1, 2)
    links = np.empty(len(pairs), LINK)
    links["member"] = rows["reference"][pairs[:, 0]]
    links["leader"] = rows["reference"][pairs[:, 1]]
    yield from cut(0, LINKS, links)


def candidates(rows: Rows) -> Rows:
    """The rows that share their band hash with another, sorted by (hash, rank). Most rows share it with none."""
    order = np.argsort(rows["hash"])
    hashes = rows["hash"][order]
    same = np.zeros(len(rows) + 1, np.bool_)
    same[1:-1] = hashes[1:] == hashes[:-1]
    return sort_by(rows[order[same[1:] | same[:-1]]], "hash", "priority", "preference", "tie", "reference")
