"""The verdict on a corpus from the findings of its pieces, what was joined, and what only the whole can tell."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from refinery.loader.format.manifest import MANIFEST, RUN, Manifest
from refinery.loader.format.shard_list import as_shards
from refinery.loader.format.takedown import STAGE
from refinery.loader.storage.store import Store
from refinery.pipelines.corpus.checks.file_checks import collect
from refinery.pipelines.corpus.checks.takedowns import check_takedowns, takedown_lines
from refinery.pipelines.corpus.checks.verdict import Verdict
from refinery.pipelines.corpus.verify.before import Before
from refinery.pipelines.corpus.verify.joins import Found
from refinery.pipelines.corpus.verify.lookup import FACT as LOOKUP
from refinery.pipelines.corpus.verify.lookup import LookupFiles, add_sums, compare_sums
from refinery.pipelines.corpus.verify.lost import check_copies, unread_inputs
from refinery.pipelines.corpus.verify.manifest_checks import (
    check_manifest,
    check_manifest_funnel,
    check_run,
    check_targets,
    check_totals,
)
from refinery.pipelines.corpus.verify.other_files import RECORDS, check_others, check_records
from refinery.pipelines.corpus.verify.pieces import (
    BEFORE,
    FILE,
    OUTPUT,
    PART,
    PHASE,
    SHARD,
    TOKENIZER,
    Finding,
    Piece,
    records_folder,
)
from refinery.pipelines.corpus.verify.removals import check_chains, check_rows, names_fault
from refinery.pipelines.corpus.verify.takedown_rows import listings, place_name
from refinery.pipelines.progress.words import human_bytes
from refinery.pipelines.published.damaged_files import damage_lines, damaged_files
from refinery.pipelines.published.deduplicated import KEY as DEDUPLICATED
from refinery.pipelines.published.deduplicated import check_deduplicated
from refinery.pipelines.published.packed_counts import packed_line
from refinery.pipelines.published.placement import read_plan
from refinery.pipelines.run.inputs_read.published import INPUTS
from refinery.transforms.core.wording import many
from refinery.transforms.dedup.stages import URL_DUPLICATES


@dataclass
class Report(Verdict):
    """The verdict on a corpus."""

    has_tokens: bool = True
    shards: int = 0
    files: int = 0
    bytes: int = 0
    decoded: int = 0
    beginning: str = ""  # what the first tokens of the first document say
    packed: str = ""  # what its packed rows are, in a line
    removals: int = 0
    dropped_later: int = 0
    takedowns: list[str] = field(default_factory=list)  # what was taken out, a line each
    damaged: list[str] = field(default_factory=list)  # input files that could not be read in whole
    doubts: list[str] = field(default_factory=list)  # what cannot be told from the corpus alone, a line each

    def read_lines(self) -> list[str]:
        rate = self.bytes / 1e6 / self.seconds if self.seconds else 0.0
        speed = f" ({rate:,.0f} MB/s)" if rate >= 1 else ""
        tokens = f", {many(self.tokens, 'token')}" if self.has_tokens else ""
        lines = [
            f"{self.prefix}: {many(self.documents, 'document')}{tokens} in {many(self.shards, 'shard')}",
            f"read {many(self.files, 'file')}, {human_bytes(self.bytes)} in {self.seconds:.1f} s{speed}, "
            f"{'decoded' if self.has_tokens else 'read back'} {many(self.decoded, 'document')}",
        ]
        if self.beginning:
            lines.append(f"the first document begins: {json.dumps(self.beginning, ensure_ascii=False)}")
        if (others := self.documents - self.decoded) > 0 and self.decoded:
            read = "decoded" if self.has_tokens else "read back"
            lines.append(
                f"not {read}: {many(others, 'document')}; texts exchanged among them are seen with --full only"
            )
        lines += [self.packed] if self.packed else []
        if self.removals:
            lost = f"; later stages dropped {self.dropped_later:,} of the documents kept instead"
            lines.append(f"{self.removals:,} removed by deduplication{lost if self.dropped_later else ''}")
        return [*lines, *self.takedowns, *self.damaged, *self.doubts]


@dataclass
class Whole:
    """All that is known of a corpus when every piece is checked."""

    store: Store
    manifest: Manifest
    pieces: Sequence[Piece]
    findings: Sequence[Finding]
    joined: Found
    before: Before | None

    def __post_init__(self) -> None:
        known = list(zip(self.pieces, self.findings, strict=True))
        self._known = known
        self._files = {piece.path: finding for piece, finding in known if piece.kind == FILE}
        self._shards = [finding.facts for piece, finding in known if piece.kind == SHARD]
        self._damaged = {piece.path for piece, finding in known if piece.kind == FILE and finding.failures}

    def judge(self, report: Report) -> Iterator[str]:
        """All failures, in an order that only the corpus decides; fills `report`."""
        store, manifest, damaged = self.store, self.manifest, self._damaged
        report.shards, report.packed = len(manifest.shards), packed_line(manifest)
        report.has_tokens = manifest.has_tokens
        report.beginning = next((facts["beginning"] for facts in self._shards if "beginning" in facts), "")
        yield from collect(MANIFEST, check_manifest(manifest))
        yield from collect(RUN, check_run(store, manifest))
        plan = read_plan(manifest.recipe)
        if plan is None:
            yield (
                f"{MANIFEST}: recipe: shards.seed, shards.validation and sources with names expected; without them "
                "order, place and sources of documents cannot be checked"
            )
        yield from self._told(FILE, TOKENIZER, SHARD, OUTPUT)
        yield from self._out_of_order()
        if manifest.recipe.get("exact_dup", True) and not manifest.recipe.get("annotate"):  # else copies are kept
            yield from self._same_ids()
        yield from self._same_addresses()
        yield from collect("totals", check_totals(manifest, self._shards))
        yield from collect("targets", check_targets(manifest, self._shards) if plan else ())
        yield from collect("funnel", check_manifest_funnel(manifest, plan))
        yield from collect(DEDUPLICATED, check_deduplicated(manifest) if plan else ())
        yield from collect("removals/", self._removals(report))
        for folder in RECORDS:
            files = [entry.path for entry in manifest.files if records_folder(entry.path) == folder]
            found = [(self._files[path].content, self._files[path].facts) for path in files]
            yield from collect(f"{folder}/", check_records(manifest, folder, found))
        yield from collect("lookup/", self._lookup())
        yield from check_others(store, manifest, damaged)
        if plan and not damaged:
            yield from collect(INPUTS, self._doubts(report))
        yield from self._takedowns()
        if self.before:
            compared = {tuple(piece.part[0]): finding for piece, finding in self._known if piece.kind == BEFORE}
            yield from collect(self.before.prefix, self.before.judge(compared))
        report.takedowns = takedown_lines(manifest, self.before.prefix if self.before else "")
        yield from self._told(PHASE, PART)
        others = [entry.size for entry in (*manifest.files, *manifest.listings)]
        count, size = as_shards(manifest.shards).all_files()
        report.files, report.bytes = 1 + count + len(others), size + sum(others)
        report.documents, report.tokens, report.decoded = (
            sum(facts[name] for facts in self._shards) for name in ("documents", "tokens", "decoded")
        )

    def _told(self, *kinds: str) -> Iterator[str]:
        for piece, finding in self._known:
            if piece.kind in kinds:
                yield from finding.failures

    def _out_of_order(self) -> Iterator[str]:
        """Shards in input order of which one begins before the end of another one before it."""
        last: dict[tuple[str, str], tuple[str, Any]] = {}
        known = zip(self.manifest.shards, self._shards, strict=True)
        for shard, facts in sorted(known, key=lambda each: each[0].index):
            first, end = facts.get("ends") or (None, None)
            path, before = last.get((shard.split, shard.domain), ("", None))
            if before is not None and first is not None and first < before:
                yield f"{shard.provenance.path}: begins before the end of {path} in the order of the inputs"
            if end is not None:
                last[shard.split, shard.domain] = shard.provenance.path, end

    def _where(self, shard: int, row: int) -> str:
        return f"{self.manifest.shards[shard].provenance.path} row {row}"

    def _same_ids(self) -> Iterator[str]:
        again, first = self.joined["ids"]
        if again:
            shard, row, other, other_row, id_ = first
            places = f"{self._where(other, other_row)} and in {self._where(shard, row)}"
            yield f"ids: {again} documents have the id of another; {id_} is in {places}"

    def _same_addresses(self) -> Iterator[str]:
        same, first = self.joined["addresses"]
        if same:
            both = f"{self._where(*first[2:4])} and {self._where(*first[4:6])}"
            yield f"addresses: {same} documents have the address of another, {URL_DUPLICATES.key} keeps one; {both}"

    def _doubts(self, report: Report) -> Iterator[str]:
        damaged = damaged_files(self.store, self.manifest)
        report.damaged = list(damage_lines(damaged))
        report.doubts = unread_inputs(self.store, self.manifest, damaged)
        yield from ()

    def _lookup(self) -> Iterator[str]:
        """Files that could not be read, which are reported already, end the check."""
        index = LookupFiles(self.manifest)
        if wrong := index.fault():
            yield wrong
            return
        there = [self._files[name] for name in index.names]
        yield from (failure for finding in there for failure in finding.content)
        paths = [shard.provenance.path for shard in self.manifest.shards] if index.names else []
        named = dict(zip(paths, self._shards, strict=False))
        rows = [named[path] if path in named else self._files[path].facts for path in index.rows]
        both = [finding.facts for finding in there], rows
        if all(LOOKUP in facts for known in both for facts in known):
            yield from compare_sums(*(add_sums([facts[LOOKUP] for facts in known]) for known in both))

    def _takedowns(self) -> Iterator[str]:
        """Files with failures, which are reported, end the check."""
        store, manifest = self.store, self.manifest
        found = {path: self._files[path] for path in listings(manifest) if path in self._files}
        yield from (failure for finding in found.values() for failure in finding.content)
        if any(finding.content for finding in found.values()):
            return
        listed = {path: finding.facts for path, finding in found.items()}
        yield from collect("takedowns/", check_takedowns(store, manifest, self._damaged, listed))
        left, first = self.joined["left"]
        if left:
            where = f"{place_name(manifest, first[0])} row {first[1]}"
            yield f"takedowns/: {left} rows of what a takedown lists as removed are there; the first: {where}"

    def _removals(self, report: Report) -> Iterator[str]:
        """Files with wrong checksums, which are reported already, end the check."""
        manifest = self.manifest
        names = [entry.path for entry in manifest.removals]
        if wrong := names_fault(manifest):
            yield wrong
            return
        if self._damaged.intersection(names):
            return
        found: list[tuple[list[str], dict[str, Any]]] = [
            (self._files[name].content, self._files[name].facts) for name in names
        ]
        yield from check_rows(manifest, found)
        if any(facts["ends"] for _, facts in found):
            return
        report.removals = sum(facts["rows"] for _, facts in found)
        if not all(facts["has_ids"] for facts in self._shards):  # reported already
            return
        report.dropped_later = self.joined["unknown"][0]
        later = [stage.name for stage in manifest.stages if stage.phase == "shards" and stage.name != STAGE]
        lost = sum(
            count["documents"]
            for row in manifest.funnel
            if row["stage"] in later
            for count in (*row["dropped"].values(), *row["dead"].values())
        )
        yield from check_chains(manifest, self.joined, lost)
        others = [facts["others"] for facts in self._shards]
        if None not in others:  # reported already
            copies, held_back = (sum(facts[name] for _, facts in found) for name in ("copies", "held_back"))
            yield from check_copies(manifest, sum(others), copies, held_back, report.dropped_later)
