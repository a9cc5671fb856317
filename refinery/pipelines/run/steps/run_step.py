"""Run a step to its end, from wherever it stands, and say what went and why."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from refinery.loader.format.manifest import RUN, Manifest
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.published.outputs import OUTPUTS, accounts_of, load_outputs
from refinery.pipelines.recipe.load_recipe import parse_recipe
from refinery.pipelines.recipe.plain_yaml import RecipeError, load_yaml, override
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.prefix import foreign_file, location
from refinery.pipelines.run.refine import Refinement
from refinery.pipelines.run.steps.step import Inputs, Part, Step, recipe_of, recipe_text, step_parts
from refinery.pipelines.runners.runner import Runner
from refinery.transforms.read.remote.globs import fixed_folder
from refinery.transforms.write.rows.writer import LAYOUT

RECIPE = ".yaml"  # behind the name of the outputs
SHOWN = 5  # warnings of files


@dataclass(frozen=True)
class StepRun:
    """A step on its inputs. output: where its files go. settings: "a.b=c" each. command: the line that a person
    typed."""

    step: Step
    inputs: Inputs
    output: str
    settings: Sequence[str] = ()
    command: str = ""

    @property
    def accounts(self) -> str:
        """The prefix of the run: manifest, removals, rejects and work are there."""
        return accounts_of(self.place) if self.inputs.layout == LAYOUT else self.place

    @property
    def place(self) -> str:
        """Where the files go, without a slash behind it. Raises ValueError for a folder without a name of its own."""
        place = self.output.rstrip("/")
        if not place or place.rpartition("/")[2] in ("", ".", ".."):
            raise ValueError(f"--output: {self.output!r:.80} given, a folder with a name is needed, such as out")
        return place

    def _parts(self) -> list[Part]:
        return step_parts(self.step.name, self.inputs, self.step.on)

    def data(self) -> dict[str, Any]:
        """Its recipe as plain data. Raises RecipeError for a setting."""
        data = recipe_of(self._parts())
        for setting in self.settings:
            data = override(data, setting)
        return data

    def recipe(self) -> Recipe:
        """Its recipe. Raises RecipeError."""
        return parse_recipe(self.data())

    def run(self, runner: Runner, work: str = "", discard_work: bool = False) -> Manifest:
        """Returns the manifest. Raises what `Refinement.run` raises, ValueError where the inputs would have the outputs
        among them, and RefineError where another recipe is beside the output."""
        self._check_apart()
        self._check_free()
        run = Refinement(self.recipe(), self.accounts, runner, work, "", discard_work or self.step.discard, runner.say)
        run.prepare()
        self._write_recipe()
        manifest = run.complete()
        if self.inputs.layout == LAYOUT:
            self._warn(runner.say)
        return manifest

    def _warn(self, say: Callable[[str], None]) -> None:
        """Say what of the files is not as it was beside their rows."""
        store = open_store(self.accounts)
        lines = [line for file in load_outputs(store.read(OUTPUTS), store.url(OUTPUTS)) for line in file["differs"]]
        for line in lines[:SHOWN]:
            say(f"warning: {line}")
        if len(lines) > SHOWN:
            say(f"warning: {len(lines) - SHOWN:,} more lines like these are in {store.url(OUTPUTS)}")

    def _check_apart(self) -> None:
        """A second command would read what the first one wrote."""
        here = location(self.place)
        for pattern in self.inputs.paths:
            if "**" in pattern and f"{here}/".startswith(f"{location(fixed_folder(pattern) or '.')}/"):
                raise ValueError(
                    f"--output: {self.output} given, which {pattern} would read, too; choose a folder beside the inputs"
                )

    def _check_free(self) -> None:
        """Files that are there are never overwritten: better to say so before anything runs."""
        if self.inputs.layout != LAYOUT or open_store(self.accounts).size(RUN) is not None:
            return
        if name := foreign_file(open_store(self.place)):
            raise ValueError(f"--output: {self.place} holds {name!r:.200} already; choose a new or empty folder")

    def _write_recipe(self) -> None:
        folder, _, name = self.place.rpartition("/")
        store = open_store(folder or ("/" if self.place.startswith("/") else "."))
        name, data = f"{name}{RECIPE}", self.data()
        if store.size(name) is not None:
            try:
                known = load_yaml(store.read(name), name)
            except RecipeError:
                known = None
            if known == data:
                return
            raise RefineError(
                f"{self.place}{RECIPE} is there, and is not the recipe of this command; remove it, or choose another "
                "--output"
            )
        store.create(name, recipe_text(self._parts(), data, self.command).encode())
