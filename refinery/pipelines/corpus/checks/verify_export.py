"""Check a finished export: every file, every count, and that its texts are those of the corpus.

The manifest holds the SHA-256 of each shard's tokens in the corpus. Every exported text is encoded again by
the tokenizer in the export, and the digest of all its tokens must be that one. The corpus itself is not needed.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import numpy as np

from refinery.loader.errors import FormatError
from refinery.loader.format.fields import Fields
from refinery.loader.format.manifest import MANIFEST, RUN, FileEntry, unseal
from refinery.loader.read.loss_runs import COLUMN, mask_of
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store
from refinery.pipelines.corpus.checks.file_checks import SCRATCH, check_file, collect
from refinery.pipelines.corpus.checks.verdict import Verdict, reach
from refinery.pipelines.corpus.export.checkpoint import CHECKPOINT, read_checkpoint
from refinery.pipelines.corpus.export.export_format import RUN_KIND, TOKENS
from refinery.pipelines.corpus.export.export_manifest import file_entries, manifest_name, read_export, sum_sources
from refinery.pipelines.corpus.export.options import WORK
from refinery.pipelines.corpus.export.read_documents import read_documents
from refinery.pipelines.progress.work import Work
from refinery.transforms.core.document import text_bytes
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer
from refinery.transforms.tokenize.stretches import Stretches, load_stretches
from refinery.transforms.tokenize.tokenizer import Tokenizer

THREADS = 2
COUNTS = ("documents", "tokens", "bytes")


@dataclass
class ExportReport(Verdict):
    """The verdict on an export."""

    shards: int = 0
    files: int = 0
    bytes: int = 0
    encoded: int = 0

    def read_lines(self) -> list[str]:
        return [
            f"{self.prefix}: {self.documents:,} documents, {self.tokens:,} tokens in {self.shards:,} shards",
            f"read {self.files:,} files, {self.bytes / 1e6:,.1f} MB in {self.seconds:.1f} s, encoded "
            f"{self.encoded:,} documents again",
        ]


def verify_export(place: str, work: Work | None = None) -> ExportReport:
    """Check the export at `place`. Never raises for what it finds there. work: learns what there is to read.

    Cost: one read of every file, and the encoding of every text where there are texts.
    """
    report = ExportReport(place)
    return reach(report, place, _check(report, work or Work()))


def file_entry(entry: Mapping[str, Any], where: str) -> FileEntry:
    """A file of the manifest. Raises FormatError, naming `where`, for one that is malformed."""
    fields = Fields(entry, where)
    blocks = fields.block_checksums("block_crc32c", fields.count("size")) if "block_crc32c" in entry else ""
    return FileEntry(
        fields.path("path"),
        fields.count("size"),
        fields.checksum("crc32c", 8),
        fields.checksum("sha256", 64),
        None,
        blocks,
    )


def _check(report: ExportReport, work: Work) -> Iterator[str]:
    store = open_store(report.prefix)
    manifest, _ = read_export(store)
    shards = manifest["shards"]
    name_of = manifest_name(store)
    entries = [file_entry(entry, name_of) for entry in file_entries(manifest)]
    report.shards, report.files = len(shards), 1 + len(entries)
    report.bytes = sum(entry.size for entry in entries)
    work.expect(report.bytes)
    listed = {entry.path for entry in entries}
    yield from (f"{path}: listed twice in {name_of}" for path in sorted(listed) if _times(entries, path) > 1)
    is_tokens = manifest["options"]["format"] == TOKENS
    records = {RUN, CHECKPOINT} if is_tokens else {RUN}
    names = {name for name in store.list() if not name.startswith(f"{WORK}/")}
    yield from (f"{path}: not listed in {name_of}" for path in sorted(names - listed - records - {name_of}))
    if RUN in names:
        yield from collect(RUN, _check_run(store, manifest))
    if is_tokens:
        yield from collect(CHECKPOINT, _check_checkpoint(store, manifest))
    with ThreadPoolExecutor(THREADS) as pool:
        damaged: set[str] = set()
        for entry, failures in zip(
            entries, pool.map(lambda e: collect(e.path, check_file(store, e)), entries), strict=True
        ):
            yield from failures
            if failures:
                damaged.add(entry.path)
    if is_tokens:
        from refinery.pipelines.corpus.checks.verify_tokens import check_token_shards

        yield from check_token_shards(store, manifest, damaged)
        report.documents, report.tokens = manifest["totals"]["documents"], manifest["totals"]["tokens"]
        return
    yield from _check_texts(store, manifest, damaged, report)
    yield from check_totals(manifest, sum_sources([shard["sources"] for shard in shards]))


def _check_run(store: Store, manifest: Mapping[str, Any]) -> Iterator[str]:
    """_run.json is of this export: another one would refuse the command that goes on here."""
    try:
        run = unseal(store.read(RUN), RUN)
    except FormatError as error:
        yield str(error)
        return
    if run.get("kind") != RUN_KIND:
        yield f"{RUN}: kind {run.get('kind')!r} found, {RUN_KIND!r} expected"
    elif run.get("options") != manifest["options"]:
        yield f"{RUN}: options {run.get('options')} found, {manifest['options']} expected from {MANIFEST}"


def _check_checkpoint(store: Store, manifest: Mapping[str, Any]) -> Iterator[str]:
    """checkpoint.json is readable, and tells of the last corpus in the manifest, completely added."""
    try:
        found = read_checkpoint(store)
    except FormatError as error:
        yield str(error)
        return
    if found is None:
        return
    last = manifest["corpora"][-1]
    if found.state != "complete":
        name = found.corpus["name"]
        yield f"{CHECKPOINT}: the corpus {name} is being added ({found.state}); run its command to the end first"
    elif (found.sequence, found.corpus["fingerprint"]) != (len(manifest["corpora"]) - 1, last["fingerprint"]):
        yield (
            f"{CHECKPOINT}: corpus {found.sequence}, {found.corpus['name']}, found; the last one in {MANIFEST}, "
            f"{len(manifest['corpora']) - 1}, {last['name']}, expected"
        )


def _times(entries: Sequence[FileEntry], path: str) -> int:
    return sum(entry.path == path for entry in entries)


def check_totals(manifest: Mapping[str, Any], sources: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """What the manifest says of sources and totals is what its shards sum to."""
    if manifest["sources"] != sources:
        yield f"{MANIFEST}: sources: {manifest['sources']} found, {sources} expected from its shards"
    for name in COUNTS:
        expected = sum(counts[name] for counts in sources.values())
        if manifest["totals"][name] != expected:
            yield f"{MANIFEST}: totals.{name} is {manifest['totals'][name]}, {expected} expected from its sources"


def _check_texts(store: Store, manifest: Mapping[str, Any], damaged: set[str], report: ExportReport) -> Iterator[str]:
    own = manifest["tokenizer"]
    tokenizer: Tokenizer | Stretches | None = None
    if "text" in manifest["fields"] and own["path"] not in damaged:
        with TemporaryDirectory(prefix=SCRATCH) as scratch:
            copy = Path(scratch, Path(own["path"]).name)
            copy.write_bytes(store.read(own["path"]))
            tokenizer = load_stretches(str(copy)) if "loss_masks" in manifest else load_tokenizer(str(copy))
    for shard in manifest["shards"]:
        path = shard["file"]["path"]
        if path in damaged:
            continue
        check = ShardCheck(manifest, shard, tokenizer)
        with store.open(path) as stream:
            yield from collect(path, check.failures(stream))
        report.documents += check.documents
        report.tokens += shard["tokens"]
        report.encoded += check.encoded


class ShardCheck:
    """Reads one exported file back. documents: read. encoded: of these, texts that were encoded again."""

    def __init__(
        self, manifest: Mapping[str, Any], shard: Mapping[str, Any], tokenizer: Tokenizer | Stretches | None
    ) -> None:
        self.manifest, self.shard, self.tokenizer = manifest, shard, tokenizer
        self.documents = self.encoded = 0

    def failures(self, stream: BinaryIO) -> Iterator[str]:
        path, fields = self.shard["file"]["path"], self.manifest["fields"]
        parts = list(self.shard.get("parts") or [self.shard])
        sources: dict[str, dict[str, int]] = {}
        digest, row = sha256(), 0
        part = 0
        for document in read_documents(stream, path, self.manifest["options"]["format"], fields):
            while part < len(parts) and row == parts[part]["documents"]:
                yield from self._end_of_part(path, parts[part], digest)
                digest, row, part = sha256(), 0, part + 1
            for problem in self._document(document, digest):
                yield f"{path}: document {self.documents}: {problem}"
            self._count(document, sources)
            self.documents += 1
            row += 1
        for rest in parts[part:]:
            if row == rest["documents"]:
                yield from self._end_of_part(path, rest, digest)
            digest, row = sha256(), 0
        if self.documents != self.shard["documents"]:
            yield f"{path}: {self.documents} documents found, {self.shard['documents']} expected"
        elif {"source", "text_bytes", "token_count"} <= set(fields) and sources != self.shard["sources"]:
            yield f"{path}: {sources} found by source, {self.shard['sources']} expected"

    def _document(self, document: Mapping[str, Any], digest: Any) -> Iterator[str]:
        """Adds the document's tokens to the digest, and says what its fields contradict."""
        dtype = np.dtype(self.manifest["dtype"])
        tokens = None
        if isinstance(self.tokenizer, Stretches):
            yield from self._marked(document, self.tokenizer)
        elif self.tokenizer is not None:
            own = self.manifest["tokenizer"]
            ends = [[own[name]] if own[name] is not None else [] for name in ("bos_id", "eos_id")]
            ids = self.tokenizer.encode(document["text"])
            tokens = np.concatenate([np.array(ends[0], dtype), ids.astype(dtype), np.array(ends[1], dtype)])
            self.encoded += 1
        if "input_ids" in document:
            given = np.asarray(document["input_ids"]).astype(dtype)
            if tokens is not None and not np.array_equal(tokens, given):
                yield "its text does not encode to its input_ids"
            tokens = given
        if tokens is None:
            return
        digest.update(tokens.tobytes())
        if "token_count" in document and document["token_count"] != len(tokens):
            yield f"token_count is {document['token_count']}, {len(tokens)} expected"
        if {"text", "text_bytes"} <= document.keys() and document["text_bytes"] != text_bytes(document["text"]):
            yield f"text_bytes is {document['text_bytes']}, {text_bytes(document['text'])} expected"

    def _marked(self, document: Mapping[str, Any], stretches: Stretches) -> Iterator[str]:
        """What is wrong with the text and the mask of a document of a corpus with loss masks."""
        ids, mask = np.asarray(document["input_ids"]), str(document[COLUMN])
        self.encoded += 1
        text, controls = stretches.decode(ids)
        if text != document["text"] or not np.array_equal(stretches.encode(text, controls)[0], ids):
            yield "its input_ids are not those of its text"
        try:
            mask_of(mask, len(ids), COLUMN)
        except FormatError as error:
            yield str(error)

    def _end_of_part(self, path: str, part: Mapping[str, Any], digest: Any) -> Iterator[str]:
        has_tokens = self.tokenizer is not None or "input_ids" in self.manifest["fields"]
        if has_tokens and digest.hexdigest() != part["tokens_sha256"]:
            found, expected = digest.hexdigest(), part["tokens_sha256"]
            yield f"{path}: its documents encode to tokens with sha256 {found}, {expected} expected"

    def _count(self, document: Mapping[str, Any], sources: dict[str, dict[str, int]]) -> None:
        if not {"source", "text_bytes", "token_count"} <= document.keys():
            return
        entry = sources.setdefault(document["source"], dict.fromkeys(COUNTS, 0))
        for name, value in zip(COUNTS, (1, document["token_count"], document["text_bytes"]), strict=True):
            if not isinstance(value, int):
                raise FormatError(f"{name} of document {self.documents} is {value!r:.80}, an integer expected")
            entry[name] += value
