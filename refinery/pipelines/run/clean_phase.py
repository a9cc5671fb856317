"""Phase 1 of a run: its inputs wave by wave, as they are cut here or as slices were cut once for all."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import apache_beam as beam

from refinery.pipelines.progress.phase_work import clean_work, wave_work
from refinery.pipelines.recipe import graphs
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.inputs_read.published import KEY as INPUTS
from refinery.pipelines.run.inputs_read.settle import settle_inputs
from refinery.pipelines.run.phase_jobs import PhaseJobs
from refinery.pipelines.run.phases import merge_reports, read_waves, remove_orphans
from refinery.pipelines.run.poison_files import PoisonSearch
from refinery.pipelines.run.slices.cut import Cut, Wave
from refinery.pipelines.run.slices.errors import SliceError
from refinery.pipelines.run.slices.names import CLEAN, CUT, wave_name
from refinery.pipelines.run.waves import cut_waves, unread_tasks, wave_limits
from refinery.transforms.core.job.report import Check
from refinery.transforms.core.job.task_list import TaskList
from refinery.transforms.core.safe_text import printable
from refinery.transforms.read.sources import ReadTask, read_tasks, write_tasks
from refinery.transforms.statistics.dropped import KIND as DROPPED
from refinery.transforms.statistics.dropped import merge_dropped
from refinery.transforms.statistics.measure import KIND as STATISTICS
from refinery.transforms.statistics.measure import merge_statistics


@dataclass
class CleanPhase:
    """Phase 1 of one run.

    tasks: all that is to be read, unless it is in the cut. inputs: as they were described. check: of reports. digests:
    path -> sha256 of the recipe's files.
    """

    recipe: Recipe
    jobs: PhaseJobs
    tasks: Sequence[ReadTask]
    inputs: Sequence[Mapping[str, Any]]
    digests: Mapping[str, str]
    check: Check
    cut: Cut | None
    say: Callable[[str], None]

    def run(self) -> dict[str, Any]:
        """Do every wave that is missing; the phase's report."""
        if self.cut is None:
            self._run_waves()
        else:
            self._run_cut(self.cut.waves)
        return self.finish()

    def run_slice(self, number: int) -> None:
        """Do the waves of a slice that are missing. Raises ValueError for a run without slices."""
        if self.cut is None:
            raise ValueError("cut: None given, a run with slices is needed")
        self._run_cut(self.cut.waves_of(number))

    def missing(self) -> list[Wave]:
        """The waves of the cut whose report is not there."""
        return self._left(self.cut.waves if self.cut else ())

    def _left(self, waves: Sequence[Wave]) -> list[Wave]:
        """Those of these waves whose report is not there. A listing may be old, so they are asked for by name."""
        store = self.jobs.store
        listed = set(store.list(CLEAN))
        return [w for w in waves if (name := wave_name(w.number)) not in listed and store.size(name) is None]

    def finish(self) -> dict[str, Any]:
        """The reports of all waves, added up; what no report claims is removed."""
        reports = self._reports()
        if self.cut is not None:
            self._check_all_read(reports)
        merged = merge_reports(reports)
        remove_orphans(self.jobs.store, merged, ("documents", "signatures", "withheld"))
        more = {
            INPUTS: settle_inputs(self.inputs, reports),
            STATISTICS: merge_statistics(reports),
            DROPPED: merge_dropped(reports),
        }
        return {**merged, **{key: found for key, found in more.items() if found is not None}}

    def _check_all_read(self, reports: Sequence[Mapping[str, Any]]) -> None:
        """Raises SliceError where the waves together did not read every part of every input: a cut, or a report beside
        it, that is no longer what it was."""
        read: dict[tuple[str, str], set[int]] = {}
        parts: dict[tuple[str, str], int] = {}
        for report in reports:
            for task in read_tasks(TaskList(self.jobs.work, **report["tasks"])):
                read.setdefault((task.source, task.path), set()).add(task.part)
                parts[task.source, task.path] = max(1, task.parts)
        for entry in self.inputs:
            file = entry["source"], entry["path"]
            if len(read.get(file, ())) != parts.get(file, 1):
                raise SliceError(
                    f"{printable(entry['path'])}: no wave of the cut has read all of it, so nothing was published; "
                    f"choose another --output, since {self.jobs.store.url(CUT)} or a wave's report was changed"
                )

    def _reports(self) -> list[dict[str, Any]]:
        reports = read_waves(self.jobs.store, CLEAN)
        for report in reports:
            self.jobs.check_report(CLEAN, wave_name(report["number"]), report)
        if self.cut is not None:
            known = {report["number"] for report in reports}
            for wave in self.cut.waves:
                if wave.number not in known:  # of an old listing
                    name = wave_name(wave.number)
                    reports.append({**self.jobs.read_report(CLEAN, name), "number": wave.number})
        return reports

    def _run_waves(self) -> None:
        limits = wave_limits(self.recipe.run, self.jobs.runner.vcpus)
        reports = self._reports()
        todo = unread_tasks(self.jobs.work, self.tasks, reports)
        poison = self._poison()
        if reports:
            self.say(f"clean: {len(reports)} waves are done, {len(cut_waves(todo, *limits))} to go")
        while todo:
            suspect, others = poison.settle(todo)
            waves = [*cut_waves(suspect, *limits), *cut_waves(others, *limits)]
            number = max((report["number"] for report in reports), default=-1) + 1
            work = clean_work(self.recipe, self.tasks, waves, number, reports)
            label = f"{work.title}, wave {work.wave} of {work.waves}"
            build = partial(self._build, waves[0], len(waves) - 1, wave_name(number))
            run = partial(self.jobs.run, CLEAN, wave_name(number), label, build, number, work)
            report = poison.attempt(run, bool(suspect))
            if report is None:
                continue
            reports.append({**report, "number": number})
            self.jobs.check_budget({"counters": [counter for report in reports for counter in report["counters"]]})
            # As the report tells it: the job may be one that an earlier command launched and cut otherwise.
            todo = unread_tasks(self.jobs.work, todo, reports[-1:])

    def _run_cut(self, waves: Sequence[Wave]) -> None:
        todo, poison = self._left(waves), self._poison()
        if len(todo) < len(waves):
            self.say(f"clean: {len(waves) - len(todo)} of {len(waves)} waves are done")
        for place, wave in enumerate(todo):
            tasks = read_tasks(wave.task_list(self.jobs.work))
            work = wave_work(self.recipe, tasks, place, len(todo), sum(each.bytes for each in todo[place + 1 :]))
            label = f"{work.title}, wave {work.wave} of {work.waves}"
            name, report = wave_name(wave.number), None
            while report is None:
                suspect, others = poison.settle(tasks)
                build = partial(self._build, [*suspect, *others], 0, name)
                run = partial(self.jobs.run, CLEAN, name, label, build, wave.number, work)
                report = poison.attempt(run, bool(suspect))
            self.jobs.check_budget(report)

    def _poison(self) -> PoisonSearch:
        return PoisonSearch(self.jobs.store, self.jobs.runner, self.recipe.failures.poison_files, self.say)

    def _build(self, wave: Sequence[ReadTask], waves_left: int, name: str, pipeline: beam.Pipeline) -> None:
        tasks = write_tasks(self.jobs.work, wave)
        facts = {**self.jobs.facts(CLEAN), "tasks": tasks.plain(), "waves_left": waves_left}
        graphs.clean(pipeline, self.recipe, tasks, self.jobs.work, name, facts, self.check, self.digests)
