"""Malicious servers: a named error in bounded time and memory, or the right bytes.

Each response here is written byte for byte. Ordinary faults are in `range_server`.
"""

import contextlib
import itertools
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refinery.loader import TokenStream
from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import MANIFEST
from refinery.loader.read.remote.blocks import RemoteParams
from refinery.loader.read.remote.remote_source import RemoteSource
from refinery.loader.storage.fetch import Attempt, FetchError, Permanent, Stop, Transient
from refinery.loader.storage.http_store import HttpStore
from tests.loader.range_server import running
from tests.loader.remote_split import FETCH, TOKENS, entries, name_of

SHORT = replace(FETCH, deadline=0.12, read_timeout=0.06, connect_timeout=0.2, first_delay=0.04, max_delay=0.04)
RangeResponse = Callable[[str, socket.socket, threading.Event], None]


class _Handler(socketserver.BaseRequestHandler):
    server: "HostileServer"

    def handle(self) -> None:
        with contextlib.suppress(OSError), self.request.makefile("rb") as lines:
            request = b"".join(itertools.takewhile(lambda line: line != b"\r\n", lines))
            if not request:
                return  # a connection that the client opened, and closed without a request
            self.server.asked += 1
            self.server.answer(request.split()[1].decode(), self.request, self.server.stopping)


class HostileServer(socketserver.ThreadingTCPServer):
    """Passes every request to `answer`, then closes the connection."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.stopping = threading.Event()
        self.answer: RangeResponse = lambda path, connection, stopping: None
        self.asked = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@pytest.fixture
def hostile() -> Iterator[HostileServer]:
    with running(HostileServer()) as server:
        yield server


def says(data: bytes) -> RangeResponse:
    return lambda path, connection, stopping: connection.sendall(data)


def without_end(head: bytes, piece: bytes, pause: float = 0.0) -> RangeResponse:
    def answer(path: str, connection: socket.socket, stopping: threading.Event) -> None:
        connection.sendall(head)
        while not stopping.wait(pause):
            connection.sendall(piece)

    return answer


def partial(*lines: str, status: str = "206 x") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode("latin-1")


RANGE = "Content-Range: bytes 0-9/10"
CHUNKED = "Transfer-Encoding: chunked"
DIGITS = "9" * 5000
# Response, and a pattern for the last cause in the error.
BAD: dict[str, tuple[RangeResponse, str]] = {
    "nothing": (says(b""), "RemoteDisconnected"),
    "zeros": (says(bytes(1 << 16)), "BadStatusLine|LineTooLong|Remote"),
    "a line without end": (without_end(b"HTTP/1.1 206 ", b"x" * 4096), "LineTooLong|got more than 65536"),
    "headers without end": (without_end(partial()[:-2], b"X-A: b\r\n" * 64), "more than 100 headers"),
    "a header without end": (without_end(partial()[:-2] + b"X: ", b"x" * 4096), "got more than 65536|LineTooLong"),
    "a body without end": (without_end(partial(RANGE, CHUNKED), b"4\r\nabcd\r\n"), "more than the 10 bytes"),
    "a chunk without end": (
        without_end(partial(RANGE, CHUNKED) + b"1;", b"x" * 4096),
        "IncompleteRead|LineTooLong|more",
    ),
    "a negative chunk": (
        says(partial(RANGE, CHUNKED) + b"-5\r\nabcde\r\n0\r\n\r\n"),
        "IncompleteRead|ValueError|bytes",
    ),
    "many digits": (says(partial(f"Content-Range: bytes 0-9/{DIGITS}")), "Content-Range 'bytes 0-9/9999"),
    "many digits of length": (says(partial(RANGE, f"Content-Length: {DIGITS}")), "Content-Length 99999"),
    "many digits of 416": (says(partial(f"Content-Range: bytes */{DIGITS}", status="416 x")), "status 416"),
    "a negative length": (says(partial(RANGE, "Content-Length: -1")), "Content-Length -1"),
    "another range than requested": (says(partial("Content-Range: bytes 5-9/10") + b"01234"), "Content-Range"),
    "a reversed range": (says(partial("Content-Range: bytes 9-0/10") + b"01234"), "Content-Range"),
    "a range beyond the end": (says(partial("Content-Range: bytes 0-99/10") + b"01234"), "Content-Range"),
    "gzip": (says(partial(RANGE, "Content-Encoding: gzip") + b"\x1f\x8b"), "Content-Encoding 'gzip', identity"),
    "gzip twice": (says(partial(RANGE, "Content-Encoding: gzip, gzip")), "Content-Encoding"),
    "nothing but a status": (says(b"206\r\n\r\n"), "BadStatusLine"),
    "status 99999": (says(b"HTTP/1.1 99999 x\r\n\r\n"), "BadStatusLine"),
    "a loop": (says(partial("Location: /x", status="302 x")), "more than 3 redirects"),
    "nowhere": (says(partial(status="301 x")), "more than 3 redirects"),
    "no address": (says(partial("Location: http://[::1", status="302 x")), "redirected to an invalid URL"),
    "a port that is none": (says(partial("Location: http://h:x/", status="302 x")), "redirected to http://h"),
    "letters": (says(partial("Location: /\xe4\xf6", status="307 x")), "non-ASCII"),
    "a space": (says(partial("Location: /a b", status="307 x")), "InvalidURL"),
    "another host": (says(partial("Location: //evil.example/x", status="308 x")), "redirected to http://evil.example"),
    "another scheme": (says(partial("Location: file:///etc/passwd", status="302 x")), "redirected to file://"),
}
# Endless responses without an error in any part of them.
ENDLESS: dict[str, RangeResponse] = {
    "a header that trickles": without_end(partial()[:-2] + b"X: ", b"x", 0.01),
    "continue without end": without_end(b"", b"HTTP/1.1 100 c\r\n\r\n"),
    "a body that trickles": without_end(partial(RANGE, CHUNKED), b"1\r\na\r\n", 0.02),
}


@pytest.mark.parametrize("name", BAD)
def test_one_attempt_fails_by_name(hostile: HostileServer, name: str) -> None:
    hostile.answer, cause = BAD[name]
    store = HttpStore(hostile.url, FETCH)
    with pytest.raises((Transient, Permanent), match=cause) as caught:
        store.get("x", 0, 10, Attempt(FETCH, time.monotonic() + 60))
    assert len(str(caught.value)) <= 500
    store.close()


@pytest.mark.parametrize("name", ENDLESS)
def test_an_answer_without_end_ends(hostile: HostileServer, name: str) -> None:
    """Also inside http.client's own loops: the deadline closes the connection."""
    hostile.answer = ENDLESS[name]
    store = HttpStore(hostile.url, SHORT)
    with pytest.raises(FetchError, match=rf"{hostile.url}/x: bytes 0 to 10: .* failed; last: ") as caught:
        store.read("x", 0, 10)
    assert len(str(caught.value)) < 700
    store.close()


@pytest.mark.parametrize("head", [b"", partial()[:-2], partial(RANGE), partial(RANGE, "Content-Length: 10")])
def test_what_stalls_can_be_stopped(hostile: HostileServer, head: bytes) -> None:
    """Before, inside and after the headers; also in a body that ends with its connection."""
    started = threading.Event()

    def answer(path: str, connection: socket.socket, stopping: threading.Event) -> None:
        connection.sendall(head)
        started.set()
        stopping.wait(600)

    hostile.answer = answer
    store, stop = HttpStore(hostile.url, replace(FETCH, read_timeout=300, deadline=900)), Stop()

    def interrupt() -> None:
        started.wait()
        time.sleep(0.05)  # the reader may be parsing headers or waiting for more: both are tested
        stop.set()

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(FetchError, match="1 attempt in"):
        store.read("x", 0, 10, stop)
    with pytest.raises(FetchError, match="last: closed"):
        store.read("x", 0, 10, stop)
    thread.join()
    store.close()


def test_trailers_without_end(hostile: HostileServer) -> None:
    """All bytes have arrived, so they are delivered when the deadline ends the trailers."""
    body = partial(RANGE, CHUNKED) + b"a\r\n0123456789\r\n0\r\n"
    hostile.answer = without_end(body, b"X: y\r\n", 0.05)
    store = HttpStore(hostile.url, replace(FETCH, deadline=0.9))
    assert store.read("x", 0, 10) == b"0123456789"
    store.close()


@pytest.mark.parametrize("name", ["continue without end", "headers without end", "a body without end", "many digits"])
def test_a_stream_ends_with_a_named_error(hostile: HostileServer, tmp_path: Path, name: str) -> None:
    """For the manifest when opening, and for tokens in the threads that fetch them."""
    hostile.answer = ENDLESS[name] if name in ENDLESS else BAD[name][0]
    params = RemoteParams(cache=tmp_path, threads=1, fetch=SHORT)
    with pytest.raises(FetchError, match=f"{hostile.url}/{MANIFEST}: bytes 0 to .* failed"):
        TokenStream(hostile.url, remote=params)
    store = HttpStore(hostile.url, SHORT)
    source = RemoteSource(store, entries(), np.uint16, corpus="c", params=params)
    with pytest.raises(FetchError, match=f"{name_of(0)}: bytes 0 to 1048576: .* failed"):
        source.read_into(0, 0, np.empty(10, np.int64))
    source.close()
    store.close()


def test_a_manifest_without_end(hostile: HostileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every range is answered in full, for an object that claims to be huge."""

    def answer(path: str, connection: socket.socket, stopping: threading.Event) -> None:
        size = 1000
        start = size * (hostile.asked - 1)
        stop = min(start + size, 4097)  # as many as are requested
        head = partial(f"Content-Range: bytes {start}-{stop - 1}/{10**15}", f"Content-Length: {stop - start}")
        connection.sendall(head + bytes(stop - start))

    hostile.answer = answer
    monkeypatch.setattr("refinery.loader.storage.remote_store.REQUEST_BYTES", 1000)
    monkeypatch.setattr("refinery.loader.format.manifest.MAX_MANIFEST", 4096)
    with pytest.raises(FormatError, match=f"{hostile.url}/{MANIFEST}: more than 4096 bytes found"):
        TokenStream(hostile.url)
    assert hostile.asked == 5


@pytest.mark.parametrize("total", [0, 1, 10, 1500, 10**15, "*"])
@pytest.mark.parametrize("kind", ["bin", "idx"])
def test_another_total(hostile: HostileServer, tmp_path: Path, total: Any, kind: str) -> None:
    """206 with another object size is rejected; without a size, checksums decide."""
    from refinery.loader.format.shard_files import read_file

    entry = entries()[1]
    data = TOKENS[1].tobytes() if kind == "bin" else b"index"

    def answer(path: str, connection: socket.socket, stopping: threading.Event) -> None:
        connection.sendall(partial(f"Content-Range: bytes 0-{len(data) - 1}/{total}", status="206 x") + data)

    hostile.answer = answer
    fetch = FETCH if total == "*" else SHORT  # what succeeds may take its time on a loaded machine
    store = HttpStore(hostile.url, fetch)
    if kind == "idx":
        with pytest.raises((FormatError, FetchError), match=f"{hostile.url}/.*idx: "):
            read_file(store, replace(entry.idx, size=4) if total == "*" else entry.idx)
    else:
        source = RemoteSource(store, entries(), np.uint16, corpus="c", params=RemoteParams(cache=tmp_path, fetch=fetch))
        out = np.zeros(10, np.int64)
        if total == "*":
            source.read_into(1, 0, out)
            np.testing.assert_array_equal(out, TOKENS[1][:10])
        else:
            with pytest.raises((FormatError, FetchError), match=f"{hostile.url}/{name_of(1)}: "):
                source.read_into(1, 0, out)
        source.close()
    store.close()
