"""`refinery refine`: the three phases in order, skipping what is complete, and the manifest at the end.

Every step can be repeated: names are exclusive, reports are sealed, and what a killed run left behind is either claimed
by a report or removed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.metadata import version
from typing import Any

import apache_beam as beam

from refinery import DISTRIBUTION
from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import MANIFEST, RUN, Manifest
from refinery.loader.read.corpus import Corpus
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store
from refinery.pipelines.progress.phase_work import dedup_step, dedup_work, shards_work
from refinery.pipelines.published.deduplicated import by_domain, kept_by_source
from refinery.pipelines.recipe import graphs
from refinery.pipelines.recipe.checks import check_files
from refinery.pipelines.recipe.idle import idle_settings
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.recipe.writers import know_writer
from refinery.pipelines.reports.run.write import leave_report
from refinery.pipelines.run.at_work import at_work, remove_slice_leases, remove_stale_leases
from refinery.pipelines.run.clean_phase import CleanPhase
from refinery.pipelines.run.dry_run_text import DryRun, dry_run_lines
from refinery.pipelines.run.empty_sources import check_sources, loss_warnings, refuse_empty
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.fingerprint import describe_inputs, file_digest, phase_fingerprints
from refinery.pipelines.run.funnel import build_funnel, check_sums, funnel_table
from refinery.pipelines.run.input_borders import input_borders
from refinery.pipelines.run.inputs_read.settle import with_sums
from refinery.pipelines.run.inputs_read.text_fields import settle_text_fields
from refinery.pipelines.run.open_references import load_reference_corpora
from refinery.pipelines.run.phase_jobs import PhaseJobs
from refinery.pipelines.run.phases import (
    ORDER,
    RECORDS,
    Phase,
    discard_short_shards,
    finish_phase,
    merge_reports,
    pair_parts,
    read_phase,
    remove_orphans,
    remove_work,
)
from refinery.pipelines.run.prefix import claim, describe_run, location, owned, work_places
from refinery.pipelines.run.publish import measured_files, publish_corpus, publish_records
from refinery.pipelines.run.reuse import take_over
from refinery.pipelines.run.slices.cut import Cut, read_cut
from refinery.pipelines.run.slices.failures import remove_failures
from refinery.pipelines.run.slices.names import CUT
from refinery.pipelines.run.slices.sealed_inputs import sealed_inputs
from refinery.pipelines.run.slices.sliced_job import Task, remove_exchanges
from refinery.pipelines.run.source_table import source_rows, source_table, tokens_by_source
from refinery.pipelines.run.wall_clock import ENDED, STARTED, note_time, read_times
from refinery.pipelines.run.writing.last_job import last_job
from refinery.pipelines.run.writing.output_files import check_outputs, new_fields
from refinery.pipelines.runners.launch_lines import launch_lines, refuse_unseen
from refinery.pipelines.runners.runner import Runner
from refinery.transforms.core.names import PHASES
from refinery.transforms.core.wording import many
from refinery.transforms.dedup.deduplicate import list_parts
from refinery.transforms.dedup.signatures import scheme_of
from refinery.transforms.read.probe import probe_sources
from refinery.transforms.read.sources import ReadTask, plan_sources
from refinery.transforms.write.kept_documents import write_pairs
from refinery.transforms.write.removals import count_files
from refinery.transforms.write.rows.writer import LAYOUT
from refinery.transforms.write.shards import ShardsJob
from refinery.transforms.write.targets import expected_bytes

DOCUMENTS_PER_PARTITION = 250_000  # rows of one radix partition of phase 2; about 40 MB a band


@dataclass
class Refinement:
    """One recipe on one prefix. `run()` brings the prefix to its manifest, from wherever it stands.

    prefix, work: locations (local, gs:// or s3://). reuse: another prefix whose finished phases are reused if their
    fingerprint is the same. say: receives lines for the user.
    """

    recipe: Recipe
    prefix: str
    runner: Runner
    work: str = ""
    reuse: str = ""
    discard_work: bool = False
    say: Callable[[str], None] = print
    text_fields: Mapping[str, str] = field(default_factory=dict, init=False)  # source -> field that was found
    task: Task | None = field(default=None, init=False)  # what this command does of a run with slices, if not all

    def __post_init__(self) -> None:
        self.work = self.work or f"{self.prefix.rstrip('/')}/work"
        inside = f"{location(self.prefix)}/".startswith(f"{location(self.work)}/")
        if inside:
            raise RefineError(
                f"--work {self.work}: the corpus would be in its own work location; choose another --work"
            )

    def run(self) -> Manifest:
        """Returns the manifest.

        Raises RecipeError and ValueError for what is wrong with the recipe or its inputs (before anything runs),
        RefineError for a prefix that belongs to something else, a spent failure budget or counts that do not
        reconcile, and whatever a job raises.
        """
        self.prepare()
        return self.complete()

    def complete(self) -> Manifest:
        """What `run` does once all is prepared."""
        if self._claim():
            manifest = Corpus(self.store).manifest
            merged = self._finished()  # the command that wrote it may have been killed right after
            self._leave_report(merged and merged["seconds"])
            self._tidy(merged)
            self.say(f"{self.prefix} is complete already; nothing to do")
            return manifest
        self.runner.use_places(
            [self.store.url(RUN), *self.digests, *(task.moved or task.path for task in self.tasks[:1])]
        )
        with at_work(self.work_store, self.runner.remote, self.say), self.runner.heartbeat(self.prefix):
            note_time(self.work_store, STARTED)
            return self._run_phases()

    def dry_run(self) -> None:
        """Say what `run` would do, after all its checks; nothing is written. Raises what `run` raises before
        it begins."""
        self.prepare(probe=True)
        for store, advice in self._places():
            owned(store, self.identity, advice)
        vcpus = self.runner.vcpus
        scratch = self.runner.scratch
        run = DryRun(self.recipe, self.prefix, self.work, self.reuse, vcpus, self.tasks, self.identity, scratch)
        elsewhere = launch_lines(self.runner, self.recipe, self.prefix, self.work, self.tasks)
        for line in (*elsewhere, *dry_run_lines(run)):
            self.say(line)

    def prepare(self, probe: bool = False) -> None:
        """Everything before the prefix is claimed: files, inputs, fingerprints. Nothing is written. probe: look into
        the sources also where the run has begun already, as it did then.
        """
        self.runner.use_code(self.recipe.CODE.folder, tuple(self.recipe.CODE.files))
        refuse_unseen(self.runner, self.recipe, self.prefix, self.work, self.reuse)
        know_writer(self.recipe.LANE.writer)  # what looks at the corpus reads it back by it
        self.tokenizer = check_files(self.recipe)
        self.store: Store = open_store(self.prefix)
        self.work_store: Store = open_store(self.work)
        self.cut: Cut | None = read_cut(self.work_store)
        if self.cut is None:
            self._plan(probe or self.store.size(RUN) is None)
        else:
            self._take_sealed(self.cut.tasks(self.work) if probe else [])
        digest = cache(file_digest)  # one answer for a file, however often the run is described
        self.fingerprints = phase_fingerprints(self.recipe, self.inputs, digest)
        self.identity = describe_run(self.recipe, self.inputs, self.fingerprints, digest, self.text_fields)
        self.digests = {path: digest(path) for _, path in self.recipe.files()}
        self.jobs = PhaseJobs(
            name=self.recipe.name,
            prefix=self.prefix,
            work=self.work,
            runner=self.runner,
            fingerprints={**self.fingerprints, **dict.fromkeys((ORDER, RECORDS), self.fingerprints[PHASES[-1]])},
            failures=self.recipe.failures,
            say=self.say,
            slices=self.cut.slices if self.cut else 0,
            task=self.task,
        )
        self.reference_corpora = None if self._is_deduplicated() else load_reference_corpora(self.recipe)

    def _run_phases(self) -> Manifest:
        if self.reuse:
            take_over(self.work, self.reuse, self.recipe, self.identity, self.tasks, self.say)
        clean = self._phase("clean", self._clean)
        self._check_sources(clean)
        dedup = self._phase("dedup", lambda: self._dedup(clean))
        self._check_sources(clean, dedup)
        discard_short_shards(self.store, self.work_store, self._sums(clean, dedup), self.say)
        shards = self._phase("shards", lambda: self._shards(clean, dedup))
        self._check_sources(clean, dedup, shards)
        return self._publish([clean, dedup, shards])

    def _check_sources(self, *phases: Phase) -> None:
        if self.recipe.layout == LAYOUT:
            return  # a file of which all rows go is a result like others
        off = [source.name for source in self.recipe.sources if not source.enabled]
        check_sources(self._funnel(phases), self.recipe.failures, off)

    def _plan(self, probe: bool) -> None:
        """What there is to read. probe: see that the first files of each source hold documents."""
        planned = plan_sources(
            self.recipe.sources,
            notes=self.recipe.notes(),
            readers=self.recipe.LANE.readers,
            labels=new_fields(self.recipe),
            may_lack_text=self.recipe.layout == LAYOUT,
        )
        self.recipe, self.tasks, self.text_fields = settle_text_fields(self.recipe, planned, self.store, self.say)
        if probe:
            empty = self.recipe.layout == LAYOUT  # rows without text stay
            refuse_empty(probe_sources(self.tasks, self.recipe.limits, empty), self.recipe.failures, self.say)
        if self.recipe.layout == LAYOUT:
            check_outputs(self.recipe, self.tasks, self.prefix)
        self.inputs = describe_inputs(self.tasks)
        self.tasks = with_sums(self.tasks, self.inputs)
        for line in idle_settings(self.recipe, self.tasks):
            self.say(f"warning: {line}")

    def _take_sealed(self, tasks: list[ReadTask]) -> None:
        """What there is to read, as it was when the run was cut into slices: nobody looks at the inputs again. tasks:
        all of the cut, where they are to be shown."""
        self.inputs, self.tasks = sealed_inputs(self.store), tasks
        self.recipe, _, self.text_fields = settle_text_fields(self.recipe, [], self.store, self.say)

    def _is_deduplicated(self) -> bool:
        """Whether phase 2 is complete, here or in what is reused: then nobody needs the signatures of
        `reference_corpora`.
        """
        places = [self.work, *work_places(self.reuse)]
        return self.store.size(MANIFEST) is not None or any(
            read_phase(place, "dedup", self.fingerprints["dedup"]) is not None for place in places
        )

    def _places(self) -> list[tuple[Store, str]]:
        """The prefix, and a work location outside it, each with advice for when it is another run's."""
        inside = location(self.work).startswith(f"{location(self.prefix)}/")
        reuse = self.prefix if inside else self.work
        advice = f"Choose another --output; with --reuse {reuse} it reuses every phase that is the same."
        return [(self.store, advice), *([] if inside else [(self.work_store, "Choose another --work.")])]

    def _claim(self) -> bool:
        """Make these places ours. True when the corpus is complete."""
        for store, advice in self._places():
            claim(store, self.identity, advice)
        if self.cut is not None:
            self._check_cut(self.cut)
        return self.store.size(MANIFEST) is not None

    def _check_cut(self, cut: Cut) -> None:
        """Raises RefineError for the cut of another run."""
        if cut.fingerprint != self.fingerprints["clean"]:
            raise RefineError(f"{self.work_store.url(CUT)} is of another run and does not belong here; remove it")

    def _phase(self, name: str, run: Callable[[], Mapping[str, Any]]) -> Phase:
        phase = read_phase(self.work, name, self.fingerprints[name])
        if phase is None and self.work_store.size(f"{name}.json") is not None:
            raise RefineError(
                f"{self.work_store.url(f'{name}.json')} is of another run and does not belong here; remove it"
            )
        if phase is None:
            phase = finish_phase(self.work, name, self.fingerprints[name], run())
        else:
            self.say(f"{name}: complete already")
        if self.cut is not None:
            remove_exchanges(self.work_store, name)  # also what a command left that was killed while it did that
        self.jobs.check_budget(phase.report)
        return phase

    # --- the phases ---------------------------------------------------------------------------------------------

    def _clean(self) -> Mapping[str, Any]:
        return self._clean_phase().run()

    def _clean_phase(self) -> CleanPhase:
        return CleanPhase(
            self.recipe, self.jobs, self.tasks, self.inputs, self.digests, self._sums(), self.cut, self.say
        )

    def _dedup(self, clean: Phase) -> Mapping[str, Any]:
        recipe = self.recipe
        if not recipe.removes_copies():
            return {"counters": [], "seconds": {}, "parts": {}, "kept": self._undeduplicated(clean)}
        parts = [(clean.url(part), part["rows"]) for part in clean.parts("signatures")]
        reference_corpora = load_reference_corpora(recipe) if self.reference_corpora is None else self.reference_corpora
        referenced = [part for corpus in reference_corpora for part in corpus.parts]
        withheld = [(clean.url(part), part["rows"]) for part in clean.parts("withheld")]
        documents = sum(rows for _, rows in (*parts, *referenced, *withheld))
        partitions = 1 << max(0, (documents // DOCUMENTS_PER_PARTITION).bit_length())
        name = "dedup/report.json"
        work = dedup_work(recipe)

        def build(pipeline: beam.Pipeline) -> None:
            lists = list_parts(self.work, parts, reference_corpora, withheld)
            facts, salt = self.jobs.facts("dedup"), self.fingerprints["clean"]
            graphs.dedup(pipeline, recipe, lists, partitions, self.work, name, facts, salt, self._sums(clean))
            work.steps.append(dedup_step(pipeline, lists))

        report = self.jobs.run("dedup", name, work.title, build, work=work)
        for found in report["components"]:
            rounds = f", {found['rounds']} rounds of contraction" if found["method"] == "contraction" else ""
            self.say(
                f"{found['scope']}: {found['links']:,} links join {found['documents']:,} documents into "
                f"{found['components']:,} components, the largest of {many(found['largest'], 'document')}{rounds}"
            )
        remove_orphans(self.work_store, report, ("verdicts",))
        return report

    def _undeduplicated(self, clean: Phase) -> dict[str, dict[str, int]]:
        """Documents and bytes per domain where deduplication is off: what the last stage of phase 1 kept."""
        return by_domain(self._kept([clean]), self._domains())

    def _kept(self, phases: Sequence[Phase]) -> dict[str, dict[str, int]]:
        """Documents and bytes per source: what the last stage of these phases kept."""
        return kept_by_source(self._funnel(phases), self.recipe.LANE.funnel)

    def _domains(self) -> dict[str, str]:
        return {name: facts.domain for name, facts in self.recipe.source_facts().items()}

    def _shards(self, clean: Phase, dedup: Phase) -> Mapping[str, Any]:
        pairs = pair_parts(clean, dedup)
        targets = self.recipe.targets()
        kept = dedup.report["kept"]
        if targets:
            kept = by_domain(expected_bytes(self._kept([clean, dedup]), targets), self._domains())
        removals = count_files(sum(t["documents"] for t in dedup.report["counters"] if t["outcome"] == "dropped"))
        tasks = self.cut.tasks(self.work) if self.cut else self.tasks
        job = last_job(self.recipe, self.tokenizer, kept, tasks, self.work, self.prefix, clean.report["counters"])
        if isinstance(job, ShardsJob):
            job = replace(job, borders=input_borders(self.recipe, self.inputs, job.counts, clean, pairs, self.jobs))
        name = "shards/report.json"
        work = shards_work(self.recipe, clean.parts("documents"), job.counts)

        def build(pipeline: beam.Pipeline) -> None:
            todo = write_pairs(self.work, pairs)
            facts, check = self.jobs.facts("shards"), self._sums(clean, dedup)
            graphs.shards(pipeline, self.recipe, todo, job, removals, self.work, name, facts, check, self.digests)

        return self.jobs.run("shards", name, work.title, build, work=work)

    # --- the end ------------------------------------------------------------------------------------------------

    def _sums(self, *before: Phase) -> Callable[[Mapping[str, Any]], None]:
        """What a job holds its report to before it publishes it. before: the phases before."""
        counters = merge_reports([phase.report for phase in before])["counters"]
        return partial(check_sums, before=counters, stages=self.recipe.LANE.funnel)

    def _funnel(self, phases: Sequence[Phase]) -> list[dict[str, Any]]:
        counters = merge_reports([phase.report for phase in phases])["counters"]
        return build_funnel(counters, self.recipe.LANE.funnel, [source.name for source in self.recipe.sources])

    def _publish(self, phases: Sequence[Phase]) -> Manifest:
        funnel = self._funnel(phases)
        merged = merge_reports([phase.report for phase in phases])
        manifest = publish_corpus(
            self.store,
            phases,
            self.recipe,
            self.tokenizer,
            self.fingerprints["shards"],
            funnel,
            {
                "refinery": version(DISTRIBUTION),
                "beam": version("apache-beam"),
                "signatures": scheme_of(self.recipe.signature),
            },
            partial(publish_records, self.recipe, phases, self.jobs),
            **self._published_beside(phases),
        )
        note_time(self.work_store, ENDED)
        self._leave_report(merged["seconds"])
        self._tidy(merged)
        for line in funnel_table(funnel, merged["seconds"], manifest.totals.get("tokens")):
            self.say(line)
        rows = source_rows(funnel, tokens_by_source(manifest))
        for line in (*source_table(rows, manifest.has_tokens), *loss_warnings(funnel)):
            self.say(line)
        return manifest

    def _published_beside(self, phases: Sequence[Phase]) -> dict[str, Any]:
        return {"small_files": partial(measured_files, phases, self.recipe)}

    def _leave_report(self, seconds: Mapping[str, float] | None) -> None:
        leave_report(self.store, seconds, self.recipe.LANE.stages, self.say, read_times(self.work_store))

    def _finished(self) -> dict[str, Any] | None:
        """The merged report of all phases, as far as they still are where they were."""
        try:
            found = [read_phase(self.work, name, self.fingerprints[name]) for name in PHASES]
        except FormatError:  # reused from a place that is gone by now, which does a complete corpus no harm
            return None
        return None if None in found else merge_reports([phase.report for phase in found if phase is not None])

    def _tidy(self, merged: Mapping[str, Any] | None) -> None:
        """Remove what attempts left behind. After the manifest, and by every later command: any may be killed."""
        if merged is not None:
            # A slice that was at work when another command ended its phase left parts that were not there yet.
            late = ("documents", "signatures", "withheld", "verdicts") if self.cut else ()
            remove_orphans(self.work_store, merged, ("dead_letters", "rejects", *late))
        self.store.sweep()
        self.work_store.sweep()
        remove_stale_leases(self.work_store)
        remove_failures(self.work_store)
        remove_slice_leases(self.work_store)
        if self.discard_work:
            remove_work(self.work_store, self.say)
