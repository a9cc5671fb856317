"""Runs by slices for tests: in this process, step by step, in an order that tests choose."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from refinery.loader.storage.open_store import open_store
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.refine import Refinement
from refinery.pipelines.run.sliced_run import SlicedRun
from refinery.pipelines.run.slices.cut import Cut, read_cut
from refinery.pipelines.run.slices.sliced_job import Task
from refinery.pipelines.runners.runner import Runner


class Slices:
    """One recipe at one prefix, cut into `of` slices."""

    def __init__(self, recipe: Recipe, prefix: object, of: int, work: str = "") -> None:
        self.recipe, self.prefix, self.of, self.work = recipe, str(prefix), of, work
        self.said: list[str] = []

    def cut(self) -> Cut:
        """Seal the cut."""
        return self._run(SlicedRun).seal_cut(self.of)

    def do(self, step: str, slice_: int, of: int = 0) -> str:
        """Do a slice of a step."""
        return self._run(SlicedRun).run_task(Task(step, slice_), of or self.of)

    def steps(self) -> list[str]:
        """The names of the steps that come before the last command."""
        cut = read_cut(open_store(self.work or f"{self.prefix}/work"))
        assert cut is not None
        return [step.name for step in cut.steps]

    def tasks(self) -> Iterator[tuple[str, int]]:
        """Every slice of every step, in order."""
        for step in self.steps():
            for number in range(self.of):
                yield step, number

    def do_all(self, tasks: Iterable[tuple[str, int]]) -> None:
        """Do these slices."""
        for step, number in tasks:
            self.do(step, number)

    def publish(self) -> None:
        """What `--until publish` does."""
        self._run(SlicedRun).publish()

    def finish(self) -> Path:
        """What a plain `refine` does, and where the corpus is."""
        self._run(Refinement).run()
        return Path(self.prefix)

    def _run(self, kind: type[Refinement]) -> Refinement:
        return kind(self.recipe, self.prefix, Runner("local", workers=0, quiet=True), self.work, say=self.said.append)
