"""A recipe from YAML or plain data: its lane found, stages from elsewhere put in their places, every problem a line."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from refinery.pipelines.recipe.params import parse
from refinery.pipelines.recipe.recipe import (
    DEFAULT_LANE,
    Recipe,
    UsedStage,
    find_lane,
    lane_names,
    recipe_class,
    shared_stages,
)
from refinery.pipelines.recipe.user_stages import (
    NO_CODE,
    UserCode,
    load_declaration,
    load_reader,
    load_stage,
    merge_code,
)
from refinery.transforms.core.data_text.plain_yaml import RecipeError, load_yaml, override
from refinery.transforms.core.lane import AnyStage, Lane
from refinery.transforms.core.params import below, printable_name
from refinery.transforms.core.resources import read_resource
from refinery.transforms.core.stage import Reason
from refinery.transforms.core.wording import given, nearest
from refinery.transforms.read.params import SourceParams
from refinery.transforms.read.reader import Reader
from refinery.transforms.read.registry import is_own, readers
from refinery.transforms.read.sources import READ
from refinery.transforms.write.rows.rows_stage import ROWS
from refinery.transforms.write.rows.writer import AS_INPUT, LAYOUT
from refinery.transforms.write.targets import TARGET
from refinery.transforms.write.text_stage import TEXT
from refinery.transforms.write.text_writers import TEXT_WRITERS

PLACES = ("path_lists", "config", "split", "max_files", "enabled")  # with `paths`: what a source reads


def load_recipe(path: str, settings: Sequence[str] = (), inputs: Sequence[str] = ()) -> Recipe:
    """Read a recipe from a YAML file, apply `--set a.b=c` settings in order, then `--input` globs to its first source.

    path: local, gs:// or another place of `read_resource`. Modules of the recipe's own stages are beside a local file;
    for others, in the working directory.

    Raises RecipeError, one line a problem: the path of the key, what was given, what is allowed.
    """
    is_remote = "://" in path
    if not is_remote and Path(path).is_dir():
        raise RecipeError(f"{path} is a folder, a recipe is a YAML file: `refinery refine RECIPE --output PREFIX`")
    if not is_remote and not Path(path).is_file():
        raise RecipeError(
            f"{path}: no such recipe file; docs/recipes.md has one to begin with, recipes/ has ready ones"
        )
    try:
        text = read_resource(path)
    except OSError as error:
        raise RecipeError(f"the recipe cannot be read: {error}") from None
    data: Any = load_yaml(text, path)
    if data is None:
        raise RecipeError(f"{path} is empty; docs/recipes.md has a recipe to begin with")
    if isinstance(data, dict) and "domains" in data and "sources" not in data:
        raise RecipeError(f"{path} is the recipe of a view: `refinery mix {path} --output VIEW`")
    for setting in settings:
        data = override(data, setting)
    if inputs:
        sources = data.get("sources") if isinstance(data, dict) else None
        if not isinstance(sources, list) or not sources or not isinstance(sources[0], dict):
            raise RecipeError("--input: the recipe has no source that could take it")
        # An input given by hand replaces what the recipe reads: the run is about these files and nothing else.
        kept = {key: value for key, value in sources[0].items() if key not in PLACES}
        form = kept.get("format", "auto")  # endings say nothing of a reader of the user's own
        form = form if isinstance(form, str) and form not in readers() else "auto"
        data = {**data, "sources": [{**kept, "paths": list(inputs), "format": form}]}
    return parse_recipe(data, None if is_remote else Path(path).parent)


def parse_recipe(data: Any, folder: Path | None = None) -> Recipe:
    """A recipe from plain data. folder: where modules of its own stages are, by default the working directory.

    Raises RecipeError, one line a problem.
    """
    if not isinstance(data, dict):
        return parse(Recipe, data)
    folder = (folder or Path()).resolve()
    name = data.get("lane", DEFAULT_LANE)
    try:
        lane, own = choose_lane(name if isinstance(name, str) else given(name), folder)
    except ValueError as error:
        raise RecipeError(str(error)) from None
    lane, data = with_writer(lane, data)
    lane, data, code = _place_stages(lane, data, folder)
    lane, data, readers_code = _place_readers(lane, data, folder)
    code = merge_code((own, code, readers_code))
    cls = recipe_class(with_target(lane) if has_target(data.get("sources")) else lane)
    if code.files:  # the class of this recipe alone: files may change before the next one is read
        cls = type(cls.__name__, (cls,), {"__module__": cls.__module__, "CODE": code})
    return parse(cls, data)


def recorded_recipe(where: str, data: Mapping[str, Any], path: str = "") -> Recipe:
    """The recipe that a run has recorded or, where it has stages, readers or a lane of its own, the one in the file
    `path`. Code that a corpus names is never imported because the corpus names it.

    where: the run, for messages. Raises RecipeError.
    """
    if path:
        return load_recipe(path)
    sources = data.get("sources")
    named = [str(source.get("format", "")) for source in sources or () if isinstance(source, dict)]
    if data.get("stages") or ":" in str(data.get("lane", "")) or any(map(is_own, named)):
        raise RecipeError(
            f"{where}: its recipe has stages, readers or a lane of its own; name the recipe's file with --recipe"
        )
    return parse_recipe(dict(data))


def choose_lane(name: str, folder: Path) -> tuple[Lane, UserCode]:
    """The lane that a recipe in that folder names, and the code that it is made of, where it is one of the user's own.

    Raises ValueError for a lane that is not there, or whose sources are not of class `SourceParams`.
    """
    if ":" not in name:
        return find_lane(name), NO_CODE
    lane, code = load_declaration("lane", name, folder, Lane)
    if lane.source is not None and not issubclass(lane.source, SourceParams):
        raise ValueError(f"lane: {name!r} given, its sources need a parameter class derived from SourceParams")
    return replace(lane, module=name), code


def has_target(sources: Any) -> bool:
    """Whether a source has a target, as far as plain data shows it."""
    listed = sources if isinstance(sources, (list, tuple)) else ()
    return any(isinstance(source, dict) and source.get("target") is not None for source in listed)


def with_target(lane: Lane) -> Lane:
    """The lane with the stage that holds sources to their targets, behind all others."""
    return replace(lane, shards=(*lane.shards, TARGET))


def with_writer(lane: Lane, data: dict[str, Any]) -> tuple[Lane, dict[str, Any]]:
    """The lane with the writer that a recipe names, where that is one of texts, or with that of its layout: it hands
    these to it in place of its stages that need a tokenizer. And the recipe without their sections, where these are
    off. Raises RecipeError for what a recipe says of tokens beside it."""
    name, is_as_input = data.get("writer", ""), data.get("layout") == LAYOUT
    writer = AS_INPUT if is_as_input else TEXT_WRITERS.get(name) if isinstance(name, str) else None
    if writer is None or writer == lane.writer or not lane.writer.counts_tokens:
        return lane, data
    told = f"layout: {LAYOUT}" if is_as_input else f"writer: {name}"
    own = lane.encoding
    keys = [stage.key for stage in own if stage.key not in ("", "tokenizer")]
    said = [key for key in ("tokenizer", "packed", *keys) if data.get(key) not in (None, False)]
    for key in [*said, *(["sources: target"] if has_target(data.get("sources")) else [])]:
        how = "" if ":" in key else f" (`--set {key}=null`)"
        raise RecipeError(
            f"{key}: given beside `{told}`, which writes texts. Leave it out{how}; `refinery tokenize` takes it later"
        )
    last = ROWS if is_as_input else TEXT
    shards = (*(stage for stage in lane.shards if stage not in own), last)
    if is_as_input:  # stages of phase 1 note what they change, or label
        lane = replace(lane, parts=replace(lane.parts, uses=(*lane.parts.uses, "layout", "annotate")))
    left = {key: value for key, value in data.items() if key not in keys}
    return replace(lane, shards=shards, writer=writer), left


def all_lanes() -> list[Lane]:
    """All lanes, that of recipes which name none first; each with the stage of targets, which a recipe may add."""
    names = sorted(lane_names(), key=lambda name: (name != DEFAULT_LANE, name))
    return [with_target(find_lane(name)) for name in names]


def all_stages() -> list[AnyStage]:
    """The stages of all lanes, each once."""
    return list(dict.fromkeys(stage for lane in all_lanes() for stage in lane.stages))


def _place_stages(lane: Lane, data: dict[str, Any], folder: Path) -> tuple[Lane, dict[str, Any], UserCode]:
    """The lane with the recipe's own stages, and the recipe with their parameters as sections."""
    used = data.get("stages")
    if not isinstance(used, list):
        return lane, data, merge_code(())
    entries, sections, codes = [], {}, []
    for index, entry in enumerate(used):
        where = f"stages[{index}]"
        if not isinstance(entry, dict):
            raise RecipeError(f"{where}: {given(entry)} given, a mapping with use, after and parameters is allowed")
        place = parse(UsedStage, {key: value for key, value in entry.items() if key in UsedStage.model_fields}, where)
        try:
            stage, code = load_stage(place.use, folder)
            lane = lane.insert(stage, place.after)
        except ValueError as error:
            raise RecipeError(below(where, str(error))) from error
        if stage.key in {*Recipe.model_fields, *(shared.key for shared in shared_stages())}:
            raise RecipeError(
                f"{where}.use: a stage {stage.name!r} given, a name that no key of recipes has is allowed"
            )
        own = {key: value for key, value in entry.items() if key not in UsedStage.model_fields}
        section = data.get(stage.key)
        if own and isinstance(section, dict):
            own |= section
        if own or stage.key not in data:
            sections[stage.key] = own or True
        if stage.params is not None and own:
            parse(stage.params, own, where)  # mistakes are named where they were made
        entries.append({"use": place.use, "after": place.after})
        codes.append(code)
    return lane, {**data, **sections, "stages": entries}, merge_code(codes)


def _place_readers(lane: Lane, data: dict[str, Any], folder: Path) -> tuple[Lane, dict[str, Any], UserCode]:
    """The lane with the reasons of the recipe's own readers, the recipe with these as module:NAME and further keys of
    their sources as options, and the readers' code."""
    listed = data.get("sources")
    if not isinstance(listed, list):
        return lane, data, NO_CODE
    known = (lane.source or SourceParams).model_fields
    own: dict[str, Reader] = {}
    sources, codes = [], []
    for index, source in enumerate(listed):
        form = source.get("format", known["format"].default) if isinstance(source, dict) else None
        if not isinstance(form, str) or form in ("auto", *readers()):
            sources.append(source)
            continue
        where = f"sources[{index}]"
        try:
            reader, code = load_reader(form, folder)
        except ValueError as error:
            raise RecipeError(below(where, str(error))) from error
        if own.setdefault(reader.name, reader).module != reader.module:
            raise RecipeError(
                f"{where}.format: {form!r} given, a reader {reader.name!r}: {own[reader.name].module} has that name"
            )
        options = _options_of(reader, source, where, known)
        kept = {key: value for key, value in source.items() if key in known}
        sources.append({**kept, "format": reader.module, **({"options": options} if options else {})})
        codes.append(code)
    added = [reason for reader in own.values() for reason in reader.reasons]
    return with_reasons(lane, added), {**data, "sources": sources}, merge_code(codes)


def _options_of(reader: Reader, source: dict[str, Any], where: str, known: Collection[str]) -> dict[str, Any]:
    """The parameters of a reader of the user's own: what a source has under `options`, and its further keys."""
    named = source.get("options")
    if named is not None and not isinstance(named, dict):
        raise RecipeError(f"{where}.options: {given(named)} given, a mapping of names to values is allowed")
    further = {key: value for key, value in source.items() if key not in known}
    fields = reader.options.model_fields if reader.options else {}
    if foreign := next((key for key in (*further, *(named or ())) if key not in fields), None):
        raise RecipeError(f"{where}.{printable_name(foreign)}: unknown key, {nearest(foreign, [*known, *fields])}")
    return parse(reader.options, {**(named or {}), **further}, where).plain() if reader.options else {}


def with_reasons(lane: Lane, added: Sequence[Reason]) -> Lane:
    """The lane whose readers may also give these reasons."""
    declared = {reason.name for reason in READ.reasons}
    more = {reason.name: reason for reason in added if reason.name not in declared}
    if not more:
        return lane
    read = replace(READ, reasons=(*READ.reasons, *more.values()))
    return replace(lane, clean=tuple(read if stage is READ else stage for stage in lane.clean))
