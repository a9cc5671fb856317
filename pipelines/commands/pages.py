"""Tables of the pages, from the declarations: `python -m refinery.pipelines.commands.pages` writes them anew.

A page says where a table goes: `<!-- keys: near_dup -->`, then the table, then `<!-- end -->`. A table about a lane
names it (`<!-- stages: code -->`); keys, reasons and rules are those of the first lane that has the section or stage. A
test holds the pages equal to what this module makes of them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path

from refinery.pipelines.acquire.listing import RepositoryParams
from refinery.pipelines.acquire.tree_files import REASONS
from refinery.pipelines.cards.about import About
from refinery.pipelines.cards.cards import CARDS
from refinery.pipelines.commands.stages import parameters, show_default, shown_fields
from refinery.pipelines.recipe.load_recipe import all_lanes, all_stages, with_target
from refinery.pipelines.recipe.recipe import UNDECIDING, Recipe, find_lane, lane_names, recipe_class
from refinery.pipelines.recipe.schema import schema_text
from refinery.transforms.core.lane import PHASES, AnyStage, Lane
from refinery.transforms.core.params import Params, allowed, field_docs, sections_of
from refinery.transforms.read.params import SourceParams
from refinery.transforms.read.reader import COMPRESSIONS, Reader
from refinery.transforms.read.registry import readers
from refinery.transforms.statistics.artefacts import ARTEFACTS
from refinery.transforms.statistics.points import POINTS
from refinery.transforms.statistics.tally import BUILT_IN

BLOCK = re.compile(
    r"(<!-- (keys|reasons|rules|stages|notes|phases|defaults|acquire|cards|statistics|formats)(?:: ([\w.-]*))? -->\n)"
    r"(.*?)(<!-- end -->)",
    re.DOTALL,
)


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
    docs = field_docs(cls)
    summaries = {stage.key: stage.summary.rstrip(".") for stage in lane.stages} if issubclass(cls, Recipe) else {}
    rows = (
        (
            f"`{name}`",
            "required" if field.is_required() else f"`{show_default(field)}`",
            f"section [{name}](#{name})"
            if sections_of(field.annotation) and not section
            else allowed(field.annotation, field.metadata),
            docs.get(name) or summaries.get(name, ""),
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


def acquire(what: str) -> str:
    """What a list of repositories says ("keys"), or why files of them are skipped ("reasons")."""
    if what == "reasons":
        return table(("reason", "skipped"), iter([(f"`{name}`", meaning) for name, meaning in REASONS.items()]))
    docs = field_docs(RepositoryParams)
    return table(("key", "meaning"), iter([(f"`{name}`", docs[name]) for name in RepositoryParams.model_fields]))


def cards(what: str) -> str:
    """The "formats" of cards, or what a publisher may say ("about")."""
    if what == "formats":
        rows = [(f"`{name}`", f"`{card.file}`", card.what) for name, card in CARDS.items()]
        return table(("format", "file", "what it is"), iter(rows))
    docs = field_docs(About)
    return table(("key", "what it says"), iter([(f"`{name}`", docs[name]) for name in About.model_fields]))


def statistics(what: str) -> str:
    """What statistics.json has: its "points", the "series" that need no note, and "artefacts"."""
    if what == "points":
        rows = [
            (f"`{point.name}`", point.meaning, "yes" if point.hosts else "", "yes" if point.artefacts else "")
            for point in POINTS
        ]
        return table(("point", "documents", "hosts", "artefacts"), iter(rows))
    if what == "series":
        return table(
            ("series", "unit", "meaning"), iter([(f"`{row.name}`", row.unit, row.meaning) for row in BUILT_IN])
        )
    return table(
        ("artefact", "a document counts if it has"), iter([(f"`{row.name}`", escape(row.meaning)) for row in ARTEFACTS])
    )


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


def formats(name: str) -> str:
    """Every format of sources; those that read the same records from other endings share a row."""
    groups: dict[tuple[str, str, tuple[str, ...]], list[Reader]] = {}
    for reader in readers().values():
        groups.setdefault((reader.summary, reader.offset, reader.fields), []).append(reader)
    rows = (
        (
            ", ".join(f"`{reader.name}`" for reader in group),
            " ".join(f"`{ending}`" for reader in group for ending in reader.endings) + compressions(group[0])
            if group[0].endings
            else "(named in the recipe)",
            summary,
            offset,
            ", ".join(f"`{key}`" for key in keys_read),
        )
        for (summary, offset, keys_read), group in groups.items()
    )
    return table(("format", "endings", "a record", "offset in `origin`", "keys that it reads"), rows)


def compressions(reader: Reader) -> str:
    """The endings of compression that files of a format may have beside their own."""
    return f", also {' '.join(f'`{ending}`' for ending in COMPRESSIONS[1:])}" if reader.compressed else ""


def make(kind: str, name: str) -> str:
    """The table that a page asks for. Raises ValueError where there is no lane, section or stage of that name."""
    if kind == "reasons":
        return reasons(all_stages(), name)
    if kind == "notes":
        return notes(all_stages())
    if named := {"acquire": acquire, "cards": cards, "statistics": statistics, "formats": formats}.get(kind):
        return named(name)
    if whole := {"stages": stages, "phases": phases, "defaults": defaults}.get(kind):
        return whole(with_target(find_lane(name)) if name else all_lanes()[0])
    section = name.partition(".")[0]
    having = [lane for lane in all_lanes() if not section or section in shown_fields(recipe_class(lane))]
    if not having:
        raise ValueError(f"<!-- {kind}: {name} --> given, no lane has such a section")
    return {"keys": keys, "rules": rules}[kind](having[0], name)


def render(text: str) -> str:
    """A page with its tables made anew."""
    return BLOCK.sub(lambda found: f"{found[1]}{make(found[2], found[3] or '')}{found[5]}", text)


def main() -> None:
    """Write all tables of docs/ and the schemas of recipes/ anew. To be run in a checkout."""
    for path in sorted(Path("docs").glob("*.md")):
        before = path.read_text()
        if (after := render(before)) != before:
            path.write_text(after)
            print(path)
    for lane in lane_names():
        Path(f"recipes/{lane}.schema.json").write_text(schema_text(recipe_class(find_lane(lane))))


if __name__ == "__main__":
    main()
