"""The commands in the comments of the recipes name files that exist, and their settings are settings of the recipe.

They run on small inputs in tests/pipelines/whole_runs: the funnels' in test_recipe_commands.py, those of recipes/data
in test_remote_sources.py, those of other lanes in test_chat_run.py and test_code_lane.py. `make` runs the demo's.
"""

from pathlib import Path

import pytest

from refinery.pipelines.cli.command_line import build_parser
from refinery.pipelines.recipe.load_recipe import load_recipe
from tests.docs.recipe_commands import DATA, FUNNELS, RECIPES, ROOT, commands_of

MADE = {"repositories.yaml"}  # by the user


@pytest.mark.parametrize("recipe", [*FUNNELS, *DATA], ids=lambda path: path.relative_to(RECIPES).as_posix())
def test_commands_of_a_recipe_are_commands(recipe: Path) -> None:
    commands = commands_of(recipe)
    assert any(recipe.relative_to(ROOT).as_posix() in words or words[0] == "make" for words in commands)
    for words in commands:
        if words[0] == "make":
            assert f"\n{words[1]}: " in (ROOT / "Makefile").read_text()
            continue
        args, beam_flags = build_parser().parse_known_args(words[1:])
        assert not beam_flags
        for word in words:
            if word.endswith(".yaml") and word not in MADE:
                assert load_recipe(str(ROOT / word), getattr(args, "set", None) or [])
