"""The pages say what the code says: keys and defaults, reasons and errors, columns, links; nothing of one machine."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refinery import loader, pipelines
from refinery.pipelines.acquire.listing import check_list
from refinery.pipelines.corpus.mix.recipe import MixRecipe
from refinery.pipelines.recipe.descriptions import descriptions
from refinery.pipelines.recipe.load_recipe import parse_recipe
from refinery.pipelines.recipe.params import parse
from refinery.pipelines.recipe.recipe import find_lane, lane_names, recipe_class
from refinery.pipelines.recipe.schema import schema_text
from refinery.pipelines.recipe.stages.listing import shown_fields
from refinery.transforms.core.data_text.plain_yaml import load_yaml
from refinery.transforms.core.params import Params, is_optional, sections_of
from refinery.transforms.dedup.signatures import signature_table
from refinery.transforms.dedup.verdicts import VERDICTS_SCHEMA
from refinery.transforms.filter.heuristics_rules import HeuristicsParams
from refinery.transforms.write.documents import DOCUMENTS_SCHEMA
from tests.docs.blocks import DOCS, ELSEWHERE, FENCE, PAGES, ROOT, in_subject, page_name, subject_text
from tools.pages import render

README = ROOT / "README.md"
RECIPES = sorted(path for path in (ROOT / "recipes").rglob("*") if path.suffix in (".yaml", ".py"))
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def page(name: str) -> str:
    return (DOCS / name).read_text()


def prose(path: Path) -> str:
    """A page without its fenced blocks."""
    return FENCE.sub("", path.read_text())


def section(text: str, heading: str) -> str:
    """What stands below a heading, up to the next one of any level."""
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"no heading {heading!r}"
    return found[1]


def rows(text: str) -> Iterator[list[str]]:
    """Cells of every table row."""
    for line in text.splitlines():
        if line.startswith("| "):
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


# --- tables from the declarations -----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES, ids=page_name)
def test_tables_are_those_of_the_declarations(path: Path) -> None:
    assert path.read_text() == render(path.read_text(), path), "run python -m tools.pages"


def test_every_section_reason_and_note_is_on_a_page() -> None:
    """The marks of the pages name everything that there is."""
    marks = set(re.findall(r"<!-- keys: ([\w.]+) -->", "".join(path.read_text() for path in PAGES)))
    sets = (name for name, each in HeuristicsParams.model_fields.items() if is_optional(each.annotation))
    assert {f"heuristics.{name}" for name in sets} <= marks
    text = subject_text("reasons")
    for lane in map(find_lane, lane_names()):
        fields = recipe_class(lane).model_fields.items()
        assert {name for name, field in fields if sections_of(field.annotation)} <= marks
        assert all(f"`{reason.name}`" in text for stage in lane.stages for reason in stage.reasons)
        assert all(f"`{note.name}`" in text for note in lane.notes)
    for name in lane_names():
        assert (ROOT / "recipes" / f"{name}.schema.json").read_text() == schema_text(recipe_class(find_lane(name)))


@pytest.mark.parametrize("name", lane_names())
def test_every_parameter_has_a_description(name: str) -> None:
    lane = find_lane(name)

    def missing(cls: type[Params], path: str = "") -> list[str]:
        stages = {stage.key for stage in lane.stages} if not path else set()
        fields = shown_fields(cls).items()
        found = [f"{path}{name}" for name, _ in fields if name not in descriptions(cls) and name not in stages]
        for name, field in cls.model_fields.items():
            found += [entry for inner in sections_of(field.annotation) for entry in missing(inner, f"{path}{name}.")]
        return found

    assert missing(recipe_class(lane)) == []


# A list of repositories is no recipe of a corpus, nor is a view's, nor what a publisher says of a corpus
# (tests/pipelines/reports/cards/test_cards.py); a stage, a reader or a lane of one's own needs its module: see the test
# below.
OTHER_YAML = ("repositories:", "license:", "stages:", "corpora:", "sources: [{name: mail,", 'lane: "')


def yaml_blocks(path: Path) -> list[str]:
    return [body for language, body in FENCE.findall(path.read_text()) if language == "yaml"]


def recipe_blocks() -> list[Any]:
    return [
        pytest.param(load_yaml(body, path.name), id=f"{page_name(path)}-{number}")
        for path in PAGES
        for number, body in enumerate(yaml_blocks(path))
        if not body.startswith(OTHER_YAML)
    ]


@pytest.mark.parametrize("data", recipe_blocks())
def test_recipes_on_the_pages_are_recipes(data: Any) -> None:
    """Whole ones as they stand, pieces in an otherwise minimal recipe."""
    rest = {"name": "n", "sources": [{"name": "s", "paths": ["x.jsonl"]}], "tokenizer": {"path": "tokenizer.json"}}
    parse_recipe(data if {"name", "sources"} <= set(data) else rest | data)


def test_other_yaml_on_the_pages() -> None:
    """Lists of repositories and views' recipes are read as the commands do; test_adding_a_stage.py,
    test_adding_a_reader.py and test_adding_a_writer.py run the others."""
    found = [load_yaml(body, path.name) for path in PAGES for body in yaml_blocks(path) if body.startswith(OTHER_YAML)]
    lists = [data["repositories"] for data in found if "repositories" in data]
    assert len(lists) >= 2 and all(len(check_list(entries, "")) == len(entries) for entries in lists)
    views = [parse(MixRecipe, data) for data in found if "corpora" in data]
    assert views and all(view.domains for view in views)
    stages = [entry for data in found for entry in data.get("stages", [])]
    assert len(stages) >= 2 and all(entry.keys() >= {"use", "after"} for entry in stages)


# --- reasons, errors, columns ---------------------------------------------------------------------------------------

ANSWERS = ("Drop", "Skipped", "Damaged", "NoPage", "Broken")
REASON = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+")
ERROR = re.compile(r"(Bad|Missing)[A-Z][A-Za-z0-9]+|Truncated")
BY_RETURN = ("extract.py", "heuristics.py", "url.py")  # their helpers return reasons as text


def literals(path: Path) -> set[str]:
    """Reasons and errors in a module: literals in the classes that carry one, texts that look like one."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ANSWERS:
            values = [*node.args[:1], *(k.value for k in node.keywords if k.arg in ("reason", "error"))]
            found |= {str(value.value) for value in values if isinstance(value, ast.Constant) and value.value}
        elif isinstance(node, ast.Return) and node.value and path.name in BY_RETURN:
            texts = [child.value for child in ast.walk(node.value) if isinstance(child, ast.Constant)]
            found |= {text for text in texts if isinstance(text, str) and REASON.fullmatch(text)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and ERROR.fullmatch(node.value):
            found.add(node.value)
    return found


def test_every_error_is_documented() -> None:
    found = {name for path in (ROOT / "transforms").rglob("*.py") for name in literals(path) if ERROR.fullmatch(name)}
    assert {"BadGzip", "BadLength", "Truncated"} <= found  # the search itself works
    text = subject_text("reasons")
    assert {name for name in found if f"`{name}`" not in text} == set()


def test_every_reason_that_the_code_gives_is_declared() -> None:
    """`Drop` checks itself at run time (UndeclaredReason); readers skip records without a declaration at hand."""
    declared = {r.name for name in lane_names() for stage in find_lane(name).stages for r in stage.reasons}
    found = {name for path in (ROOT / "transforms").rglob("*.py") for name in literals(path) if REASON.fullmatch(name)}
    assert {"too-large", "http-status", "blocked-host", "toxic-density"} <= found  # the search itself works
    assert found - declared - {"utf-8", "utf-8-sig"} == set()


def test_every_column_of_the_work_files_is_documented() -> None:
    signatures = signature_table([], [], [], [], [], np.empty((0, 112), np.uint32))
    text = subject_text("reasons")
    for folder, names in (
        ("work/documents", DOCUMENTS_SCHEMA.names),
        ("work/signatures", signatures.schema.names),
        ("work/verdicts", VERDICTS_SCHEMA.names),
    ):
        told = [cells[0].strip("`") for cells in rows(section(text, folder)) if cells[0].startswith("`")]
        assert told == names


def test_every_kind_of_page_in_the_demo_is_documented() -> None:
    tree = ast.parse((ROOT / "recipes" / "demo_crawl.py").read_bytes())
    assignments = [node for node in tree.body if isinstance(node, ast.Assign)]
    shares = next(ast.literal_eval(node.value) for node in assignments if ast.unparse(node.targets[0]) == "SHARES")
    told = "".join(cells[0] for cells in rows(section(subject_text("recipes"), "The demo crawl")))
    assert {kind for kind in shares if f"`{kind}`" not in told} == set()


def test_every_public_name_of_the_loader_is_on_its_page() -> None:
    told = re.findall(r"^::: refinery\.loader\.([\w.]+)\.(\w+)$", page("api.md"), re.MULTILINE)
    assert sorted(told) == sorted(
        (getattr(loader, name).__module__.partition("loader.")[2], name) for name in loader.__all__
    )
    assert set(re.findall(r"^::: refinery\.pipelines\.run\.api\.(\w+)$", page("api.md"), re.MULTILINE)) == set(
        pipelines.__all__
    )


# --- the pages themselves -------------------------------------------------------------------------------------------


def anchors(path: Path) -> set[str]:
    """Anchors as GitHub makes them of headings."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in HEADING.findall(prose(path))}


@pytest.mark.parametrize("path", [*PAGES, *ELSEWHERE], ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        there = (path.parent / name).resolve() if name else path
        assert there.is_file(), f"{path.name}: {target}"
        assert not anchor or anchor in anchors(there), f"{path.name}: {target}"


def test_files_that_the_pages_name_exist() -> None:
    for path in PAGES:
        for name in re.findall(
            r"`((?:transforms|pipelines|loader|recipes|tests|benchmarks)/[\w/.]+\.\w+)`", prose(path)
        ):
            example = in_subject(page_name(path), "extending") and "digits" in name  # of "A filter"
            assert example or (ROOT / name).is_file(), f"{path.name}: {name}"


def test_every_page_is_linked_from_the_home_page_and_the_readme_is_short() -> None:
    """A page in a folder is linked from the page that the folder is named after, or from the home page."""
    home = page("index.md")
    for path in PAGES[1:]:
        name, folder = page_name(path), path.parent
        of_subject = folder.with_suffix(".md").read_text() if folder != DOCS else home
        assert name == "index.md" or f"({name})" in of_subject or f"({name})" in home, name
    text = README.read_text()
    assert "(docs/index.md)" in text and len(text.splitlines()) < 100


@pytest.mark.parametrize("path", [*PAGES, *ELSEWHERE, *RECIPES], ids=lambda path: f"{path.parent.name}-{path.name}")
def test_nothing_speaks_of_one_machine(path: Path) -> None:
    assert re.findall(r"(?<![\w.*>}-])/(?:work|tmp|root|home|Users)\b[^\s]*", path.read_text()) == []
