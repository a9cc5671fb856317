"""The checks of `refinery verify` for a corpus that was adopted: every byte, index and token again, as `adopt` does."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from refinery.loader.format.manifest import MANIFEST, Manifest, ShardEntry
from refinery.loader.format.parquet.batches import stored_table
from refinery.loader.format.provenance import ADOPTED
from refinery.loader.format.shard_files import load_index
from refinery.loader.read.corpus import Corpus
from refinery.loader.storage.store import Store
from refinery.pipelines.corpus.adopt.document_ends import DocumentEnds
from refinery.pipelines.corpus.checks.file_checks import check_file, collect
from refinery.pipelines.corpus.checks.verdict import Verdict, reach
from refinery.pipelines.progress.work import Work
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer_bytes


@dataclass
class AdoptedReport(Verdict):
    """The verdict on an adopted corpus."""

    shards: int = 0
    bytes: int = 0

    def read_lines(self) -> list[str]:
        return [
            f"{self.prefix}: {self.documents:,} documents, {self.tokens:,} tokens in {self.shards:,} shards",
            f"read {self.bytes / 1e6:,.1f} MB in {self.seconds:.1f} s; adopted: origins of documents are not recorded",
        ]


def verify_adopted(prefix: str, work: Work | None = None) -> AdoptedReport:
    """Check the adopted corpus at `prefix`. Never raises for what it finds there. Cost: one read of every file.

    work: learns what there is to read.
    """
    report = AdoptedReport(prefix)
    return reach(report, prefix, _check(report, work or Work()))


def _check(report: AdoptedReport, work: Work) -> Iterator[str]:
    corpus = Corpus(report.prefix)
    store, manifest = corpus.store, corpus.manifest
    report.shards, report.bytes = len(manifest.shards), sum(entry.size for entry in manifest.all_files)
    work.expect(report.bytes)
    yield from collect("tokenizer", _check_files(store, manifest))
    elsewhere = {"bos": 0, "eos": 0}
    for shard in manifest.shards:
        yield from collect(shard.bin.path, _check_shard(store, manifest, shard, report, elsewhere))
    for name, found in (("documents", report.documents), ("tokens", report.tokens)):
        if found != manifest.totals[name] and not report.failures:
            yield f"{MANIFEST}: totals.{name} is {manifest.totals[name]}, {found} expected from the shards"
    marks = manifest.recipe.get(ADOPTED)
    for key, count in elsewhere.items():
        told = marks.get(key, {}).get("elsewhere") if isinstance(marks, dict) else None
        if told != count and not report.failures:
            yield f"{MANIFEST}: recipe.{ADOPTED}.{key}.elsewhere is {told}, {count} expected from the tokens"


def _check_files(store: Store, manifest: Manifest) -> Iterator[str]:
    damaged = False
    for entry in manifest.files:
        for failure in check_file(store, entry):
            damaged = True
            yield failure
    own = manifest.tokenizer
    if own.path not in {entry.path for entry in manifest.files}:
        yield f"{own.path}: not listed in {MANIFEST}"
    elif not damaged and (found := load_tokenizer_bytes(store.read(own.path), own.path).vocab_size) != own.vocab_size:
        yield f"{own.path}: a vocabulary of {found} found, {own.vocab_size} expected from {MANIFEST}"


def _check_shard(
    store: Store, manifest: Manifest, shard: ShardEntry, report: AdoptedReport, elsewhere: dict[str, int]
) -> Iterator[str]:
    own, path = manifest.tokenizer, shard.bin.path
    yield from check_file(store, shard.idx)
    index = load_index(store, shard)
    if index.dtype.name != manifest.dtype:
        yield f"{shard.idx.path}: dtype {index.dtype.name} found, {manifest.dtype} expected from {MANIFEST}"
    if index.bin_size != shard.bin.size:
        yield f"{shard.idx.path}: describes {index.bin_size} bytes of tokens, but {path} has {shard.bin.size}"
        return
    origin = f"provenance/{path.removesuffix('.bin')}.parquet"  # as `refinery export --to megatron` writes it
    if origin in {entry.path for entry in manifest.files}:
        table = stored_table(store, origin, ["token_offset", "token_count"])
        for name, expected in (("token_offset", index.offsets), ("token_count", index.lengths)):
            if not np.array_equal(table[name].to_numpy(), expected):
                yield f"{origin}: {name}: not that of {shard.idx.path}"
    ends = DocumentEnds(index, own.vocab_size, own.bos_id, own.eos_id, path)
    yield from check_file(store, shard.bin, ends.watch)
    report.documents += len(index)
    report.tokens += ends.position
    for key, marks in (("bos", ends.bos), ("eos", ends.eos)):
        if marks is not None:
            elsewhere[key] += marks.total - marks.there
            if marks.there != ends.filled:
                place = "begin" if key == "bos" else "end"
                yield f"{path}: document {marks.first} does not {place} with {key.upper()} {marks.id}"
