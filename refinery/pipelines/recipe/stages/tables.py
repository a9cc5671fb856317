"""Tables of stages, their keys and reasons, as Markdown: for the pages and for `refinery stages --markdown`."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from refinery.pipelines.recipe.descriptions import descriptions
from refinery.pipelines.recipe.recipe import UNDECIDING, Recipe, recipe_class
from refinery.pipelines.recipe.stages.listing import parameters, show_default, shown_fields
from refinery.transforms.core.lane import AnyStage, Lane
from refinery.transforms.core.names import PHASES
from refinery.transforms.core.params import Params, allowed, sections_of
from refinery.transforms.read.params import SourceParams


def table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    """A table of a page."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |\n" for line in lines
    )


def stage_page(lane: Lane, name: str = "") -> str:
    """A page of its own about all stages of a lane, or one: what each does, its keys, its reasons."""
    text = "" if name else f"# Stages of the lane {lane.name}\n\n{stages(lane)}\n"
    for stage in lane.stages:
        if name in ("", stage.name):
            text += f"## {stage.name}\n\n{stage.summary} Phase {lane.phase_of(stage)}, version {stage.version}.\n\n"
            text += f"{keys(lane, stage.key)}\n" if stage.params else ""
            text += f"{reasons([stage], stage.name)}\n" if stage.reasons else ""
    return text.rstrip("\n")


def keys(lane: Lane, section: str) -> str:
    """Every key of a section of the recipe, "" for its top level."""
    cls: type[Params] = recipe_class(lane)
    for name in filter(None, section.split(".")):
        cls = sections_of(cls.model_fields[name].annotation)[0]
    summaries = {stage.key: stage.summary.rstrip(".") for stage in lane.stages} if issubclass(cls, Recipe) else {}
    rows = (
        (
            f"`{name}`",
            "required" if field.is_required() else f"`{show_default(field)}`",
            f"section [{name}](#{name})"
            if sections_of(field.annotation) and not section
            else allowed(field.annotation, field.metadata),
            descriptions(cls).get(name) or summaries.get(name, ""),
        )
        for name, field in shown_fields(cls).items()
    )
    return table(("key", "default", "allowed", "meaning"), rows)


def reasons(among: Iterable[AnyStage], name: str) -> str:
    """Every reason of the stage of that name, or of all stages with a heading each."""
    text = ""
    for stage in among:
        if stage.reasons and name in ("", stage.name):
            text += "" if name else f"### {stage.name}\n\n{stage.summary}\n\n"
            rows = ((f"`{r.name}`", r.meaning, r.advice, r.source) for r in stage.reasons)
            text += table(("reason", "dropped when", "what to do", "source"), rows) + ("" if name else "\n")
    return text


def rules(lane: Lane, section: str) -> str:
    """Reasons of a set of rules, each with the parameter that its meaning names and that parameter's default."""
    stage_key, _, group = section.partition(".")
    stage = next(stage for stage in lane.stages if stage.key == stage_key)
    cls = sections_of(recipe_class(lane).model_fields[stage_key].annotation)[0]
    cls = sections_of(cls.model_fields[group].annotation)[0]

    def rows() -> Iterator[Sequence[str]]:
        for reason in stage.reasons:
            if reason.name.startswith(f"{group}-"):
                named = [key for key in re.findall(r"`(\w+)`", reason.meaning) if key in cls.model_fields]
                defaults = ", ".join(show_default(cls.model_fields[key]) for key in named)
                yield (
                    f"`{reason.name}`",
                    ", ".join(f"`{key}`" for key in named),
                    defaults,
                    reason.meaning,
                    reason.source,
                )

    return table(("reason", "key", "default", "dropped when", "source"), rows())


def stages(lane: Lane) -> str:
    """The funnel: every stage with its phase, version and section."""
    rows = (
        (stage.name, lane.phase_of(stage), str(stage.version), f"`{stage.key}`" if stage.key else "", stage.summary)
        for stage in lane.stages
    )
    return table(("stage", "phase", "version", "section", "what it does"), rows)


def notes(among: Iterable[AnyStage]) -> str:
    """What stages note about a document."""
    rows = (
        (f"`{note.name}`", note.type.__name__, stage.name, "column" if note.column else "in `meta`", note.meaning)
        for stage in among
        for note in stage.notes
    )
    return table(("name", "type", "stage", "in provenance", "meaning"), rows)


def phases(lane: Lane) -> str:
    """Which sections decide which phase."""
    rows = [(phase, ", ".join(f"`{name}`" for name in lane.sections(phase))) for phase in PHASES]
    return table(("phase", "sections"), iter([*rows, ("none", ", ".join(f"`{name}`" for name in UNDECIDING))]))


def defaults(lane: Lane) -> str:
    """What the recipes of a lane have where they say nothing, and those of other lanes have otherwise."""
    usual = recipe_class(replace(lane, source=None, defaults={}))
    classes = ("sources.", SourceParams, lane.source or SourceParams), ("", usual, recipe_class(lane))

    def rows() -> Iterator[Sequence[str]]:
        for prefix, others, own in classes:
            before = {key: default for key, default, _ in parameters(others)}
            for key, default, _ in parameters(own):
                if key not in before or default != before[key]:
                    yield f"`{prefix}{key}`", f"`{default}`", f"`{before[key]}`" if key in before else ""

    return table(("key", "in this lane", "elsewhere"), rows())
