"""Tables of the pages, from the declarations: `python -m tools.pages` rewrites them.

A page says where a table goes: `<!-- keys: near_dup -->`, then the table, then `<!-- end -->`. A table about a lane
names it (`<!-- stages: code -->`); keys, reasons and rules are those of the first lane that has the section or stage.
Several stages have a heading each (`<!-- reasons: url, language -->`). The table of a recipe's top level links every
section to the page below docs/recipes/ that has its keys. A test holds the pages equal to what this module makes of
them.
"""

import ast
import os
import posixpath
import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

import pyarrow as pa

import refinery
from refinery.loader.format.document_fields import EXPORTS, NULLABLE, PROVENANCE, columns_of, fields_of
from refinery.pipelines.acquire.listing import RepositoryParams
from refinery.pipelines.acquire.tree_files import REASONS
from refinery.pipelines.recipe.descriptions import descriptions
from refinery.pipelines.recipe.load_recipe import all_lanes, all_stages, with_target
from refinery.pipelines.recipe.recipe import find_lane, lane_names, recipe_class
from refinery.pipelines.recipe.schema import schema_text
from refinery.pipelines.recipe.stages.listing import shown_fields
from refinery.pipelines.recipe.stages.tables import defaults, keys, notes, phases, reasons, rules, stages, table
from refinery.pipelines.reports.cards.about import About
from refinery.pipelines.reports.cards.cards import CARDS
from refinery.pipelines.runners.dataflow.flag_checks import REFUSED
from refinery.pipelines.runners.dataflow.launch_checks import CHECKS
from refinery.transforms.core.params import Params
from refinery.transforms.read.reader import COMPRESSIONS, Reader
from refinery.transforms.read.registry import readers
from refinery.transforms.statistics.artefacts import ARTEFACTS
from refinery.transforms.statistics.points import POINTS
from refinery.transforms.statistics.tally import BUILT_IN

BLOCK = re.compile(
    r"(<!-- (keys|reasons|rules|stages|notes|phases|defaults|acquire|cards|checks|statistics|formats|columns|rooms)"
    r"(?:: ([\w., -]*))? -->\n)"
    r"(.*?)(<!-- end -->)",
    re.DOTALL,
)

DOCS = Path(__file__).parents[1] / "docs"
SECTION_LINK = re.compile(r"\(#(\w+)\)")
LINK = re.compile(r"\]\((?![a-z]+:|#)([^)\s]+)\)")


def acquire(what: str) -> str:
    """What a list of repositories says ("keys"), or why files of them are skipped ("reasons")."""
    if what == "reasons":
        return table(("reason", "skipped"), iter([(f"`{name}`", meaning) for name, meaning in REASONS.items()]))
    return table(("key", "meaning"), described(RepositoryParams))


def cards(what: str) -> str:
    """The "formats" of cards, or what a publisher may say ("about")."""
    if what == "formats":
        rows = [(f"`{name}`", f"`{card.file}`", card.what) for name, card in CARDS.items()]
        return table(("format", "file", "what it is"), iter(rows))
    return table(("key", "what it says"), described(About))


def checks(what: str) -> str:
    """The checks of a launch on Dataflow of one topic, or ("flags") flags that no run takes."""
    if what == "flags":
        return table(("flag", "why"), iter([(f"`--{name}`", why) for name, why in REFUSED.items()]))
    rows = [
        (coded(each.flag), marked_values(each.when), each.level.value, marked_values(each.why), sourced(each.source))
        for each in CHECKS
        if each.topic == what
    ]
    if not rows:
        raise ValueError(f"<!-- checks: {what} --> given, no check has this topic")
    return table(("looks at", "what it finds", "level", "why, and what to do", "source"), iter(rows))


def coded(flags: str) -> str:
    """Names of flags and options as code; a word such as "input" stays one."""
    return re.sub(r"[\w-]*[_-][\w-]+", lambda found: f"`{found[0]}`", flags)


def marked_values(text: str) -> str:
    """Flags inside a sentence as code; what is code already stays."""
    flags = re.compile(r"(?<!\w)--[\w-]+(=\w+)?")
    parts = text.split("`")
    return "`".join(part if at % 2 else flags.sub(r"`\g<0>`", part) for at, part in enumerate(parts))


def sourced(source: str) -> str:
    """A link to a page, or a file's name as code."""
    if source.startswith("https://"):
        return f"[{source.rstrip('/').rpartition('/')[2]}]({source})"
    whose, _, file = source.partition(": ")
    return f"{whose}, `{file}`"


def described(cls: type[Params]) -> Iterator[Sequence[str]]:
    """Each key of a class with what it is."""
    return ((f"`{name}`", descriptions(cls).get(name, "")) for name in cls.model_fields)


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


# Columns of files that recipes add to those of the table, behind `origin`.
OF_STAGES = {
    PROVENANCE: "those that the manifest's `columns` list, in its order: here `language`, `language_score`, `quality`, "
    "those that the recipe asks for ([labels](labels.md)), of source code `repo`, `commit`, `path`, `repo_license`, "
    "`license`, …; text is empty, numbers are null where a stage did not run",
    EXPORTS: "the provenance columns of the corpus, such as `language`, `quality`",
}


def columns(file: str) -> str:
    """The columns of a file, one of `document_fields.FILES`."""
    rows = []
    for field, column in zip(fields_of(file), columns_of(file), strict=True):
        may_be_null = " or null" if column.nullable and file not in NULLABLE else ""
        rows.append((f"`{field.name}`", f"{type_name(column.type)}{may_be_null}", field.meaning_in(file)))
        if field.name == "origin" and file in OF_STAGES:
            rows.append(("*columns of the stages*", "string, float32 or int64", OF_STAGES[file]))
    return table(("column", "type", "meaning"), iter(rows))


def type_name(kind: pa.DataType) -> str:
    """An Arrow type in words."""
    if pa.types.is_list(kind):
        return f"list of {type_name(kind.value_type)}"
    names = {"float": "float32", "double": "float64"}
    return f"{kind.byte_width} bytes" if pa.types.is_fixed_size_binary(kind) else names.get(str(kind), str(kind))


def rooms(wing: str) -> str:
    """Every room of a wing of the package, and what its `__init__` says of it."""
    folder = Path(refinery.__file__).parent / wing
    files = sorted(path for path in folder.rglob("__init__.py") if path.parent != folder)
    said = ((path.parent.relative_to(folder), ast.get_docstring(ast.parse(path.read_bytes())) or "") for path in files)
    rows = ((f"`{name.as_posix()}`", marked(" ".join(text.split()))) for name, text in said)
    return table(("room", "what it holds"), rows)


def marked(text: str) -> str:
    """Names of files as code."""
    return re.sub(r"(?<!`)([\w*/]*\w\.py)(?!`)", r"`\1`", text)


def compressions(reader: Reader) -> str:
    """The endings of compression that files of a format may have beside their own."""
    return f", also {' '.join(f'`{ending}`' for ending in COMPRESSIONS[1:])}" if reader.compressed else ""


def make(kind: str, name: str) -> str:
    """The table that a page asks for. Raises ValueError where there is no lane, section or stage of that name."""
    if kind == "reasons":
        return reasons_of(name)
    if kind == "notes":
        return notes(all_stages())
    if named := {each.__name__: each for each in (acquire, cards, checks, statistics, formats, columns, rooms)}.get(
        kind
    ):
        return named(name)
    if whole := {"stages": stages, "phases": phases, "defaults": defaults}.get(kind):
        return whole(with_target(find_lane(name)) if name else all_lanes()[0])
    section = name.partition(".")[0]
    having = [lane for lane in all_lanes() if not section or section in shown_fields(recipe_class(lane))]
    if not having:
        raise ValueError(f"<!-- {kind}: {name} --> given, no lane has such a section")
    text = {"keys": keys, "rules": rules}[kind](having[0], name)
    return text if name else SECTION_LINK.sub(lambda link: f"(recipes/{section_page(link[1])}#{link[1]})", text)


def reasons_of(names: str) -> str:
    """The reasons of one stage as a table, or of several, each under a heading with what the stage does."""
    if "," not in names:
        return reasons(all_stages(), names)
    text = ""
    for name in map(str.strip, names.split(",")):
        stage = next((stage for stage in all_stages() if stage.name == name), None)
        if stage is None:
            raise ValueError(f"<!-- reasons: {names} --> given, no lane has a stage {name}")
        text += f"## {name}\n\n{stage.summary}\n\n{reasons([stage], name)}\n"
    return text


def section_page(section: str) -> str:
    """The file name of the page below docs/recipes/ that has the keys of a section."""
    mark = f"<!-- keys: {section} -->\n"
    found = [path.name for path in sorted((DOCS / "recipes").glob("*.md")) if mark in path.read_text()]
    if len(found) != 1:
        raise ValueError(f"{mark.strip()} is needed on one page of docs/recipes/, it is on {len(found)}")
    return found[0]


def render(text: str, page: Path) -> str:
    """The text of a page below docs/ with its tables made again. Declarations write links as from docs/; those of the
    table start at the page."""
    start = os.path.relpath(page.absolute().parent, DOCS)

    def made(found: re.Match[str]) -> str:
        table = make(found[2], found[3] or "")
        return f"{found[1]}{LINK.sub(lambda link: f']({posixpath.relpath(link[1], start)})', table)}{found[5]}"

    return BLOCK.sub(made, text)


def main() -> None:
    """Write all tables of docs/ and the schemas of recipes/ again. To be run in a checkout."""
    for path in sorted(Path("docs").rglob("*.md")):
        before = path.read_text()
        if (after := render(before, path)) != before:
            path.write_text(after)
            print(path)
    for lane in lane_names():
        Path(f"recipes/{lane}.schema.json").write_text(schema_text(recipe_class(find_lane(lane))))


if __name__ == "__main__":
    main()
