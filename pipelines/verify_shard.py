"""The checks of one shard: files, index, every token, provenance, and a sample of decoded documents."""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from loader.format import PROVENANCE_SCHEMA, FileEntry, FormatError, Index, Manifest, ShardEntry, read_index
from loader.indexed import DTYPES
from loader.storage import CHUNK, Hasher, Store, checksums

Ids = npt.NDArray[np.uint64]
ReadBack = Callable[[npt.NDArray[Any], int], str]

BATCH_ROWS = 16_384


@dataclass
class ShardFacts:
    """What the checks of a shard found out for those of the whole corpus. None: could not be read.

    ids: [documents, 2], the halves of each id. documents, tokens: counted, not taken from the manifest.
    """

    shard: ShardEntry
    ids: Ids | None = None
    text_bytes: int | None = None
    documents: int = 0
    tokens: int = 0
    decoded: int = 0


def check_file(store: Store, entry: FileEntry, watch: Callable[[bytes], None] | None = None) -> Iterator[str]:
    """Presence, size, crc32c and sha256 in one pass; `watch` sees the bytes in chunks of 8 MiB."""
    hasher = Hasher()
    try:
        with store.open(entry.path) as stream:
            while chunk := _read_fully(stream, CHUNK):
                hasher.update(chunk)
                if watch:
                    watch(chunk)
    except FileNotFoundError:
        yield f"{entry.path}: missing, {entry.size} bytes expected"
        return
    yield from compare(entry, hasher.result())


def compare(entry: FileEntry, found: tuple[int, str, str]) -> Iterator[str]:
    """One failure that names all of size, crc32c and sha256 that differ."""
    expected = (entry.size, entry.crc32c, entry.sha256)
    differences = [
        f"{name} {have} found, {want} expected"
        for name, have, want in zip(("size", "crc32c", "sha256"), found, expected, strict=True)
        if have != want
    ]
    if differences:
        yield f"{entry.path}: {'; '.join(differences)}"


def _read_fully(stream: BinaryIO, size: int) -> bytes:
    """`size` bytes, fewer only at the end: a remote stream may return less than asked, and tokens must not be cut."""
    data = stream.read(size)
    while data and len(data) < size and (more := stream.read(size - len(data))):
        data += more
    return data


def check_shard(
    store: Store, manifest: Manifest, facts: ShardFacts, rows: Sequence[int], read_back: ReadBack | None
) -> Iterator[str]:
    """Failures of one shard; fills `facts`. rows: documents to decode. Memory: a chunk and 60 bytes per document."""
    shard = facts.shard
    index = yield from _check_index(store, manifest, shard)
    dtypes = {dtype.name: dtype for dtype in DTYPES.values()}
    dtype = index.dtype if index else dtypes.get(manifest.dtype)
    tokens = TokenCheck(manifest, dtype, index) if dtype else None
    bin_failures = list(check_file(store, shard.bin, tokens.watch if tokens else None))
    yield from bin_failures
    if tokens:
        facts.tokens = tokens.position
        yield from (f"{shard.bin.path}: {failure}" for failure in tokens.failures())

    provenance_failures = list(check_file(store, shard.provenance))
    yield from provenance_failures
    if provenance_failures:
        return  # damaged Parquet is not parsed: its reader is not made for hostile bytes
    text_bytes = yield from _check_provenance(store, facts, index)
    if text_bytes is None or index is None or read_back is None or bin_failures:
        return
    head, tail = manifest.tokenizer.bos_id is not None, manifest.tokenizer.eos_id is not None
    for row in rows:
        length = int(index.lengths[row]) if row < min(len(index), len(text_bytes)) else -1
        if length < head + tail:
            continue  # has a failure already
        data = store.read(shard.bin.path, int(index.pointers[row]), length * index.dtype.itemsize)
        ids = np.frombuffer(data, index.dtype)[int(head) : length - int(tail)]
        if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < manifest.tokenizer.vocab_size:
            continue  # likewise; a decoder may not survive such ids
        facts.decoded += 1
        problem = read_back(ids, int(text_bytes[row]))
        if problem:
            yield f"{shard.bin.path}: document {row}: {problem}"


def _check_index(store: Store, manifest: Manifest, shard: ShardEntry) -> Generator[str, None, Index | None]:
    """Failures of .idx, then the Index as the generator's value (None if it cannot be used)."""
    path = shard.idx.path
    try:
        data = store.read(path)
    except FileNotFoundError:
        yield f"{path}: missing, {shard.idx.size} bytes expected"
        return None
    yield from compare(shard.idx, checksums(data))
    try:
        index = read_index(data, path)
    except FormatError as error:
        yield str(error)
        return None
    facts = (
        ("documents", len(index), shard.documents),
        ("tokens", index.tokens, shard.tokens),
        ("dtype", index.dtype.name, manifest.dtype),
    )
    for name, found, expected in facts:
        if found != expected:
            yield f"{path}: {name} {found} found, {expected} expected from the manifest"
    if index.bin_size != shard.bin.size:
        yield f"{path}: describes {index.bin_size} bytes of tokens, but {shard.bin.path} has {shard.bin.size}"
    return index


class TokenCheck:
    """Looks at every token as .bin streams by: id range, and BOS and EOS of every document where the index is known."""

    def __init__(self, manifest: Manifest, dtype: np.dtype[Any], index: Index | None) -> None:
        self.dtype = dtype
        self.vocab_size = manifest.tokenizer.vocab_size
        self.position = 0  # tokens seen
        self.faults: dict[str, list[Any]] = {}  # kind -> [count, the first of them]
        self.edges: list[tuple[str, int, Any, Any]] = []  # (name, id, positions of it, documents)
        bos, eos = manifest.tokenizer.bos_id, manifest.tokenizer.eos_id
        if index is None:
            return
        offsets, lengths = index.offsets, index.lengths
        short = lengths < (bos is not None) + (eos is not None)
        if short.any():
            i = int(np.argmax(short))
            self._fault("documents too short for BOS and EOS", int(short.sum()), f"document {i} of {lengths[i]} tokens")
        documents = np.flatnonzero(lengths)
        if bos is not None:
            self.edges.append(("begin without BOS", bos, offsets[documents], documents))
        if eos is not None:
            self.edges.append(("end without EOS", eos, offsets[documents] + lengths[documents] - 1, documents))

    def watch(self, chunk: bytes) -> None:
        """Check the next chunk; only the last may end inside a token."""
        tokens = np.frombuffer(chunk, self.dtype, len(chunk) // self.dtype.itemsize)
        if not len(tokens):
            return
        unsigned = tokens.view(f"<u{self.dtype.itemsize}")  # a negative id is a huge one
        if int(unsigned.max()) >= self.vocab_size:
            bad = np.flatnonzero(unsigned >= self.vocab_size)
            first = f"{tokens[bad[0]]} at token {self.position + int(bad[0])}"
            self._fault(f"ids outside the vocabulary of {self.vocab_size}", len(bad), first)
        end = self.position + len(tokens)
        for name, expected, positions, documents in self.edges:
            low, high = np.searchsorted(positions, (self.position, end))
            found = tokens[positions[low:high] - self.position]
            wrong = np.flatnonzero(found != expected)
            if len(wrong):
                i = int(wrong[0])
                first = f"document {documents[low + i]} has {found[i]}, {expected} expected"
                self._fault(f"documents {name}", len(wrong), first)
        self.position = end

    def _fault(self, kind: str, count: int, first: str) -> None:
        self.faults.setdefault(kind, [0, first])[0] += count

    def failures(self) -> Iterator[str]:
        for kind, (count, first) in self.faults.items():
            yield f"{count} {kind}; the first: {first}"


def _check_provenance(
    store: Store, facts: ShardFacts, index: Index | None
) -> Generator[str, None, npt.NDArray[np.int64] | None]:
    """Failures of the provenance, then text_bytes (int64 [rows]) as the generator's value (None if unreadable)."""
    shard, path = facts.shard, facts.shard.provenance.path
    with store.open(path) as stream, pq.ParquetFile(stream) as file:
        if not file.schema_arrow.equals(PROVENANCE_SCHEMA):
            yield f"{path}: its columns are not those of the format: {_schema_difference(file.schema_arrow)}"
            return None
        columns: dict[str, list[npt.NDArray[Any]]] = {"id": [], "text_bytes": [], "token_offset": [], "token_count": []}
        for batch in file.iter_batches(BATCH_ROWS, use_threads=False):  # all columns: each must be readable
            for name, parts in columns.items():
                column = batch.column(name)
                if column.null_count:
                    yield f"{path}: {column.null_count} nulls in {name}, none expected"
                    return None
                width = 16 if name == "id" else 8
                parts.append(np.frombuffer(column.buffers()[1], np.uint8, len(column) * width, column.offset * width))
    raw = {name: np.concatenate([np.empty(0, np.uint8), *parts]) for name, parts in columns.items()}
    text_bytes, offset, count = (raw[name].view(np.int64) for name in ("text_bytes", "token_offset", "token_count"))
    facts.documents = len(text_bytes)
    facts.ids = raw["id"].view(np.uint64).reshape(-1, 2)
    facts.text_bytes = int(text_bytes.sum())
    if facts.documents != shard.documents:
        yield f"{path}: {facts.documents} rows found, {shard.documents} expected, one per document"
    if (text_bytes < 0).any():
        row = int(np.argmin(text_bytes))
        yield f"{path}: text_bytes of row {row} is {text_bytes[row]}, 0 or more expected"
    if index is not None:
        rows = min(len(index), facts.documents)
        for name, found, expected in (("token_offset", offset, index.offsets), ("token_count", count, index.lengths)):
            wrong = found[:rows] != expected[:rows]
            if wrong.any():
                i = int(np.argmax(wrong))
                yield (
                    f"{path}: {name} of {int(wrong.sum())} rows disagrees with {shard.idx.path}; "
                    f"the first: row {i} has {found[i]}, {expected[i]} expected"
                )
    return text_bytes


def _schema_difference(schema: pa.Schema) -> str:
    found, expected = ({str(field) for field in fields} for fields in (schema, PROVENANCE_SCHEMA))
    return f"{sorted(found - expected)} found, {sorted(expected - found)} expected"
