"""A worker that dies fails its job on Beam's Python job service: `fail_with_workers`.

Beam 2.77 ends the thread that reads a worker's answers, and waits for these answers without end.
"""

import contextlib
import threading
from typing import Any

from apache_beam.portability.api import beam_fn_api_pb2 as api
from apache_beam.runners.portability.fn_api_runner.worker_handlers import BeamFnControlServicer, ControlConnection


class WorkerGone(RuntimeError):
    """A worker ended before its job did. Only its name is used: in what engines answer."""


LOST = "a worker is gone: it was killed, ran out of memory, or lost its connection"


def gone(instruction: str, why: str) -> api.InstructionResponse:
    """The answer to an instruction whose worker is gone. Engines show its first line, or the last one of a traceback
    that ends with it (dataflow/error_lines.py)."""
    name = f"{WorkerGone.__module__}.{WorkerGone.__qualname__}"
    return api.InstructionResponse(instruction_id=instruction, error=f"{why}\n{name}: {why}")


class FailingConnection(ControlConnection):
    """A control connection that answers what its worker left open with an error, when it breaks, and all that is asked
    later."""

    def __init__(self) -> None:
        super().__init__()
        self._is_broken = False
        self._answering = threading.Lock()

    def _read(self) -> None:
        with contextlib.suppress(Exception):  # gRPC raises several kinds; no worker answers here after any of them
            super()._read()
        with self._answering:
            self._is_broken = True
            waiting = [*self._futures_by_id]
        for instruction in waiting:
            self._fail(instruction)

    def push(self, req: Any) -> Any:
        with self._answering:
            future = super().push(req)
            is_broken = self._is_broken
        if is_broken and future is not None:
            self._fail(future.instruction_id)
        return future

    def _fail(self, instruction: str) -> None:
        if (future := self._futures_by_id.pop(instruction, None)) is not None:
            future.set(gone(instruction, LOST))


def fail_with_workers() -> None:
    """Set it in this process. As often as you like."""
    before = BeamFnControlServicer.__init__
    if getattr(before, "fails_with_workers", False):
        return

    def init(self: Any, *arguments: Any) -> None:
        before(self, *arguments)
        self._connections_by_worker_id.default_factory = FailingConnection

    init.fails_with_workers = True  # type: ignore[attr-defined]  # marks our own function
    BeamFnControlServicer.__init__ = init
