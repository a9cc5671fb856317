"""The checks of one shard: files, index, every token, provenance, and a sample of decoded documents."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from refinery.loader.errors import FormatError
from refinery.loader.format.indexed import DTYPES
from refinery.loader.format.manifest import Index, Manifest, ShardEntry, read_index
from refinery.loader.format.parquet.batches import bounded_parquet
from refinery.loader.format.provenance import TOKENS
from refinery.loader.storage.store import Store, checksums
from refinery.pipelines.corpus.checks.addresses import Addresses
from refinery.pipelines.corpus.checks.file_checks import check_file, compare
from refinery.pipelines.corpus.verify.packed_rows import DocumentDigests
from refinery.pipelines.corpus.verify.row_check import Faults, Present, RowCheck
from refinery.pipelines.published.placement import Plan
from refinery.transforms.core.document import FIELDS
from refinery.transforms.write.lookup.entries import Hashes

Ids = npt.NDArray[np.uint64]
ReadBack = Callable[[npt.NDArray[Any], int, bytes], str]

INDEX_HEADER, INDEX_ENTRY = 42, 20  # bytes of .idx: magic, version, dtype, two counts, the first boundary; a document


@dataclass
class ShardFacts:
    """Results of a shard's checks that the checks of the whole corpus need. None: could not be read. present: gets its
    provenance, if anything needs that.

    ids: [documents, 2], the halves of each id. sizes: [documents], UTF-8 bytes of their texts. documents, tokens:
    counted, not taken from the manifest. sources: tokens of each, by provenance. addresses: of `row_addresses`, where
    the recipe keeps one document of each. hashes: of addresses and origins, where there is an index of them. digests:
    of the documents, where there are packed rows to compare them with. ends: what the first row and the last one are
    sorted by, in input order.
    """

    shard: ShardEntry
    present: Present | None = None
    ids: Ids | None = None
    text_bytes: int | None = None
    others: int | None = None
    sizes: npt.NDArray[np.int64] | None = None
    documents: int = 0
    tokens: int = 0
    decoded: int = 0
    sources: Mapping[str, int] | None = None
    addresses: Addresses | None = None
    hashes: list[Hashes] | None = None
    digests: DocumentDigests | None = None
    ends: list[Any] | None = None


def check_shard(
    store: Store,
    manifest: Manifest,
    facts: ShardFacts,
    plan: Plan | None,
    rows: Sequence[int],
    read_back: ReadBack | None,
    has_text_ids: bool,
) -> Iterator[str]:
    """Failures of one shard; fills `facts`. plan: None skips the checks that need it. rows: documents to decode.
    has_text_ids: whether every text is that of its row's `text_id`, else of its id.

    Memory: a chunk and 60 bytes per document.
    """
    shard = facts.shard
    index = yield from _check_index(store, manifest, shard)
    dtypes = {dtype.name: dtype for dtype in DTYPES.values()}
    dtype = index.dtype if index else dtypes.get(manifest.dtype)
    tokens = TokenCheck(manifest, dtype, index) if dtype else None
    digests = DocumentDigests(index) if index and manifest.packed else None
    watching = [each.watch for each in (tokens, digests) if each]

    def watch(chunk: bytes) -> None:
        for each in watching:
            each(chunk)

    bin_failures = list(check_file(store, shard.bin, watch))
    yield from bin_failures
    facts.digests = None if bin_failures else digests
    if tokens:
        facts.tokens = tokens.position
        yield from (f"{shard.bin.path}: {failure}" for failure in tokens.faults.sentences())

    provenance_failures = list(check_file(store, shard.provenance))
    yield from provenance_failures
    if provenance_failures:
        return  # damaged Parquet is not parsed: its reader is not safe for arbitrary bytes
    changed = dict[int, bytes]()
    text_bytes = yield from check_provenance(store, facts, plan, index, manifest, changed)
    if text_bytes is None or facts.ids is None or index is None or read_back is None or bin_failures:
        return
    head, tail = manifest.tokenizer.bos_id is not None, manifest.tokenizer.eos_id is not None
    for row in rows:
        length = int(index.lengths[row]) if row < min(len(index), len(text_bytes)) else -1
        if length < head + tail:
            continue  # reported already
        data = store.read(shard.bin.path, int(index.pointers[row]), length * index.dtype.itemsize)
        ids = np.frombuffer(data, index.dtype)[int(head) : length - int(tail)]
        if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < manifest.tokenizer.vocab_size:
            continue  # reported already; a decoder may crash on such ids
        facts.decoded += 1
        expected = (changed.get(row) or facts.ids[row].tobytes()) if has_text_ids else b""
        problem = read_back(ids, int(text_bytes[row]), expected)
        if problem:
            yield f"{shard.bin.path}: document {row}: {problem}"


def _check_index(store: Store, manifest: Manifest, shard: ShardEntry) -> Generator[str, None, Index | None]:
    """Failures of .idx, then the Index as the generator's value (None if it cannot be used)."""
    path = shard.idx.path
    # The index is read in one piece, so never more than its documents need.
    expected = min(shard.idx.size, INDEX_HEADER + INDEX_ENTRY * shard.documents)
    try:
        size = store.size(path)
        if size is not None and size > expected:
            yield f"{path}: size {size} found, {expected} expected for {shard.documents} documents; not read"
            return None
        data = store.read(path)
    except FileNotFoundError:
        yield f"{path}: missing, {shard.idx.size} bytes expected"
        return None
    except OSError as error:
        yield f"{path}: {type(error).__name__}: {error}"
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
    for name, found, wanted in facts:
        if found != wanted:
            yield f"{path}: {name} {found} found, {wanted} expected from the manifest"
    if index.bin_size != shard.bin.size:
        yield f"{path}: describes {index.bin_size} bytes of tokens, but {shard.bin.path} has {shard.bin.size}"
    return index


class TokenCheck:
    """Checks every token as .bin is streamed: id range, and BOS and EOS of every document where the index is known."""

    def __init__(self, manifest: Manifest, dtype: np.dtype[Any], index: Index | None) -> None:
        self.dtype = dtype
        self.vocab_size = manifest.tokenizer.vocab_size
        self.position = 0  # tokens seen
        self.faults = Faults()
        self.edges: list[tuple[str, int, Any, Any]] = []  # (name, id, positions of it, documents)
        bos, eos = manifest.tokenizer.bos_id, manifest.tokenizer.eos_id
        if index is None:
            return
        self.offsets = offsets = index.offsets
        lengths = index.lengths
        short = lengths < (bos is not None) + (eos is not None)
        if short.any():
            i = int(np.argmax(short))
            self.faults.add(
                "documents too short for BOS and EOS", int(short.sum()), f"document {i} of {lengths[i]} tokens"
            )
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
        unsigned = tokens.view(f"<u{self.dtype.itemsize}")  # a negative id becomes a huge one
        if int(unsigned.max()) >= self.vocab_size:
            bad = np.flatnonzero(unsigned >= self.vocab_size)
            first = f"{tokens[bad[0]]} at token {self.position + int(bad[0])}"
            self.faults.add(f"ids outside the vocabulary of {self.vocab_size}", len(bad), first)
        end = self.position + len(tokens)
        special = {expected: tokens == expected for _, expected, _, _ in self.edges}
        for name, expected, positions, documents in self.edges:
            low, high = np.searchsorted(positions, (self.position, end))
            places = positions[low:high] - self.position
            found = tokens[places]
            special[expected][places] = False
            wrong = np.flatnonzero(found != expected)
            if len(wrong):
                i = int(wrong[0])
                first = f"document {documents[low + i]} has {found[i]}, {expected} expected"
                self.faults.add(f"documents {name}", len(wrong), first)
        for token, inside in special.items():  # no encoder emits BOS or EOS for text
            if inside.any():
                at = self.position + int(np.argmax(inside))
                document = int(np.searchsorted(self.offsets, at, "right")) - 1
                self.faults.add("BOS or EOS ids inside documents", int(inside.sum()), f"{token} in document {document}")
        self.position = end


def check_provenance(
    store: Store,
    facts: ShardFacts,
    plan: Plan | None,
    index: Index | None,
    manifest: Manifest,
    changed: dict[int, bytes],
) -> Generator[str, None, npt.NDArray[np.int64] | None]:
    """Failures of the provenance, then text_bytes (int64 [rows]) as the generator's value (None if unreadable). Row ->
    `text_id`, of those that have one, is put into `changed`."""
    try:
        return (yield from _check_rows(store, facts, plan, index, manifest, changed))
    except FormatError as error:
        yield str(error)
        return None


def _check_rows(
    store: Store,
    facts: ShardFacts,
    plan: Plan | None,
    index: Index | None,
    manifest: Manifest,
    changed: dict[int, bytes],
) -> Generator[str, None, npt.NDArray[np.int64] | None]:
    shard, path = facts.shard, facts.shard.provenance.path
    scores = [column.name for column in manifest.columns if column.type == "float"]
    keeps = plan is not None and plan.keeps_fields and FIELDS in manifest.row_schema.names
    check = RowCheck(shard, plan, scores, changed, facts.hashes is not None, facts.present, keeps)
    schema = manifest.provenance_schema
    with store.open(path) as stream, bounded_parquet(stream, path, exactly=schema) as (_, batches):
        names = [name for name in ("id", "text_bytes", *TOKENS) if name in schema.names]
        columns: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in names}
        for batch in batches:  # all columns, since each must be readable
            for name, parts in columns.items():
                column = batch.column(name)
                if column.null_count:
                    yield f"{path}: {column.null_count} nulls in {name}, none expected"
                    return None
                width = 16 if name == "id" else 8
                parts.append(np.frombuffer(column.buffers()[1], np.uint8, len(column) * width, column.offset * width))
            check.watch(batch)
    yield from (f"{path}: {failure}" for failure in check.faults.sentences())
    raw = {name: np.concatenate([np.empty(0, np.uint8), *parts]) for name, parts in columns.items()}
    text_bytes = raw["text_bytes"].view(np.int64)
    facts.documents = len(text_bytes)
    facts.ids = raw["id"].view(np.uint64).reshape(-1, 2)
    facts.text_bytes, facts.sizes = int(text_bytes.sum()), text_bytes
    facts.sources, facts.others = check.tokens, check.others
    facts.hashes = check.hashes if facts.hashes is not None else None
    facts.ends = [check.first, check.last] if plan and plan.by_input and check.first else None
    facts.addresses = np.concatenate(check.addresses) if check.addresses else None
    if facts.documents != shard.documents:
        yield f"{path}: {facts.documents} rows found, {shard.documents} expected, one per document"
    if (text_bytes < 0).any():
        row = int(np.argmin(text_bytes))
        yield f"{path}: text_bytes of row {row} is {text_bytes[row]}, 0 or more expected"
    if index is not None:
        rows = min(len(index), facts.documents)
        for name, expected in zip(TOKENS, (index.offsets, index.lengths), strict=True):
            found = raw[name].view(np.int64)
            wrong = found[:rows] != expected[:rows]
            if wrong.any():
                i = int(np.argmax(wrong))
                yield (
                    f"{path}: {name} of {int(wrong.sum())} rows disagrees with {shard.idx.path}; "
                    f"the first: row {i} has {found[i]}, {expected[i]} expected"
                )
    return text_bytes
