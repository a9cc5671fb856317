"""Run a step to its end, from wherever it stands, and say what went and why."""

from collections.abc import Sequence
from dataclasses import dataclass

from refinery.loader.format.manifest import Manifest
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import StorageConflict
from refinery.pipelines.recipe.load_recipe import parse_recipe
from refinery.pipelines.recipe.plain_yaml import override
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.refine import Refinement
from refinery.pipelines.run.steps.step import Inputs, Part, recipe_of, recipe_text, step_parts
from refinery.pipelines.run.writing.output_files import accounts_of
from refinery.pipelines.runners.runner import Runner
from refinery.transforms.write.rows.writer import LAYOUT

RECIPE = ".yaml"  # behind the name of the outputs


@dataclass(frozen=True)
class StepRun:
    """A step on its inputs. name: the command's. on: what it switches on. output: where its files go. settings: "a.b=c"
    each. command: the line that a person typed."""

    name: str
    inputs: Inputs
    on: Sequence[Part]
    output: str
    settings: Sequence[str] = ()
    command: str = ""

    @property
    def accounts(self) -> str:
        """The prefix of the run: manifest, removals, rejects and work are there."""
        place = self.output.rstrip("/")
        return accounts_of(place) if self.inputs.layout == LAYOUT else place

    def recipe(self) -> Recipe:
        """Its recipe. Raises RecipeError."""
        data = recipe_of(step_parts(self.name, self.inputs, self.on))
        for setting in self.settings:
            data = override(data, setting)
        return parse_recipe(data)

    def run(self, runner: Runner, work: str = "", discard_work: bool = False) -> Manifest:
        """Returns the manifest. Raises what `Refinement.run` raises, and RefineError where another step has written its
        recipe beside the output."""
        parts = step_parts(self.name, self.inputs, self.on)
        run = Refinement(self.recipe(), self.accounts, runner, work, "", discard_work, runner.say)
        told = recipe_text([*parts, *self._settings()], self.command)
        folder, _, name = self.output.rstrip("/").rpartition("/")
        store = open_store(folder or ".")
        try:
            store.create(f"{name}{RECIPE}", told.encode())
        except StorageConflict:
            raise RefineError(
                f"{self.output.rstrip('/')}{RECIPE} is the recipe of another command; remove it, or choose another "
                "--output"
            ) from None
        return run.run()

    def _settings(self) -> list[Part]:
        if not self.settings:
            return []
        return [Part("further settings, given by --set: " + " ".join(self.settings), {})]
