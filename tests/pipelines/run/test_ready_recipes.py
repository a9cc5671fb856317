"""The recipes that come with the project are recipes."""

from pathlib import Path

import pytest

from refinery.pipelines.recipe.load_recipe import load_recipe, parse_recipe
from refinery.pipelines.recipe.params import fingerprint
from refinery.transforms.core.names import PHASES

FOLDER = Path(__file__).parents[3] / "recipes"
RECIPES = sorted(FOLDER.glob("*.yaml"))
DATA = sorted((FOLDER / "data").glob("*.yaml"))  # published data sets; the others are funnels
FUNNELS = ("fineweb", "fineweb2", "dclm", "dolma3")  # published ones


@pytest.mark.parametrize("path", [*RECIPES, *DATA], ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_a_ready_recipe_loads_and_reads_back(path: Path) -> None:
    recipe = load_recipe(str(path))
    plain = recipe.plain()
    assert recipe.name == path.stem + ("-data" if path in DATA else "")
    assert parse_recipe(plain) == recipe
    assert fingerprint(parse_recipe(plain).plain()) == fingerprint(plain)


def test_the_demo_has_every_stage_on() -> None:
    recipe = load_recipe(str(RECIPES[0].parent / "demo.yaml"))
    assert all((recipe.url, recipe.language, recipe.heuristics, recipe.near_dup, recipe.exact_dup))
    assert all((recipe.quality, recipe.toxicity, recipe.pii))


def test_recipes_for_source_code_have_all_on_that_needs_no_file() -> None:
    for name, off in (("code", {"chunk-copies", "decontaminate"}), ("demo-code", {"decontaminate"})):
        recipe = load_recipe(str(RECIPES[0].parent / f"{name}.yaml"))
        on = [stage.name for phase in PHASES for stage, _ in recipe.active(phase)]
        assert on == [name for name in recipe.LANE.funnel if name not in off]  # benchmarks have to be named
        assert recipe.packed and recipe.near_dup_in_source and recipe.near_dup


@pytest.mark.parametrize("name", FUNNELS)
def test_a_published_funnel_says_what_it_is_and_what_it_is_not(name: str) -> None:
    """The header names the paper, what is reproduced and what is not; only what the funnel has is on."""
    path = FOLDER / f"{name}.yaml"
    head = path.read_text().partition("\nname: ")[0]
    assert all(words in head for words in (" et al. 20" if name != "dolma3" else "Olmo Team 2025", "Reproduced,"))
    assert head.count("\n# - ") >= 4 and "\n# Not reproduced:\n" in head
    recipe = load_recipe(str(path))
    assert not recipe.secrets and not recipe.toxicity and recipe.language and recipe.url
    assert not recipe.language.relatives and recipe.language.max_chars is None
    assert recipe.heuristics.gopher and recipe.heuristics.repetition


@pytest.mark.parametrize("path", [*RECIPES, *DATA], ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_editors_find_the_schema_of_a_ready_recipe(path: Path) -> None:
    """The first line names the schema of the recipe's lane, beside it; a language server reads it there."""
    first = path.read_text().splitlines()[0]
    above = "../" if path in DATA else ""
    assert first == f"# yaml-language-server: $schema={above}{load_recipe(str(path)).LANE.name}.schema.json"
    assert (path.parent / first.partition("$schema=")[2]).is_file()
