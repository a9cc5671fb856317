"""`refinery export --format torch`: shards of exactly as many tokens, from one corpus after the other.

Documents of a later corpus that the export holds already are left out by their id. What fills no shard is kept in
leftover/ and begins the first shard of the next corpus, so nothing is lost or repeated, and no shard ever changes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import apache_beam as beam

from refinery.loader.format.manifest import MANIFEST, SCHEMA_VERSION, SPLITS, ShardEntry, seal, unseal
from refinery.loader.storage.store import StorageConflict, checksums
from refinery.pipelines.corpus.export.checkpoint import (
    CHECKPOINT,
    Checkpoint,
    SplitPlan,
    read_checkpoint,
    write_checkpoint,
)
from refinery.pipelines.corpus.export.export_format import KIND
from refinery.pipelines.corpus.export.export_manifest import listed_files, sum_sources
from refinery.pipelines.corpus.export.options import WORK, ExportOptions
from refinery.pipelines.corpus.export.place import Place, SourceCorpus
from refinery.pipelines.corpus.export.regions import cut_shards, overlapping, region_count, region_entries
from refinery.pipelines.corpus.export.rewrite import TakenOut, new_name, rewritten, still_held, taken_out, warning
from refinery.pipelines.corpus.export.rows import plain_entry
from refinery.pipelines.corpus.export.token_job import (
    EachRegion,
    TokenJob,
    Work,
    count_region,
    leftover_file,
    task_lines,
    write_region,
)
from refinery.pipelines.corpus.export.work_place import digest
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.runners.runner import Runner
from refinery.transforms.core.job.task_list import write_task_list
from refinery.transforms.core.job.write_report import WriteReport

EMPTY: Mapping[str, Any] = {
    "corpora": [],
    "shards": [],
    "leftover": [],
    "provenance": [],
    "files": [],
    "sources": {},
    "totals": {},
}


@dataclass
class TokenExport:
    """One corpus into an export of tokens. `run()` brings that to a manifest that has it, from wherever it stands."""

    corpus: SourceCorpus
    output: str
    options: ExportOptions
    runner: Runner
    append: bool = False
    rewrite: bool = False
    say: Callable[[str], None] = print

    def run(self) -> dict[str, Any]:
        """Returns the manifest. Raises RefineError for a place that holds something else, or another corpus without
        `append`, ValueError for a corpus that cannot follow those before, and whatever a job raises.
        """
        manifest = self.corpus.manifest
        if manifest.written.is_masked:
            raise ValueError(
                f"{self.corpus.root}: a corpus with loss masks, for which shards of tokens have no place; choose "
                "another --format, whose column trained_tokens has them"
            )
        self.tokenizer_path, self.tokenizer_data = self.corpus.tokenizer_file()
        self.tokenizer = {
            "sha256": checksums(self.tokenizer_data).sha256,
            **{name: getattr(manifest.tokenizer, name) for name in ("vocab_size", "bos_id", "eos_id")},
        }
        identity = {"options": self.options.plain(), "tokenizer": self.tokenizer}
        self.place = place = Place(self.output, identity, self.runner, manifest.name, self.say)
        place.claim()
        gone = taken_out(self.corpus)
        if self.rewrite:
            return self._rewrite(gone)
        after = self._held()
        if after is None:
            with place.at_work():
                after = self._held() or self._add()
        else:
            self.say(f"{self.output} holds {manifest.name} already; nothing to do")
        self._tidy(after)
        if (held := still_held(place.store, after, gone)).documents:
            self.say(warning(self.output, self.corpus.root, held))
        return after

    def _rewrite(self, gone: TakenOut) -> dict[str, Any]:
        """The manifest without what takedowns took out of the corpus. Raises RefineError where no finished export is,
        or a corpus is being added."""
        place = self.place
        with place.at_work():
            before, found = place.manifest(), read_checkpoint(place.store)
            if before is None or (found is not None and found.state != "complete"):
                raise RefineError(f"{self.output}: no finished export to rewrite; run its `refinery export` to the end")
            held = still_held(place.store, before, gone)
            after = before
            if held.documents:
                after = rewritten(place.store, before, held, self.corpus.plain())
                place.store.replace(MANIFEST, seal(after))
            more = len(after.get("withdrawn", [])) - len(before.get("withdrawn", []))
            self.say(f"{held.documents:,} documents with {held.tokens:,} tokens taken out; {more:,} files replaced")
        self._tidy(after)
        return after

    def _held(self) -> dict[str, Any] | None:
        """The manifest, if the export has this corpus and adds no other one."""
        found = read_checkpoint(self.place.store)
        before = self.place.manifest()
        if before is None or (found is not None and found.state != "complete"):
            return None
        ours = self.corpus.plain()
        has_it = any(all(corpus[key] == value for key, value in ours.items()) for corpus in before["corpora"])
        return before if has_it else None

    def _add(self) -> dict[str, Any]:
        """The manifest that has this corpus, from wherever its adding stands."""
        place, before = self.place, self.place.manifest()
        checkpoint = self._checkpoint(before)
        self._check_files(before or EMPTY)
        if checkpoint.state == "counting":
            checkpoint = self._count(checkpoint, before or EMPTY)
        after = before if before is not None and len(before["corpora"]) > checkpoint.sequence else None
        if after is None:
            after = self._publish(checkpoint, before or EMPTY, self._write(checkpoint, before or EMPTY))
        write_checkpoint(place.store, replace(checkpoint, state="complete"))
        return after

    def _checkpoint(self, before: Mapping[str, Any] | None) -> Checkpoint:
        """Where this corpus stands, or is to begin."""
        ours = self.corpus.plain()
        found = read_checkpoint(self.place.store)
        if found is not None and found.state != "complete":
            if dict(found.corpus) != ours:
                raise self._being_written(found.corpus)
            return found
        corpora = before["corpora"] if before else []
        if corpora and not self.append:
            names = ", ".join(corpus["name"] for corpus in corpora)
            raise RefineError(f"{self.output} holds an export of {names}; --append adds this corpus to it")
        shares = {corpus["validation"] for corpus in corpora} | {self._validation}
        if len(shares) > 1:
            raise ValueError(
                f"shards.validation: {self._validation} in this corpus, {corpora[0]['validation']} in those before: a "
                "document could be in both splits"
            )
        splits = []
        for split in SPLITS:
            if entries := self._entries(split):
                shards = sum(shard["split"] == split for shard in before["shards"]) if before else 0
                left = next((part for part in (before or EMPTY)["leftover"] if part["split"] == split), None)
                waiting = (left["tokens"], left["file"]["path"]) if left else (0, "")
                splits.append(SplitPlan(split, region_count(entries), shards, *waiting))
        checkpoint = Checkpoint("counting", len(corpora), ours, tuple(splits))
        if (started := self._claim(checkpoint, before)) is None:
            write_checkpoint(self.place.store, checkpoint)
        return started or checkpoint

    def _claim(self, checkpoint: Checkpoint, before: Mapping[str, Any] | None) -> Checkpoint | None:
        """Take the next number of a corpus in the export for this one: of two commands that add different corpora, on
        machines that do not know of each other, the file that is created exclusively lets one go on. Returns what
        another command for this very corpus has written meanwhile. Raises RefineError for one who comes late.
        """
        place, name = self.place, claim_name(checkpoint.sequence)
        try:
            place.work_store.create(name, seal(dict(checkpoint.corpus)))
        except StorageConflict:
            raise self._being_written(unseal(place.work_store.read(name), place.work_store.url(name))) from None
        if place.manifest() != before:  # the other one has finished, and tidied its claim away
            raise RefineError(f"{self.output}: a corpus was added by another command just now; run this one again")
        found = read_checkpoint(place.store)
        return found if found is not None and found.state != "complete" else None

    def _being_written(self, corpus: Mapping[str, Any]) -> RefineError:
        other = f"{corpus['name']} (fingerprint {corpus['fingerprint']:.12}…)"
        return RefineError(
            f"{self.output}: the corpus {other} is being written there; run its command to the end first"
        )

    def _check_files(self, before: Mapping[str, Any]) -> None:
        """Raises RefineError for files that the jobs read of what the export holds, and that are not there as they were
        written."""
        store = self.place.store
        files = [
            (part["file"], f"{part['tokens']:,} tokens of {part['split']} that wait") for part in before["leftover"]
        ]
        files += [(part["file"], f"the ids of {part['rows']:,} documents") for part in before["provenance"]]
        for file, what in files:
            found = store.size(file["path"])
            if found != file["size"]:
                is_there = "is missing" if found is None else f"has {found} bytes, {file['size']} expected"
                raise RefineError(
                    f"{store.url(file['path'])} {is_there}: it holds {what}, without which no corpus can be added. Put "
                    "it back from a copy of the export, or export all corpora again to another --output"
                )

    @property
    def _seed(self) -> int:
        return int(self.corpus.manifest.recipe["shards"]["seed"])

    @property
    def _validation(self) -> float:
        return float(self.corpus.manifest.recipe["shards"]["validation"])

    def _entries(self, split: str) -> list[ShardEntry]:
        return [entry for entry in self.corpus.manifest.shards if entry.split == split]

    # --- the jobs -----------------------------------------------------------------------------------------------

    def _job(self, checkpoint: Checkpoint) -> TokenJob:
        return TokenJob(
            corpus=self.corpus.root,
            output=self.place.root,
            work=self.place.work,
            seed=self._seed,
            sequence=checkpoint.sequence,
            shard_tokens=self.options.shard_tokens,
            dtype=self.options.dtype,
            fingerprint=digest(
                {
                    "place": self.place.fingerprint,
                    "corpus": dict(checkpoint.corpus),
                    "sequence": checkpoint.sequence,
                    "state": checkpoint.state,
                }
            ),
        )

    def _region(self, plan: SplitPlan, region: int, before: Mapping[str, Any]) -> dict[str, Any]:
        """The task of a region: its shards, and where the export tells of documents that may be in it."""
        entries = region_entries(self._entries(plan.split), region, plan.regions)
        seeds = [corpus["seed"] for corpus in before["corpora"]]
        earlier = [
            part["file"]["path"]
            for part in before["provenance"]
            if part["split"] == plan.split
            and (
                seeds[part["sequence"]] != self._seed
                or part["region"] in overlapping(region, plan.regions, part["regions"])
            )
        ]
        plain = [plain_entry(entry) for entry in entries]
        return {"region": region, "regions": plan.regions, "entries": plain, "earlier": earlier}

    def _count(self, checkpoint: Checkpoint, before: Mapping[str, Any]) -> Checkpoint:
        """The checkpoint with the new tokens of each region."""
        tasks = [
            {"split": plan.split, **self._region(plan, region, before)}
            for plan in checkpoint.splits
            for region in range(plan.regions)
        ]
        found = self._run(checkpoint, "count", 2 * checkpoint.sequence, tasks, count_region)
        tokens = {(record["split"], record["index"]): record["tokens"] for record in found}
        splits = tuple(
            replace(plan, tokens=tuple(tokens[plan.split, region] for region in range(plan.regions)))
            for plan in checkpoint.splits
        )
        counted = replace(checkpoint, state="writing", splits=splits)
        write_checkpoint(self.place.store, counted)
        return counted

    def _write(self, checkpoint: Checkpoint, before: Mapping[str, Any]) -> list[dict[str, Any]]:
        tasks = []
        for plan in checkpoint.splits:
            regions = [self._region(plan, region, before) for region in range(plan.regions)]
            left = next((part for part in before["leftover"] if part["split"] == plan.split), None)
            tasks += cut_shards(plan, self.options.shard_tokens, regions, left)
        return self._run(checkpoint, "write", 2 * checkpoint.sequence + 1, tasks, write_region)

    def _run(
        self, checkpoint: Checkpoint, step: str, number: int, tasks: Sequence[dict[str, Any]], work: Work
    ) -> list[dict[str, Any]]:
        place, job = self.place, self._job(checkpoint)
        report = f"{step}-{checkpoint.sequence:05d}.json"

        def build(pipeline: beam.Pipeline) -> None:
            pipeline | EachRegion(write_task_list(place.work, "lists", task_lines(tasks)), work, job)
            pipeline | WriteReport(place.work, report, {"fingerprint": job.fingerprint})

        found = place.run_job(job.fingerprint, report, f"export, {step}", build, number, self.corpus.to_do())
        if len(found["shards"]) != len(tasks):
            raise RefineError(f"{step}: {len(found['shards'])} regions reported, {len(tasks)} expected")
        return list(found["shards"])

    # --- the end ------------------------------------------------------------------------------------------------

    def _publish(
        self, checkpoint: Checkpoint, before: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        manifest = self.corpus.manifest
        new = sum_sources([record["sources"] for record in records])
        shards = [*before["shards"], *(shard for record in records for shard in record["shards"])]
        splits = {plan.split for plan in checkpoint.splits}
        leftover = [part for part in before["leftover"] if part["split"] not in splits]
        leftover += [record["leftover"] for record in records if record["leftover"]]
        sources = sum_sources([before["sources"], new])
        skipped = sum(record["skipped"] for record in records)
        counts = {name: sum(entry[name] for entry in new.values()) for name in ("documents", "tokens", "bytes")}
        removed = before.get("removed", {"documents": 0, "tokens": 0})
        held = sum(part["tokens"] for part in [*shards, *leftover])
        total = sum(entry["tokens"] for entry in sources.values()) + removed["tokens"]
        if held != total or counts["documents"] + skipped != manifest.totals["documents"]:
            raise RefineError(
                f"{held} tokens in shards and leftover, {total} expected; {counts['documents']} documents written and "
                f"{skipped} skipped, {manifest.totals['documents']} expected, so no manifest is written"
            )
        corpus = {
            **self.corpus.plain(),
            "seed": self._seed,
            "validation": self._validation,
            "skipped": skipped,
            **counts,
        }
        tokenizer_file = self.place.add_file(self.tokenizer_path, self.tokenizer_data)
        files = before["files"] or [tokenizer_file]
        payload = {
            "schema_version": SCHEMA_VERSION,
            "kind": KIND,
            "options": self.options.plain(),
            "tokenizer": {"path": files[0]["path"], **self.tokenizer},
            "corpora": [*before["corpora"], corpus],
            "shards": sorted(shards, key=lambda shard: (shard["split"], shard["index"])),
            "leftover": sorted(leftover, key=lambda part: str(part["split"])),
            "leftover_tokens": {part["split"]: part["tokens"] for part in leftover},
            "provenance": [
                *before["provenance"],
                *(
                    {
                        "split": record["split"],
                        "sequence": checkpoint.sequence,
                        "region": record["index"],
                        "regions": record["regions"],
                        **record["provenance"],
                    }
                    for record in records
                ),
            ],
            "files": files,
            "sources": sources,
            "totals": {
                "shards": len(shards),
                **{name: sum(entry[name] for entry in sources.values()) for name in ("documents", "tokens", "bytes")},
            },
        }
        payload |= {name: before[name] for name in ("removed", "rewrites", "withdrawn") if name in before}
        data = seal(payload)
        if checkpoint.sequence:
            self.place.store.replace(MANIFEST, data)
        else:
            self.place.store.create(MANIFEST, data)
        return payload

    def _tidy(self, manifest: Mapping[str, Any]) -> None:
        old = {leftover_file(split, number) for split in SPLITS for number in range(len(manifest["corpora"]))}
        numbers = range(1, len(manifest.get("rewrites", [])) + 1)
        old |= {new_name(name, number) for name in old for number in numbers}
        old |= {file["path"] for file in manifest.get("withdrawn", [])}
        next_claim = f"{WORK}/{claim_name(len(manifest['corpora']))}"  # of a command that has just begun elsewhere
        self.place.tidy([*listed_files(manifest), CHECKPOINT, next_claim], old)


def claim_name(sequence: int) -> str:
    """Where it is said which corpus is the one of that number, in the work location."""
    return f"adding/{sequence:05d}.json"
