"""A local HTTP range server whose responses can be scripted to fail."""

import hashlib
import re
import socket
import struct
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol, TypeVar
from urllib.parse import unquote

# Faults of one response. Numbers are statuses; the others are implemented in `_Handler.do_GET`.
FAULTS = (
    "408", "429", "500", "503", "reset", "reset in body", "short", "wrong", "stall", "stall in body", "trickle",
    "content-range", "no content-range", "200", "gzip", "length", "two lengths", "garbage", "long chunked", "not http",
)  # fmt: skip


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    server: "RangeServer"

    def log_message(self, *args: Any) -> None:
        pass

    def head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name == "Two-Lengths":
                self.send_header("Content-Length", value)
            else:
                self.send_header(name, value)
        self.end_headers()

    def reset(self) -> None:
        """Close with RST, not FIN."""
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True

    def do_GET(self) -> None:
        server = self.server
        name = unquote(self.path.split("?")[0].lstrip("/"))
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range") or "")
        start, stop = (int(asked[1]), int(asked[2]) + 1) if asked else (0, 1 << 62)
        with server.lock:
            server.requests.append((name, start, stop))
            server.ports.append(self.client_address[1])
            server.headers_seen.append({key.lower(): value for key, value in self.headers.items()})
            script = server.scripts.get(name, server.script)
            fault = script.popleft() if script else ""
        data = server.files.get(name)
        if fault.startswith("redirect "):
            return self.head(302, {"Location": fault.split()[1], "Content-Length": "0"})
        if fault.isdecimal() and fault != "200":
            return self.head(int(fault), {"Content-Length": "0", "Retry-After": "0"})
        if data is None:
            return self.head(404, {"Content-Length": "0"})
        etag = f'"{"changed" if fault == "etag" else hashlib.md5(data).hexdigest()}"'  # noqa: S324 - as servers do
        if start >= len(data):
            return self.head(416, {"Content-Range": f"bytes */{len(data)}", "Content-Length": "0", "ETag": etag})
        body = data[start:stop]
        headers = {"Content-Range": f"bytes {start}-{start + len(body) - 1}/{len(data)}", "ETag": etag}
        headers["Content-Length"] = str(len(body))
        if not server.etags:
            del headers["ETag"]
        if server.goog_hash:
            headers["x-goog-hash"] = server.goog_hash
        status = 206
        if fault == "reset":
            return self.reset()
        if fault == "stall":
            server.stopping.wait(server.stall)
            self.close_connection = True
            return None
        if fault == "not http":
            self.wfile.write(b"\x00\x01 nonsense\r\n\r\n")
            self.close_connection = True
            return None
        if fault == "content-range":
            headers["Content-Range"] = f"bytes {start + 1}-{start + len(body)}/{len(data)}"
        elif fault == "no content-range":
            del headers["Content-Range"]
        elif fault == "200":
            status, body = 200, data
            headers["Content-Length"] = str(len(data))
        elif fault == "gzip":
            headers["Content-Encoding"] = "gzip"
        elif fault == "length":
            headers["Content-Length"] = str(len(body) + 1)
        elif fault == "two lengths":
            headers["Two-Lengths"] = str(len(body) + 7)
        elif fault == "wrong":
            body = body[: len(body) // 2] + bytes([body[len(body) // 2] ^ 16]) + body[len(body) // 2 + 1 :]
        elif fault == "long chunked":
            del headers["Content-Length"]
            self.head(status, headers | {"Transfer-Encoding": "chunked"})
            self.wfile.write(b"%x\r\n%s\r\n3\r\nxyz\r\n0\r\n\r\n" % (len(body), body))
            return None
        self.head(status, headers)
        half = len(body) // 2
        if fault == "short":
            self.wfile.write(body[:half])
            self.close_connection = True
        elif fault == "reset in body":
            self.wfile.write(body[:half])
            self.reset()
        elif fault == "stall in body":
            self.wfile.write(body[:half])
            self.wfile.flush()
            server.stopping.wait(server.stall)
            self.close_connection = True
        elif fault == "trickle":
            for i in range(len(body)):
                self.wfile.write(body[i : i + 1])
                self.wfile.flush()
                if server.stopping.wait(0.02):
                    break
            self.close_connection = True
        elif fault == "length":
            self.wfile.write(body)
            self.close_connection = True
        elif fault == "garbage":  # a response to the next request, sent before it
            forged = b"\xff" * len(body)
            lines = f"HTTP/1.1 206 OK\r\nContent-Length: {len(forged)}\r\nETag: {etag}\r\n"
            lines += f"Content-Range: bytes {start}-{start + len(body) - 1}/{len(data)}\r\n\r\n"
            self.wfile.write(body + lines.encode() + forged)
        else:
            self.wfile.write(body)
        return None


class StoppableServer(Protocol):
    stopping: threading.Event

    def serve_forever(self, poll_interval: float = ...) -> None: ...

    def shutdown(self) -> None: ...

    def server_close(self) -> None: ...


S = TypeVar("S", bound=StoppableServer)


class RangeServer(ThreadingHTTPServer):
    """files: name -> bytes. script: faults of the next responses, in order ("" is none); scripts: the same per file.

    requests: (name, start, stop) of all so far. ports: of the clients that sent them. stall: seconds of a "stall".
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.script: deque[str] = deque()
        self.scripts: dict[str, deque[str]] = {}
        self.requests: list[tuple[str, int, int]] = []
        self.ports: list[int] = []
        self.headers_seen: list[dict[str, str]] = []
        self.goog_hash = ""
        self.etags = True
        self.stall = 5.0
        self.stopping = threading.Event()
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Disconnecting clients are expected."""


@contextmanager
def running(server: S) -> Iterator[S]:
    """Serve until the end of the block; then stalled responses are released, and the thread ends."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.stopping.set()
        server.shutdown()
        thread.join()
        server.server_close()


def range_server() -> AbstractContextManager[RangeServer]:
    return running(RangeServer())
