"""The run that is audited, from its published files, and the inputs where the auditor has them."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import RUN, Manifest, ShardEntry
from refinery.loader.format.shard_files import read_file
from refinery.loader.read.corpus import Corpus
from refinery.loader.storage.store import Store, size_and_crc32c
from refinery.pipelines.published.shard_tokens import shard_path
from refinery.pipelines.recipe.load_recipe import load_recipe, recorded_recipe
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.recipe.writers import find_writer
from refinery.pipelines.run.differences import leaves
from refinery.pipelines.run.fingerprint import describe_environment, describe_stages, input_digest
from refinery.pipelines.run.inputs_read.published import INPUTS, parse_inputs
from refinery.transforms.core.data_text.plain_yaml import RecipeError, override
from refinery.transforms.core.names import PHASES
from refinery.transforms.core.stage import Writer
from refinery.transforms.read.find_files import find_file
from refinery.transforms.read.plan import ReadTask, count_parts, whole_file
from refinery.transforms.read.registry import find_reader
from refinery.transforms.read.remote.files import Found

SPLIT_BYTES = 64 << 20  # of a part of a file that can be read in parts, as a run cuts it
MOVED = "="  # in --inputs: OLD=NEW


@dataclass(frozen=True)
class Asked:
    """What the auditor gives. inputs: places where the inputs are, or OLD=NEW. settings: of --set, files alone. recipe:
    the recipe's file, where it has stages of its own."""

    prefix: str
    inputs: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    recipe: str = ""


@dataclass
class AuditedRun:
    """Recipe, stages and inputs of the run at a prefix.

    Raises FormatError and RecipeError for files that no run writes, ValueError for settings that change more than where
    files are, and for files that are not those of the run. differs: what of code, libraries and interpreter is not as
    it was, a sentence each.
    """

    asked: Asked
    corpus: Corpus = field(init=False)
    store: Store = field(init=False)
    manifest: Manifest = field(init=False)
    digest: str = field(init=False)
    run: Mapping[str, Any] = field(init=False)
    recipe: Recipe = field(init=False)
    differs: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        try:
            self._read()
        except (KeyError, TypeError, AttributeError) as error:  # sealed, but no run's: of shapes that none writes
            raise FormatError(
                f"{self.asked.prefix}: {RUN} is not as a run writes it ({type(error).__name__}: {error})"
            ) from None

    def _read(self) -> None:
        self.corpus = Corpus(self.asked.prefix)
        self.store, self.manifest, self.digest = self.corpus.store, self.corpus.manifest, self.corpus.sha256
        if self.corpus.is_adopted:
            raise ValueError(f"{self.asked.prefix} was adopted from files of another tool, which recorded no inputs")
        if not self.corpus.lists(RUN):
            raise FormatError(f"{self.asked.prefix}: {RUN} is not in the manifest, so its inputs are not known")
        self.run = self.corpus.run
        for what, ours in (("recipe", self.manifest.recipe), ("fingerprint", self.manifest.fingerprint)):
            if self.run.get(what) != ours:
                raise FormatError(f"{self.store.url(RUN)}: its {what} is not that of the manifest")
        self.recipe = self._load()
        self.differs = tuple(self._differences())

    def _load(self) -> Recipe:
        """The recipe, with the corpus' own tokenizer and the files of `settings`."""
        recorded = dict(self.manifest.recipe)
        settings = self.asked.settings
        if self.manifest.has_tokens and not any(setting.startswith("tokenizer.path=") for setting in settings):
            settings = (f"tokenizer.path={self.store.url(self.manifest.tokenizer.path)}", *settings)
        if self.asked.recipe:
            recipe = load_recipe(self.asked.recipe, settings)
        else:
            data: Any = recorded
            for setting in settings:
                data = override(data, setting)
            recipe = recorded_recipe(self.asked.prefix, data)
        files = {path for _, path in recipe.files()}
        told = recipe.told()
        for path, there, here in leaves(recorded, recipe.deciding(), ""):
            if there is None and not is_told(told, path):
                continue  # a key of later versions that has its default
            if not isinstance(here, str) or here not in files:
                raise ValueError(
                    f"{path}: {there!r:.200} in the run, {here!r:.200} here; of an audit only the places of files may "
                    "be set"
                )
        return recipe

    def _differences(self) -> Iterator[str]:
        """Raises ValueError where a model or a list is another file."""
        for name, there in dict(self.run.get("environment") or {}).items():
            if describe_environment().get(name) != there:
                yield f"{name} is {there} there, {describe_environment().get(name)} here"
        theirs = {(phase, entry["name"]): entry for phase, entries in self.run["stages"].items() for entry in entries}
        try:
            ours = {(phase, entry["name"]): entry for phase in PHASES for entry in describe_stages(self.recipe, phase)}
        except RecipeError as error:
            raise ValueError(f"{error}; say with --set KEY=FILE where it is") from None
        for key in sorted({*theirs, *ours}):
            there, here = theirs.get(key), ours.get(key)
            if there is None or here is None:
                yield f"the stage {key[1]} is {'not ' * (there is None)}there, {'not ' * (here is None)}here"
                continue
            self._check_files(key[1], there.get("files") or [], here.get("files") or [])
            for what in sorted(({*there, *here}) - {"files"}):
                if there.get(what) != here.get(what):
                    yield f"{what} of the stage {key[1]} is {there.get(what)} there, {here.get(what)} here"

    def _check_files(self, stage: str, there: Sequence[Any], here: Sequence[Any]) -> None:
        own = self.store.url(self.manifest.tokenizer.path) if self.manifest.has_tokens else ""
        for (old, expected), (new, found) in zip(there, here, strict=False):
            made = new == own and not str(old).endswith((".json", ".model"))  # of a tiktoken file, as it was published
            if found != expected and not made:
                raise ValueError(
                    f"stage {stage}: {new!s:.200} is not the file of the run ({old!s:.200}): SHA-256 {found}, "
                    f"{expected} expected; say with --set where it is"
                )

    # --- shards -----------------------------------------------------------------------------------------------------

    @cached_property
    def shards(self) -> dict[str, ShardEntry]:
        """Those of the corpus, by the names that people give them."""
        return {shard_path(shard): shard for shard in self.manifest.shards}

    @cached_property
    def writer(self) -> Writer:
        """What wrote them."""
        return find_writer(self.manifest, self.recipe.LANE.writer)

    # --- inputs -----------------------------------------------------------------------------------------------------

    @property
    def inputs(self) -> list[Mapping[str, Any]]:
        """What the run read, by source and path."""
        return list(self.run["inputs"])

    @property
    def earlier(self) -> frozenset[str]:
        """Sources that read documents of earlier runs: their origins are those of that run."""
        return frozenset(
            source.name
            for source in self.recipe.sources
            if source.format != "auto" and find_reader(source.format).keeps_origins
        )

    def tasks(self, entry: Mapping[str, Any]) -> list[ReadTask]:
        """The tasks that read an input as the run did, from where it is now. Raises ValueError where it is missing, or
        is another file."""
        source = next((each for each in self.recipe.sources if each.name == entry["source"]), None)
        if source is None:
            raise FormatError(f"{self.store.url(RUN)}: an input of {entry['source']!r:.80}, which is not a source")
        siblings = sorted(str(each["path"]) for each in self.inputs if each["source"] == source.name)
        index = siblings.index(str(entry["path"]))
        share = None if source.cap is None else source.cap // len(siblings) + (index < source.cap % len(siblings))
        recorded = Found(str(entry["path"]), int(entry["size"]))
        task = whole_file(source, recorded, index, share, self.recipe.LANE.notes)
        here = self.place_of(recorded.path)
        found = self._found(here, entry, source.requester_pays)
        task = replace(task, moved=here if here != task.path else "", version=found.version, changed=0)
        in_parts = share is None and not find_reader(task.format).in_pieces
        parts = count_parts(task, SPLIT_BYTES) if in_parts else 1
        return [replace(task, part=part, parts=parts) for part in range(parts)]

    def place_of(self, path: str) -> str:
        """Where an input of the run is now, by what --inputs says: the same name below another place."""
        pairs = [each.partition(MOVED) for each in self.asked.inputs]
        for old, separator, new in pairs:
            if separator and (path == old or path.startswith(old.rstrip("/") + "/")):
                return new.rstrip("/") + path[len(old.rstrip("/")) :]
        places = [place for place, separator, _ in pairs if not separator]
        if not places:
            return path
        below = path[len(self.common) :].lstrip("/")
        candidates = [f"{place.rstrip('/')}/{below}" for place in places]
        candidates += [place for place in places if os.path.basename(place) == os.path.basename(path)]
        return next((each for each in candidates if "://" in each or os.path.isfile(each)), candidates[0])

    @cached_property
    def sums(self) -> dict[tuple[str, str], str]:
        """Source and path of an input -> CRC-32C of all of it, as the run read it, where it is known."""
        entry = next((file for file in self.manifest.files if file.path == INPUTS), None)
        if entry is None:  # of an older version
            return {}
        inputs = parse_inputs(read_file(self.store, entry), self.store.url(INPUTS))
        return {(each["source"], each["path"]): each["crc32c"] for each in inputs if each["crc32c"]}

    @property
    def common(self) -> str:
        """The folder that all inputs of the run were below."""
        folders = [str(entry["path"]).rpartition("/")[0] for entry in self.inputs]
        first, last = min(folders, default=""), max(folders, default="")
        shared = []
        for one, other in zip(first.split("/"), last.split("/"), strict=False):
            if one != other:
                break
            shared.append(one)
        return "/".join(shared)

    def _found(self, here: str, entry: Mapping[str, Any], payer: str) -> Found:
        try:
            found = find_file(here, payer)
        except FileNotFoundError:
            raise ValueError(
                f"{here:.300} is not there; --inputs FOLDER says where the inputs are, with the names that they have "
                f"below {self.common or 'the folder of the run'}, or --inputs OLD=NEW"
            ) from None
        if found.size != entry["size"]:
            raise ValueError(
                f"{here:.300}: {found.size:,} bytes, {entry['size']:,} when the run read it; this is another file"
            )
        whole = self.sums.get((str(entry["source"]), str(entry["path"])))
        if "://" in here:
            is_same = not (whole and found.crc32c) or found.crc32c == whole
        elif whole:
            is_same = size_and_crc32c(Path(here))[1] == whole
        else:
            is_same = "://" in str(entry["path"]) or input_digest(here, found.size) == entry["digest"]
        if not is_same:
            raise ValueError(f"{here:.300}: as long as the file that the run read, but with different bytes")
        return found


def is_told(told: Any, path: str) -> bool:
    """Whether plain data has a value at a path, as `leaves` says it: "a.b[0].c"."""
    for key, place in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path):
        if place:
            told = told[int(place)] if isinstance(told, list) and int(place) < len(told) else None
        else:
            told = told.get(key) if isinstance(told, Mapping) else None
    return told is not None
