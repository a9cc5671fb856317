"""The pieces of a corpus, each checked alone, by any process, for a small plain result and rows to be joined."""

import shutil
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np

from refinery.loader.format.manifest import MANIFEST, Manifest, ShardEntry
from refinery.loader.read.corpus import Corpus
from refinery.loader.storage.store import Store
from refinery.pipelines.corpus.checks.file_checks import SCRATCH, check_file, collect
from refinery.pipelines.corpus.checks.loss_masks import check_masks
from refinery.pipelines.corpus.checks.outputs import OutputChecks, listed_outputs
from refinery.pipelines.corpus.checks.texts import check_marked_text, check_text, notes_text_ids
from refinery.pipelines.corpus.verify.before import Before, ChangedShard
from refinery.pipelines.corpus.verify.keyed_rows import RunWriter, table_rows
from refinery.pipelines.corpus.verify.lookup import FACT as LOOKUP
from refinery.pipelines.corpus.verify.lookup import LookupFiles, check_lookup_file, sum_rows
from refinery.pipelines.corpus.verify.other_files import (
    RECORDS,
    check_part,
    check_phase,
    check_records_file,
    phase_manifests,
)
from refinery.pipelines.corpus.verify.packed_rows import check_packed
from refinery.pipelines.corpus.verify.removals import check_removals_file, names_fault
from refinery.pipelines.corpus.verify.row_check import Present
from refinery.pipelines.corpus.verify.shard import ShardFacts, check_shard
from refinery.pipelines.corpus.verify.shard_before import compare_shard
from refinery.pipelines.corpus.verify.takedown_rows import add_present, check_listing_file, listings
from refinery.pipelines.corpus.verify.text_shard import check_text_shard
from refinery.pipelines.published.placement import Plan, read_plan
from refinery.transforms.core.document import hash64
from refinery.transforms.core.stage import Writer
from refinery.transforms.dedup.stages import URL_DUPLICATES
from refinery.transforms.tokenize.stretches import WithControls, load_stretches
from refinery.transforms.tokenize.tokenizer import Tokenizer
from refinery.transforms.write.lookup.entries import Hashes

FILE, TOKENIZER, SHARD, PHASE, PART, BEFORE = "file", "tokenizer", "shard", "phase", "part", "before"
OUTPUT = "output"  # of the shape of an input
UNCOUNTED = (PART, BEFORE)  # kinds of which the bytes that are read are not counted as work
SAMPLES = 8  # documents decoded per shard
BEGINNING = 64  # tokens of the first document that are shown as text


def samples_of(full: bool) -> int:
    """Documents decoded per shard."""
    return sys.maxsize if full else SAMPLES


@dataclass(frozen=True)
class Piece:
    """What is checked alone. number: among the manifest's files or shards. part: an entry of a phase manifest, or what
    a ChangedShard is made of. size: bytes to read; documents: rows that are left."""

    kind: str
    path: str
    number: int = 0
    part: Any = None
    size: int = 0
    documents: int = 0


@dataclass
class Finding:
    """The result of a piece, plain data. failures: of the file's bytes; content: of what a file of records or removals
    holds; facts: what checks of the whole need, by kind."""

    failures: list[str] = field(default_factory=list)
    content: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Question:
    """What is asked of a corpus. samples: documents decoded per shard. load: loads a tokenizer from its file's path.
    against: where the version before a takedown is, "" for none. partitions: of the rows that pieces leave. writer: of
    a corpus of texts, where it is known."""

    prefix: str
    samples: int
    load: Callable[[str], Tokenizer]
    against: str = ""
    partitions: int = 1
    writer: Writer | None = None


def list_pieces(store: Store, manifest: Manifest, before: Before | None) -> list[Piece]:
    """All pieces in an order that is the same for everybody who looks at this corpus, and at the version before."""
    pieces = [Piece(FILE, entry.path, n, size=entry.size) for n, entry in enumerate(manifest.files)]
    if manifest.has_tokens:
        pieces.append(Piece(TOKENIZER, manifest.tokenizer.path))
    for n, shard in enumerate(manifest.shards):
        size = sum(entry.size for entry in (*shard.files, *shard.packed))
        pieces.append(Piece(SHARD, shard.written[0].path, n, size=size, documents=shard.documents))
    pieces += [Piece(OUTPUT, file["path"], part=file, size=file["size"]) for file in listed_outputs(Corpus(store))]
    for name, parts in phase_manifests(store):
        pieces.append(Piece(PHASE, name))
        pieces += [Piece(PART, name, part=part, size=_size(part)) for part in parts]
    for changed in before.changed_shards if before else ():
        pieces.append(Piece(BEFORE, changed.name, part=list(astuple(changed)), size=changed.size))
    return pieces


def _size(part: Any) -> int:
    """Bytes of a part by its phase manifest, which may say anything."""
    size = part.get("size")
    return size if isinstance(size, int) and 0 <= size < 1 << 62 else 0


def records_folder(path: str) -> str:
    """The folder of records that a listed file is in, "" if none."""
    folder = path.partition("/")[0]
    return folder if folder in RECORDS else ""


def sample_rows(fingerprint: str, path: str, documents: int, samples: int) -> list[int]:
    """Up to `samples` rows of a shard, in order and deterministic."""
    if documents <= samples:
        return list(range(documents))
    return sorted({hash64("verify", fingerprint, path, k) % documents for k in range(samples)})


class Checker:
    """Checks pieces of one corpus in this process, in any of its threads. Its copy of the tokenizer goes with it, or
    when it is closed."""

    def __init__(self, question: Question) -> None:
        self.question = question
        corpus = self.corpus = Corpus(question.prefix)
        self.store, self.manifest, self.outputs = corpus.store, corpus.manifest, OutputChecks(corpus)
        plan, recipe = read_plan(self.manifest.recipe), self.manifest.recipe
        self.plan = plan and replace(plan, one_address=bool(recipe.get(URL_DUPLICATES.key)))
        self.has_text_ids = notes_text_ids(self.manifest)
        self._lookup = LookupFiles(self.manifest)
        self._lock = threading.Lock()
        self._scratch: list[str] = []
        self._remove = weakref.finalize(self, _remove, self._scratch)

    def close(self) -> None:
        self._remove()

    def check(self, piece: Piece, writer: RunWriter) -> Finding:
        """The finding of a piece; `writer` gets the rows that it leaves."""
        finding = Finding()
        if piece.kind == FILE:
            self._check_file(piece, finding, writer)
        elif piece.kind == TOKENIZER:
            finding.failures += self._tokenizer[1]
        elif piece.kind == SHARD:
            self._check_shard(piece, finding, writer)
        elif piece.kind == OUTPUT:
            finding.failures += collect(piece.path, self.outputs.check(piece.part))
        elif piece.kind == PHASE:
            finding.failures += collect("work/", check_phase(self.store, piece.path))
        elif piece.kind == PART:
            finding.failures += collect(piece.path, check_part(self.store, piece.path, piece.part))
        else:
            check = compare_shard(self._before, ChangedShard(*piece.part), finding.facts, self.question.writer)
            finding.content += collect(piece.path, check)
        return finding

    def _check_file(self, piece: Piece, finding: Finding, writer: RunWriter) -> None:
        """A listed file; damaged Parquet is not parsed: its reader is not safe for arbitrary bytes."""
        entry = self.manifest.files[piece.number]
        finding.failures += collect(entry.path, check_file(self.store, entry))
        if finding.failures:
            return
        hashes = self._hashes(entry.path)
        if entry.path in self._listings:
            steps, facts = self._listings[entry.path], finding.facts
            check = check_listing_file(self.store, self.manifest, entry.path, steps, facts, writer)
            finding.content += collect("takedowns/", check)
        elif entry.path in self._removals:
            place = self._removals[entry.path], len(self._removals)
            sinks = hashes, self._present(len(self.manifest.shards) + place[0], writer)
            check = check_removals_file(self.store, self.manifest.recipe, entry, place, finding.facts, writer, *sinks)
            finding.content += collect("removals/", check)
        elif folder := records_folder(entry.path):
            check = check_records_file(self.store, entry.path, folder, finding.facts, hashes)
            finding.content += collect(f"{folder}/", check)
        elif entry.path in self._lookup.names and not self._lookup.fault():
            check = check_lookup_file(self.store, entry, self._lookup, finding.facts)
            finding.content += collect("lookup/", check)
        if hashes is not None and not finding.facts.get("ends", True):
            finding.facts[LOOKUP] = sum_rows(self._lookup.rows[entry.path], hashes)

    def _hashes(self, path: str) -> list[Hashes] | None:
        """Where those of the file's addresses and origins go; None where the index has none of it."""
        return [] if path in self._lookup.rows else None

    def _check_shard(self, piece: Piece, finding: Finding, writer: RunWriter) -> None:
        shard = self.manifest.shards[piece.number]
        facts = ShardFacts(shard, self._present(piece.number, writer), hashes=self._hashes(shard.provenance.path))
        if self.manifest.has_tokens:
            self._check_tokens(facts, finding)
        else:
            found = check_text_shard(
                self.store,
                self.manifest,
                facts,
                self.plan,
                self.question.writer if self.manifest.written.has_texts else None,
            )
            finding.failures += collect(piece.path, found)
        if facts.ids is not None:
            place = {"shard": piece.number, "row": np.arange(len(facts.ids))}
            writer.add("ids", table_rows("ids", key=facts.ids.view("S16").reshape(-1), **place))
        if facts.addresses is not None:
            keys, records = np.ascontiguousarray(facts.addresses[:, :2]).view("S16").reshape(-1), facts.addresses[:, 2]
            place = {"shard": piece.number, "row": np.arange(len(keys))}
            writer.add("addresses", table_rows("addresses", key=keys, record=records, **place))
        finding.facts = {
            "has_ids": facts.ids is not None,
            **{name: getattr(facts, name) for name in ("documents", "tokens", "decoded", "text_bytes", "others")},
            "sources": dict(facts.sources) if facts.sources is not None else None,
        }
        if facts.ends:
            finding.facts["ends"] = [list(key) for key in facts.ends]
        if not piece.number and self.manifest.has_tokens and not finding.failures:
            finding.facts["beginning"] = self._beginning(shard)
        if facts.hashes is not None and facts.ids is not None:
            finding.facts[LOOKUP] = sum_rows(self._lookup.rows[shard.provenance.path], facts.hashes)

    def _beginning(self, shard: ShardEntry) -> str:
        """The first tokens of the shard's first document as text, for a person to read; "" where no tokenizer is
        loaded. Of a shard without failures. Cost: its index."""
        tokenizer, _ = self._tokenizer
        if tokenizer is None:
            return ""
        index = self.corpus.index_of(shard)
        head = int(self.manifest.tokenizer.bos_id is not None)
        count = min(head + BEGINNING, int(index.lengths[0])) if len(index) else 0
        ids = np.frombuffer(self.store.read(shard.bin.path, 0, count * index.dtype.itemsize), index.dtype)[head:]
        with self._lock:
            if isinstance(tokenizer, WithControls):
                return tokenizer.stretches.decode(ids)[0]
            return tokenizer.decode(ids)

    def _check_tokens(self, facts: ShardFacts, finding: Finding) -> None:
        """Tokens, index and packed rows."""
        shard, (tokenizer, _) = facts.shard, self._tokenizer
        read_back = partial(check_text, tokenizer, self._lock) if tokenizer else None
        if isinstance(tokenizer, WithControls):
            read_back = partial(check_marked_text, tokenizer.stretches, self._lock)
        rows = sample_rows(self.manifest.fingerprint, shard.bin.path, shard.documents, self.question.samples)
        found = check_shard(self.store, self.manifest, facts, self.plan, rows, read_back, self.has_text_ids)
        finding.failures += collect(shard.bin.path, found)
        kept = facts.ids, facts.digests, domain_sources(self.plan, shard), facts.sizes
        packed = check_packed(self.store, self.manifest, shard, *kept, rows, tokenizer, self._lock)
        finding.failures += collect(f"packed rows of {shard.bin.path}", packed)
        if self.manifest.written.is_masked and not finding.failures:
            finding.failures += collect(shard.provenance.path, check_masks(self.store, self.manifest, shard))

    def _present(self, place: int, writer: RunWriter) -> Present | None:
        """What gets the rows of a file, where something was taken out of the corpus."""
        return partial(add_present, writer, place) if self.manifest.takedowns else None

    @cached_property
    def _before(self) -> Before:
        return Before(self.store, self.manifest, self.question.against)

    @cached_property
    def _listings(self) -> dict[str, list[int]]:
        """The steps of each listing of a takedown."""
        return listings(self.manifest)

    @cached_property
    def _removals(self) -> dict[str, int]:
        """The number of each removals file; none where the set of them is wrong."""
        wrong = names_fault(self.manifest)
        return {} if wrong else {entry.path: number for number, entry in enumerate(self.manifest.removals)}

    @cached_property
    def _tokenizer(self) -> tuple[Tokenizer | None, list[str]]:
        """The corpus' own tokenizer, or None and why. Damaged files, which have failures of their own, are not
        loaded."""
        path, manifest = self.manifest.tokenizer.path, self.manifest
        folder = path.rpartition("/")[0]
        entries = [entry for entry in manifest.files if entry.path == path or entry.path.startswith(f"{folder}/")]
        if self.question.samples < 1 or all(entry.path != path for entry in entries):
            return None, []
        if any(collect(entry.path, check_file(self.store, entry)) for entry in entries):
            return None, []
        scratch = mkdtemp(prefix=SCRATCH)
        self._scratch.append(scratch)
        loaded: list[Tokenizer] = []

        def check() -> Iterator[str]:
            for entry in entries:
                copy = Path(scratch, entry.path)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(self.store.read(entry.path))
            copied = str(Path(scratch, path))
            has_controls = manifest.written.is_masked and not path.endswith(".model")
            loaded.append(WithControls(load_stretches(copied)) if has_controls else self.question.load(copied))
            if loaded[0].vocab_size != manifest.tokenizer.vocab_size:
                yield (
                    f"{path}: a vocabulary of {loaded[0].vocab_size} found, "
                    f"{manifest.tokenizer.vocab_size} expected from {MANIFEST}"
                )

        failures = collect(path, check())
        return (loaded[0] if loaded else None), failures


def _remove(folders: list[str]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def domain_sources(plan: Plan | None, shard: ShardEntry) -> set[str] | None:
    """Sources whose documents a shard may have."""
    return {name for name, domain in plan.domains.items() if domain == shard.domain} if plan else None
