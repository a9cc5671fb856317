"""A storage service on this machine, for tests: every call has a number, and any of them can go wrong on demand.

What its protocol is, says the API that it is made with: tests/fake_gcs_api.py, tests/fake_s3_api.py.
"""

import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.fake_gcs_wire import Answer, Request

FAULTS = (
    "status", "reset", "stall", "lost", "corrupt request", "part of request", "half kept",
    "short", "reset in body", "stall in body", "wrong", "whole", "long",
)  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """What goes wrong with a call. From `on_call` the call is not acted on, except for the kinds in the second list.

    "status": `status` is the answer, with Retry-After where `retry_after` is set. "reset": the connection is reset.
    "stall": silence for `seconds` (0: the server's `stall`), then the connection ends. "corrupt request": a bit of an
    upload is flipped on its way. "part of request": half of an upload arrives, then the connection is reset. "half
    kept": of a chunk, and the answer says so.

    Acted on first: "lost": reset instead of the answer. Of a download: "short", "reset in body", "stall in body": after
    half of the answer; "wrong": a bit of the answer is flipped; "whole": the range is ignored; "long": a byte more.
    """

    kind: str
    status: int = 503
    seconds: float = 0.0
    retry_after: str = ""
    message: str = "scripted"

    def __post_init__(self) -> None:
        if self.kind not in FAULTS:
            raise ValueError(f"kind: {self.kind!r} given, one of {', '.join(FAULTS)} is allowed")

    @classmethod
    def named(cls, text: str) -> "Fault | None":
        """The fault of a name or of a status such as "503"; None for "". "200" is "whole", as in range_server.py."""
        if text == "200":
            return cls("whole")
        return (cls("status", int(text)) if text.isdecimal() else cls(text)) if text else None


@dataclass(frozen=True)
class Call:
    """A request, numbered from 1 in the order of arrival. size: bytes of its body.

    kind: get-bucket, create-bucket, list, stat, download, patch, delete, copy, rewrite, compose, batch; upload (in one
    request), upload-start, upload-chunk, upload-end (the last chunk), upload-status, upload-cancel. The calls of a
    batch follow it, each with a number of its own; the only fault they know is "status".
    """

    number: int
    method: str
    kind: str
    bucket: str
    name: str
    size: int = 0
    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


Hook = Callable[[Call], Fault | None]


class FakeService(ThreadingHTTPServer):
    """objects: (bucket, name) -> Stored. calls: all so far. answers: call's number -> status of its answer.

    on_call: asked before a call is acted on; after_call: after that, before it is answered (a "reset" is a lost
    acknowledgement). Both run in the server's threads, several at once. script: faults of the next downloads, by name.
    stall: seconds of a "stall". environment: what leads clients here. api: has page_size, changes, and more that is its
    own. downloads: the kind of call that `script` is about.
    """

    daemon_threads = True
    request_queue_size = 128
    downloads = "download"

    def __init__(self, api: Any) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.api = api
        self.lock = threading.Lock()
        self.stopping = threading.Event()
        self.on_call: Hook = lambda call: None
        self.after_call: Hook = lambda call: None
        self.script: deque[str] = deque()
        self.stall = 5.0
        self.calls: list[Call] = []
        self.answers: dict[int, int] = {}
        self.environment: dict[str, str] = {}
        self.errors: list[Exception] = []  # of the fake itself; the first is raised at its end

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def objects(self) -> dict[tuple[str, str], Any]:
        return self.api.objects  # type: ignore[no-any-return]

    @property
    def changes(self) -> list[tuple[str, str, str]]:
        return self.api.changes  # type: ignore[no-any-return]

    def put(self, bucket: str, name: str, data: bytes, **fields: Any) -> Any:
        """Write an object without a call; the bucket is made if need be."""
        with self.lock:
            return self.api.put(bucket, name, data, **fields)

    def put_folder(self, bucket: str, prefix: str, folder: Path) -> None:
        """Write all files of a folder, recursively."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.put(bucket, f"{prefix}{path.relative_to(folder).as_posix()}", path.read_bytes())

    def read(self, bucket: str, prefix: str = "") -> dict[str, bytes]:
        """Names below a prefix, without it, and their bytes."""
        with self.lock:
            found = {name: stored.data for (owner, name), stored in self.objects.items() if owner == bucket}
        return {name.removeprefix(prefix): found[name] for name in sorted(found) if name.startswith(prefix)}

    def clear(self) -> None:
        """Forget objects, calls and faults; the buckets stay."""
        with self.lock:
            self.objects.clear()
            self.changes.clear()
            self.calls.clear()
            self.answers.clear()
            self.script.clear()
            self.on_call = self.after_call = lambda call: None

    def use(self, patch: pytest.MonkeyPatch) -> None:
        """Set the environment that leads clients here, in this process and those started from it."""
        for name, value in self.environment.items():
            patch.setenv(name, value)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that went away are what some tests are about."""

    def answer(self, request: Request) -> tuple[Answer, Fault | None]:
        """Number a call, ask both hooks, act; the fault is what is to be done to the answer."""
        kind, bucket, name = self.api.locate(request)
        with self.lock:
            number = len(self.calls) + 1
            call = Call(number, request.method, kind, bucket, name, len(request.body), request.query, request.headers)
            self.calls.append(call)
            scripted = self.script.popleft() if kind == self.downloads and self.script else ""
        fault = self.on_call(call) or Fault.named(scripted)
        if fault and fault.kind == "status":
            answer = self._note(call, self.refusal(fault))
            return answer if not fault.retry_after else replace_headers(
                answer, {"Retry-After": fault.retry_after}
            ), None
        if fault and fault.kind in ("reset", "stall"):
            return self._note(call, Answer(0)), fault
        if fault and fault.kind in ("corrupt request", "part of request", "half kept"):
            arrived = self.spoiled(request, fault.kind, kind)
            if arrived is None:
                return self._note(call, Answer(0)), fault
            request = arrived
        answer = self.act(request, kind)
        after = self.after_call(call)
        if after and after.kind == "status":
            return self._note(call, self.refusal(after)), None
        self._note(call, answer)
        return answer, after or fault

    def _note(self, call: Call, answer: Answer) -> Answer:
        self.answers[call.number] = answer.status
        return answer

    def act(self, request: Request, kind: str) -> Answer:
        """Do what a request says."""
        with self.lock:
            return self.api.act(request)  # type: ignore[no-any-return]

    def refusal(self, fault: Fault) -> Answer:
        """The answer that is a fault's status, as the service would word it."""
        raise NotImplementedError

    def spoiled(self, request: Request, fault: str, kind: str) -> Request | None:
        """A request as it arrives over a bad network, None if nothing of it does."""
        raise NotImplementedError


def replace_headers(answer: Answer, headers: Mapping[str, str]) -> Answer:
    return replace(answer, headers={**answer.headers, **headers})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True  # head and body are two packets: the second must not wait for an acknowledgement
    server: FakeService

    def log_message(self, *args: Any) -> None:
        pass

    def handle_request(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            answer, fault = self.server.answer(Request(self.command, self.path, headers, body))
        except Exception as error:  # noqa: BLE001 - raised at the end
            self.server.errors.append(error)
            answer, fault = Answer(501, f"{type(error).__name__}: {error}".encode()), None
        return self.send(answer, fault)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = handle_request

    def send(self, answer: Answer, fault: Fault | None) -> None:
        kind = fault.kind if fault else ""
        if fault and kind == "stall":
            self.server.stopping.wait(fault.seconds or self.server.stall)
            self.close_connection = True
            return None
        if kind in ("reset", "lost", "part of request") or not answer.status:
            return self.reset()
        body, length = answer.body, len(answer.body)
        half = length // 2
        if kind == "wrong" and body:
            body = body[:half] + bytes([body[half] ^ 16]) + body[half + 1 :]
        elif kind == "whole" and answer.status == 206:
            answer = replace(answer, status=200, headers={**answer.headers, "Content-Range": ""})
            body, length = answer.whole, len(answer.whole)
        elif kind == "long" and body:
            body, length = body + b"x", length + 1
        elif kind in ("short", "reset in body", "stall in body"):
            body = body[:half]
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            if value and name != "Content-Length":
                self.send_header(name, value)
        self.send_header("Content-Length", answer.headers.get("Content-Length") or str(length))
        self.end_headers()
        self.wfile.write(body)
        if len(body) < length:
            self.close_connection = True
        if kind == "reset in body":
            self.reset()
        elif fault and kind == "stall in body":
            self.wfile.flush()
            self.server.stopping.wait(fault.seconds or self.server.stall)
        return None

    def reset(self) -> None:
        """Close with RST, not FIN."""
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
