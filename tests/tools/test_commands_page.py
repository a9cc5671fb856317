"""docs/commands.md and docs/commands/ are what the command line is; commands on other pages and in recipes parse."""

import re
import shlex
from pathlib import Path

import pytest

from refinery.pipelines.cli.command_line import build_parser
from refinery.pipelines.shell.help_text import COMMENT, all_commands
from tests.docs.flags import of_beam
from tools.commands_page import FOLDER, PAGE, all_pages, by_section, file_of

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "recipes").glob("*.yaml"))]
FENCE = re.compile(r"^```(?:sh|bash)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PLACEHOLDERS = {" FORMAT ": " jsonl "}  # where the parser wants one of several


def test_the_pages_are_those_of_the_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    pages = all_pages()
    assert {path: path.read_text() for path in pages} == pages, "run python -m tools.commands_page"
    assert set(pages) == {PAGE, *FOLDER.glob("*.md")}


def test_every_command_and_flag_is_on_one_of_them() -> None:
    overview = (ROOT / PAGE).read_text()
    pages = {name: file_of(section) for section, names in by_section().items() for name in names}
    for name, parser in all_commands(build_parser()):
        assert f"({FOLDER.name}/{pages[name]}#{name.replace(' ', '-')})" in overview
        _, _, section = (ROOT / FOLDER / pages[name]).read_text().partition(f"\n## {name}\n")
        section = section.partition("\n## ")[0]
        assert f"refinery {name}" in section
        options = [action.option_strings[-1] for action in parser._actions if action.option_strings]
        assert all(f"`{option}" in section for option in options if option != "--help"), name


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_commands_that_people_are_told_to_type_parse(path: Path) -> None:
    """In fenced blocks of pages, and in the comments of recipes. Optional words in brackets are left out."""
    text = path.read_text()
    blocks = FENCE.findall(text) if path.suffix == ".md" else [re.sub("^# ?", "", text, flags=re.MULTILINE)]
    lines = [line.strip() for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    own = {f"refinery {name}" for name in re.findall(r'^    name="([a-z-]+)",$', text, re.M)}  # that the page declares
    for line in lines:
        command = re.match(r"refinery (?!refine\.)[a-z-]+", line)
        if command and command[0] not in own:
            told = COMMENT.split(re.sub(r"\[[^\]]*\]", "", line) + " ")[0] + " "
            for word, example in PLACEHOLDERS.items():
                told = told.replace(word, example)
            _, rest = build_parser().parse_known_args(shlex.split(told, comments=True)[1:])
            unknown = {word.partition("=")[0] for word in rest} - {"…"}
            assert unknown <= of_beam(), line
