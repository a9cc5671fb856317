"""`verify: exact`: a document is removed only when its exact similarity with its representative reaches the threshold.

Signatures only propose which documents are compared; then the texts of the members of components are read again from
documents/:

    members -> proposals (chunks of documents to compare) -> sets of shingle hashes -> removals

Beside it only substring_duplicates.py reads text in deduplication. The similarity is the Jaccard index of the sets of
32-bit shingle hashes, made of the same shingles as signatures, under the signatures' secret key. Without one they are
made under a key that comes of what the run reads: nobody who wrote one of the pages knew it, where the hashes of public
signatures can be forged shingle by shingle. Which documents
share a chunk, where every pair is compared, depends on the documents alone: propose_chunks.py. Inside a chunk documents
are taken in rank order: each is kept unless an earlier kept one is similar enough, and is removed in favour of the
first such.

A reference corpus may have no text any more: removals in favour of its documents are decided by the estimate, as
without `exact`.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from refinery.transforms.core.document import ID_BYTES
from refinery.transforms.core.exchange.exchange import Exchange
from refinery.transforms.dedup.near_duplicates import NearParams, Scope
from refinery.transforms.dedup.propose_chunks import CHUNK_ORDER, PLACE, PROPOSAL, propose_batches
from refinery.transforms.dedup.records.map_record_batches import MapRecordBatches, only
from refinery.transforms.dedup.records.record_batch import (
    BATCH_BYTES,
    COPIES,
    COPY,
    ID,
    PROPOSALS,
    REMOVALS,
    SHINGLES,
    KeyedBatch,
    Rows,
    gather,
    group_bounds,
    read_header,
    row_of,
    scatter,
    set_id,
    sort_by,
    starts_of,
)
from refinery.transforms.dedup.reference_corpora import Parts
from refinery.transforms.dedup.signatures import (
    SignatureParams,
    compare_key,
    fixed_width,
    read_signature_part,
    shingle_set,
)
from refinery.transforms.dedup.verify_similarity import removal_batches
from refinery.transforms.native import jaccard

Piece = tuple[Rows, NDArray[np.uint32]]

HELD_BYTES = 32 << 20  # of sets that a part holds back to fill its batches
# `count` values of the document's set, in ascending order, from number `first` on.
PIECE = np.dtype([*PLACE, ("first", "<u4"), ("count", "<u4")])
HEAD_BYTES = 5  # of a batch of sets: its tag and the number of pieces
PIECE_VALUES = BATCH_BYTES // 8  # values in a piece: half a batch


def shingle_batches(
    part: int, batches: list[bytes], signature: SignatureParams, salt: str = ""
) -> Iterator[KeyedBatch]:
    """A part's header, PROPOSAL and COPY rows -> by key, its proposed documents' sets, and their COPY rows.

    Reads id and text of the row groups of documents/ with proposed documents. Up to 4 bytes per shingle cross the
    shuffle, once per chunk of the document. Memory: one row group, the set of one document, HELD_BYTES.
    Raises ValueError when documents/ and signatures/ are not aligned.
    """
    proposals = sort_by(gather(batches, PROPOSALS, PROPOSAL), "locator", "key", "chunk")
    if not len(proposals):
        return
    url, rows = read_header(batches)
    url = documents_url(url)
    wanted = row_of(proposals["locator"])
    held: defaultdict[int, list[Piece]] = defaultdict(list)
    filled: Counter[int] = Counter()
    total = 0
    hash_key = compare_key(signature, salt)
    for first, table in read_signature_part(url, rows, ("id", "text"), wanted):
        begin, end = np.searchsorted(wanted, [first, first + table.num_rows]).tolist()
        check_ids(url, table, wanted[begin:end] - first, proposals[begin:end])
        previous = -1
        for row in range(begin, end):
            if wanted[row] != previous:
                previous = int(wanted[row])
                values = shingle_set(table["text"][previous - first].as_py(), signature, hash_key)
            key = int(proposals["key"][row])
            for piece in pieces_of(proposals[row : row + 1], values):
                size = piece[0].nbytes + piece[1].nbytes
                if filled[key] + size > BATCH_BYTES - HEAD_BYTES:
                    yield key, pack_pieces(held.pop(key))
                    total -= filled.pop(key)
                held[key].append(piece)
                filled[key] += size
                total += size
            if total > HELD_BYTES:
                yield from ((key, pack_pieces(held[key])) for key in sorted(held))
                held.clear()
                filled.clear()
                total = 0
    yield from ((key, pack_pieces(held[key])) for key in sorted(held))
    yield from copy_batches(proposals, gather(batches, COPIES, COPY))


def documents_url(url: str) -> str:
    """Where the text is of a signatures/ part: PREFIX/signatures/NAME -> PREFIX/documents/NAME."""
    folder, _, name = url.rpartition("/")
    return f"{folder.rpartition('/')[0]}/documents/{name}"


def check_ids(url: str, table: pa.Table, local: NDArray[np.int64], proposals: Rows) -> None:
    """Raises ValueError when these are not the documents that were proposed."""
    found = np.empty(len(local), np.dtype(ID))
    set_id(found, fixed_width(table["id"], ID_BYTES)[local])
    if any((found[name] != proposals[name]).any() for name in ("id_high", "id_low")):
        raise ValueError(f"{url}: its ids are not those of the signatures/ part of the same name")


def pieces_of(proposal: Rows, values: NDArray[np.uint32]) -> Iterator[Piece]:
    """A set as pieces of at most half a batch; an empty one as one piece."""
    for first in range(0, max(1, len(values)), PIECE_VALUES):
        piece = np.empty(1, PIECE)
        for name in (*CHUNK_ORDER, "source"):
            piece[name] = proposal[name]
        some = values[first : first + PIECE_VALUES]
        piece["first"], piece["count"] = first, len(some)
        yield piece, some


def pack_pieces(pieces: list[Piece]) -> bytes:
    """A batch: tag, number of pieces (uint32), PIECE rows, and all their values one after the other."""
    head = bytes([SHINGLES]) + len(pieces).to_bytes(4, "little")
    return b"".join([head, *(row.tobytes() for row, _ in pieces), *(values.astype("<u4").data for _, values in pieces)])


def unpack_sets(batches: list[bytes]) -> tuple[Rows, NDArray[np.uint32], NDArray[np.int64]]:
    """PIECE rows in CHUNK_ORDER, one per set; all values; and offsets: set i is values[offsets[i] : offsets[i + 1]].

    Raises ValueError when a piece is missing or there twice.
    """
    found = [batch for batch in batches if batch[0] == SHINGLES]
    tables = [np.frombuffer(batch, PIECE, int.from_bytes(batch[1:HEAD_BYTES], "little"), HEAD_BYTES) for batch in found]
    pieces = np.concatenate([np.empty(0, PIECE), *tables])
    origin = np.repeat(np.arange(len(found)), [len(table) for table in tables])
    starts = np.concatenate([np.empty(0, np.int64), *(piece_starts(table) for table in tables)])
    order = np.lexsort([pieces[name] for name in ("first", *reversed(CHUNK_ORDER))])
    pieces = pieces[order]
    ends = np.cumsum(pieces["count"], dtype=np.int64)
    values = np.empty(int(ends[-1]) if len(ends) else 0, np.uint32)
    for source, start, end, count in zip(
        origin[order].tolist(), starts[order].tolist(), ends.tolist(), pieces["count"].tolist(), strict=True
    ):
        values[end - count : end] = np.frombuffer(found[source], "<u4", count, start)
    begins = np.flatnonzero(starts_of(pieces["chunk"], pieces["locator"]))
    offsets = np.append((ends - pieces["count"])[begins], len(values)).astype(np.int64)
    expected = ends - pieces["count"] - np.repeat(offsets[:-1], np.diff(np.append(begins, len(pieces))))
    if not np.array_equal(pieces["first"], expected):
        raise ValueError("pieces of a set are missing or repeated")
    return pieces[begins], values, offsets


def piece_starts(table: Rows) -> NDArray[np.int64]:
    """Where the values of each piece of a batch begin, in bytes from its start."""
    counts = table["count"].astype(np.int64)
    return HEAD_BYTES + table.nbytes + 4 * (np.cumsum(counts) - counts)


def copy_batches(proposals: Rows, copies: Rows) -> Iterator[KeyedBatch]:
    """COPY rows of the proposed documents, by key. The representative of several chunks of a key is never removed
    there, so it does no harm if its rows come twice.
    """
    copies = copies[np.argsort(copies["locator"], kind="stable")]
    left, right = (np.searchsorted(copies["locator"], proposals["locator"], side) for side in ("left", "right"))
    counts = right - left
    each = np.repeat(left - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
    yield from scatter(np.repeat(proposals["key"], counts), COPIES, copies[each])


def settle_batches(
    key: int, batches: list[bytes], params: NearParams, scope: Scope, parts: Parts
) -> Iterator[KeyedBatch]:
    """Sets and COPY rows of the chunks of a key -> by part, REMOVAL rows and COPY rows of their representatives.

    Memory: about twice the sets of the key. Time: see jaccard.c; at most half CHUNK_MEMBERS comparisons per set.
    """
    members, values, offsets = unpack_sets(batches)
    representative, shared = np.empty(len(members), np.uint32), np.empty(len(members), np.uint32)
    jaccard.cluster(values, offsets, group_bounds(members["chunk"]), params.threshold, representative, shared)
    removed = np.flatnonzero(representative != np.arange(len(members), dtype=np.uint32))
    sizes = np.diff(offsets)
    both = sizes[removed] + sizes[representative[removed]] - shared[removed]
    similarity = np.where(both > 0, shared[removed] / np.maximum(both, 1), 1.0)
    copies = gather(batches, COPIES, COPY)
    yield from removal_batches(members, removed, representative[removed], similarity, copies, scope, parts)


@dataclass
class VerifyExactly(beam.PTransform):
    """(headers, removals and copies so far by part, …, members by range of component label) -> PCollections of removals
    and copies by part.

    The last of the inputs is grouped: the output of member_batches, by key. Reads the documents/ parts beside the
    signatures, unlike any other step of deduplication.
    """

    stage: str
    params: NearParams
    scope: Scope
    parts: Parts
    signature: SignatureParams
    salt: str = ""

    def __post_init__(self) -> None:
        super().__init__("verify-exactly")

    def expand(self, inputs: Any) -> Any:
        *decided, members = inputs
        common: dict[str, Any] = {"params": self.params, "scope": self.scope, "parts": self.parts}
        propose = partial(propose_batches, permutations=self.params.compared(self.signature.permutations), **common)
        make_sets = partial(shingle_batches, signature=self.signature, salt=self.salt)
        settle = partial(settle_batches, **common)
        proposed = members | MapRecordBatches(
            self.stage, "propose", propose, stream=True
        )  # (part, reference removals and proposals)
        wanted = (*decided, proposed) | Exchange("by part")
        sets = wanted | MapRecordBatches(self.stage, "shingles", make_sets, by_part=True)  # (key, sets and copies)
        settled = sets | Exchange("by chunk") | MapRecordBatches(self.stage, "settle", settle)
        reference = proposed | "reference" >> only(REMOVALS)
        return reference, settled  # (part, removals and copies)
