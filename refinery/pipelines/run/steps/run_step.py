"""Run a step to its end, from wherever it stands, and say what went and why."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import RUN, Manifest
from refinery.loader.read.corpus import Corpus
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store
from refinery.pipelines.published.outputs import OUTPUTS, accounts_of, load_outputs
from refinery.pipelines.recipe.load_recipe import parse_recipe
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.open_references import load_reference_corpora
from refinery.pipelines.run.phases import Phase
from refinery.pipelines.run.prefix import foreign_file, location
from refinery.pipelines.run.refine import Refinement
from refinery.pipelines.run.steps.signed_again import FOLDER, folder_of, is_signed, published_source, sign_again
from refinery.pipelines.run.steps.step import ATTRIBUTES, SOURCE, Inputs, Part, Step, recipe_of, recipe_text, step_parts
from refinery.pipelines.run.writing.output_files import output_files
from refinery.pipelines.runners.runner import Runner
from refinery.transforms.core.data_text.plain_yaml import RecipeError, load_yaml, override
from refinery.transforms.core.wording import many
from refinery.transforms.dedup.reference_corpora import ReferenceCorpus
from refinery.transforms.read.remote.path_glob import Glob
from refinery.transforms.read.sources import READ
from refinery.transforms.write.rows.writer import LAYOUT

RECIPE = ".yaml"  # behind the name of the outputs
# How messages about the only source begin, and what a person gave instead.
KEYS = {
    f"source {SOURCE}: paths: ": "",
    f"source {SOURCE}: text_field:": "--text-field:",
    f"source {SOURCE}: ": "",
    "sources[0].format:": "--format:",
    "annotate: given beside layout: shards": "--annotate: given beside --layout shards",
}
AGAINST = re.compile(r"reference_corpora\[[0-9]+\]: ")
SHOWN = 5  # warnings of files


def with_limit(data: dict[str, Any]) -> dict[str, Any]:
    """The recipe, in which extraction takes what the reader's limit lets through, unless it says otherwise: to a person
    the size of a row is one limit."""
    limits, extract = data.get("limits"), data.get("extract", {})
    if not isinstance(limits, Mapping) or not isinstance(extract, Mapping):
        return data  # which is told when the recipe is read
    most = limits.get("max_record_bytes")
    return data if most is None else {**data, "extract": {"max_raw_bytes": most, **extract}}


@contextmanager
def in_flags(step: Step) -> Iterator[None]:
    """Name what is wrong by the flag that a person gave, in place of the key of the recipe that it became."""
    try:
        yield
    except (RecipeError, ValueError) as error:
        told = str(error)
        for key, flag in {**KEYS, **step.flags}.items():
            if told.startswith(key):
                raise type(error)(flag + told.removeprefix(key)) from None
        if found := AGAINST.match(told):
            raise type(error)(f"--against: {told[found.end() :]}") from None
        raise


class StepRefinement(Refinement):
    """The run of a step. Corpora whose signatures are gone are read again, before copies of them are looked for."""

    def prepare(self, probe: bool = False) -> None:
        self.unsigned: set[int] = set()
        for number, corpus in enumerate(self.recipe.reference_corpora):
            try:
                opened = Corpus(corpus.prefix)
                if opened.manifest and not is_signed(corpus, opened):
                    published_source(opened)
                    self.unsigned.add(number)
            except (FormatError, OSError, ValueError) as error:
                raise ValueError(f"--against: {error}") from None
        super().prepare(probe)

    def _is_deduplicated(self) -> bool:
        return bool(self.unsigned) or super()._is_deduplicated()

    def _dedup(self, clean: Phase) -> Mapping[str, Any]:
        if not self.unsigned:
            return super()._dedup(clean)
        found: list[ReferenceCorpus] = []
        for number, corpus in enumerate(self.recipe.reference_corpora):
            if number in self.unsigned:
                found.append(sign_again(corpus, number, self.recipe, self.work, self.runner))
            else:
                found += load_reference_corpora(self.recipe.replace(reference_corpora=(corpus,)))
        self.reference_corpora = tuple(found)
        report = super()._dedup(clean)
        for number in self.unsigned:
            store = open_store(folder_of(self.work, number))
            store.delete_many(name for page in store.pages() for name in page)
        self.work_store.prune(FOLDER)
        return report

    def _places(self) -> list[tuple[Store, str]]:
        return [(store, "Choose another --output.") for store, _ in super()._places()]


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
        return with_limit(data)

    def recipe(self) -> Recipe:
        """Its recipe. Raises RecipeError."""
        with in_flags(self.step):
            return parse_recipe(self.data())

    def run(self, runner: Runner, work: str = "", discard_work: bool = False) -> Manifest:
        """Returns the manifest. Raises what `Refinement.run` raises, ValueError where the inputs would have the outputs
        among them, and RefineError where another recipe is beside the output."""
        self._check_free()
        with in_flags(self.step):
            run = StepRefinement(
                self.recipe(), self.accounts, runner, work, "", discard_work or self.step.discard, runner.say
            )
            run.prepare()
        self._check_apart(run)
        self._write_recipe()
        manifest = run.complete()
        if self.inputs.layout == LAYOUT:
            self._warn(runner.say)
        return manifest

    def closing(self, manifest: Manifest) -> str:
        """What became of the inputs, in a line."""
        read = sum(row["in"]["documents"] for row in manifest.funnel if row["stage"] == READ.name)
        documents = manifest.totals["documents"]
        if self.inputs.layout != LAYOUT:
            return f"{many(documents, 'text')} of {many(read, 'record')} in {self.place}"
        store = open_store(self.accounts)
        listed = load_outputs(store.read(OUTPUTS), store.url(OUTPUTS))
        rows = sum(file["rows"] for file in listed)
        if self.inputs.labels == ATTRIBUTES:
            return f"attributes of {many(rows, 'row')}, in {many(len(listed), 'file')} in {self.place}"
        labels = " with labels" if self.inputs.annotate else ""
        return f"{rows:,} of {many(read, 'row')}{labels}, in {many(len(listed), 'file')} in {self.place}"

    def _warn(self, say: Callable[[str], None]) -> None:
        """Say what of the files is not as it was beside their rows."""
        store = open_store(self.accounts)
        lines = [line for file in load_outputs(store.read(OUTPUTS), store.url(OUTPUTS)) for line in file["differs"]]
        for line in lines[:SHOWN]:
            say(f"warning: {line}")
        if len(lines) > SHOWN:
            say(f"warning: {len(lines) - SHOWN:,} more lines like these are in {store.url(OUTPUTS)}")

    def _check_apart(self, run: Refinement) -> None:
        """A second command would read what the first one wrote."""
        files = output_files(run.recipe, run.tasks) if self.inputs.layout == LAYOUT else []
        shards = [f"{self.accounts}/{name}" for name in (f"train/{SOURCE}/shard.parquet", "removals/removals.parquet")]
        written = [location(path) for path in (*(f"{self.place}/{file.path}" for file in files), *shards)]
        for pattern in self.inputs.paths:
            means = Glob(location(pattern) + ("/" if pattern.endswith("/") or os.path.isdir(pattern) else ""))
            if path := next(filter(means.matches, written), ""):
                raise ValueError(
                    f"--output: {self.output} given, and {pattern} would read {os.path.relpath(path)}, too; choose a "
                    "folder that the inputs do not name"
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
