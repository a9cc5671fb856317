"""`refinery mix` on the command line; what it does is imported when it runs."""

import argparse
from collections.abc import Sequence

from refinery.pipelines.commands.arguments import refuse_flags, result
from refinery.pipelines.mix.command import mix_command
from refinery.pipelines.shell.exit_codes import ExitCode


def run_mix(args: argparse.Namespace, flags: Sequence[str]) -> ExitCode:
    """Make a view, or say what it would be."""
    refuse_flags(flags)
    for line in mix_command(args):
        result(line)
    return ExitCode.DONE
