"""`refinery completion SHELL`: a script for the shell that completes commands, flags, choices and names of files.

shtab writes it from the parser, once; nothing of this project runs while somebody types.
"""

import argparse
from typing import Any

from refinery.pipelines.shell.help_text import all_commands

SHELLS = ("bash", "zsh", "fish")
# What arguments are by the word that stands for them in --help, or (positional ones without such a word) their name.
FILES = frozenset(
    {"CLONE", "FILE", "FILES", "GLOB", "GOLD", "LIST", "LOCATION", "PREFIX", "RECIPE", "TARBALL", "recipe"}
)
FOLDERS = frozenset({"DIR", "FOLDER"})

COMPLETION_EXAMPLES = """examples:
  refinery completion bash > ~/.local/share/bash-completion/completions/refinery
  refinery completion zsh > ~/.zfunc/_refinery           with fpath+=~/.zfunc above compinit in ~/.zshrc
  refinery completion fish > ~/.config/fish/completions/refinery.fish
For this shell alone: source <(refinery completion bash). Write it again after an update."""


def add_completion(commands: Any) -> argparse.ArgumentParser:
    """The command's arguments."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "completion", help="print a script that completes commands, flags and files", epilog=COMPLETION_EXAMPLES
    )
    parser.add_argument("shell", choices=SHELLS, help="the shell that is to read it")
    return parser


def completion(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script for the whole command line. The same parser gives the same bytes."""
    import shtab

    for _, command in [("", parser), *all_commands(parser)]:
        for action in command._actions:
            word = action.metavar if isinstance(action.metavar, str) else action.dest
            if word in FILES:
                action.complete = shtab.FILE  # type: ignore[attr-defined]  # where shtab looks for it
            elif word in FOLDERS:
                action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    return str(shtab.complete(parser, shell))
