"""Job servers that a runner of Beam starts beside the command, such as Prism: they end with it, however it ends.

Beam ends them in its `atexit` functions. A killed command does not come to these, nor does one of ours (cli/
command_line.py leaves by `os._exit`). So a small shell waits until the command is gone, and ends the server.
"""

import subprocess
from typing import Any

from apache_beam.utils.subprocess_server import SubprocessServer

# The shell's standard input is a pipe that only the command holds: its end is the command's.
WAIT_AND_END = 'read -r _; kill -KILL "$1"'

_watchers: list["subprocess.Popen[bytes]"] = []  # as long as they are referred to, their pipes stay open


def end_with_command(process: int) -> None:
    """Kill that process when this one is gone. Its number stays its own as long as this one may wait for it."""
    command = ["/bin/sh", "-c", WAIT_AND_END, "sh", str(process)]
    quiet = subprocess.DEVNULL
    # A session of its own: Ctrl-C ends the command first.
    _watchers.append(
        subprocess.Popen(  # noqa: S603 - a number is all that the command gets
            command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True
        )
    )


def end_servers_with_command() -> None:
    """Let every server that Beam starts from now on end with this process. As often as you like."""
    cache = SubprocessServer._cache
    start = cache._constructor
    if getattr(start, "ends_with_command", False):
        return

    def started(*arguments: Any) -> Any:
        process, endpoint = start(*arguments)
        end_with_command(process.pid)
        return process, endpoint

    started.ends_with_command = True  # type: ignore[attr-defined]  # marks our own function
    cache._constructor = started
