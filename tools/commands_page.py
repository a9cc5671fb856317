"""Pages of commands from the command line itself: `python -m tools.commands_page` rewrites them.

A page says where: `<!-- exit codes -->`, `<!-- events -->` or `<!-- commands -->`, then a table, then `<!-- end -->`.
Each section of `refinery --help` has a page below docs/commands/ that is made as a whole. A test holds the pages equal
to what this module makes of them.
"""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from refinery.pipelines.cli.command_line import OWN, build_parser
from refinery.pipelines.progress.events import COMMON, OF_JOBS
from refinery.pipelines.recipe.stages.tables import table
from refinery.pipelines.shell.command import Section
from refinery.pipelines.shell.exit_codes import MEANINGS
from refinery.pipelines.shell.help_text import PROGRAM, all_commands, example_lines

PAGE = Path("docs/commands.md")
FOLDER = Path("docs/commands")
BLOCK = re.compile(r"(<!-- (exit codes|events|commands) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def exit_codes() -> str:
    """What the codes mean, in general and for the commands that answer a question."""
    general = table(("exit code", "meaning"), ((f"`{code.value}`", meaning) for code, meaning in MEANINGS.items()))
    special = (
        (f"`{command.name}`", f"`{code.value}`", meaning)
        for command in sorted(OWN.all(), key=lambda command: command.name)
        for code, meaning in command.exit_codes.items()
    )
    return f"{general}\n{table(('command', 'exit code', 'meaning'), special)}"


def events() -> str:
    """The keys of events."""
    keys = {**COMMON, **OF_JOBS}
    return table(("key", "type", "meaning"), ((f"`{key}`", kind, meaning) for key, (kind, meaning) in keys.items()))


def commands() -> str:
    """Every command in a line that links its section, under the headings of `refinery --help`."""
    summaries = dict(summaries_of(build_parser()))
    text = ""
    for section, names in by_section().items():
        rows = (
            (f"[`{name}`]({FOLDER.name}/{file_of(section)}#{name.replace(' ', '-')})", shown(summaries[name]))
            for name in names
        )
        text += f"### {shown(section.value, capital=True)}\n\n{table(('command', 'what it does'), rows)}\n"
        text += f"[Their examples and arguments]({FOLDER.name}/{file_of(section)})\n\n"
    return text.rstrip("\n")


def section_pages() -> dict[str, str]:
    """File name -> page of a section of `refinery --help`: each of its commands with examples and arguments."""
    parser = build_parser()
    parsers, summaries = dict(all_commands(parser)), dict(summaries_of(parser))
    pages = {}
    for section, names in by_section().items():
        text = f"# Commands: {section.value}\n\n"
        text += f"This page is generated from the command line; `{PROGRAM} COMMAND --help` says the same. "
        text += "[Commands](../commands.md) has all groups, exit codes and progress.\n\n"
        text += "\n".join(described(name, summaries[name], parsers[name]) for name in names)
        pages[file_of(section)] = text
    return pages


def by_section() -> dict[Section, list[str]]:
    """Commands under their sections, in the order of `refinery --help`; members stand behind their group."""
    parser = build_parser()
    found: dict[Section, list[str]] = {}
    for name, _ in all_commands(parser):
        found.setdefault(Section(parser.headings[name.partition(" ")[0]]), []).append(name)
    return found


def file_of(section: Section) -> str:
    """The name of its page: that of the member, since headings may be worded again."""
    return f"{section.name.lower().replace('_', '-')}.md"


def described(name: str, summary: str, command: argparse.ArgumentParser) -> str:
    """What a command does, its examples, its arguments."""
    text = f"## {name}\n\n{shown(summary, capital=True)}.\n\n"
    text += "```sh\n" + "".join(f"{line.strip()}\n" for line in example_lines(command)) + "```\n"
    rows = list(arguments(command))
    return text + (f"\n{table(('argument', 'meaning'), iter(rows))}" if rows else "")


def summaries_of(parser: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, str]]:
    """(name, what `--help` says of it in a line) of every command."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for choice in action._choices_actions:
                full = f"{name} {choice.dest}".strip()
                yield full, choice.help or ""
                yield from summaries_of(action.choices[choice.dest], full)


def arguments(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """(argument as one types it, meaning), in the order of `--help`."""
    formatter = parser._get_formatter()
    for action in parser._actions:
        if isinstance(action, (argparse._HelpAction, argparse._SubParsersAction)):
            continue
        value = "" if action.nargs == 0 else action.metavar or choices(action) or action.dest.upper()
        form = f"{action.option_strings[0]} {value}".strip() if action.option_strings else str(value)
        needed = " (required)" if action.option_strings and action.required else ""
        meaning = formatter._expand_help(action) if action.help else ""
        yield f"`{form}`", shown(meaning + needed)


def choices(action: argparse.Action) -> str:
    return "{" + ",".join(map(str, action.choices)) + "}" if action.choices else ""


def shown(text: str, capital: bool = False) -> str:
    """With angle brackets as text; as a sentence."""
    safe = text.replace("<", "&lt;").replace(">", "&gt;")
    return safe[:1].upper() + safe[1:] if capital else safe


def render(text: str) -> str:
    """The page with its generated parts replaced."""
    makers = {"exit codes": exit_codes, "events": events, "commands": commands}
    return BLOCK.sub(lambda found: f"{found[1]}\n{makers[found[2]]()}\n{found[4]}", text)


def all_pages() -> dict[Path, str]:
    """Every page with generated text, as it should be."""
    generated = section_pages()
    written = [PAGE, *(path for path in sorted(FOLDER.glob("*.md")) if path.name not in generated)]
    return {path: render(path.read_text()) for path in written} | {
        FOLDER / name: text for name, text in generated.items()
    }


def main() -> None:
    """Rewrite the pages. To be run in a checkout."""
    FOLDER.mkdir(exist_ok=True)
    for path, text in all_pages().items():
        path.write_text(text)
        print(path)


if __name__ == "__main__":
    main()
