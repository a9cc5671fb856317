"""The recipes that come with the project are recipes."""

from pathlib import Path

import pytest

from refinery.pipelines.recipe.load_recipe import load_recipe, parse_recipe
from refinery.pipelines.recipe.params import fingerprint
from refinery.transforms.core.lane import PHASES

RECIPES = sorted((Path(__file__).parents[3] / "recipes").glob("*.yaml"))


@pytest.mark.parametrize("path", RECIPES, ids=[path.stem for path in RECIPES])
def test_a_ready_recipe_loads_and_reads_back(path: Path) -> None:
    recipe = load_recipe(str(path))
    plain = recipe.plain()
    assert recipe.name == path.stem
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


@pytest.mark.parametrize("path", RECIPES, ids=[path.stem for path in RECIPES])
def test_editors_find_the_schema_of_a_ready_recipe(path: Path) -> None:
    """The first line names the schema of the recipe's lane, beside it; a language server reads it there."""
    first = path.read_text().splitlines()[0]
    assert first == f"# yaml-language-server: $schema={load_recipe(str(path)).LANE.name}.schema.json"
    assert (path.parent / first.partition("$schema=")[2]).is_file()
