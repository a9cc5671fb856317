"""The worker processes of the local runner, which local_runner.py starts.

They are `python -m refinery.pipelines.runners.worker`, or `main` in a fork of the command (forked_pool.py). One process
imports everything and then forks the workers, which share its memory: a worker more costs what it works on, not what it
imports. The first line of standard input says how many ({"workers": number}). They stay for all jobs of a run, so
models load once. Commands come as JSON lines on standard input ({"worker": number, "control": address, "id": worker id,
"capabilities": […], "folders": [of the user's own stages], "scratch": "for temporary files", "names_records": whether
it notes the record that it has in hand}) and are passed to that worker. Totals for the progress display, and the files
that are being read, come back as JSON lines on the original standard output ({"worker": number, "said": …}), and so
does a worker's end ({"worker": number, "code": exit code, "in_hand": [stage, origin] or null}). All processes exit when
their standard input ends, so a killed launcher leaves no workers behind, and no temporary files.
"""

import contextlib
import gc
import importlib
import json
import logging
import os
import select
import shutil
import signal
import sys
import tempfile
import threading
import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import IO, Any

from apache_beam.runners.worker import sdk_worker

import refinery.pipelines.recipe.graphs  # noqa: F401 - what jobs need is loaded while the launcher still prepares
from refinery.pipelines.recipe.recipe import find_lane, lane_names
from refinery.pipelines.runners.beam_memory import remember_what_never_changes
from refinery.pipelines.runners.quick_pickles import read_quick_pickles
from refinery.pipelines.runners.timed_flush import NO_TIMED_FLUSH
from refinery.transforms.core import live
from refinery.transforms.core.live import LIVE, Hand, live_totals
from refinery.transforms.redaction.secret_types.find import find as find_secrets
from refinery.transforms.statistics.artefacts import find_artefacts

REPORT_SECONDS = 0.1
STATE_CACHE_BYTES = 100 << 20
LATE = ("numpy.ma", "pyarrow.dataset")  # which numpy and Arrow would import in every worker, when they first need them


def serve(control: str, worker_id: str, capabilities: list[str], ended: threading.Event) -> None:
    """Process one job until its runner closes the control channel; then the launcher waits for its last totals."""
    sdk_worker.SdkHarness(
        control,
        worker_id=worker_id,
        state_cache_size=STATE_CACHE_BYTES,
        data_buffer_time_limit_ms=NO_TIMED_FLUSH,
        runner_capabilities=frozenset(capabilities),
    ).run()
    live.forget_files()
    LIVE["jobs", "ended"] += 1
    ended.set()


class Reports:
    """What goes to the launcher, a line each: running totals ten times a second and at once where a job has `ended`,
    and the files that are read at once, since what a file does to a process may be over within a tenth of a second.
    """

    def __init__(self, out: Any) -> None:
        self.out = out
        self.lock = threading.Lock()
        self.ended = threading.Event()

    def send(self, line: Any) -> None:
        """Raises OSError when the launcher is gone; this process exits with its standard input."""
        with self.lock:
            print(json.dumps(line), file=self.out, flush=True)

    def send_files(self, paths: list[str]) -> None:
        with contextlib.suppress(OSError):
            self.send({"reading": paths})

    def send_totals(self) -> None:
        """Until the launcher is gone."""
        last: Counter[str] = Counter()
        with contextlib.suppress(OSError):
            while True:
                self.ended.wait(REPORT_SECONDS)
                self.ended.clear()
                totals = live_totals()
                if totals != last:
                    last = totals
                    self.send(totals)


def work(commands: IO[str], out: IO[str], hand: Hand) -> None:
    """Be one worker: follow commands until they end, then exit at once, whatever still runs. hand: shared with the
    process that forked this one."""
    reports = Reports(out)
    live.watch_reading = reports.send_files
    threading.Thread(target=reports.send_totals, daemon=True).start()
    for line in commands:
        command = json.loads(line)
        sys.path += [folder for folder in command["folders"] if folder not in sys.path]
        tempfile.tempdir = command["scratch"] or None
        live.hand = hand if command["names_records"] else None
        arguments = (command["control"], command["id"], command["capabilities"], reports.ended)
        threading.Thread(target=serve, args=arguments, daemon=True).start()
    os._exit(0)


@dataclass
class Forked:
    """A worker as the process that forked it sees it. feed, reports: descriptors of pipes. hand: its record in hand.
    rest: of a line. ended: whether it has been waited for, so its number may be another process' by now."""

    pid: int
    feed: int
    reports: int
    hand: Hand = field(repr=False)
    rest: bytes = b""
    ended: bool = False


def fork_worker(others: list[Forked]) -> Forked:
    """A new worker, which has none of the pipes of the others."""
    commands, feed = os.pipe()
    reports, out = os.pipe()
    hand = Hand()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # no thread of Python's runs yet
        pid = os.fork()
    if not pid:
        for descriptor in (0, feed, reports, *(number for other in others for number in (other.feed, other.reports))):
            os.close(descriptor)
        try:
            work(os.fdopen(commands), os.fdopen(out, "w"), hand)
        finally:
            os._exit(1)
    os.close(commands)
    os.close(out)
    return Forked(pid, feed, reports, hand)


def hand_on(workers: list[Forked], out: IO[str], folders: set[str]) -> None:
    """Lines of standard input to the worker that each is for, lines of workers to `out`, until standard input ends.
    folders: gets those of temporary files. Raises BrokenPipeError where the launcher is gone."""
    rest = b""
    by_descriptor = {worker.reports: number for number, worker in enumerate(workers)}
    while True:
        ready, _, _ = select.select([0, *by_descriptor], [], [])
        for descriptor in ready:
            data = os.read(descriptor, 1 << 16)
            if descriptor == 0:
                if not data:
                    return
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    command = json.loads(line)
                    folders.update(filter(None, [command["scratch"]]))
                    with contextlib.suppress(BrokenPipeError):  # a worker that died is reported by its own pipe
                        os.write(workers[command["worker"]].feed, line + b"\n")
                continue
            number = by_descriptor[descriptor]
            worker = workers[number]
            if not data:
                code = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
                worker.ended = True
                del by_descriptor[descriptor]
                end = {"worker": number, "code": code, "in_hand": worker.hand.read()}
                print(json.dumps(end), file=out, flush=True)
                continue
            *lines, worker.rest = (worker.rest + data).split(b"\n")
            for line in lines:
                print(f'{{"worker": {number}, "said": {line.decode()}}}', file=out)
            out.flush()


def load() -> None:
    """What the first job needs, which is of one of the lanes; workers share what is loaded before they are forked."""
    for name in lane_names():
        find_lane(name)
    for name in LATE:
        importlib.import_module(name)


def prepare_tables() -> None:
    """Tables that nearly every run needs: made once, while the launcher still prepares, and shared by the workers."""
    find_secrets(b"", frozenset())
    find_artefacts(b"")


def main() -> None:
    """Fork the workers that the first line asks for, and hand lines on until standard input ends."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # nothing that a library prints may get into the protocol
    # The launcher reports failures and handles Ctrl-C; here both would only add noise. Beam's harness also prints the
    # traceback that it sends to the launcher: pages, before the one line that names the cause.
    logging.basicConfig(level=logging.CRITICAL, force=True)
    sdk_worker.print = lambda *_, **__: None
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    read_quick_pickles()
    remember_what_never_changes()
    load()
    prepare_tables()
    asked = json.loads(_first_line())
    gc.freeze()  # what workers share stays shared: the collector would write to it
    workers: list[Forked] = []
    for _ in range(asked["workers"]):
        workers.append(fork_worker(workers))
    folders: set[str] = set()
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps({"pids": [worker.pid for worker in workers]}), file=out, flush=True)
        hand_on(workers, out, folders)
    left = [worker.pid for worker in workers if not worker.ended]
    for pid in left:  # the launcher is gone, or wants this to end
        os.kill(pid, signal.SIGKILL)
    for pid in left:  # until then they write, and make folders anew
        os.waitpid(pid, 0)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def _first_line() -> bytes:
    """Up to the first line break of standard input, and no byte more: `select` says nothing of what is buffered."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            os._exit(0)
        line += byte
    return line


if __name__ == "__main__":
    main()
