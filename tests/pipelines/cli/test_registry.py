"""How a command is found by what people type, and what a file without a fitting declaration is."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from refinery.pipelines.cli.command_line import OWN, build_parser, execute, parser_for
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode
from refinery.pipelines.shell.registry import Registry, in_order, module_name

DECLARATION = "from refinery.pipelines.shell.command import Command\nCOMMAND = Command({!r}, 'x', run=print)\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "some_commands"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "some_commands"]:
        del sys.modules[name]


def test_every_file_declares_the_command_that_it_is_named_after() -> None:
    commands = OWN.all()
    assert len(commands) == len(OWN.modules) == len({command.name for command in commands})
    assert {module_name(command.name) for command in commands} == {name.removesuffix("_") for name in OWN.modules}
    assert all(command.section is not Section.OTHER and command.summary[-1] != "." for command in commands)


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["verify", "out"], ["verify"]),
        (["try", "x.yaml"], ["try"]),
        (["train-quality"], ["train-quality"]),
        (["acquire", "git", "list.yaml"], ["acquire", "acquire git"]),
        (["acquire"], []),
        (["acquire", "--help"], []),
        (["acquire-git"], []),
        (["train", "quality"], []),
        (["train_quality"], []),
        (["try_"], []),
        (["command_line"], []),
        (["command-line"], []),
        (["--help"], []),
        (["../verify"], []),
        ([], []),
    ],
)
def test_which_command_words_begin_with(words: list[str], names: list[str]) -> None:
    assert [command.name for command in OWN.named(words)] == names


def test_a_parser_of_one_command_is_that_of_all() -> None:
    """Usage, help and what comes out of it are the same; flags may stand before the command."""
    for words in (["verify", "out/web", "--full"], ["acquire", "git", "x.yaml", "--output", "o"]):
        one, whole = parser_for(words), build_parser()
        assert vars(one.parse_known_args(words)[0]) == vars(whole.parse_known_args(words)[0])
    words = ["--region=x", "refine", "r.yaml", "--output", "o"]
    args, flags = parser_for(words).parse_known_args(words)
    assert (args.command, args.recipe, flags) == ("refine", "r.yaml", ["--region=x"])


def test_a_group_lists_its_members(capsys: pytest.CaptureFixture[str]) -> None:
    for words, code in (
        (["acquire", "--help"], 0),
        (["acquire"], ExitCode.USAGE),
        (["acquire", "gut"], ExitCode.USAGE),
    ):
        with pytest.raises(SystemExit) as ended:
            execute(words)
        assert ended.value.code == code
        said = capsys.readouterr()
        assert "commoncrawl" in said.out + said.err
    assert "refinery acquire git repositories.yaml --output repos" in build_parser().commands.choices["acquire"].epilog


@pytest.mark.parametrize(
    ("module", "text", "why"),
    [
        ("nothing", "", "some_commands.nothing: it declares no COMMAND"),
        ("other", DECLARATION.format("another"), "its command has the name 'another', it must be of the file"),
    ],
)
def test_a_file_without_a_fitting_declaration(package: Path, module: str, text: str, why: str) -> None:
    (package / f"{module}.py").write_text(text)
    with pytest.raises(TypeError, match=why):
        Registry("some_commands").all()


def test_only_the_file_that_is_meant_is_read(package: Path) -> None:
    (package / "broken.py").write_text("1 / 0")
    (package / "two_words.py").write_text(DECLARATION.format("two-words"))
    (package / "shared.py").write_text("")
    registry = Registry("some_commands", besides=frozenset({"shared"}))
    assert [command.name for command in registry.named(["two-words", "x"])] == ["two-words"]
    assert "some_commands.broken" not in sys.modules


def test_groups_come_before_their_members_and_sections_in_their_order() -> None:
    made = [
        Command("b x", "", Section.TRAIN),
        Command("c", "", Section.PREPARE),
        Command("b", "", Section.LOOK),
        Command("a", "", Section.LOOK),
    ]
    assert [command.name for command in in_order(made)] == ["c", "a", "b", "b x"]
