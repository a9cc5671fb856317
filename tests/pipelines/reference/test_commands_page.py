"""docs/commands.md is what the command line is."""

from pathlib import Path

from refinery.pipelines.commands.command_line import build_parser
from refinery.pipelines.reference.commands_page import PAGE, render
from refinery.pipelines.shell.help_text import all_commands

ROOT = Path(__file__).parents[3]


def test_the_page_is_that_of_the_parser() -> None:
    text = (ROOT / PAGE).read_text()
    assert text == render(text), "run python -m refinery.pipelines.reference.commands_page"


def test_every_command_and_flag_is_on_it() -> None:
    text = (ROOT / PAGE).read_text()
    for name, parser in all_commands(build_parser()):
        _, _, section = text.partition(f"\n### {name}\n")
        section = section.partition("\n### ")[0]
        assert f"refinery {name}" in section
        options = [action.option_strings[-1] for action in parser._actions if action.option_strings]
        assert all(f"`{option}" in section for option in options if option != "--help"), name
