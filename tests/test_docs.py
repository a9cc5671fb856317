"""The pages say what the code says: keys and defaults, reasons and errors, columns, links; nothing of one machine."""

import ast
import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

from refinery.pipelines.recipe.load_recipe import parse_recipe
from refinery.pipelines.recipe.params import load_yaml
from refinery.pipelines.recipe.recipe import PHASE_SECTIONS, Recipe
from refinery.transforms.core.document import Document, Drop
from refinery.transforms.core.report import DEAD_SCHEMA, REJECT_SCHEMA
from refinery.transforms.dedup.signatures import signature_table
from refinery.transforms.dedup.verdicts import VERDICTS_SCHEMA
from refinery.transforms.write.documents import DOCUMENTS_SCHEMA

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
ELSEWHERE = [ROOT / "SECURITY.md", ROOT / "CHANGELOG.md", ROOT / "terraform" / "README.md"]
RECIPES = sorted(path for path in (ROOT / "recipes").rglob("*") if path.suffix in (".yaml", ".py"))
SCALARS = (type(None), bool, int, float, str)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


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


# --- keys of a recipe ----------------------------------------------------------------------------------------------


def nested(hint: Any) -> Iterator[Any]:
    """A type, and every type that it is made of."""
    yield hint
    for part in get_args(hint):
        yield from nested(part)


def keys(cls: Any, path: str = "") -> Iterator[tuple[str, str, Any]]:
    """(section, key, default) of every key that is no section itself."""
    hints = get_type_hints(cls)
    for field in dataclasses.fields(cls):
        inner = [hint for hint in nested(hints[field.name]) if dataclasses.is_dataclass(hint)]
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        if inner:
            yield from keys(inner[0], f"{path}.{field.name}".strip("."))
        if not inner or default is dataclasses.MISSING:
            yield path, field.name, default


def documented(name: str) -> dict[str, str]:
    """Key -> default as its table in the pages gives it. A row may hold several keys and as many defaults."""
    group = name.removeprefix("heuristics.")
    text = page("recipes.md") if group == name else page("heuristics.md")
    column = 0 if group == name else 1
    found: dict[str, str] = {}
    for cells in rows(section(text, {"": "Top level", "sources": "sources[]"}.get(group, group))):
        names = re.findall(r"`(\w+)`", cells[column])
        if names and len(cells) > column + 1:
            defaults = cells[column + 1].split(", ") if len(names) > 1 else [cells[column + 1]]
            found |= dict(zip(names, defaults, strict=True))
    return found


@pytest.mark.parametrize(("name", "key", "default"), list(keys(Recipe)), ids=lambda value: str(value)[:30])
def test_every_key_is_documented_with_its_default(name: str, key: str, default: Any) -> None:
    if name.startswith("heuristics."):
        assert f"`{key}`" in page("heuristics.md")
        covered = next(r[1] for r in rows(section(page("recipes.md"), "heuristics")) if r[0] == f"`{name[11:]}`")
        # "`max_top_2_gram` to `max_top_4_gram`" names three
        assert f"`{key}`" in covered or re.search(re.sub(r"\\?\d+", r"\\d+", re.escape(key)) + "` to", covered)
    if name.startswith("heuristics.") and not isinstance(default, SCALARS):
        return
    cell = documented(name)[key].strip("`")
    if default is dataclasses.MISSING:
        assert cell == "required"
    elif isinstance(default, SCALARS):
        shown = load_yaml(re.sub(r"(?<=\d),(?=\d)", "", cell), "default")
        assert shown == default and isinstance(shown, bool) == isinstance(default, bool)
    elif found := re.match(r"built-in \((\d+)", cell):
        assert int(found[1]) == len(default)
    else:
        assert load_yaml(cell, "default") == default.plain()


def test_pages_name_no_key_that_is_none() -> None:
    known: dict[str, set[str]] = {}
    for name, key, _ in keys(Recipe):
        known.setdefault(name, set()).add(key)
    for name, fields in known.items():
        assert name.startswith("heuristics.") or set(documented(name)) == fields


def test_phases_are_documented_with_their_sections() -> None:
    told = {
        cells[0]: tuple(re.findall(r"`(\w+)`", cells[1]))
        for cells in rows(section(page("recipes.md"), "The fingerprint"))
    }
    assert {phase: told[phase] for phase in PHASE_SECTIONS} == dict(PHASE_SECTIONS)
    assert told["none"] == ("failures", "run")


def recipe_blocks() -> list[Any]:
    return [
        pytest.param(load_yaml(body, path.name), id=f"{path.stem}-{number}")
        for path in PAGES
        for number, (language, body) in enumerate(FENCE.findall(path.read_text()))
        if language == "yaml"
    ]


@pytest.mark.parametrize("data", recipe_blocks())
def test_recipes_on_the_pages_are_recipes(data: Any) -> None:
    """Whole ones as they stand, pieces in an otherwise minimal recipe."""
    rest = {"name": "n", "sources": [{"name": "s", "paths": ["x.jsonl"]}], "tokenizer": {"path": "tokenizer.json"}}
    parse_recipe(data if {"name", "sources"} <= set(data) else rest | data)


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


def test_every_reason_and_error_is_documented() -> None:
    found = {name for path in (ROOT / "transforms").rglob("*.py") for name in literals(path)}
    for known in ("too-deep", "http-status", "blocked-host", "toxic-density", "BadGzip", "BadLength", "Truncated"):
        assert known in found  # the search itself works
    pages = {"transforms": page("reasons.md"), "heuristics": page("heuristics.md")}
    sets = ("basic-", "gopher-", "repetition-", "c4-", "fineweb-")
    missing = {n for n in found if f"`{n}`" not in pages["heuristics" if n.startswith(sets) else "transforms"]}
    assert missing == set()


def test_no_reason_is_documented_that_does_not_exist() -> None:
    source = "\n".join(path.read_text() for path in (ROOT / "transforms").rglob("*.py"))
    text = page("reasons.md")
    text = text[text.index("\n## Reasons") : text.index("\n## rejects/ and dead_letters/")]
    for cells in rows(text):
        for name in re.findall(r"`([\w-]+)`", cells[0]):
            assert f'"{name}"' in source or name == "FileNotFoundError", name


def test_every_column_of_the_work_files_is_documented() -> None:
    signatures = signature_table([], [], [], [], [], np.empty((0, 112), np.uint32))
    text = page("reasons.md")
    for folder, names in (
        ("work/documents", DOCUMENTS_SCHEMA.names),
        ("work/signatures", signatures.schema.names),
        ("work/verdicts", VERDICTS_SCHEMA.names),
    ):
        told = [cells[0].strip("`") for cells in rows(section(text, folder)) if cells[0].startswith("`")]
        assert told == names
    both = {cells[0]: cells[1] for cells in rows(section(text, "rejects/ and dead_letters/"))}
    for folder, schema in (("rejects", REJECT_SCHEMA), ("dead_letters", DEAD_SCHEMA)):
        cell = both[f"`{folder}/part-*.parquet`"]
        assert all(f"`{name}`" in cell for name in schema.names)


def test_every_kind_of_page_in_the_demo_is_documented() -> None:
    tree = ast.parse((ROOT / "recipes" / "demo_crawl.py").read_bytes())
    assignments = [node for node in tree.body if isinstance(node, ast.Assign)]
    shares = next(ast.literal_eval(node.value) for node in assignments if ast.unparse(node.targets[0]) == "SHARES")
    told = "".join(cells[0] for cells in rows(section(page("recipes.md"), "The demo crawl")))
    assert {kind for kind in shares if f"`{kind}`" not in told} == set()


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
            example = path.name == "architecture.md" and "digits" in name  # of "Adding a stage"
            assert example or (ROOT / name).is_file(), f"{path.name}: {name}"


def test_every_page_is_linked_from_the_readme_which_is_short() -> None:
    text = README.read_text()
    assert [path.name for path in PAGES[1:] if f"(docs/{path.name})" not in text] == []
    assert len(text.splitlines()) < 120


@pytest.mark.parametrize("path", [*PAGES, *ELSEWHERE, *RECIPES], ids=lambda path: f"{path.parent.name}-{path.name}")
def test_nothing_speaks_of_one_machine(path: Path) -> None:
    assert re.findall(r"(?<![\w.*>}-])/(?:work|tmp|root|home|Users)\b[^\s]*", path.read_text()) == []


def test_the_example_of_a_new_stage_is_a_stage() -> None:
    """Its code runs, and refuses what it says."""
    blocks = [body for language, body in FENCE.findall(page("architecture.md")) if language == "python"]
    code = next(body for body in blocks if "class FilterDigits" in body)
    names: dict[str, Any] = {"__name__": "digits"}
    exec(compile(code, "architecture.md", "exec", dont_inherit=True), names)  # noqa: S102 - the project's own page
    doc = Document(b"", "12 monkeys", "", "s", "o", 0)
    judge, params = names["judge_digits"], names["DigitsParams"]
    assert judge(doc, params()) is doc
    assert judge(dataclasses.replace(doc, text="1234 x"), params()) == Drop("digit-ratio")
    with pytest.raises(ValueError, match="max_ratio: 2 given"):
        params(2)
