"""Runs of which something is killed: what there is to kill on each engine, and how it is found and started again."""

import itertools
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from refinery.transforms.core.names import PHASES
from tests.engines.engines import (
    JOB_SERVICE,
    LOOPBACK,
    POOL,
    POOL_WORKER,
    PRISM,
    WITH_PRISM,
    free_port,
    pool_flags,
    serve,
    service_flags,
)
from tests.sampling import seed

LAUNCHER, WORKER, SERVICE, PRISM_ITSELF = "launcher", "worker", "job service", "Prism"
STARTING, POOL_ITSELF = "starting worker", "pool"  # a worker that has not connected yet; the process that starts them
POLL_SECONDS = 0.01
MOST_SECONDS = 300.0  # until something that must happen has happened, on a busy machine
LATEST = 0.7  # of the time that a phase takes on the local runner, which is the fastest
MARK = "REFINERY_TEST_OF_KILLS"  # a variable: every process of a cell has it, and is found by it
SLICES = [
    ["--slices=2", "--until=cut"],
    *(
        [f"--slice={number}/{tasks}", f"--until={step}"]
        for step, tasks in (("clean", 2), ("dedup", 2), ("shards-0", 2), ("shards-1", 2))
        for number in range(1 if step == "dedup" else tasks)
    ),
    ["--until=publish"],
]


@dataclass(frozen=True)
class Setting:
    """An engine, and what can die of it. servers: names of what runs beside the command."""

    name: str
    victims: tuple[str, ...]
    flags: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    sliced: bool = False

    @property
    def has_pool(self) -> bool:
        return POOL_ITSELF in self.servers

    @property
    def uses_prism(self) -> bool:
        return PRISM_ITSELF in self.victims


SETTINGS = (
    Setting("local", (LAUNCHER, WORKER), ("--workers=2",)),
    Setting("slices", (LAUNCHER, WORKER), ("--workers=2",), sliced=True),
    Setting("DirectRunner", (LAUNCHER,), ("--runner=DirectRunner",)),
    Setting("job service, loopback", (LAUNCHER, SERVICE), (LOOPBACK,), (SERVICE,)),
    Setting("job service, pool", (LAUNCHER, WORKER, STARTING, POOL_ITSELF, SERVICE), (), (SERVICE, POOL_ITSELF)),
    Setting("Prism, loopback", (LAUNCHER, PRISM_ITSELF), WITH_PRISM),
    Setting("Prism, pool", (LAUNCHER, WORKER, STARTING, POOL_ITSELF, PRISM_ITSELF), WITH_PRISM, (POOL_ITSELF,)),
)


@dataclass(frozen=True)
class Cell:
    """A run of the matrix: of `setting`, `victim` dies in `phase`."""

    setting: Setting
    victim: str
    phase: str

    def __str__(self) -> str:
        return f"{self.setting.name}, {self.victim} dies in {self.phase}"

    @property
    def share(self) -> float:
        """How far into the phase: another one on every commit."""
        return 0 if self.victim == STARTING else random.Random(f"{seed()} {self}").uniform(0, LATEST)


CELLS = [
    Cell(setting, victim, phase) for setting in SETTINGS for victim, phase in itertools.product(setting.victims, PHASES)
]


def processes(mark: str) -> dict[int, str]:
    """Process id -> command line, of the processes with this mark in their environment."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:  # it has just ended, or is a zombie
            continue
    return found


def parent(process: int) -> int:
    """0 where it is gone."""
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def is_connected(process: int) -> bool:
    """Whether it has a socket; a worker of a pool first imports for seconds."""
    try:
        return any(os.readlink(file).startswith("socket:") for file in Path(f"/proc/{process}/fd").iterdir())
    except OSError:
        return False


def wait_until(what: str, is_so: Callable[[], object]) -> None:
    """Raises AssertionError where time is up."""
    deadline = time.monotonic() + MOST_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, f"{what}: not within {MOST_SECONDS:.0f} s"
        time.sleep(POLL_SECONDS)


@dataclass
class Beside:
    """The servers of a setting. They keep their ports when they are started again."""

    setting: Setting
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    earlier: set[int] = field(default_factory=set)  # processes that were there before the phase: of jobs that end

    def __enter__(self) -> "Beside":
        self.ports = {name: free_port() for name in self.setting.servers}
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.start_missing()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.running.values():
            process.terminate()
            process.wait(timeout=60)

    def start_missing(self) -> None:
        modules = {SERVICE: JOB_SERVICE, POOL_ITSELF: POOL}
        for name, port in self.ports.items():
            if name not in self.running or self.running[name].poll() is not None:
                self.running[name] = serve(*modules[name], port, {MARK: self.mark})

    @property
    def flags(self) -> list[str]:
        """Of the command."""
        found = [*self.setting.flags]
        if SERVICE in self.ports:
            found += service_flags(f"localhost:{self.ports[SERVICE]}")
        if POOL_ITSELF in self.ports:
            found += pool_flags(f"localhost:{self.ports[POOL_ITSELF]}", 2)
        return found

    def launch(self, folder: Path, words: Sequence[str], output: Path) -> "subprocess.Popen[bytes]":
        """`refinery …`, whose output goes to a file."""
        command = [sys.executable, "-m", "refinery", *words]
        environment = {**os.environ, MARK: self.mark}
        with output.open("wb") as file:
            return subprocess.Popen(command, cwd=folder, env=environment, stdout=file, stderr=subprocess.STDOUT)

    def note_phase(self) -> None:
        """A phase begins: a pool has workers of its own for it."""
        self.earlier = set(processes(self.mark))

    def victims(self, name: str, launcher: int) -> Iterator[int]:
        """Process ids of what has that name, as far as it is there by now."""
        if name == LAUNCHER:
            yield launcher
        elif name in self.running:
            yield self.running[name].pid
        elif name == PRISM_ITSELF:
            yield from (pid for pid, line in processes(self.mark).items() if line.startswith(str(PRISM)))
        elif self.setting.has_pool:
            mine = {*self.pool_workers()} - self.earlier
            yield from (pid for pid in mine if is_connected(pid) == (name == WORKER))
        else:  # workers of the local runner are forked by a process of their own
            mine = processes(self.mark)
            yield from (pid for pid in mine if parent(parent(pid)) == launcher)

    def pool_workers(self) -> list[int]:
        """Process ids of workers of a pool, also of one that is gone."""
        return [pid for pid, line in processes(self.mark).items() if f" {POOL_WORKER} " in line]

    def kill(self, name: str, launcher: "subprocess.Popen[bytes]") -> bool:
        """Kill one process of that name, as the out-of-memory killer does it, once there is one. False where the
        command ended before."""
        deadline = time.monotonic() + MOST_SECONDS
        while launcher.poll() is None:
            for pid in self.victims(name, launcher.pid):
                os.kill(pid, signal.SIGKILL)
                return True
            assert time.monotonic() < deadline, f"no {name} to kill in {MOST_SECONDS:.0f} s"
            time.sleep(POLL_SECONDS)
        return False


def is_begun(work: Path, phase: str) -> bool:
    """Whether a phase of a run has begun: its first file is a list of what it reads."""
    return any(work.glob(f"{phase}/list-*"))


def is_over(work: Path, phase: str) -> bool:
    return (work / f"{phase}.json").exists()


def phase_seconds(work: Path, phase: str) -> float:
    """How long a phase of a finished run took, by its files."""
    began = min(path.stat().st_mtime for path in work.glob(f"{phase}/list-*"))
    return (work / f"{phase}.json").stat().st_mtime - began
