"""Commands in forks of one warmed process: a run of a small recipe costs half a second instead of five.

A test process must not fork itself, as it has threads; this helper process has none of its own. It imports everything
and does one run of its own, then gives each test process of the session a fork to talk to, which answers each request
with a fork that applies the request's faults (tests/faults.py), runs the command line, and may die of it. The worker
processes of a run's pool are forks, too. Linux alone.
"""

import atexit
import contextlib
import functools
import gc
import json
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).parents[1]
TIMEOUT_SECONDS = 250.0

peak = 0  # bytes that the largest command so far held


@dataclass(frozen=True)
class Outcome:
    """How a command ended: exit code (minus the signal that killed it), what it printed, what its faults noted.

    peak: bytes that the largest of its processes held, those that it was born with included.
    """

    code: int
    out: str
    err: str
    notes: Mapping[str, Any] = field(default_factory=dict)
    peak: int = 0

    @property
    def was_killed(self) -> bool:
        return self.code == -signal.SIGKILL


class ForkServer:
    """Use as a context manager. folder: scratch space for logs and temporary files. hash_seed: Python's.

    The helper process is the session's first for that seed, or a new one, which then ends with this object; forks that
    others got of it stay.
    """

    def __init__(self, folder: Path, hash_seed: int = 0) -> None:
        self.folder = folder
        (folder / "tmp").mkdir(parents=True, exist_ok=True)
        self._child = 0
        self._timeout = 0.0
        self._started = threading.Event()
        self._running = False  # a command that nobody has waited for yet
        self._process: subprocess.Popen[str] | None = None
        session = os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid())
        name = f"\0refinery-forks-{session}-{hash_seed}"  # of no file: it is gone with the process
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.connect(name)
        except ConnectionRefusedError:
            self._start_helper(name[1:], hash_seed)
            self._socket.connect(name)
        self._out = self._socket.makefile("w")
        print(folder, file=self._out, flush=True)
        self._answer(TIMEOUT_SECONDS)

    def _start_helper(self, name: str, hash_seed: int) -> None:
        """Start it, and wait until it listens, or knows that another one does."""
        with (self.folder / "server.log").open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.fork_server", str(self.folder), name],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "TMPDIR": str(self.folder / "tmp"), "PYTHONHASHSEED": str(hash_seed)},
            )
        assert self._process.stdout
        with self._process.stdout as said:
            said.readline()

    def __enter__(self) -> "ForkServer":
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self._out, self._socket):
            stream.close()
        if self._process is not None:
            assert self._process.stdin
            self._process.stdin.close()
            self._process.wait(10)

    def kill(self, signal_number: int = signal.SIGKILL) -> None:
        """Kill the running command, also from another thread, such as one of the storage that it talks to."""
        assert self._started.wait(10)
        os.kill(self._child, signal_number)

    def run(self, *arguments: object, **options: Any) -> Outcome:
        """The command line `arguments` in a fork of its own; options: see `start`."""
        self.start(*arguments, **options)
        return self.wait()

    def start(
        self,
        *arguments: object,
        faults: Sequence[tuple[str, Mapping[str, Any]]] = (),
        environment: Mapping[str, str] | None = None,
        folder: Path = ROOT,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        """Begin a command in `folder`. faults: (name in tests.faults, arguments) each. `wait` must follow before the
        next one.
        """
        request = {
            "arguments": [str(argument) for argument in arguments],
            "faults": list(faults),
            "environment": dict(environment or {}),
            "folder": str(folder),
            "log": str(self.folder / "log"),
            "timeout": timeout,
        }
        if self._running:  # a test was stopped while it waited: its answer is not ours
            with contextlib.suppress(ProcessLookupError):  # it has ended
                self.kill()
            self._answer(20)
        self._started.clear()
        print(json.dumps(request), file=self._out, flush=True)
        self._timeout = timeout
        (self._child,) = self._answer(20)
        self._started.set()
        self._running = True

    def wait(self) -> Outcome:
        """The end of the command."""
        global peak
        code, held = self._answer(self._timeout + 20)
        self._running = False
        peak = max(peak, held)
        texts = [_read(self.folder / f"log.{kind}") for kind in ("out", "err", "notes")]
        assert code != -signal.SIGALRM, f"no end within {self._timeout} s\n{texts[0]}\n{texts[1]}"
        return Outcome(code, texts[0], texts[1], json.loads(texts[2] or "{}"), held)

    @property
    def ended(self) -> bool:
        """Whether the command that was started has ended, and `wait` will not wait."""
        return bool(select.select([self._socket], [], [], 0)[0])

    def _answer(self, timeout: float) -> list[int]:
        line = b""
        while not line.endswith(b"\n"):  # byte by byte: what is read ahead would not be seen by `select`
            ready, _, _ = select.select([self._socket], [], [], timeout)
            byte = self._socket.recv(1) if ready else b""
            if not byte:
                break
            line += byte
        assert line, f"the fork server does not answer\n{_read(self.folder / 'server.log')}"
        return [int(word) for word in line.split()]


@functools.cache
def fork_server(hash_seed: int = 0) -> ForkServer:
    """The one server of this test process for a hash seed, started when it is first asked for."""
    folder = Path(tempfile.mkdtemp(prefix="fork-server-"))
    server = ForkServer(folder, hash_seed)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.__exit__)
    return server


def _read(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


# --- the helper process ---------------------------------------------------------------------------------------------


def listen(folder: Path, name: str) -> None:
    """One run, then a fork for each connection, until standard input ends; at once, if another process has the name.

    Connections wait from the beginning.
    """
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(f"\0{name}")
    except OSError:
        return
    listener.listen()
    print("listening", flush=True)
    os.dup2(2, 1)
    import google.cloud.storage  # noqa: F401 - here and below: what a run imports late

    import tests.faults  # noqa: F401
    from refinery.pipelines.cli.command_line import execute
    from refinery.pipelines.progress import memory
    from refinery.pipelines.runners.beam_memory import remember_what_never_changes
    from tests.pipelines.small_runs import command, make_small_inputs
    from tests.sampling import skip_syncs

    remember_what_never_changes()
    skip_syncs()
    memory.process_bytes = memory.resident_bytes  # the share of each page is asked of 250 MB, three times a run
    os.cpu_count = lambda: 1  # a worker process costs seconds: tests that want two of them say so
    warm = command(make_small_inputs(folder / "small"), folder / "warm")
    assert execute([str(word) for word in warm]) == 0
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks that serve
    while 0 not in (ready := select.select([0, listener], [], [])[0]):
        assert ready
        connection = listener.accept()[0]
        if not os.fork():
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            serve(connection)
        connection.close()


def serve(connection: socket.socket) -> NoReturn:
    """A fork for each line of a test process of ours, until the connection ends. Its folder is the first line."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    user = struct.unpack("3i", credentials)[1]
    lines, out = connection.makefile("r"), connection.makefile("w")
    with contextlib.suppress(ConnectionError):
        os.environ["TMPDIR"] = str(Path(lines.readline().rstrip("\n")) / "tmp")
        if user == os.getuid():
            print(0, file=out, flush=True)
            for line in lines:
                request = json.loads(line)
                child = os.fork()
                if not child:
                    act(request)
                print(child, file=out, flush=True)
                print(*wait(child, request["timeout"]), file=out, flush=True)
    leave(0)


def act(request: Mapping[str, Any]) -> NoReturn:
    """One command, in the fork."""
    import tests.faults
    from refinery.pipelines.cli.command_line import execute
    from refinery.pipelines.runners import local_runner
    from refinery.transforms.core.live import LIVE

    code = 99
    try:
        os.setpgid(0, 0)
        for number, kind in ((0, None), (1, "out"), (2, "err")):
            path = f"{request['log']}.{kind}" if kind else os.devnull
            os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{request['log']}.notes")
        os.environ.update(request["environment"])
        os.chdir(request["folder"])
        tempfile.tempdir = None
        LIVE.clear()
        local_runner.subprocess = ForkedWorkers  # type: ignore[attr-defined]
        with tests.faults.noting(Path(f"{request['log']}.notes")):
            tests.faults.apply(request["faults"])
            code = execute(request["arguments"])
    except BaseException:  # noqa: BLE001 - a fork must never go on as the server
        import traceback

        traceback.print_exc()
    finally:
        leave(code)


def leave(code: int) -> NoReturn:
    with contextlib.suppress(BaseException):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def wait(child: int, timeout: float) -> tuple[int, int]:
    """Exit code and peak memory of the fork; what it may have started ends with it. -SIGALRM when it takes too long."""
    descriptor = os.pidfd_open(child)
    ready, _, _ = select.select([descriptor], [], [], timeout)
    os.close(descriptor)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status) if ready else -signal.SIGALRM, usage.ru_maxrss * 1024


class ForkedWorkers:
    """Stands for the module `subprocess` where the pool starts its worker processes: they are forks of the command,
    which has no threads yet. What they run, how they are fed and how they end are the product's own. Once a pool has
    died, there are threads: its successors are new interpreters, with the same faults.
    """

    PIPE = subprocess.PIPE

    class Popen:
        is_first = True

        def __new__(cls, command: Sequence[str], **options: Any) -> Any:
            if cls.is_first:
                return super().__new__(cls)
            return subprocess.Popen([sys.executable, "-c", NEW_WORKERS], cwd=ROOT, **options)

        def __init__(self, command: Sequence[str], *, stdin: int, stdout: int, text: bool, env: Mapping[str, str]):
            ForkedWorkers.Popen.is_first = False
            assert (command[1:], stdin, stdout, text) == (["-P", "-m", WORKER], subprocess.PIPE, subprocess.PIPE, True)
            commands, feed = os.pipe()
            reports, out = os.pipe()
            self.returncode: int | None = None
            self.pid = os.fork()
            if not self.pid:
                work(commands, out, {feed, reports})
            os.close(commands)
            os.close(out)
            self.stdin, self.stdout = os.fdopen(feed, "w"), os.fdopen(reports)
            self._ended = threading.Lock()

        def kill(self) -> None:
            with self._ended:
                if self.returncode is None:
                    os.kill(self.pid, signal.SIGKILL)

        def wait(self) -> int:
            with contextlib.suppress(ChildProcessError):  # another thread waited, too, and was first
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            with self._ended:
                if self.returncode is None:
                    self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            return self.returncode


WORKER = "refinery.pipelines.runners.worker"
NEW_WORKERS = f"""
import json, os, sys
sys.path.insert(0, {str(ROOT)!r})
import tests.faults
from refinery.pipelines.runners import worker
tests.faults.apply(json.loads(os.environ.get(tests.faults.ARMED, "[]")))
worker.main()
"""


def work(commands: int, out: int, others: set[int]) -> NoReturn:
    """What a worker process does, in the fork."""
    import tests.faults
    from refinery.pipelines.runners import worker

    try:
        for number in others:
            os.close(number)
        os.dup2(commands, 0)
        os.dup2(out, 1)
        sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
        tests.faults.apply(json.loads(os.environ.get(tests.faults.ARMED, "[]")))
        worker.main()
    finally:
        leave(99)


if __name__ == "__main__":
    listen(Path(sys.argv[1]), sys.argv[2])
