"""The launch of a job on a job service: what Beam 2.77 does otherwise there, and errors as one line."""

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.error import URLError

import grpc
from apache_beam.portability.api import beam_job_api_pb2_grpc as services
from apache_beam.runners.portability.job_server import ExternalJobServer
from apache_beam.runners.portability.portable_runner import JobServiceHandle

from refinery.pipelines.runners.dataflow.error_lines import cut
from refinery.pipelines.runners.dataflow.jobs import AGAIN, JobFailed
from refinery.pipelines.runners.portable.addresses import SERVICE, Address, no_answer

# Before the user's own flags, so that these count. Beam waits five minutes for a job service, and runs `pip freeze` for
# each job, to log what it says.
LAUNCH_FLAGS = ("--job_server_timeout=60", "--experiments=disable_logging_submission_environment")
LOOK_SECONDS = 0.5  # between two looks whether a job service that is waited for is still there
NOT_STARTED = "Service failed to start up"  # Beam's words where a server that it starts ends at once


class ServiceGone(RuntimeError):
    """Nobody listens at the address of a job service."""


def settle_launches() -> None:
    """Set both, in this process. As often as you like.

    A job service that dies while a job is launched is not waited for. The streams that tell how a job goes on last as
    long as the job: Beam gives them the time limit of the launch (`--job_server_timeout`), and then reports a failure.
    """
    if getattr(JobServiceHandle.run, "has_no_limit", False):
        return
    before = JobServiceHandle.run

    def run(self: Any, preparation: str) -> Any:
        self.timeout = None
        return before(self, preparation)

    run.has_no_limit = True  # type: ignore[attr-defined]  # marks our own function
    JobServiceHandle.run = run
    ExternalJobServer.start = lambda self: connected(self._endpoint, self._timeout)


def connected(endpoint: str, seconds: float | None) -> Any:
    """A client of the job service there, once it is ready. Raises ServiceGone as soon as nobody listens at the address,
    and grpc.FutureTimeoutError where somebody does and is not ready in that time."""
    channel = grpc.insecure_channel(endpoint)
    ready = grpc.channel_ready_future(channel)
    latest = float("inf") if seconds is None else time.monotonic() + seconds
    try:
        while True:
            with contextlib.suppress(grpc.FutureTimeoutError):
                ready.result(timeout=LOOK_SECONDS)
                return services.JobServiceStub(channel)
            if why := no_answer(endpoint):
                raise ServiceGone(is_gone(SERVICE, endpoint, why))
            if time.monotonic() > latest:
                raise grpc.FutureTimeoutError
    except BaseException:
        ready.cancel()
        channel.close()
        raise


def gone_server(servers: Sequence[Address]) -> str:
    """What to say of the first of these that nobody reaches; "" where all answer."""
    for server in servers:
        if why := no_answer(server.value):
            return is_gone(server.what, server.value, why)
    return ""


def is_gone(what: str, address: str, why: str) -> str:
    """In words."""
    return f"{what} at {address} is gone ({why}). Start it again"


@contextlib.contextmanager
def launching(label: str, servers: Sequence[Address] = ()) -> Iterator[None]:
    """Raises JobFailed, one line, where the job service does not take the job, or cannot be started or downloaded.

    servers: that were started before; one may have died since the last job.
    """
    if line := gone_server(servers):
        raise JobFailed(f"{label}: {line}. {AGAIN}")
    try:
        yield
    except ServiceGone as error:
        raise JobFailed(f"{label}: {error}. {AGAIN}") from error
    except (grpc.RpcError, grpc.FutureTimeoutError, URLError) as error:
        why = getattr(error, "details", lambda: "")() or str(error) or type(error).__name__
        line = gone_server(servers) or f"the job could not be launched: {cut(why)}"
        raise JobFailed(f"{label}: {line}. {AGAIN}") from error
    except RuntimeError as error:
        if not str(error).startswith(NOT_STARTED):
            raise
        raise JobFailed(f"{label}: the job service that the runner starts ended at once. {AGAIN}") from error
