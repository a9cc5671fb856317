"""`refinery completion`: a shell's completion script."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from refinery.pipelines.shell.arguments import say
from refinery.pipelines.shell.command import Command, Section
from refinery.pipelines.shell.exit_codes import ExitCode

EXAMPLES = """examples:
  refinery completion bash > ~/.local/share/bash-completion/completions/refinery
  refinery completion zsh > ~/.zfunc/_refinery           with fpath+=~/.zfunc above compinit in ~/.zshrc
  refinery completion fish > ~/.config/fish/completions/refinery.fish
For the current shell only: source <(refinery completion bash). Repeat the command after an update."""


def arguments(parser: ArgumentParser) -> None:
    from refinery.pipelines.shell.completion import SHELLS

    parser.add_argument("shell", choices=SHELLS, help="the shell that will run the script")


def run(args: Namespace, flags: Sequence[str]) -> ExitCode:
    """Print the script of a shell. Commands of other packages are in it, too."""
    from refinery.pipelines.cli.command_line import build_parser, installed_commands, with_installed
    from refinery.pipelines.shell.completion import completion

    say(completion(build_parser(with_installed(installed_commands())), args.shell))
    return ExitCode.DONE


COMMAND = Command(
    name="completion",
    summary="print a script that completes commands, flags and files",
    section=Section.PREPARE,
    examples=EXAMPLES,
    arguments=arguments,
    run=run,
)
