"""A private Slurm on this machine: two nodes or more on loopback, for trying `refinery cluster slurm` and for tests.

    python -m tools.private_slurm          starts it, says how to use it, and ends it with Ctrl-C

Each node is a slurmd in process and host-name namespaces of its own, so the kernel ends all of a node's processes when
its first one is killed, and a node knows nothing of the processes of another one. Everything is in one temporary
folder, which is removed at the end. Needs Linux, root, and the programs of PROGRAMS.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel", "sinfo", "unshare")
ISOLATED = ("unshare", "--pid", "--uts", "--mount-proc", "--fork", "--kill-child")
PACKAGES = "apt-get install slurmctld slurmd slurm-client munge"  # Debian's names
START_SECONDS = 60.0
MOST_PATH = 80  # characters of the folder: a socket's path is short
PDEATHSIG = 1  # prctl: a signal when the parent is gone, also where that was killed

CONFIG = """\
ClusterName=private
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd-%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=batch_sched_delay=1,sched_interval=2,bf_interval=2,requeue_delay=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ReturnToService=2
SlurmdTimeout=15
KillWait=10
MaxArraySize={max_array}
{nodes}
PartitionName=main Nodes=ALL Default=YES State=UP MaxTime=INFINITE PriorityTier=1
PartitionName=urgent Nodes=ALL State=UP MaxTime=INFINITE PriorityTier=2
"""
NODE = "NodeName={name} NodeHostname={name} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} RealMemory=16000 State=UNKNOWN"


class NotHere(RuntimeError):
    """This machine lacks something; the message says what."""


def what_is_missing() -> str:
    """Why no Slurm can be started here; "" where it can."""
    if lacking := [name for name in PROGRAMS if shutil.which(name, path=search_path()) is None]:
        return f"{', '.join(lacking)} not found: {PACKAGES}"
    if os.geteuid() != 0:
        return "root is needed"
    tried = subprocess.run([*ISOLATED, "true"], capture_output=True, check=False)  # noqa: S603 - our own words
    return "" if tried.returncode == 0 else "unshare cannot make namespaces"


def search_path() -> str:
    """Daemons are often in folders that users do not have on their path."""
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


@dataclass
class PrivateSlurm:
    """A Slurm that runs while the context lasts. nodes: n1, n2, …, each with so many cpus. max_array: MaxArraySize."""

    nodes: int = 2
    cpus: int = 2
    max_array: int = 1001
    folder: Path = field(init=False)
    _running: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict, init=False)

    def __enter__(self) -> "PrivateSlurm":
        if missing := what_is_missing():
            raise NotHere(f"Slurm cannot be started here: {missing}")
        self.folder = Path(tempfile.mkdtemp(prefix="private-slurm-"))
        if len(str(self.folder)) > MOST_PATH:
            self.folder.rmdir()
            raise NotHere(f"{self.folder}: the path is too long for a socket; set TMPDIR")
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End all of its processes, nodes first, and remove the folder."""
        for name in [*self._names, "slurmctld", "munged"]:
            self._end(name)
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def environment(self) -> dict[str, str]:
        """For commands that are to use it."""
        ours = {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": search_path()}
        return {**os.environ, **ours}

    @property
    def _names(self) -> list[str]:
        return [f"n{number}" for number in range(1, self.nodes + 1)]

    def ask(self, *words: str) -> str:
        """What one of Slurm's commands prints. Raises CalledProcessError."""
        done = subprocess.run(  # noqa: S603 - a list of words, no shell
            words, env=self.environment, check=True, capture_output=True, text=True, timeout=30
        )
        return done.stdout

    def kill_node(self, name: str) -> None:
        """A node loses power: slurmd and all of its jobs are gone at once."""
        self._end(name)

    def start_node(self, name: str) -> None:
        """A node boots. Returns when jobs may go there."""
        # `hostname` is the namespace's own; slurmd stays in front, so the namespace ends with it.
        script = f"hostname {name} && exec slurmd -D -N {name}"
        self._run(name, *ISOLATED, "bash", "-c", script, parents_end=signal.SIGKILL)
        self._wait(f"node {name}", lambda: self.node_state(name) in ("idle", "mixed", "allocated"))

    def node_state(self, name: str) -> str:
        """As `sinfo` says: idle, allocated, down, …"""
        return self.ask("sinfo", "--noheader", "--nodes", name, "--partition=main", "--format=%T").strip().strip("*~#")

    def queue(self) -> list[tuple[str, str, str]]:
        """(id of the job, name, state) of every task in the queue."""
        listed = self.ask("squeue", "--noheader", "--array", "--format=%i %j %T")
        return [(words[0], words[1], words[2]) for line in listed.splitlines() if len(words := line.split()) == 3]

    def _start(self) -> None:
        for name in ("log", "state", "spool"):
            (self.folder / name).mkdir()
        ports = free_ports(2 + self.nodes)
        nodes = [
            NODE.format(name=name, port=port, cpus=self.cpus) for name, port in zip(self._names, ports[2:], strict=True)
        ]
        config = CONFIG.format(
            host=socket.gethostname().partition(".")[0],
            ports=ports,
            folder=self.folder,
            nodes="\n".join(nodes),
            max_array=self.max_array,
        )
        (self.folder / "slurm.conf").write_text(config)
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        places = {"key-file": "munge.key", "socket": "munge.socket", "pid-file": "munge.pid"}
        places |= {"log-file": "log/munged.log", "seed-file": "munge.seed"}
        files = [f"--{what}={self.folder / place}" for what, place in places.items()]
        self._run("munged", "munged", "--foreground", "--force", *files)
        self._wait("munged", (self.folder / "munge.socket").exists)
        self._run("slurmctld", "slurmctld", "-D", "-i")
        self._wait("slurmctld", lambda: "is UP" in self.ask("scontrol", "ping"))
        for name in self._names:
            self.start_node(name)

    def _run(self, name: str, *words: str, parents_end: int = signal.SIGTERM) -> None:
        with (self.folder / "log" / f"{name}.out").open("ab") as log:
            self._running[name] = subprocess.Popen(  # noqa: S603 - our own words, no shell
                words,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=lambda: ctypes.CDLL(None).prctl(PDEATHSIG, parents_end),
            )

    def _end(self, name: str) -> None:
        process = self._running.pop(name, None)
        if process is None:
            return
        if name in self._names:  # its first process, with which the kernel ends all others; `unshare` then ends itself
            for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
                os.kill(int(child), signal.SIGKILL)
        else:
            process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _wait(self, what: str, is_there: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            with contextlib.suppress(subprocess.SubprocessError):
                if is_there():
                    return
            time.sleep(0.2)
        logs = sorted((self.folder / "log").iterdir())
        said = "\n".join(f"{log.name}: {line}" for log in logs for line in log.read_text().splitlines()[-3:])
        raise RuntimeError(f"{what} did not come up in {START_SECONDS:.0f} s\n{said}")


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody listens on."""
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [int(each.getsockname()[1]) for each in found]


def usage(slurm: PrivateSlurm) -> Iterator[str]:
    yield f"Slurm runs on this machine: nodes {', '.join(slurm._names)}; partitions main (the default) and urgent."
    yield "In another shell, with this project's environment, after `make demo`:"
    yield f"  export SLURM_CONF={slurm.folder}/slurm.conf"
    yield "  sinfo"
    yield "  refinery cluster slurm recipes/demo.yaml --output out/slurm --tasks 4 --workers 1 --submit"
    yield "  refinery cluster status out/slurm --watch"
    yield "Ctrl-C here ends it, with all jobs, and removes its folder."


def main() -> int:
    """Run one until Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with PrivateSlurm() as slurm:
            print("\n".join(usage(slurm)), flush=True)
            while True:
                signal.pause()
    except NotHere as error:
        print(f"NO SLURM WAS STARTED: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nended")
    return 0


if __name__ == "__main__":
    sys.exit(main())
