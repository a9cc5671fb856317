"""Workers that die, before they have connected or later: their job service and its worker pool answer for them."""

import queue
import signal
import sys
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from apache_beam.portability.api import beam_fn_api_pb2 as api
from apache_beam.portability.api import beam_fn_api_pb2_grpc as services
from apache_beam.runners.portability.fn_api_runner.worker_handlers import BeamFnControlServicer
from apache_beam.runners.worker.worker_id_interceptor import WorkerIdInterceptor
from apache_beam.utils import thread_pool_executor

from refinery.pipelines.runners import worker_pool
from refinery.pipelines.runners.dataflow.error_lines import short_error
from refinery.pipelines.runners.gone_workers import FailingConnection, gone
from refinery.pipelines.runners.worker_pool import WorkerPool, how_it_ended

WORKER = "worker_7"
SECONDS = 60.0  # after which a test fails that would hang


@pytest.fixture
def control() -> Iterator[tuple[BeamFnControlServicer, str]]:
    """The side of a job service that gives workers their instructions, and its address."""
    servicer = BeamFnControlServicer(None)
    servicer._connections_by_worker_id.default_factory = FailingConnection
    server = grpc.server(thread_pool_executor.shared_unbounded_instance())
    services.add_BeamFnControlServicer_to_server(servicer, server)
    port = server.add_insecure_port("localhost:0")
    server.start()
    yield servicer, f"localhost:{port}"
    servicer.get_conn_by_worker_id(WORKER).close()
    server.stop(0).wait()


def ask(servicer: BeamFnControlServicer) -> Any:
    """An instruction for the worker; its answer is to come."""
    return servicer.get_conn_by_worker_id(WORKER).push(api.InstructionRequest())


def start(pool: WorkerPool, address: str) -> Any:
    return pool.StartWorker(api.StartWorkerRequest(worker_id=WORKER, control_endpoint={"url": address}), None)


def test_what_a_worker_leaves_open_is_answered(control: tuple[BeamFnControlServicer, str]) -> None:
    """It has answered one instruction, and is cut off: the others fail, and so does what is asked later."""
    servicer, address = control
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
    first, second = ask(servicer), ask(servicer)
    with grpc.insecure_channel(address) as channel:
        stub = services.BeamFnControlStub(grpc.intercept_channel(channel, WorkerIdInterceptor(WORKER)))
        stream = stub.Control(iter(answers.get, None))
        answers.put(api.InstructionResponse(instruction_id=next(stream).instruction_id))
        assert first.get(SECONDS).error == ""
        stream.cancel()
    answers.put(None)
    for future in (second, ask(servicer)):
        assert "a worker is gone" in future.get(SECONDS).error


@pytest.mark.parametrize("asked", ["before", "after"])
def test_a_pool_answers_for_a_worker_that_dies_before_it_connects(
    control: tuple[BeamFnControlServicer, str], asked: str, capfd: pytest.CaptureFixture[str]
) -> None:
    servicer, address = control
    pool = WorkerPool(module="refinery.no_such_module")
    futures = [ask(servicer)] if asked == "before" else []
    assert start(pool, address).error == ""
    for future in [*futures, ask(servicer), ask(servicer)]:
        assert "a worker of the pool ended with exit code 1" in future.get(SECONDS).error
    assert "No module named" in capfd.readouterr().err  # what a worker prints is the pool's


def test_a_worker_that_is_stopped_is_not_answered_for(
    control: tuple[BeamFnControlServicer, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answered: list[str] = []
    monkeypatch.setattr(worker_pool, "answer_for", lambda worker, *_: answered.append(worker))
    pool = WorkerPool(module="asyncio")  # it reads from its input; a worker of this pool has none
    for stop in (lambda: pool.StopWorker(api.StopWorkerRequest(worker_id=WORKER), None), pool.stop_all):
        start(pool, control[1])
        process = pool._processes[WORKER]
        stop()
        assert process.wait(SECONDS) is not None
    assert pool._processes == {} and answered == []


def test_a_pool_that_cannot_start_a_worker_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert start(WorkerPool(), "localhost:1").error.startswith("no worker could be started: ")


def test_the_line_of_a_job_names_what_ended() -> None:
    """Engines show an error as it is, or at the end of a traceback."""
    why = how_it_ended(-signal.SIGKILL)
    error = gone("one", why).error
    assert why in short_error(error) and "signal 9" in why
    assert why in short_error(f"Traceback (most recent call last):\n  File x\nRuntimeError: {error}\n")


def test_a_worker_that_ended_while_its_output_was_read() -> None:
    """Beam has no other word for it, and the type alone says nothing."""
    text = "Traceback (most recent call last):\n  File data_plane.py\nRuntimeError: Channel closed prematurely.\n"
    assert short_error(text) == "a worker process has ended; it was killed, or ran out of memory"
