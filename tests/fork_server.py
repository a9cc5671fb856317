"""Commands in forks of one warmed process: a run of a small recipe costs half a second instead of five.

A test process must not fork itself, as it has threads; this helper process has none. It imports everything and does one
run of its own, then answers each request with a fork that applies the request's faults (tests/faults.py), runs the
command line, and may die of it. Linux alone.
"""

import argparse
import contextlib
import gc
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).parents[1]
TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True)
class Outcome:
    """How a command ended: exit code (minus the signal that killed it), what it printed, what its faults noted."""

    code: int
    out: str
    err: str
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def was_killed(self) -> bool:
        return self.code == -signal.SIGKILL


class ForkServer:
    """Use as a context manager. folder: scratch space for logs and temporary files. warm: a command to run first."""

    def __init__(self, folder: Path, warm: Sequence[object]) -> None:
        self.folder = folder
        (folder / "tmp").mkdir(parents=True, exist_ok=True)
        self._child = 0
        self._started = threading.Event()
        with (folder / "server.log").open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.fork_server", *map(str, warm)],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "TMPDIR": str(folder / "tmp")},
            )
        self._answer(TIMEOUT_SECONDS)

    def __enter__(self) -> "ForkServer":
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()

    def kill(self) -> None:
        """Kill the running command from another thread, such as one of the storage that it talks to."""
        assert self._started.wait(10)
        os.kill(self._child, signal.SIGKILL)

    def run(
        self,
        *arguments: object,
        faults: Sequence[tuple[str, Mapping[str, Any]]] = (),
        environment: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT_SECONDS,
    ) -> Outcome:
        """The command line `arguments` in a fork of its own, with these faults: (name in tests.faults, arguments)."""
        request = {
            "arguments": [str(argument) for argument in arguments],
            "faults": list(faults),
            "environment": dict(environment or {}),
            "log": str(self.folder / "log"),
            "timeout": timeout,
        }
        assert self._process.stdin
        self._started.clear()
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        self._child = self._answer(20)
        self._started.set()
        code = self._answer(timeout + 20)
        texts = [_read(Path(f"{request['log']}.{kind}")) for kind in ("out", "err", "notes")]
        assert code != -signal.SIGALRM, f"no end within {timeout} s\n{texts[0]}\n{texts[1]}"
        return Outcome(code, texts[0], texts[1], json.loads(texts[2] or "{}"))

    def _answer(self, timeout: float) -> int:
        out = self._process.stdout
        assert out
        ready, _, _ = select.select([out], [], [], timeout)
        line = out.readline() if ready else ""
        assert line, f"the fork server does not answer\n{_read(self.folder / 'server.log')}"
        return int(line)


def _read(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def serve(warm: Sequence[str]) -> None:
    """The helper process: one run, then a fork for each line on standard input, until it ends."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    remember_what_never_changes()
    import google.cloud.storage  # noqa: F401 - here and below: what a run imports late

    import refinery.loader.storage.gcs_store
    import refinery.pipelines.run.refine  # noqa: F401
    import tests.faults  # noqa: F401
    from refinery.pipelines.commands.command_line import execute

    assert execute(warm) == 0
    gc.collect()
    gc.freeze()
    print(0, file=out, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if not child:
            act(request)
        print(child, file=out, flush=True)
        print(wait(child, request["timeout"]), file=out, flush=True)


def remember_what_never_changes() -> None:
    """A good part of a small run is translations and formatters of Beam's help texts, and the signatures of Beam's own
    methods, always the same ones. Forks inherit the answers.
    """
    import apache_beam.transforms.core as core
    from apache_beam.options import pipeline_options

    argparse._ = lambda text: text  # type: ignore[attr-defined]
    formatter = argparse.HelpFormatter("beam")
    pipeline_options._BeamArgumentParser._get_formatter = lambda parser: formatter
    core.get_signature = by_function(core.get_signature)


def by_function(ask: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`ask`, asked once for each function; the methods of all instances are one function."""
    known: dict[Any, Any] = {}

    def answer(function: Any) -> Any:
        key = getattr(function, "__func__", function), hasattr(function, "__func__")
        if key not in known:
            known[key] = ask(function)
        return known[key]

    return answer


def act(request: Mapping[str, Any]) -> NoReturn:
    """One command, in the fork."""
    import tests.faults
    from refinery.pipelines.commands.command_line import execute

    code = 99
    try:
        os.setpgid(0, 0)
        for number, kind in ((0, None), (1, "out"), (2, "err")):
            path = f"{request['log']}.{kind}" if kind else os.devnull
            os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{request['log']}.notes")
        os.environ.update(request["environment"])
        tempfile.tempdir = None
        with tests.faults.noting(Path(f"{request['log']}.notes")):
            tests.faults.apply(request["faults"])
            code = execute(request["arguments"])
    except BaseException:  # noqa: BLE001 - a fork must never go on as the server
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def wait(child: int, timeout: float) -> int:
    """The exit code of the fork; what it may have started ends with it. -SIGALRM when it takes too long."""
    descriptor = os.pidfd_open(child)
    ready, _, _ = select.select([descriptor], [], [], timeout)
    os.close(descriptor)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) if ready else -signal.SIGALRM


if __name__ == "__main__":
    serve(sys.argv[1:])
