"""`refinery refine`: the three phases in order, skipping what is complete, and the manifest at the end.

Every step can be repeated: names are exclusive, reports are sealed, and what a killed run left behind is either claimed
by a report or removed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

import apache_beam as beam

from refinery import DISTRIBUTION
from refinery.loader.errors import FormatError
from refinery.loader.format.indexed import dtype_for
from refinery.loader.format.manifest import MANIFEST, Manifest, read_manifest, unseal
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store
from refinery.pipelines.dataflow.job_records import JobSpec, read_jobs
from refinery.pipelines.recipe import graphs
from refinery.pipelines.recipe.checks import check_files
from refinery.pipelines.recipe.recipe import Recipe, RunParams
from refinery.pipelines.run.fingerprint import describe_inputs, phase_fingerprints
from refinery.pipelines.run.funnel import build_funnel, check_budget, funnel_table
from refinery.pipelines.run.open_references import load_reference_corpora
from refinery.pipelines.run.phases import (
    Phase,
    finish_phase,
    merge_reports,
    read_phase,
    read_waves,
    remove_orphans,
    remove_work,
)
from refinery.pipelines.run.prefix import RefineError, claim, describe_run, location, take_over, work_places
from refinery.pipelines.run.publish import publish_corpus
from refinery.pipelines.runners.runner import Build, Runner
from refinery.transforms.core.lane import PHASES
from refinery.transforms.core.task_list import TaskList
from refinery.transforms.dedup.deduplicate import list_parts
from refinery.transforms.dedup.signatures import SIGNATURE_SCHEME
from refinery.transforms.read.sources import ReadTask, plan_sources, read_tasks, write_tasks
from refinery.transforms.write.kept_documents import PartPair, write_pairs
from refinery.transforms.write.removals import count_files
from refinery.transforms.write.shards import ShardsJob, provenance_columns
from refinery.transforms.write.shuffle import shard_counts

# Bytes and files of a wave on Dataflow, where the recipe leaves them at their defaults: each wave is a job there, with
# minutes of starting and stopping of all its workers.
REMOTE_WAVE = 1 << 40, 100_000
DEFAULT_RUN = RunParams()
DOCUMENTS_PER_PARTITION = 250_000  # rows of one radix partition of phase 2; about 40 MB a band


@dataclass
class Refinement:
    """One recipe on one prefix. `run()` brings the prefix to its manifest, from wherever it stands.

    prefix, work: locations (local or gs://). reuse: another prefix whose finished phases are taken over where their
    fingerprint is the same. say: receives lines for the user.
    """

    recipe: Recipe
    prefix: str
    runner: Runner
    work: str = ""
    reuse: str = ""
    discard_work: bool = False
    say: Callable[[str], None] = print

    def __post_init__(self) -> None:
        self.work = self.work or f"{self.prefix.rstrip('/')}/work"
        inside = f"{location(self.prefix)}/".startswith(f"{location(self.work)}/")
        if inside:
            raise RefineError(
                f"--work {self.work}: the corpus would lie in its own work location; choose another --work"
            )

    def run(self) -> Manifest:
        """Returns the manifest.

        Raises RecipeError and ValueError for what is wrong with the recipe or its inputs (before anything runs),
        RefineError for a prefix that belongs to something else, a spent failure budget or counts that do not
        reconcile, and whatever a job raises.
        """
        self.runner.use_code(self.recipe.CODE.folder, tuple(self.recipe.CODE.files))
        if self.runner.remote:
            from refinery.pipelines.dataflow.flag_checks import check_reach

            check_reach(self.recipe, self.reuse)
        self.tokenizer = check_files(self.recipe)
        self.tasks = plan_sources(self.recipe.sources, notes=self.recipe.LANE.notes)
        self.inputs = describe_inputs(self.tasks)
        self.fingerprints = phase_fingerprints(self.recipe, self.inputs)
        self.store: Store = open_store(self.prefix)
        self.work_store: Store = open_store(self.work)
        self.reference_corpora = None if self._is_deduplicated() else load_reference_corpora(self.recipe)
        if self._claim():
            manifest = read_manifest(self.store)
            self._tidy(self._finished())  # the command that wrote it may have been killed right after
            self.say(f"{self.prefix} is complete already; nothing to do")
            return manifest
        if self.reuse:
            take_over(self.work, self.reuse, self.fingerprints, self.say)
        clean = self._phase("clean", self._clean)
        dedup = self._phase("dedup", lambda: self._dedup(clean))
        shards = self._phase("shards", lambda: self._shards(clean, dedup))
        return self._publish([clean, dedup, shards])

    def _is_deduplicated(self) -> bool:
        """Whether phase 2 is complete, here or in what is reused: then nobody needs the signatures of
        `reference_corpora`.
        """
        places = [self.work, *work_places(self.reuse)]
        return self.store.size(MANIFEST) is not None or any(
            read_phase(place, "dedup", self.fingerprints["dedup"]) is not None for place in places
        )

    def _claim(self) -> bool:
        """Make the prefix, and a work location outside it, ours. True when the corpus is complete."""
        identity = describe_run(self.recipe, self.inputs, self.fingerprints)
        inside = location(self.work).startswith(f"{location(self.prefix)}/")
        reuse = self.prefix if inside else self.work
        advice = f"Choose another --output; with --reuse {reuse} it takes over every phase that is the same."
        claim(self.store, identity, advice)
        if not inside:
            claim(self.work_store, identity, "Choose another --work.")
        return self.store.size(MANIFEST) is not None

    def _phase(self, name: str, run: Callable[[], Mapping[str, Any]]) -> Phase:
        phase = read_phase(self.work, name, self.fingerprints[name])
        if phase is None and self.work_store.size(f"{name}.json") is not None:
            raise RefineError(
                f"{self.work_store.url(f'{name}.json')} is of another run; it does not belong here: remove it"
            )
        if phase is None:
            phase = finish_phase(self.work, name, self.fingerprints[name], run())
        else:
            self.say(f"{name}: complete already")
        self._check_budget(phase.report)
        return phase

    def _check_budget(self, report: Mapping[str, Any]) -> None:
        problems = check_budget(report["counters"], self.recipe.failures.max_ratio, self.recipe.failures.grace)
        if problems:
            raise RefineError(
                "too many dead letters:\n  "
                + "\n  ".join(problems)
                + f"\nThey are listed in {self.work_store.url('dead_letters')}. Bear them: the same command with "
                "--set failures.max_ratio=… goes on where it stopped. Or mend the inputs and choose another --output."
            )

    # --- the phases ---------------------------------------------------------------------------------------------

    def _clean(self) -> Mapping[str, Any]:
        reports = read_waves(self.work_store, "clean")
        for report in reports:
            self._check_report("clean", f"clean/wave-{report['number']:05d}.json", report)
        todo = self._unread(self.tasks, reports)
        if reports:
            self.say(f"clean: {len(reports)} waves are done, {len(self._cut(todo))} to go")
        while todo:
            waves = self._cut(todo)
            number = max((report["number"] for report in reports), default=-1) + 1
            name = f"clean/wave-{number:05d}.json"
            label = f"1/3 clean, wave {number + 1} of {number + len(waves)}"
            report = self._job("clean", name, label, partial(self._build_clean, waves, name), number, len(waves[0]))
            reports.append({**report, "number": number})
            self._check_budget({"counters": [counter for report in reports for counter in report["counters"]]})
            # As the report tells it: the job may be one that an earlier command launched and cut otherwise.
            todo = self._unread(todo, reports[-1:])
        merged = merge_reports(reports)
        remove_orphans(self.work_store, merged, ("documents", "signatures"))
        return merged

    def _build_clean(self, waves: Sequence[Sequence[ReadTask]], name: str, pipeline: beam.Pipeline) -> None:
        tasks = write_tasks(self.work, waves[0])
        facts = {**self._facts("clean"), "tasks": tasks.plain(), "waves_left": len(waves) - 1}
        graphs.clean(pipeline, self.recipe, tasks, self.work, name, facts)

    def _unread(self, tasks: Sequence[ReadTask], reports: Sequence[Mapping[str, Any]]) -> list[ReadTask]:
        """The tasks, in order, that none of these wave reports names."""
        finished = {task_key(task) for report in reports for task in read_tasks(TaskList(self.work, **report["tasks"]))}
        return [task for task in tasks if task_key(task) not in finished]

    def _cut(self, tasks: Sequence[ReadTask]) -> list[list[ReadTask]]:
        run = self.recipe.run
        if self.runner.remote and (run.wave_bytes, run.wave_files) == (DEFAULT_RUN.wave_bytes, DEFAULT_RUN.wave_files):
            return cut_waves(tasks, *REMOTE_WAVE)
        return cut_waves(tasks, run.wave_bytes, run.wave_files)

    def _job(
        self, phase: str, name: str, label: str, build: Build, wave: int | None = None, files: int = 0
    ) -> dict[str, Any]:
        """The report `name` of a job: as it is there, else after the job has run. The job itself writes it, at its end.

        Raises RefineError for a job that ended well and left no report, and whatever the job raises.
        """
        if self.work_store.size(name) is None:
            spec = self._job_spec(phase, wave, name)
            for job in [] if self.runner.remote else read_jobs(self.work_store, spec.key):
                if not job.state:
                    self.say(f"job {job.id} was launched for this on Dataflow and may still run: {job.link}")
            self.runner.run(label, build, files, spec)
            if self.work_store.size(name) is None:
                raise RefineError(
                    f"{label}: the job says that it is done, but {self.work_store.url(name)}, which it writes last, is "
                    "not there. See the job's log; the same command runs it again"
                )
        report = unseal(self.work_store.read(name), self.work_store.url(name))
        self._check_report(phase, name, report)
        return report

    def _facts(self, phase: str) -> dict[str, Any]:
        """What the launcher adds to the report of each job of a phase."""
        return {"fingerprint": self.fingerprints[phase]}

    def _check_report(self, phase: str, name: str, report: Mapping[str, Any]) -> None:
        """Raises RefineError for the report of another run: its job may end long after its prefix was emptied."""
        if report.get("fingerprint") != self.fingerprints[phase]:
            raise RefineError(f"{self.work_store.url(name)} is of another run; it does not belong here: remove it")

    def _job_spec(self, phase: str, wave: int | None, report: str) -> JobSpec:
        places = (location(self.prefix), location(self.work))  # the same run elsewhere has jobs of its own
        return JobSpec(self.recipe.name, phase, wave, (self.fingerprints[phase], *places), self.work, report)

    def _dedup(self, clean: Phase) -> Mapping[str, Any]:
        store = open_store(clean.root)
        recipe = self.recipe
        if not (recipe.exact_dup or recipe.near_dup or recipe.near_dup_in_source or recipe.line_dup):
            return {"counters": [], "seconds": {}, "parts": {}, "kept": self._undeduplicated(clean)}
        parts = [(store.url(part["path"]), part["rows"]) for part in clean.parts("signatures")]
        reference_corpora = load_reference_corpora(recipe) if self.reference_corpora is None else self.reference_corpora
        referenced = [part for corpus in reference_corpora for part in corpus.parts]
        documents = sum(rows for _, rows in (*parts, *referenced))
        partitions = 1 << max(0, (documents // DOCUMENTS_PER_PARTITION).bit_length())
        name = "dedup/report.json"

        def build(pipeline: beam.Pipeline) -> None:
            lists = list_parts(self.work, parts, reference_corpora)
            graphs.dedup(pipeline, recipe, lists, partitions, self.work, name, self._facts("dedup"))

        report = self._job("dedup", name, "2/3 dedup", build)
        for found in report["components"]:
            rounds = f", {found['rounds']} rounds of stars" if found["method"] == "stars" else ""
            self.say(
                f"{found['scope']}: {found['links']:,} links join {found['documents']:,} documents to "
                f"{found['components']:,} components, the largest of {found['largest']:,}{rounds}"
            )
        remove_orphans(self.work_store, report, ("verdicts",))
        return report

    def _undeduplicated(self, clean: Phase) -> dict[str, dict[str, int]]:
        """Documents and bytes per domain where deduplication is off: what the last stage of phase 1 kept."""
        totals: dict[str, dict[str, dict[str, int]]] = {}
        facts = self.recipe.source_facts()
        for row in self._funnel([clean]):
            domain = totals.setdefault(facts[row["source"]].domain, {})
            domain[row["source"]] = row["kept"]
        return {
            domain: {unit: sum(kept[unit] for kept in last.values()) for unit in ("documents", "bytes")}
            for domain, last in totals.items()
        }

    def _shards(self, clean: Phase, dedup: Phase) -> Mapping[str, Any]:
        verdicts = {part["path"].split("/")[-1]: part["path"] for part in dedup.parts("verdicts")}
        pairs = [
            PartPair(clean.root, part["path"], dedup.root, verdicts.get(part["path"].split("/")[-1], ""), group)
            for part in clean.parts("documents")
            for group in range(part["groups"])
        ]
        if verdicts and any(not pair.verdicts for pair in pairs):
            raise RefineError(f"{dedup.root}: a part of documents/ has no verdicts; remove dedup.json and run again")
        counts = shard_counts(dedup.report["kept"], self.recipe.shards)
        removals = count_files(sum(t["documents"] for t in dedup.report["counters"] if t["outcome"] == "dropped"))
        job = ShardsJob(
            params=self.recipe.shards,
            counts=counts,
            domains={name: facts.domain for name, facts in self.recipe.source_facts().items()},
            dtype=dtype_for(self.tokenizer.vocab_size).name,
            columns=provenance_columns(self.recipe.LANE),
            prefix=self.prefix,
        )
        name = "shards/report.json"

        def build(pipeline: beam.Pipeline) -> None:
            todo = write_pairs(self.work, pairs)
            facts = self._facts("shards")
            graphs.shards(pipeline, self.recipe, todo, job, removals, self.work, name, facts)

        return self._job("shards", name, "3/3 shards", build)

    # --- the end ------------------------------------------------------------------------------------------------

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
            {"refinery": version(DISTRIBUTION), "beam": version("apache-beam"), "signatures": SIGNATURE_SCHEME},
        )
        self._tidy(merged)
        for line in funnel_table(funnel, merged["seconds"], manifest.totals["tokens"]):
            self.say(line)
        return manifest

    def _finished(self) -> dict[str, Any] | None:
        """The merged report of all phases, as far as they still are where they were."""
        try:
            found = [read_phase(self.work, name, self.fingerprints[name]) for name in PHASES]
        except FormatError:  # taken over from a place that is gone by now, which does a complete corpus no harm
            return None
        phases = [phase for phase in found if phase is not None]
        return merge_reports([phase.report for phase in phases]) if len(phases) == len(found) else None

    def _tidy(self, merged: Mapping[str, Any] | None) -> None:
        """Remove what attempts left behind. After the manifest, and by every later command: any may be killed."""
        if merged is not None:
            remove_orphans(self.work_store, merged, ("dead_letters", "rejects"))
        self.store.sweep()
        self.work_store.sweep()
        if self.discard_work:
            remove_work(self.work_store)


def task_key(task: ReadTask) -> str:
    """How wave reports name a task."""
    return f"{task.source} {task.path} {task.part}/{task.parts}"


def cut_waves(tasks: Sequence[ReadTask], wave_bytes: int, wave_files: int) -> list[list[ReadTask]]:
    """Cut the tasks, in order, into waves of at most that many bytes and files (a larger file is a wave of its own)."""
    waves: list[list[ReadTask]] = []
    held = 0
    for task in tasks:
        size = task.size // max(1, task.parts)
        if not waves or held + size > wave_bytes or len(waves[-1]) >= wave_files:
            waves.append([])
            held = 0
        waves[-1].append(task)
        held += size
    return waves
