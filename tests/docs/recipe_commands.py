"""The commands in the comments at the head of the recipes that come with the project."""

import re
from pathlib import Path

from tests.docs.blocks import OPTIONAL, ROOT, words

RECIPES = ROOT / "recipes"
FUNNELS = sorted(RECIPES.glob("*.yaml"))
DATA = sorted((RECIPES / "data").glob("*.yaml"))  # published data sets
COMMAND = re.compile(r"#   ((?:refinery|make) .*?)(?: {3,}.*)?")  # and what is said about it


def commands_of(recipe: Path) -> list[list[str]]:
    """The words of each command, in order; a backslash joins lines, and what is in [brackets] is left out."""
    head = recipe.read_text().partition("\nname: ")[0]
    joined = re.sub(r"\s*\\\n#\s*", " ", head)
    found = (COMMAND.fullmatch(line) for line in joined.splitlines())
    return [words(OPTIONAL.sub("", match[1])) for match in found if match]
