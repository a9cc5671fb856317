"""The engines of the matrix: what each needs on this machine, and the flags that choose it."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

ROOT = Path(__file__).parents[2]
TOOLS = Path(os.environ.get("REFINERY_ENGINE_TOOLS", ROOT / ".engines"))
PRISM = TOOLS / "prism"
START_SECONDS = 120.0  # until a server answers, also on a busy machine
POOL = ("refinery.pipelines.runners.worker_pool", "--service_port")  # module, flag of its port
POOL_WORKER = "refinery.pipelines.runners.pool_worker"
JOB_SERVICE = ("refinery.pipelines.runners.job_service", "--job_port")


@dataclass(frozen=True)
class Engine:
    """An engine of the matrix. start: starts what runs beside the command; the
    context yields the command's flags. tool: a program
    that must be there."""

    name: str
    start: Callable[[], AbstractContextManager[list[str]]]
    tool: Path | None = None

    @property
    def missing(self) -> str:
        """Why this engine cannot run here; "" where it can."""
        is_there = self.tool is None or self.tool.is_file()
        return "" if is_there else f"{self.tool}: not there; make test-engines builds it where Go is installed"


@contextlib.contextmanager
def flags(*given: str) -> Iterator[list[str]]:
    """Flags alone."""
    yield list(given)


@contextlib.contextmanager
def server(module: str, flag: str) -> Iterator[str]:
    """A server of a module of Python, in the folder of the command, until the context ends; yields its address."""
    port = free_port()
    process = serve(module, flag, port)
    try:
        yield f"localhost:{port}"
    finally:
        process.terminate()
        process.wait(timeout=60)


def serve(
    module: str, flag: str, port: int, marks: Mapping[str, str] = MappingProxyType({})
) -> "subprocess.Popen[bytes]":
    """The server's process, once it listens on that port. marks: variables for its environment."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = [sys.executable, "-P", "-m", module, flag, str(port)]
    process = subprocess.Popen(
        command, env={**os.environ, "PATH": path, **marks}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_for(port, process)
    return process


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    """Return when somebody listens there. Raises RuntimeError where the process ends or time is up."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("localhost", port), timeout=1):
            return
        time.sleep(0.1)
    raise RuntimeError(f"nothing listens on port {port}; the server ended as {process.poll()}")


@contextlib.contextmanager
def worker_pool(workers: int) -> Iterator[list[str]]:
    """Our worker pool, whose workers are processes of their own."""
    with server(*POOL) as address:
        yield pool_flags(address, workers)


def pool_flags(address: str, workers: int) -> list[str]:
    return [
        "--environment_type=EXTERNAL",
        f"--environment_config={address}",
        f"--sdk_worker_parallelism={workers}",
    ]


@contextlib.contextmanager
def job_service() -> Iterator[list[str]]:
    """Our job service: Beam's, without the flush that loses elements."""
    with server(*JOB_SERVICE) as address:
        yield service_flags(address)


def service_flags(address: str) -> list[str]:
    return ["--runner=PortableRunner", f"--job_endpoint={address}"]


@contextlib.contextmanager
def both(*contexts: AbstractContextManager[list[str]]) -> Iterator[list[str]]:
    """All of them, their flags one after the other."""
    with contextlib.ExitStack() as stack:
        yield [flag for context in contexts for flag in stack.enter_context(context)]


LOOPBACK = "--environment_type=LOOPBACK"
WITH_PRISM = ("--runner=PrismRunner", f"--prism_location={PRISM}")
ENGINES = [
    Engine("local, 1 worker", lambda: flags("--workers=1")),
    Engine("local, 3 workers", lambda: flags("--workers=3")),
    Engine("DirectRunner", lambda: flags("--runner=DirectRunner")),
    Engine("job service, loopback", lambda: both(job_service(), flags(LOOPBACK))),
    Engine("job service, pool", lambda: both(job_service(), worker_pool(2))),
    Engine("Prism, loopback", lambda: flags(*WITH_PRISM), PRISM),
    Engine("Prism, pool", lambda: both(flags(*WITH_PRISM), worker_pool(2)), PRISM),
]
