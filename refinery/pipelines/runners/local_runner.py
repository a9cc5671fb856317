"""The default runner: Beam's FnApiRunner with one long-lived worker process per core.

Beam's own multi-process mode starts new interpreters for every job. A run has many jobs (waves and phases), so this
pool keeps its processes, with their imports and models, and gives them each job's control address. Data between workers
crosses by files (transforms/core/exchange/on_disk.py); what goes through this process are names and counts.
"""

import contextlib
import gc
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions
from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner
from apache_beam.runners.portability.fn_api_runner.worker_handlers import (
    FNAPI_RUNNER_CAPABILITIES,
    GrpcWorkerHandler,
    WorkerHandler,
)
from apache_beam.transforms import environments

import refinery
from refinery.pipelines.runners.beam_settings import settle
from refinery.pipelines.runners.forked_pool import GIVE_BACK, ForkedProcess, take_fork
from refinery.pipelines.runners.quiet_channels import quieten_channels
from refinery.pipelines.shell.interrupts import interrupts_blocked
from refinery.transforms.core.safe_text import printable

SETTLE_SECONDS = 0.5

settle()
POOL_URN = "refinery:env:pool:v1"


def worker_environment() -> dict[str, str]:
    """The launcher's environment, with this copy of the package first on PYTHONPATH, and memory given back."""
    root = str(Path(refinery.__file__).parents[1])
    paths = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    return {**GIVE_BACK, **os.environ, "PYTHONPATH": paths}


@dataclass(frozen=True)
class Death:
    """How a worker process ended. advice: what to do. files: input files that it was reading. record: stage and origin
    of the record that it had in hand, where workers name it."""

    what: str
    advice: str = ""
    files: tuple[str, ...] = ()
    record: tuple[str, str] | None = None


class WorkerDied(RuntimeError):
    """A worker process ended while a job ran."""

    def __init__(self, death: Death) -> None:
        super().__init__("; ".join(filter(None, (death.what, death.advice))))
        self.death = death


class WorkerPool:
    """`size` worker processes. Use as a context manager; leaving it ends the processes at once.

    `totals()` sums what the workers last reported: "stage outcome" -> documents.
    """

    def __init__(self, size: int) -> None:
        # Otherwise gRPC sends the control channel between these processes through a configured HTTP proxy.
        os.environ.setdefault("no_grpc_proxy", "localhost,127.0.0.1,::1")
        self.size = size
        self.folders: list[str] = []  # where workers find modules of the user's own stages
        self.scratch = ""  # where they have their temporary files; they remove it when their launcher is gone
        self._next = 0
        self._reports: list[dict[str, int]] = [{} for _ in range(size)]
        self._stopping = False
        self.died = threading.Event()
        self.death = Death("")
        self.names_records = False  # whether workers note the record that they have in hand
        self._reading: list[list[str]] = [[] for _ in range(size)]
        self._pids: list[int] = []
        self._forked = threading.Event()
        self._process = self._start()
        self._send({"workers": size})
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        quieten_channels()

    @staticmethod
    def _start() -> subprocess.Popen[str] | ForkedProcess:
        """The process that imports everything and forks the workers: a fork of a command, else a new interpreter."""
        if take_fork():
            from refinery.pipelines.runners import worker

            worker.load()
            gc.freeze()  # hardly any of what was imported is garbage, and the collector would look through it all
            with interrupts_blocked():
                return ForkedProcess(worker.main, worker_environment())
        with interrupts_blocked():  # -P: no code from the working directory
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "refinery.pipelines.runners.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=worker_environment(),
            )

    def __enter__(self) -> "WorkerPool":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """End the processes, and wait until they are gone: they all hold the pipe to which the listener listens."""
        self._stopping = True
        logging.getLogger("apache_beam").setLevel(logging.CRITICAL)  # channels are expected to break now
        for pid in self._pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        self._listener.join()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    @property
    def ended(self) -> bool:
        """Whether `end` was called."""
        return self._stopping

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers, once they are there. Raises WorkerDied where they cannot be."""
        self._forked.wait()
        if not self._pids:
            raise WorkerDied(self.death)
        return list(self._pids)

    @property
    def processes(self) -> list[int]:
        """Process ids of all that is there by now, the process that the workers share memory with first."""
        return [self._process.pid, *self._pids]

    def assign(self, control: str, worker_id: str) -> None:
        """Give a job's control address to the next process in turn."""
        command = {"control": control, "id": worker_id, "capabilities": sorted(FNAPI_RUNNER_CAPABILITIES)}
        if self.died.is_set():
            raise WorkerDied(self.death)
        more = {"folders": self.folders, "scratch": self.scratch, "names_records": self.names_records}
        self._send({"worker": self._next % self.size, **more, **command})
        self._next += 1

    def settle(self) -> None:
        """Wait, briefly, until the workers have reported their last totals of all jobs assigned to them."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while self.totals()["jobs ended"] < self._next and time.monotonic() < deadline:
            time.sleep(0.01)

    def totals(self) -> Counter[str]:
        """Running totals over all workers, for display only."""
        total: Counter[str] = Counter()
        for report in self._reports:
            total.update(report)
        return total

    def _send(self, line: Any) -> None:
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # its end is noticed where it is listened to
                self._process.stdin.write(json.dumps(line) + "\n")
                self._process.stdin.flush()

    def _listen(self) -> None:
        for line in self._process.stdout or ():
            told = json.loads(line)
            if "pids" in told:
                self._pids = told["pids"]
                self._forked.set()
            elif "code" in told:
                reading = self._reading[told["worker"]]
                self._note_death(f"worker process {told['worker']}", told["code"], reading, told["in_hand"])
            elif "reading" in told["said"]:
                self._reading[told["worker"]] = told["said"]["reading"]
            else:
                self._reports[told["worker"]] = told["said"]
        self._note_death("the process of the workers", self._process.wait(), [])
        self._forked.set()

    def _note_death(self, who: str, code: int, reading: Sequence[str], in_hand: Sequence[str] | None = None) -> None:
        if not self._stopping and not self.died.is_set():
            logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
            while_ = f" while it read {', '.join(map(printable, reading))}" if reading else ""
            record = None
            if in_hand:
                record = in_hand[0], in_hand[1]
                while_ += f", at the record {printable(record[1])} in the stage {record[0]}"
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            fewer = "; fewer --workers take less memory" if code == -signal.SIGKILL else ""
            advice = f"run the same command again{fewer}"
            self.death = Death(f"{who} ended with {how}{while_}", advice, tuple(reading), record)
            self.died.set()


_pool: WorkerPool | None = None  # the pool behind POOL_URN while run_local runs


@WorkerHandler.register_environment(POOL_URN, bytes)
class _PooledWorkerHandler(GrpcWorkerHandler):
    def __init__(self, payload: bytes, state: Any, provision_info: Any, grpc_server: Any) -> None:
        super().__init__(state, provision_info, grpc_server)

    def start_worker(self) -> None:
        if _pool is None:
            raise WorkerDied(Death("the pool of worker processes is closed"))
        _pool.assign(self.control_address, self.worker_id)

    def stop_worker(self) -> None:
        """The process stays for the next job; closing the control channel ends this job's harness."""


@environments.Environment.register_urn(POOL_URN, bytes)
class _PoolEnvironment(environments.Environment):
    def to_runner_api_parameter(self, context: Any) -> tuple[str, bytes]:
        return POOL_URN, b""

    @staticmethod
    def from_runner_api_parameter(
        payload: Any, capabilities: Any, artifacts: Any, resource_hints: Any, context: Any
    ) -> "_PoolEnvironment":
        return _PoolEnvironment(capabilities, artifacts, resource_hints)


def run_local(
    pipeline: beam.Pipeline, pool: WorkerPool | None, options: PipelineOptions, scratch: Path | None = None
) -> None:
    """Run a built pipeline to its end, on the pool's processes or (None) inside this process. scratch: of
    `scratch_space`, where its temporary files go.

    Raises what the job raises; WorkerDied when a worker process ends (killed, out of memory), which Beam itself would
    wait for indefinitely. Ctrl-C interrupts the wait; leaving the pool then ends the workers.
    """
    global _pool
    if pool is None:
        FnApiRunner().run_pipeline(pipeline, options).wait_until_finish()
        return
    _pool = pool
    pool.scratch = str(scratch or "")
    environment = _PoolEnvironment(artifacts=(), capabilities=environments.python_sdk_capabilities())
    runner = FnApiRunner(default_environment=environment)
    outcome: list[BaseException | None] = []
    done = threading.Event()

    def work() -> None:
        try:
            runner.run_pipeline(pipeline, options).wait_until_finish()
            outcome.append(None)
        except BaseException as error:  # noqa: BLE001 - crosses the thread to the caller
            outcome.append(error)
        done.set()

    threading.Thread(target=work, daemon=True).start()
    while not done.wait(0.05):
        if pool.died.is_set():
            raise WorkerDied(pool.death)
    if outcome[0] is not None:
        raise outcome[0]
    pool.settle()


def repeats(options: PipelineOptions) -> bool:
    """Whether these options have Beam replay every bundle."""
    return bool(options.view_as(DirectOptions).direct_runner_bundle_repeat)


def local_options(workers: int, flags: list[str]) -> PipelineOptions:
    """Beam options of the local runner: `workers` processes (0: in this process) and any further Beam flags."""
    return PipelineOptions([*flags, f"--direct_num_workers={max(1, workers)}"])
