"""The run of `refinery tokenize`: phase 3 from the encoder on, over the shards of a corpus of texts.

Its shards are those that one run with the tokenizer would have written, byte for byte. It resumes, fails and publishes
as `Refinement` does.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

import apache_beam as beam

from refinery import DISTRIBUTION
from refinery.loader.errors import written_by_a_run
from refinery.loader.format.manifest import RUN, Manifest
from refinery.loader.format.removals import FOLDER as REMOVALS
from refinery.loader.format.shard_list import as_shards
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.progress.phase_work import tokenize_work
from refinery.pipelines.published.deduplicated import by_domain
from refinery.pipelines.recipe.checks import check_tokens
from refinery.pipelines.run.differences import TOKENIZED_FROM
from refinery.pipelines.run.empty_sources import check_sources
from refinery.pipelines.run.funnel import build_funnel, check_sums
from refinery.pipelines.run.phase_jobs import PhaseJobs
from refinery.pipelines.run.phases import RECORDS, Phase, discard_short_shards, merge_reports, read_phase
from refinery.pipelines.run.refine import Refinement
from refinery.pipelines.run.tokenizing.carried import (
    carried_files,
    carried_records,
    carried_rows,
    carried_stages,
    taken_sources,
)
from refinery.pipelines.run.tokenizing.graph import CarryFiles, ReadTexts, tokenize
from refinery.pipelines.run.tokenizing.identity import PHASE, describe_tokens, encoding_stages, recorded_digest
from refinery.pipelines.run.tokenizing.read_texts import dump_file, dump_shard, text_format
from refinery.pipelines.run.tokenizing.text_corpus import TextCorpus
from refinery.pipelines.run.writing.last_job import shards_job
from refinery.transforms.core.job.task_list import write_task_list
from refinery.transforms.write.records import FOLDERS
from refinery.transforms.write.targets import expected_bytes


@dataclass
class Tokenization(Refinement):
    """A corpus of tokens from a corpus of texts. texts: what is read; `recipe` is its own."""

    texts: TextCorpus | None = None

    @property
    def _texts(self) -> TextCorpus:
        if self.texts is None:
            raise ValueError("texts: none given, a corpus of texts is needed")
        return self.texts

    def prepare(self, probe: bool = False) -> None:
        texts = self._texts
        if self.runner.remote:
            from refinery.pipelines.runners.dataflow.flag_checks import check_reach_of

            check_reach_of({"PREFIX": texts.corpus.root, "--tokenizer": self.recipe.tokenizer.path})
        self.tokenizer = check_tokens(self.recipe)
        self.store, self.work_store = open_store(self.prefix), open_store(self.work)
        self.cut, self.tasks, self.inputs = None, [], list(texts.run["inputs"])
        with written_by_a_run(f"{texts.corpus.store.url(RUN)}: its fields are"):
            self.identity = describe_tokens(texts)
        self.fingerprints = self.identity["phases"]
        digest, encoding = recorded_digest(texts), self.recipe.LANE.encoding
        active = [found for found in self.recipe.active(PHASE) if found[0] in encoding]
        self.digests = {path: digest(path) for stage, params in active for path in stage.files(params)}
        self.jobs = PhaseJobs(
            name=self.recipe.name,
            prefix=self.prefix,
            work=self.work,
            runner=self.runner,
            fingerprints={**self.fingerprints, RECORDS: self.fingerprints[PHASE]},
            failures=self.recipe.failures,
            say=self.say,
        )

    def _places(self) -> list[tuple[Any, str]]:
        line = "Run the same command with another --output."
        return [(store, line) for store, _ in super()._places()]

    def _run_phases(self) -> Manifest:
        discard_short_shards(self.store, self.work_store, self._sums(), self.say)
        shards = self._phase(PHASE, self._encode)
        off = [
            *(source.name for source in self.recipe.sources if not source.enabled),
            *taken_sources(self._carried),
        ]
        check_sources(self._funnel([shards]), self.recipe.failures, off)
        return self._publish([carried_records(self._texts.corpus), shards])

    def _encode(self) -> Mapping[str, Any]:
        corpus, recipe = self._texts.corpus, self.recipe
        targets = recipe.targets()
        kept = by_domain(expected_bytes(self._texts.kept, targets), self._domains())
        job = shards_job(recipe, self.tokenizer, kept, self.prefix)
        shards, documents = corpus.manifest.shards, corpus.manifest.totals["documents"]
        files = [file for folder in (REMOVALS, *FOLDERS) for file in corpus.files(folder)]
        name = f"{PHASE}/report.json"
        work = tokenize_work(encoding_stages(recipe), documents, as_shards(shards).all_files()[1], job.counts)

        def build(pipeline: beam.Pipeline) -> None:
            texts = text_format(corpus.root, corpus.manifest, corpus.writer, recipe.counted())
            read = ReadTexts(write_task_list(self.work, PHASE, list(map(dump_shard, shards))), texts)
            listed = write_task_list(self.work, PHASE, list(map(dump_file, files)))
            carry = CarryFiles(listed, corpus.root, self.prefix, REMOVALS)
            facts = self.jobs.facts(PHASE)
            tokenize(pipeline, recipe, read, carry, job, self.work, name, facts, self._sums(), self.digests)

        return self.jobs.run(PHASE, name, work.title, build, work=work)

    @property
    def _carried(self) -> list[Mapping[str, Any]]:
        return carried_rows(self._texts.corpus.manifest)

    def _sums(self, *before: Phase) -> Callable[[Mapping[str, Any]], None]:
        return partial(check_sums, before=(), stages=encoding_stages(self.recipe), carried=self._carried)

    def _funnel(self, phases: Sequence[Phase]) -> list[dict[str, Any]]:
        counters = merge_reports([phase.report for phase in phases])["counters"]
        found = {counter["source"] for counter in counters}
        sources = [source.name for source in self.recipe.sources if source.name in found]
        return [*map(dict, self._carried), *build_funnel(counters, encoding_stages(self.recipe), sources)]

    def _published_beside(self, phases: Sequence[Phase]) -> dict[str, Any]:
        texts, manifest = self._texts, self._texts.corpus.manifest
        made_with = {"refinery": version(DISTRIBUTION), "beam": version("apache-beam")}
        return {
            "small_files": partial(carried_files, texts.corpus, self.recipe, phases[-1].report),
            "further": {
                "stages": carried_stages(manifest, self.recipe),
                "versions": {**manifest.versions, **made_with},
                TOKENIZED_FROM: texts.lineage,
            },
        }

    def _finished(self) -> dict[str, Any] | None:
        phase = read_phase(self.work, PHASE, self.fingerprints[PHASE])
        return None if phase is None else merge_reports([phase.report])
