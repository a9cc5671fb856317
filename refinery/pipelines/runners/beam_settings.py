"""What Beam's processes that this project starts have set otherwise than Beam 2.77 does: `settle`.

No flush by time (timed_flush.py): workers have the same setting (worker.py).
No port for others: Beam binds its servers to all addresses of a machine; its own processes are all on this one. So
workers of a pool are sent to `localhost`: to the machine's name, they would come by an address that is not served.
"""

from typing import Any

import grpc
from apache_beam.runners.portability import abstract_job_service, local_job_service
from apache_beam.runners.portability.fn_api_runner import worker_handlers
from apache_beam.runners.worker import worker_pool_main

from refinery.pipelines.runners.timed_flush import NO_TIMED_FLUSH

EVERYWHERE, LOOPBACK = "[::]", "127.0.0.1"


class _LoopbackServer:
    """A gRPC server that binds to this machine's own address where it was asked for all."""

    def __init__(self, server: grpc.Server) -> None:
        self._server = server

    def add_insecure_port(self, address: str) -> int:
        port: int = self._server.add_insecure_port(address.replace(EVERYWHERE, LOOPBACK))
        return port

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)


class _LoopbackGrpc:
    """The module grpc, for modules that start servers."""

    def server(self, *args: Any, **options: Any) -> _LoopbackServer:
        return _LoopbackServer(grpc.server(*args, **options))

    def __getattr__(self, name: str) -> Any:
        return getattr(grpc, name)


def settle() -> None:
    """Set both, in this process. As often as you like."""
    worker_handlers.DATA_BUFFER_TIME_LIMIT_MS = NO_TIMED_FLUSH
    for module in (worker_handlers, abstract_job_service, local_job_service, worker_pool_main):
        module.grpc = _LoopbackGrpc()
    worker_handlers.ExternalWorkerHandler.host_from_worker = lambda _: "localhost"
