"""A job on a job service until it ends: counts for the display, a line where no worker comes, errors as one line."""

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import grpc
from apache_beam.portability.api import beam_job_api_pb2 as api
from apache_beam.runners.portability.portable_runner import PipelineResult, PortableMetrics

from refinery.pipelines.progress.work import OUTCOMES
from refinery.pipelines.runners.dataflow.error_lines import short_error
from refinery.pipelines.runners.dataflow.jobs import AGAIN, JobFailed
from refinery.pipelines.runners.portable.addresses import CONNECT_SECONDS, SERVICE, Address
from refinery.pipelines.runners.portable.launch import gone_server
from refinery.transforms.core.live import WORK

POLL_SECONDS = 5.0  # between requests for the counts
NO_WORKER_SECONDS = 60.0  # without a count, after which the user is told

WHAT_TO_CHECK = {
    "EXTERNAL": "does the pool's Python have Refinery and Beam of this version (`refinery --version` there), and can "
    "the pool reach the job service's ports? The pool's own output says why its workers end",
    "PROCESS": "does the command of --environment_config exist on every machine of the engine, and does it start a "
    "worker when it is run by hand?",
    "DOCKER": "can the engine's machines pull the image of --environment_config, and does it have this version of "
    "Refinery and Beam?",
    "LOOPBACK": "can the engine reach this machine? LOOPBACK workers run in this process",
}


class JobCounts:
    """Running totals of a job, "stage outcome" -> documents and "work unit" -> amount, asked for every POLL_SECONDS."""

    def __init__(self, result: PipelineResult) -> None:
        self._result = result
        self._asked = float("-inf")
        self._last: Counter[str] = Counter()
        self.is_working = False  # whether any worker has counted anything

    def totals(self) -> Counter[str]:
        """The last known totals; they stay as they are while the service does not answer."""
        if time.monotonic() >= self._asked + POLL_SECONDS:
            self._asked = time.monotonic()
            with contextlib.suppress(grpc.RpcError, ValueError):
                self._last = self._ask()
        return self._last

    def _ask(self) -> Counter[str]:
        request = api.GetJobMetricsRequest(job_id=self._result._job_id)
        answer: Any = self._result._job_service.GetJobMetrics(request, timeout=CONNECT_SECONDS)
        found: Counter[str] = Counter()
        for counter in PortableMetrics(answer).query()["counters"]:
            name = counter.key.metric
            self.is_working = True
            if name.name in ("in", *OUTCOMES) or name.namespace == WORK:
                found[f"{name.namespace} {name.name}"] += int(counter.attempted or counter.committed or 0)
        return found


@contextlib.contextmanager
def telling_of_missing_workers(
    counts: JobCounts, environment: str, say: Callable[[str], None], seconds: float = NO_WORKER_SECONDS
) -> Iterator[None]:
    """Inside, say once what to check if no worker has counted anything after so many seconds."""
    ended = threading.Event()

    def watch() -> None:
        if ended.wait(seconds):
            return
        counts.totals()
        if not counts.is_working:
            say(f"no worker has done anything for {seconds:.0f} s: {WHAT_TO_CHECK[environment]}")

    thread = threading.Thread(target=watch, daemon=True, name="missing workers")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def wait(result: PipelineResult, label: str, servers: Sequence[Address] = ()) -> None:
    """Return when the job is done. Raises JobFailed, one line and what to do, for every other end.

    servers: whose end would be the reason.
    """
    try:
        state = result.wait_until_finish()
    except grpc.RpcError as error:
        code = getattr(error, "code", lambda: None)()
        line = gone_server(servers) or f"{SERVICE} is gone ({getattr(code, 'name', 'no answer')})"
        raise JobFailed(f"{label}: {line}. {AGAIN}") from error
    except RuntimeError as error:
        line = gone_server(servers) or f"the job failed: {short_error(str(error))}"
        raise JobFailed(f"{label}: {line}. {AGAIN}") from error
    if state != "DONE":
        raise JobFailed(f"{label}: the job ended as {state}. {AGAIN}")
