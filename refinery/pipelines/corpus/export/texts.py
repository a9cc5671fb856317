"""`refinery export` to formats of documents: the job, what stands beside its files, and the manifest, last of all."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apache_beam as beam

from refinery.loader.format.manifest import MANIFEST, SCHEMA_VERSION, seal
from refinery.loader.read.loss_runs import COLUMN
from refinery.loader.storage.store import CHUNK
from refinery.pipelines.corpus.export.export_format import KIND, Written
from refinery.pipelines.corpus.export.export_manifest import HIDDEN, listed_files, sum_sources
from refinery.pipelines.corpus.export.options import ExportOptions, chosen_fields
from refinery.pipelines.corpus.export.place import Place, SourceCorpus
from refinery.pipelines.corpus.export.rows import corpus_facts
from refinery.pipelines.corpus.export.text_job import ExportShards, TextJob, describe, file_name, shard_tasks
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.runners.runner import Runner
from refinery.transforms.core.job.task_list import TaskList, write_task_list
from refinery.transforms.core.job.write_report import WriteReport
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer

REPORT = "report.json"


@dataclass
class TextExport:
    """One corpus in one format at one place. `run()` brings it to its manifest, from wherever it stands."""

    corpus: SourceCorpus
    output: str
    options: ExportOptions
    runner: Runner
    work: str = ""  # of the corpus, "" for PREFIX/work
    recipe: str = ""  # the corpus' own, needed where it has stages of its own
    say: Callable[[str], None] = print

    def run(self) -> dict[str, Any]:
        """Returns the manifest. Raises RefineError for a place that holds something else and for texts that cannot be
        had, ValueError for options that do not fit the corpus, and whatever the job raises.
        """
        manifest = self.corpus.manifest
        self.runner.use_code(self.options.code.folder, tuple(self.options.code.files))
        identity = {"options": self.options.plain(), "corpus": self.corpus.plain()}
        self.place = place = Place(self.output, identity, self.runner, manifest.name, self.say)
        facts = corpus_facts(self.corpus.root, manifest)
        job = TextJob(facts, place.root, place.work, self.options, place.fingerprint)
        chosen_fields(
            self.options, facts.columns, manifest.written.is_masked
        )  # raises ValueError for a field that no row has
        transform = self._transform(job)
        place.claim()
        done = place.manifest()
        if done is None:
            with place.at_work():
                done = place.manifest() or self._publish(job, self._run_job(job, transform)["shards"])
        else:
            self.say(f"{self.output} is complete already; nothing to do")
        place.tidy(listed_files(done), self._parts() if self.options.single_file else ())
        return done

    def _parts(self) -> set[str]:
        """Names of the files that were joined."""
        entries = self.corpus.manifest.shards
        return {file_name(self.options, e.split, e.domain, e.index, e.count) for e in entries}

    def _transform(self, job: TextJob) -> Callable[[TaskList], Any]:
        """What writes the shards of a task list: their texts from their tokens, or from the work files."""
        tokenizer = load_tokenizer(job.corpus.tokenizer)
        if tokenizer.lossless:
            return lambda tasks: ExportShards(tasks, job)
        if self.corpus.manifest.written.is_masked:
            raise ValueError(
                f"{self.corpus.root}: a corpus with loss masks whose tokenizer does not give texts back; they cannot "
                "be exported, and TokenStream and PackedStream read the corpus as it is"
            )
        from refinery.pipelines.corpus.export.recompute import plan_recomputation

        return plan_recomputation(self.corpus, self.work, self.recipe, job, self.runner)

    def _run_job(self, job: TextJob, transform: Callable[[TaskList], Any]) -> dict[str, Any]:
        place, shards = self.place, self.corpus.manifest.shards

        def build(pipeline: beam.Pipeline) -> None:
            tasks = write_task_list(place.work, "lists", shard_tasks(shards))
            pipeline | transform(tasks)
            pipeline | WriteReport(place.work, REPORT, {"fingerprint": job.fingerprint})

        return place.run_job(job.fingerprint, REPORT, "export", build, 0, self.corpus.to_do())

    def _publish(self, job: TextJob, shards: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        manifest = self.corpus.manifest
        written = {(shard["split"], shard["domain"], shard["index"]) for shard in shards}
        expected = {(entry.split, entry.domain, entry.index) for entry in manifest.shards}
        sources = sum_sources([shard["sources"] for shard in shards])
        totals = {name: sum(counts[name] for counts in sources.values()) for name in manifest.totals}
        if written != expected or totals != dict(manifest.totals):
            raise RefineError(
                f"{len(written)} shards with {totals} were written, {len(expected)} with {dict(manifest.totals)} are "
                "in the corpus, so no manifest is written"
            )
        shards = self._join(shards) if self.options.single_file else shards
        path, data = self.corpus.tokenizer_file()
        path = f"_{path}" if self.options.declared.hidden else path
        files = [self.place.add_file(path, data)]
        facts = Written(manifest, job.fields, job.schema, shards, sources)
        files += [self.place.add_file(name, data) for name, data in self.options.declared.beside(facts)]
        payload = {
            "schema_version": SCHEMA_VERSION,
            "kind": KIND,
            "options": self.options.plain(),
            "fields": list(job.fields),
            "corpus": self.corpus.plain(),
            "dtype": manifest.dtype,
            "tokenizer": {
                "path": path,
                "sha256": files[0]["sha256"],
                **{name: getattr(manifest.tokenizer, name) for name in ("vocab_size", "bos_id", "eos_id")},
            },
            "shards": list(shards),
            "files": sorted(files, key=lambda file: str(file["path"])),
            "sources": sources,
            "totals": {"shards": len(shards), **totals},
        }
        if manifest.written.is_masked:
            payload["loss_masks"] = COLUMN
        self.place.store.create(HIDDEN if self.options.declared.hidden else MANIFEST, seal(payload))
        return payload

    def _join(self, shards: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """One file for each split, of the files of its shards, which go when the manifest is there: members of gzip and
        frames of zstd may follow each other. Done by this process; disk: one split.
        """
        store, suffix = self.place.store, self.options.declared.suffix(self.options.files)
        joined = []
        for split in sorted({shard["split"] for shard in shards}):
            parts = [shard for shard in shards if shard["split"] == split]
            name = f"{split}{suffix}"
            with TemporaryDirectory(prefix="refinery-export-") as scratch:
                path = Path(scratch) / "joined"
                with path.open("wb") as out:
                    for part in parts:
                        with store.open(part["file"]["path"]) as stream:
                            while chunk := stream.read(CHUNK):
                                out.write(chunk)
                store.create(name, path)
                joined.append(
                    {
                        "split": split,
                        "domain": "",
                        "index": 0,
                        "count": 1,
                        **{key: sum(part[key] for part in parts) for key in ("documents", "tokens")},
                        "sources": sum_sources([part["sources"] for part in parts]),
                        "parts": [{key: part[key] for key in ("documents", "tokens_sha256")} for part in parts],
                        "file": describe(path, name),
                    }
                )
        return joined
