"""One worker process of the local runner: `python -m refinery.pipelines.runners.worker`, started by local_runner.py.

It stays for all jobs of a run, so that imports and models load once. Commands come as JSON lines on standard input
({"control": address, "id": worker id, "capabilities": […], "folders": of the user's own stages}); totals for the
progress display, and the files that are being read, go out as JSON lines on the original standard output. It exits
when its standard input ends, so a killed launcher leaves no workers behind.
"""

import contextlib
import json
import logging
import os
import shutil
import signal
import sys
import threading
from collections import Counter
from typing import Any

from apache_beam.runners.worker import sdk_worker

import refinery.pipelines.recipe.graphs  # noqa: F401 - what jobs need is loaded while the launcher still prepares
from refinery.pipelines.recipe.recipe import find_lane, lane_names
from refinery.transforms.core import live
from refinery.transforms.core.live import LIVE, live_totals

REPORT_SECONDS = 0.1
STATE_CACHE_BYTES = 100 << 20

# Beam 2.77 can flush its data buffers by time from a second thread, under a lock that writing does not take: an element
# written between that flush's copy and its clearing of the buffer is lost. (FnApiRunner's own workers do so every
# second.) Here buffers are flushed by size and at the end of a bundle only.
NO_TIMED_FLUSH = 0


def serve(control: str, worker_id: str, capabilities: list[str], ended: threading.Event) -> None:
    """Process one job until its runner closes the control channel; then the launcher waits for its last totals."""
    sdk_worker.SdkHarness(
        control,
        worker_id=worker_id,
        state_cache_size=STATE_CACHE_BYTES,
        data_buffer_time_limit_ms=NO_TIMED_FLUSH,
        runner_capabilities=frozenset(capabilities),
    ).run()
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


def main() -> None:
    """Read commands until standard input ends, then exit at once, whatever still runs."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # nothing that a library prints may get into the protocol
    # The launcher reports failures and handles Ctrl-C; here both would only add noise. Beam's harness also prints the
    # traceback that it sends to the launcher: pages, before the one line that names the cause.
    logging.basicConfig(level=logging.CRITICAL)
    sdk_worker.print = lambda *_, **__: None
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    reports = Reports(out)
    live.watch_reading = reports.send_files
    threading.Thread(target=reports.send_totals, daemon=True).start()
    for name in lane_names():  # loaded before the first job, which is of one of them
        find_lane(name)
    for line in sys.stdin:
        command = json.loads(line)
        sys.path += [folder for folder in command["folders"] if folder not in sys.path]
        arguments = (command["control"], command["id"], command["capabilities"], reports.ended)
        threading.Thread(target=serve, args=arguments, daemon=True).start()
    for folder in sys.argv[1:]:  # the launcher is gone, else it would have ended this process
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


if __name__ == "__main__":
    main()
