"""docs/commands.md from the command line itself: `python -m tools.commands_page` rewrites it.

The page says where: `<!-- exit codes -->` or `<!-- events -->`, then a table, then `<!-- end -->`; `<!-- commands -->`,
then every command with its examples and arguments. A test holds the page equal to what this module makes of it.
"""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from refinery.pipelines.cli.command_line import OWN, build_parser
from refinery.pipelines.progress.events import COMMON, OF_JOBS
from refinery.pipelines.recipe.stages.tables import table
from refinery.pipelines.shell.exit_codes import MEANINGS
from refinery.pipelines.shell.help_text import PROGRAM, all_commands, example_lines

PAGE = Path("docs/commands.md")
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
    """Every command: what it does, examples, arguments."""
    parser = build_parser()
    summaries = dict(summaries_of(parser))
    text = ""
    for name, command in all_commands(parser):
        text += f"### {name}\n\n{shown(summaries[name], capital=True)}.\n\n"
        text += "```sh\n" + "".join(f"{line.strip()}\n" for line in example_lines(command)) + "```\n\n"
        rows = list(arguments(command))
        text += f"{table(('argument', 'meaning'), iter(rows))}\n" if rows else ""
    return text


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


def main() -> None:
    """Rewrite the page. Run it in a checkout."""
    PAGE.write_text(render(PAGE.read_text()))
    print(f"{PAGE}: {PROGRAM} --help, as a page")


if __name__ == "__main__":
    main()
