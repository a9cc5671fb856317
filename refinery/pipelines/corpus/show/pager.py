"""Lines for a person to read: through a pager where they go to a terminal, else as they are."""

import contextlib
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable
from typing import TextIO, cast

DEFAULT = "less"
LESS = "FRX"  # of $LESS where it is not set, as git has it: no pager for what fits, colours, no clearing


def page(lines: Iterable[str], say: Callable[[str], None], wanted: bool = True) -> None:
    """Show lines through $PAGER (`less` without one) where standard output is a terminal, else one by one with `say`.

    wanted: False for no pager at all. An empty $PAGER and `cat` mean the same; so does one that cannot be started.
    Lines are made when they are asked for: who leaves the pager early does not pay for the rest.
    """
    command = shlex.split(os.environ.get("PAGER", DEFAULT))
    if wanted and command and command != ["cat"] and sys.stdout.isatty():
        environment = {**os.environ, "LESS": os.environ.get("LESS", LESS)}
        try:
            pager = subprocess.Popen(  # noqa: S603 - the user's own, without a shell
                command, stdin=subprocess.PIPE, env=environment, text=True, errors="replace"
            )
        except OSError:
            pass
        else:
            _feed(pager, cast(TextIO, pager.stdin), lines)
            return
    for line in lines:
        say(line)


def _feed(pager: "subprocess.Popen[str]", stream: TextIO, lines: Iterable[str]) -> None:
    with contextlib.suppress(BrokenPipeError):  # the reader has left
        for line in lines:
            print(line, file=stream, flush=True)
    with contextlib.suppress(BrokenPipeError):
        stream.close()
    while True:
        with contextlib.suppress(KeyboardInterrupt):  # it is the pager's
            pager.wait()
            return
