"""Near duplicates, first half: bands propose candidates, sketches link them.

A band is `rows` values of a signature; two documents of Jaccard J agree in at least one of `bands` bands with
probability 1 - (1 - J^rows)^bands (Leskovec, Rajaraman, Ullman: Mining of Massive Datasets, section 3.4).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from math import ceil, sqrt
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from refinery.transforms.core.document import ID_BYTES
from refinery.transforms.core.params import Params, Positive
from refinery.transforms.core.spill.sorted_rows import SPLIT_ROWS, Block, RowSorter, group_pieces, join
from refinery.transforms.dedup.records.rank import RANK_BYTES
from refinery.transforms.dedup.records.record_batch import (
    BANDS,
    CANDIDATE,
    CANDIDATES,
    HASH,
    HASHES,
    ID,
    LINK,
    LINKS,
    RANK,
    REMOVAL,
    REMOVALS,
    KeyedBatch,
    cut,
    gather,
    group_bounds,
    part_of,
    ranges,
    read_header,
    row_of,
    scatter,
    set_id,
    split_repeated,
    starts_of,
)
from refinery.transforms.dedup.reference_corpora import Parts
from refinery.transforms.dedup.signatures import (
    SignatureParams,
    fixed_width,
    name_codes,
    read_signature_part,
    signature_values,
)
from refinery.transforms.native import clusters

# A derived layout finds at least this share of the pairs that are exactly as similar as the threshold.
RECALL_AT_THRESHOLD = 0.75
# In a bucket up to this size every pair is compared; in a larger one each member with this many representatives, see
# clusters.c.
BUCKET_REPRESENTATIVES = 64
BUCKET_BYTES = 60  # memory of `bucket_batches` per row
SENT_CANDIDATES = 4 << 20  # candidates that are dealt out to their parts at once
BATCH_ROWS = 16384  # documents whose bands are computed at once: about 25 MB
BAND_ORDER = ("hash", "priority", "preference", "tie", "locator")
ANY_SOURCE = "*"  # key of parameters by source: every source not named
SALT = np.uint64(0x9E3779B97F4A7C15)


class NearParams(Params):
    """When two documents are near duplicates."""

    LATER: ClassVar[tuple[str, ...]] = ("permutations",)

    threshold: Annotated[float, Field(gt=0, le=1)] = 0.75
    """one of two documents is removed if the estimated Jaccard similarity of their shingles is at least this"""
    bands: Positive | None = 14  # 14 x 8: FineWeb, Penedo et al. 2024, section 3.4
    """number of bands by which candidates are found; null: derived from the threshold and the number of permutations"""
    rows: Positive | None = 8
    """number of values in a band; null: derived likewise. `bands` × `rows` is at most the number of permutations"""
    permutations: Positive | None = None
    """how many values of a signature are compared, from the first on; null: all of `signature.permutations`"""
    verify: Literal["auto", "signature", "exact"] = "auto"
    """what decides a removal: the estimate of the `signature`, or the `exact` similarity of the two texts, which are
    then read again; `auto`: the estimate where signatures have a secret key (`signature.key`), otherwise the texts,
    because anybody can forge an estimate"""

    def settled(self, signature: SignatureParams) -> "NearParams":
        """These parameters with what `auto` means for signatures of that kind."""
        return self.replace(verify="signature" if signature.key else "exact") if self.verify == "auto" else self

    def compared(self, permutations: int) -> int:
        """How many values of signatures of that many are compared; raises ValueError when there are too few."""
        if self.permutations is not None and self.permutations > permutations:
            raise ValueError(
                f"permutations: {self.permutations} given, at most {permutations} (signature.permutations) is allowed"
            )
        return self.permutations or permutations

    def layout(self, permutations: int) -> tuple[int, int]:
        """(bands, rows) for that many values of a signature; raises ValueError when they do not fit.

        With both null: as many rows as leave RECALL_AT_THRESHOLD, since longer bands mean fewer false candidates.
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
        return max(1, ceil(self.threshold * permutations - 1e-9))

    def candidate_minimum(self, permutations: int) -> int:
        """The least number of equal values that makes a pair a candidate: three standard errors lower for "exact"."""
        error = sqrt(self.threshold * (1 - self.threshold) / permutations) if self.verify == "exact" else 0.0
        return max(1, ceil((self.threshold - 3 * error) * permutations - 1e-9))


def found_share(similarity: float, permutations: int, rows: int) -> float:
    """Share of the pairs of that Jaccard similarity that agree in a band, with as many bands as fit."""
    return 1.0 - (1.0 - similarity**rows) ** (permutations // rows)


@cache
def band_dtype(permutations: int) -> np.dtype[Any]:
    """A candidate in one band: 40 bytes and its sketch. `tie` has the id mixed in, so the order is total."""
    return np.dtype([("hash", "<u8"), ("locator", "<u8"), *RANK, ("sketch", "u1", (sketch_bytes(permutations),))])


def sketch_bytes(permutations: int) -> int:
    """Bytes of a sketch: 4 bits per permutation, whole 64-bit words."""
    return (permutations + 15) // 16 * 8


def band_hashes(signatures: NDArray[np.uint32], bands: int, rows: int) -> NDArray[np.uint64]:
    """Multilinear hash of each band's values through the MurmurHash3 finalizer: uint64 of shape (documents, bands)."""
    values = signatures[:, : bands * rows].reshape(-1, bands, rows)
    hashes = np.zeros(values.shape[:2], np.uint64)
    for row, power in enumerate(np.cumprod(np.full(rows, SALT), dtype=np.uint64)):
        hashes += values[:, :, row] * power
    return finish(hashes)


def finish(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """fmix64 of MurmurHash3: a bijection that makes every bit depend on every other."""
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        hashes = (hashes ^ (hashes >> np.uint64(33))) * np.uint64(factor)
    return hashes ^ (hashes >> np.uint64(33))


def sketches(signatures: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """4 bits per value (the top of its product with 2^32 / golden ratio): uint8 of shape (documents, sketch_bytes)."""
    documents, permutations = signatures.shape
    nibbles = np.zeros((documents, 2 * sketch_bytes(permutations)), np.uint8)
    nibbles[:, :permutations] = (signatures * np.uint32(0x9E3779B1)) >> np.uint32(28)
    packed: NDArray[np.uint8] = nibbles[:, ::2] | nibbles[:, 1::2] << np.uint8(4)
    return packed


@dataclass(frozen=True)
class Scope:
    """Which documents are compared with each other. reason, code: of the removals (positions in REASONS and SCOPES).

    sources: the sources that take part, as positions in the sorted list of all. apart: compare documents within a
    source only; reference corpora are then left out.
    """

    reason: int
    code: int
    sources: tuple[int, ...]
    apart: bool


def hash_batches(
    part: int,
    batches: list[bytes],
    params: NearParams,
    scope: Scope,
    names: tuple[str, ...],
    parts: Parts,
    permutations: int,
    partitions: int,
) -> Iterator[KeyedBatch]:
    """A part's header and REMOVAL rows -> HASH rows of the other documents of the scope, by (band, range of band hash).

    names: all sources, sorted. bands * 16 bytes per document cross the shuffle. Memory: one row group and BATCH_ROWS
    documents' rows.
    """
    reference = parts.is_reference(part)
    if reference and scope.apart:
        return
    url, rows = read_header(batches)
    bands, band_rows = params.layout(permutations)
    alive = np.ones(rows, np.bool_)
    alive[row_of(gather(batches, REMOVALS, REMOVAL)["locator"])] = False
    takes_part = np.isin(np.arange(len(names)), scope.sources)
    by_source = not reference and (scope.apart or not takes_part.all())
    for first, table in read_signature_part(url, rows, ("signature", "source") if by_source else ("signature",)):
        chosen = alive[first : first + table.num_rows]
        if by_source:
            source = name_codes(table["source"], names)
            chosen = chosen & takes_part[source]
        signatures = signature_values(table["signature"], permutations)
        places = np.flatnonzero(chosen)
        for start in range(0, len(places), BATCH_ROWS):
            batch = places[start : start + BATCH_ROWS]
            hashes = band_hashes(signatures[batch], bands, band_rows)
            if scope.apart:
                hashes = finish((hashes ^ (source[batch].astype(np.uint64) * SALT)[:, None]) + SALT)
            out = np.empty(hashes.shape, HASH)
            out["hash"] = hashes
            out["locator"] = (np.uint64(part << 32) | (first + batch).astype(np.uint64))[:, None]
            keys = ranges(hashes, partitions) + np.arange(bands) * partitions
            yield from scatter(keys.ravel(), HASHES, out.ravel())


def bucket_batches(key: int, batches: Iterable[bytes], parts: Parts, partitions: int) -> Iterator[KeyedBatch]:
    """HASH rows of one (band, range) -> by part, those that share their band hash with another: the candidates.

    Most documents share no band with another, so only these few are ranked, sketched and compared. Buckets that hold
    documents of reference corpora alone are dropped. Memory: about BUCKET_BYTES per row.
    """
    rows = gather(batches, HASHES, HASH)
    _, shared = split_repeated(rows["hash"])
    if parts.reference_parts and len(shared):
        bucket = np.cumsum(starts_of(rows["hash"][shared])) - 1
        ours = np.bincount(bucket, ~parts.in_reference(rows["locator"][shared])) > 0
        shared = shared[ours[bucket]]
    for start in range(0, len(shared), SENT_CANDIDATES):
        some = rows[shared[start : start + SENT_CANDIDATES]]
        found = np.empty(len(some), CANDIDATE)
        found["hash"], found["locator"], found["band"] = some["hash"], some["locator"], key // partitions
        yield from scatter(part_of(found["locator"]), CANDIDATES, found)


def band_batches(
    part: int, batches: list[bytes], parts: Parts, permutations: int, partitions: int
) -> Iterator[KeyedBatch]:
    """A part's header and CANDIDATE rows -> their rank and sketch, again by (band, range of band hash).

    40 + permutations / 2 bytes per candidate and band cross the shuffle: 96 at the defaults. Row groups without a
    candidate are not read. Memory: one row group, its candidates, and their rows BATCH_ROWS at a time.
    """
    found = np.sort(gather(batches, CANDIDATES, CANDIDATE), order=["locator", "band"])
    if not len(found):
        return
    url, rows = read_header(batches)
    wanted = row_of(found["locator"])
    for first, table in read_signature_part(url, rows, ("id", "rank", "signature"), wanted):
        ids, ranks = fixed_width(table["id"], ID_BYTES), fixed_width(table["rank"], RANK_BYTES)
        signatures = signature_values(table["signature"], permutations)
        begin, end = np.searchsorted(wanted, [first, first + table.num_rows]).tolist()
        for start in range(begin, end, BATCH_ROWS):
            batch = found[start : min(end, start + BATCH_ROWS)]
            local = row_of(batch["locator"]) - first
            identity = np.empty(len(batch), np.dtype(ID))
            set_id(identity, ids[local])
            out = np.empty(len(batch), band_dtype(permutations))
            out["hash"], out["locator"] = batch["hash"], batch["locator"]
            parts.set_rank(part, out, ranks[local])
            out["tie"] ^= identity["id_high"]
            out["sketch"] = sketches(signatures[local])
            yield from scatter(ranges(batch["hash"], partitions) + batch["band"] * np.int64(partitions), BANDS, out)


def link_batches(
    key: int, batches: Iterable[bytes], params: NearParams, parts: Parts, permutations: int
) -> Iterator[KeyedBatch]:
    """Candidates of one (band, range) -> LINK rows under key 0 between similar documents of a bucket.

    Two rows are linked when their sketches agree in as many values as the parameters require of whole signatures.
    Sketches agree wherever signatures do, and by chance in 1/16 of the other values; so no pair that the signatures
    would accept is lost, and pairs down to threshold - (1 - threshold) / 15 pass on average. Whole signatures decide
    later. Memory: see GROUP_BYTES, however large a bucket is. Time: see clusters.c; linear in a bucket's size.
    """
    sorter = RowSorter(band_dtype(permutations), BAND_ORDER, "sketch")
    for batch in batches:
        sorter.add(np.frombuffer(batch, band_dtype(permutations), offset=1))
    minimum = params.candidate_minimum(permutations)
    known: Block | None = None  # representatives of a bucket in several pieces
    for piece in group_pieces(sorter.blocks(), "hash"):
        block = piece.block if known is None else join(known, piece.block)
        locators = block.facts["locator"]
        guard = parts.in_reference(locators).astype(np.uint8)
        guard[: 0 if known is None else len(known)] = 1
        held = np.zeros(len(block), np.uint8) if piece.split else None
        bounds = np.array([0, len(block)], np.int64) if piece.split else group_bounds(block.facts["hash"])
        limits = permutations, minimum, BUCKET_REPRESENTATIVES
        found = clusters.link(block.payload, bounds, *limits, guard, SPLIT_ROWS if piece.split else 0, held)
        pairs = np.frombuffer(found, np.uint32).reshape(-1, 2)
        links = np.empty(len(pairs), LINK)
        links["member"] = locators[pairs[:, 0]]
        links["representative"] = locators[pairs[:, 1]]
        yield from cut(0, LINKS, links)
        known = None if held is None or piece.last else block[held.astype(np.bool_)]
