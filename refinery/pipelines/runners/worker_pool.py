"""A pool of worker processes on this machine: `python -m refinery.pipelines.runners.worker_pool --help`.

It speaks the protocol of Beam's own pool (`apache_beam.runners.worker.worker_pool_main`). That one does not look at its
processes again, so an engine waits without end for a worker that died before it had connected. This one takes the
place of a worker that died: it answers what the engine asks with an error, and the job fails.
"""

import argparse
import atexit
import contextlib
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

import grpc
from apache_beam.portability.api import beam_fn_api_pb2 as api
from apache_beam.portability.api import beam_fn_api_pb2_grpc as services
from apache_beam.runners.worker.worker_id_interceptor import WorkerIdInterceptor
from apache_beam.utils import thread_pool_executor

from refinery.pipelines.runners.gone_workers import gone

WORKER = "refinery.pipelines.runners.pool_worker"
PINGS = (("grpc.http2.max_pings_without_data", 0), ("grpc.http2.max_ping_strikes", 0))  # as Beam's own pool
END_SECONDS = 5.0


class WorkerPool(services.BeamFnExternalWorkerPoolServicer):
    """Starts a process for each worker that an engine asks for, and looks after it until it ends."""

    def __init__(self, module: str = WORKER) -> None:
        self._module = module
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def StartWorker(self, request: Any, context: Any) -> Any:
        """Of the protocol."""
        command = [sys.executable, "-m", self._module, request.control_endpoint.url, request.worker_id]
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603 - a list of words, no shell
        except OSError as error:
            return api.StartWorkerResponse(error=f"no worker could be started: {error}")
        self._processes[request.worker_id] = process
        watch = (request.worker_id, request.control_endpoint.url, process)
        threading.Thread(target=self._watch, args=watch, daemon=True).start()
        return api.StartWorkerResponse()

    def StopWorker(self, request: Any, context: Any) -> Any:
        """Of the protocol."""
        if (process := self._processes.pop(request.worker_id, None)) is not None:
            end(process)
        return api.StopWorkerResponse()

    def stop_all(self) -> None:
        """End every worker."""
        for worker in [*self._processes]:
            if (process := self._processes.pop(worker, None)) is not None:
                end(process)

    def _watch(self, worker: str, control: str, process: "subprocess.Popen[bytes]") -> None:
        """Wait until a worker ends, and take its place where nobody asked for that."""
        code = process.wait()
        is_asked_for = self._processes.pop(worker, None) is None
        if code and not is_asked_for:
            answer_for(worker, control, how_it_ended(code))


def end(process: "subprocess.Popen[bytes]") -> None:
    """End a process, by force where it does not listen."""
    process.terminate()
    try:
        process.wait(timeout=END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


def how_it_ended(code: int) -> str:
    """In words, for the one who launched the job."""
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    perhaps = "; it may have run out of memory" if code == -signal.SIGKILL else ""
    return f"a worker of the pool ended with {how}{perhaps}"


def answer_for(worker: str, control: str, why: str) -> None:
    """Be a worker that is gone, until its engine needs it no more. One that had connected is known to be gone: engines
    let nobody else connect in its name."""
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
    with grpc.insecure_channel(control) as channel, contextlib.suppress(grpc.RpcError):
        stub = services.BeamFnControlStub(grpc.intercept_channel(channel, WorkerIdInterceptor(worker)))
        for asked in stub.Control(iter(answers.get, None)):
            answers.put(gone(asked.instruction_id, why))
    answers.put(None)  # the thread that sends them ends


def serve(pool: WorkerPool, address: str) -> tuple[grpc.Server, int]:
    """A server of the pool, and its port. Raises RuntimeError where the address is taken."""
    server = grpc.server(thread_pool_executor.shared_unbounded_instance(), options=PINGS)
    services.add_BeamFnExternalWorkerPoolServicer_to_server(pool, server)
    port: int = server.add_insecure_port(address)
    server.start()
    return server, port


def main(words: Sequence[str] | None = None) -> None:
    """Serve until interrupted or terminated."""
    parser = argparse.ArgumentParser(description="Worker processes for the jobs of an engine.")
    parser.add_argument("--service_port", type=int, required=True, metavar="PORT", help="where it listens")
    parser.add_argument(
        "--host",
        default="localhost",
        help="address to listen on (default: %(default)s). Whoever reaches it can run code here",
    )
    given = parser.parse_args(words)
    pool = WorkerPool()
    atexit.register(pool.stop_all)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        server, port = serve(pool, f"{given.host}:{given.service_port}")
    except RuntimeError as error:
        sys.exit(f"--service_port: {given.service_port}: {error}")
    print(f"worker pool at {given.host}:{port}", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        server.wait_for_termination()


if __name__ == "__main__":
    main()
