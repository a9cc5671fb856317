"""The checks of a shard's packed rows: files, every row by the contract, and that they hold the shard's documents.

Rows and .bin have the same documents in another order and cut in pieces. So each document is summed up by a number to
which every token adds what its place in the document makes of it; pieces add up to the same number, in any order.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import FileEntry, Index, Manifest, ShardEntry
from refinery.loader.format.packed import (
    FILE_DOCUMENTS,
    PackedFormat,
    PackedRows,
    packed_name,
    packed_schema,
    padding_id,
    parse_rows,
)
from refinery.loader.format.parquet.guarded import GuardedFile
from refinery.loader.format.removals import column_ids
from refinery.loader.storage.store import Store
from refinery.pipelines.corpus.checks.file_checks import check_file, collect
from refinery.pipelines.corpus.checks.packed_columns import ColumnCheck
from refinery.transforms.tokenize.tokenizer import Tokenizer

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]


def token_digests(tokens: npt.NDArray[Any], places: I64) -> U64:
    """What each token adds to its document's sum: SplitMix64's finalizer of token and place, [n]."""
    x = (places.astype(np.uint64) << np.uint64(32)) + tokens.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


class DocumentDigests:
    """The sums of a shard's documents, as its .bin is streamed. sums: uint64 [documents]."""

    def __init__(self, index: Index) -> None:
        self.dtype = index.dtype
        self.lengths = np.asarray(index.lengths, np.int64)
        self.offsets = np.asarray(index.offsets, np.int64)
        self.sums: U64 = np.zeros(len(index), np.uint64)
        self.position = 0

    def watch(self, chunk: bytes) -> None:
        """The next tokens; only the last chunk may end inside one."""
        tokens = np.frombuffer(chunk, self.dtype, len(chunk) // self.dtype.itemsize)
        if not len(tokens) or not len(self.sums):
            return
        places = np.arange(self.position, self.position + len(tokens))
        owners = np.searchsorted(self.offsets, places, "right") - 1
        starts = np.concatenate([[0], np.flatnonzero(np.diff(owners)) + 1])
        added = np.add.reduceat(token_digests(tokens, places - self.offsets[owners]), starts)
        self.sums[owners[starts]] += added
        self.position += len(tokens)


@dataclass
class _Pieces:
    """What the rows of a shard's files are made of, and the sum of each piece."""

    ids: list[npt.NDArray[np.uint8]] = field(default_factory=list)
    starts: list[I64] = field(default_factory=list)
    tokens: list[I64] = field(default_factory=list)  # without a BOS that was put in
    sums: list[U64] = field(default_factory=list)
    columns: ColumnCheck | None = None  # where there are columns of tokens


def check_packed(
    store: Store,
    manifest: Manifest,
    shard: ShardEntry,
    ids: U64 | None,
    digests: DocumentDigests | None,
    sources: set[str] | None,
    sizes: I64 | None,
    rows: Sequence[int],
    tokenizer: Tokenizer | None,
    lock: threading.Lock,
) -> Iterator[str]:
    """Failures of the packed rows of one shard. ids [n, 2], digests, sizes (of texts): of the shard's documents, None
    where they could not be read. sources: those that the shard may have, None where they are not known. rows: documents
    whose columns are compared with what the tokenizer makes of their text; lock: of the tokenizer.

    Cost: one read, and two hashes of every token; memory of a row group and 80 bytes for each document.
    """
    layout = manifest.packed
    if layout is None:
        yield from (f"{file.path}: the manifest has no length of packed rows" for file in shard.packed)
        return
    if layout.pad_id != (pad := padding_id(layout.bos_id, manifest.tokenizer.eos_id)):
        yield f"{shard.bin.path}: packed.pad_id of the manifest is {layout.pad_id}, {pad} expected"
    if not shard.packed and shard.documents:
        yield f"{shard.bin.path}: no packed rows found for {shard.documents} documents"
    pieces, good = _Pieces(), True
    if layout.structure:
        readable = ids is not None and tokenizer is not None and tokenizer.lossless
        pieces.columns = ColumnCheck(_single(ids, rows) if readable and ids is not None else set())
    for part, entry in enumerate(shard.packed):
        name = packed_name(shard.split, shard.domain, (shard.index, shard.count), part)
        if entry.path != name:
            yield f"{entry.path}: packed file found, {name} expected"
        failures = list(check_file(store, entry))
        if not failures:  # damaged Parquet is not parsed: its reader is not safe for arbitrary bytes
            failures = collect(entry.path, _check_rows(store, entry, layout, sources, pieces))
        yield from failures
        good = good and not failures
    if good and ids is not None and digests is not None and len(ids) == len(digests.sums):
        failures = list(_check_documents(shard, ids, digests, pieces))
        yield from failures
        if pieces.columns and sizes is not None and not failures:
            yield from _check_columns(shard, ids, sizes, pieces)
            if tokenizer is not None:
                wrong = pieces.columns.check_sample(store, manifest, shard, tokenizer, lock)
                yield from (f"{shard.bin.path}: packed rows of document {id_.hex()}: {said}" for id_, said in wrong)


def _check_rows(
    store: Store, entry: FileEntry, layout: PackedFormat, sources: set[str] | None, pieces: _Pieces
) -> Iterator[str]:
    path, rows, documents, tokens = entry.path, 0, 0, 0
    with store.open(path) as stream:
        file = GuardedFile(stream, path, packed_schema(layout))
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, use_threads=False)
            is_last = group == file.num_row_groups - 1
            if not (1 if is_last else layout.group_rows) <= len(table) <= layout.group_rows:
                yield f"{path}: row group {group} has {len(table)} rows, {layout.group_rows} expected"
                return
            try:
                block = parse_rows(table, layout, path, rows)
            except FormatError as error:
                yield str(error)
                return
            problem = _add_pieces(table, block, sources, pieces)
            if problem:
                yield f"{path}: {problem}, in rows {rows} to {rows + len(table) - 1}"
                return
            rows += len(block)
            documents += int(block.num_docs.sum())
            tokens += int(block.valid_token_count.sum())
    for name, found in (("rows", rows), ("documents", documents), ("tokens", tokens)):
        if found != getattr(entry, name):
            yield f"{path}: {found} {name} found, {getattr(entry, name)} expected from the manifest"
    if documents > FILE_DOCUMENTS and rows > 1:
        yield f"{path}: {documents} documents found, {FILE_DOCUMENTS} at most expected"


def _add_pieces(table: pa.Table, block: PackedRows, sources: set[str] | None, pieces: _Pieces) -> str:
    """Add the pieces of a row group; what is wrong with the columns that describe them, or ""."""
    counts = block.num_docs.astype(np.int64)
    bounds = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    for name in ("document_ids", "document_sources", "document_starts"):
        sizes = np.diff(np.asarray(table[name].combine_chunks().offsets))
        if not np.array_equal(sizes, counts):
            return f"{name}: not one value for each document"
    ids = column_ids(table["document_ids"].combine_chunks().flatten())
    starts = np.asarray(table["document_starts"].combine_chunks().flatten())
    if (starts < 0).any():
        return "document_starts: 0 or more expected"
    if sources is not None and (odd := set(table["document_sources"].combine_chunks().flatten().to_pylist()) - sources):
        return f"document_sources: {sorted(odd)[0]!r} found, a source of the domain expected"
    marks = [id_.tobytes() + start.to_bytes(8, "little") for id_, start in zip(ids, starts.tolist(), strict=True)]
    names = [blake2b(b"".join(marks[a:b]), digest_size=16).digest() for a, b in pairwise(bounds.tolist())]
    if names != table["pack_id"].to_pylist():
        return "pack_id: not the hash of the row's documents"

    inside = block.doc_ids.reshape(-1) >= 0
    number = (block.doc_ids + bounds[:-1, None]).reshape(-1)[inside]  # of the piece in the block
    firsts = np.flatnonzero(np.concatenate([[True], np.diff(number) > 0]))
    sizes = np.diff(firsts, append=len(number))
    place = np.arange(len(number)) - np.repeat(firsts, sizes)
    put_in = starts > 0  # BOS before a piece that does not begin its document
    digests = token_digests(block.input_ids.reshape(-1)[inside], place + np.repeat(starts - put_in, sizes))
    digests[firsts[put_in]] = 0
    pieces.ids.append(ids)
    pieces.starts.append(starts)
    pieces.tokens.append(sizes - put_in)
    pieces.sums.append(np.add.reduceat(digests, firsts))
    if pieces.columns:
        pieces.columns.add(block, firsts, sizes, table["document_ids"].combine_chunks().flatten().to_pylist(), starts)
    return ""


def _single(ids: U64, rows: Sequence[int]) -> set[bytes]:
    """The ids of these documents, but for those that others have, too."""
    chosen = [ids[row] for row in rows if row < len(ids)]
    return {id_.tobytes() for id_ in chosen if (ids == id_).all(axis=1).sum() == 1}


def _check_columns(shard: ShardEntry, ids: U64, sizes: I64, pieces: _Pieces) -> Iterator[str]:
    names, own, other = _owners(ids, pieces)
    most = np.zeros(len(names), np.int64)
    np.maximum.at(most, own, sizes)
    if pieces.columns and len(other):
        starts, tokens = np.concatenate(pieces.starts), np.concatenate(pieces.tokens)
        for document, said in pieces.columns.check_ends(other, starts, tokens, most):
            yield f"{shard.bin.path}: packed rows of document {names[document].tobytes().hex()}: {said}"


def _owners(ids: U64, pieces: _Pieces) -> tuple[Any, I64, I64]:
    """All ids, each once, and the place among them of each document and of each piece."""
    theirs = np.concatenate([np.empty((0, 16), np.uint8), *pieces.ids])
    both = np.concatenate([np.ascontiguousarray(ids).view(np.uint8).reshape(-1, 16), theirs]).view("V16").reshape(-1)
    names, owners = np.unique(both, return_inverse=True)
    return names, owners[: len(ids)], owners[len(ids) :]


def _check_documents(shard: ShardEntry, ids: U64, digests: DocumentDigests, pieces: _Pieces) -> Iterator[str]:
    """The pieces are the shard's documents. Equal ids (copies kept by recipe) count together."""
    names, own, other = _owners(ids, pieces)
    starts = np.concatenate([np.empty(0, np.int64), *pieces.starts])
    tokens = np.concatenate([np.empty(0, np.int64), *pieces.tokens])
    added = np.concatenate([np.empty(0, np.uint64), *pieces.sums])

    def by_id(places: Any, values: Any) -> Any:
        total = np.zeros(len(names), np.asarray(values).dtype)
        np.add.at(total, places, values)
        return total

    checks = (
        ("documents", by_id(own, np.ones(len(own), np.int64)), by_id(other, (starts == 0).astype(np.int64))),
        ("tokens", by_id(own, digests.lengths), by_id(other, tokens)),
        ("contents", by_id(own, digests.sums), by_id(other, added)),
    )
    for what, expected, found in checks:
        wrong = np.flatnonzero(expected != found)
        if len(wrong):
            name = names[wrong[0]].tobytes().hex()
            many = f"{len(wrong)} documents have other {what} in packed rows"
            values = "" if what == "contents" else f": {found[wrong[0]]} found, {expected[wrong[0]]} expected"
            yield f"{shard.bin.path}: {many}; the first: {name}{values}"
            return
