"""A server that answers whatever a test says: for services that lie, where the fakes are strict."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.loader.range_server import running

Answer = tuple[int, dict[str, str], bytes]  # status, headers, body


@dataclass(frozen=True)
class Request:
    """What came: path with its query, headers by their names."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""


def answer(value: Any, status: int = 200, **headers: str) -> Answer:
    """JSON."""
    return status, {"Content-Type": "application/json", **headers}, json.dumps(value).encode()


class LyingServer(ThreadingHTTPServer):
    """act: makes the answer to a request. requests: all that came."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.act: Callable[[Request], Answer] = lambda request: answer({})
        self.requests: list[Request] = []
        self.stopping = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that went away."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: LyingServer

    def log_message(self, *args: Any) -> None:
        pass

    def handle_request(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = Request(self.command, self.path, dict(self.headers), body)
        self.server.requests.append(request)
        status, headers, body = self.server.act(request)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body if self.command != "HEAD" else b"")

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = handle_request


@contextmanager
def lying_server() -> Iterator[LyingServer]:
    """A running one."""
    with running(LyingServer()) as server:
        yield server
