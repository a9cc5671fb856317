"""`refinery completion SHELL`: a script for the shell that completes commands, flags, choices and names of files.

shtab writes it from the parser, once; nothing of this project runs while somebody types.
"""

import argparse

from refinery.pipelines.shell.help_text import all_commands

SHELLS = ("bash", "zsh", "fish")
# What arguments are by the word that stands for them in --help, or (positional ones without such a word) their name.
FILES = frozenset(
    {"CLONE", "FILE", "FILES", "GLOB", "GOLD", "LIST", "LOCATION", "PREFIX", "RECIPE", "TARBALL", "recipe"}
)
FOLDERS = frozenset({"DIR", "FOLDER"})


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
