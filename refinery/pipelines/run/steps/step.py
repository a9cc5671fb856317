"""A step: what a recipe with nothing but that switched on says, and its text for people."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import yaml

from refinery.pipelines.recipe.recipe import DEFAULT_LANE, SWITCHES, absent_sections, find_lane
from refinery.transforms.write.rows.writer import LAYOUT as AS_INPUT

WIDTH = 120  # of a line of YAML
SHARDS = "shards"
LAYOUTS = (AS_INPUT, SHARDS)
FIELDS, ATTRIBUTES = "fields", "attributes"
LABELS = (FIELDS, ATTRIBUTES)
SOURCE = "input"  # the name of the only source
ID_FIELD, ID = "id_field", "id"  # the field by which rows are named, where they have it


@dataclass(frozen=True)
class Part:
    """Keys of the recipe that belong together. why: the comment above them."""

    why: str
    keys: Mapping[str, Any]


TRACED = Part("what goes is listed row by row in rejects/", {"rejects": {"rate": 1.0}})


@dataclass(frozen=True)
class Step:
    """What one command does. name: the command's. on: what it switches on. labels: the fields that rows get where it
    annotates; always: in any case. fields: further keys of the source, None for one that it has not. discard: whether
    its parts, which hold the texts as they were, must go at the end. flags: how messages about a key of the recipe
    begin, and the flag that it comes from."""

    name: str
    on: Sequence[Part]
    labels: tuple[str, ...] = ()
    always: bool = False
    fields: Mapping[str, Any] = field(default_factory=dict)
    discard: bool = False
    flags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Inputs:
    """What a step reads, and in which shape it writes. paths: files or globs. fields: keys of the source, such as
    `text_field`. layout: of LAYOUTS. annotate: the labels that all rows get; then none is dropped. labels: where they
    go, of LABELS."""

    paths: tuple[str, ...]
    fields: Mapping[str, Any] = field(default_factory=dict)
    layout: str = AS_INPUT
    annotate: tuple[str, ...] = ()
    labels: str = FIELDS


def inputs_of(
    step: Step, paths: Sequence[str], fields: Mapping[str, Any], layout: str, annotate: bool, labels: str
) -> Inputs:
    """What a step reads, as a person says it. Raises ValueError for places of labels where there are none."""
    given = step.labels if annotate or step.always else ()
    if labels != FIELDS and not given:
        how = "without --keep" if step.always else "with --annotate"
        raise ValueError(f"--as: {labels} given, only {how} are there labels")
    return Inputs(tuple(paths), {**fields, **step.fields}, layout, given, labels)


@cache
def switched_off() -> Mapping[str, Any]:
    """What switches every stage off that a recipe of the lane can be without: its keys, in the funnel's order."""
    lane = find_lane(DEFAULT_LANE)
    off: dict[str, Any] = {}
    for stage in lane.stages:
        if stage in SWITCHES:
            name, value = SWITCHES[stage]
            off[name] = value
        elif stage.key and stage.optional and stage.on and stage.key not in absent_sections(lane):
            off[stage.key] = False
    return off


def step_parts(name: str, inputs: Inputs, on: Sequence[Part]) -> list[Part]:
    """The recipe of a step. on: the sections that make it."""
    shape: dict[str, Any] = {"layout": AS_INPUT} if inputs.layout == AS_INPUT else {"writer": "text"}
    why = (
        "each file becomes one of the same name and form, with the rows that stay"
        if inputs.layout == AS_INPUT
        else "the texts become shards of Parquet"
    )
    if inputs.annotate:
        shape["annotate"] = list(inputs.annotate)
        why = "each file becomes one of the same name and form, with labels behind its fields; no row is dropped"
    if inputs.labels == ATTRIBUTES:
        shape["rows"] = {"labels": ATTRIBUTES}
        why = "for each file one with the labels of its rows, as Dolma's toolkit reads them; no row is written"
    fields = {ID_FIELD: ID, **inputs.fields}
    source = {"name": SOURCE, "paths": list(inputs.paths), **{key: fields[key] for key in fields if fields[key]}}
    given = {key for part in on for key in part.keys}
    off = {key: value for key, value in switched_off().items() if key not in given}
    return [
        Part("", {"name": name}),
        Part("what is read", {"sources": [source]}),
        Part(why, shape),
        *on,
        *(() if inputs.annotate else (TRACED,)),
        Part("every other stage is off", off),
    ]


def recipe_of(parts: Sequence[Part]) -> dict[str, Any]:
    """The recipe as plain data."""
    return {key: value for part in parts for key, value in part.keys.items()}


def recipe_text(parts: Sequence[Part], data: Mapping[str, Any], command: str) -> str:
    """The recipe as YAML with comments. data: what it says, with settings. command: the line that made it, if any."""
    told = ("Made by", f"  {command}") if command else ("Made by refinery in Python.",)
    lines = [f"# {line}" for line in (*told, "Change it and run `refinery refine` for more.")]
    known = {key for part in parts for key in part.keys}
    further = {key: value for key, value in data.items() if key not in known}
    for part in (*parts, *([Part("further settings", further)] if further else [])):
        lines.append("")
        lines += [f"# {part.why}"] if part.why else []
        keys = {key: data[key] for key in part.keys if key in data}
        lines.append(yaml.safe_dump(keys, sort_keys=False, allow_unicode=True, width=WIDTH).rstrip())
    return "\n".join(lines) + "\n"
