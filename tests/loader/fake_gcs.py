"""As much of the Cloud Storage JSON API as `loader` uses, in memory: metadata, lists, ranges, preconditions, faults."""

import base64
import json
import re
import threading
from collections import deque
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import google_crc32c

from tests.loader.range_server import running

PAGE = 2  # names per page, so that every listing of three or more has several


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet per answer: two cost 40 ms of delayed acknowledgement
    server: "FakeGcs"

    def log_message(self, *args: Any) -> None:
        pass

    def answer(self, status: int, body: bytes = b"", short: int = 0, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) - short])
        self.close_connection |= short > 0

    def answer_json(self, value: Any, status: int = 200) -> None:
        self.answer(status, json.dumps(value).encode(), Content_Type="application/json")

    def route(self) -> tuple[str, dict[str, str]]:
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        match = re.fullmatch(r"(?:/download|/upload)?/storage/v1/b/bucket/o(?:/(.+))?", url.path)
        assert match, self.path
        return unquote(match[1] or ""), query

    def metadata(self, name: str) -> dict[str, str]:
        data, generation = self.server.objects[name]
        crc32c = base64.b64encode(google_crc32c.value(data).to_bytes(4, "big")).decode()
        entry = {"kind": "storage#object", "bucket": "bucket", "name": name, "size": str(len(data)), "crc32c": crc32c}
        return entry | {"generation": str(generation), "metageneration": "1"}

    def do_GET(self) -> None:
        if urlsplit(self.path).path == "/storage/v1/b/bucket":  # the library asks in the background, for its traces
            return self.answer_json({"kind": "storage#bucket", "name": "bucket", "location": "US"})
        name, query = self.route()
        with self.server.lock:
            if not name:
                names = sorted(n for n in self.server.objects if n.startswith(query.get("prefix", "")))
                start = int(query.get("pageToken", 0))
                page: dict[str, Any] = {"items": [self.metadata(n) for n in names[start : start + PAGE]]}
                if start + PAGE < len(names):
                    page["nextPageToken"] = str(start + PAGE)
                return self.answer_json(page)
            if name not in self.server.objects:
                return self.answer_json({"error": {"code": 404, "message": "missing"}}, 404)
            if query.get("alt") != "media":
                return self.answer_json(self.metadata(name))
            data, generation = self.server.objects[name]
            if query.get("ifGenerationMatch", str(generation)) != str(generation):
                return self.answer_json({"error": {"code": 412, "message": "generation"}}, 412)
            fault = self.server.script.popleft() if self.server.script else ""
        if fault.isdecimal() and fault != "200":
            return self.answer_json({"error": {"code": int(fault), "message": "scripted"}}, int(fault))
        if fault == "stall":
            self.server.stopping.wait(self.server.stall)
        if fault in ("reset", "stall"):
            self.close_connection = True
            return None
        own: dict[str, Any] = {
            "X_Goog_Generation": str(generation),
            "X_Goog_Hash": f"crc32c={self.metadata(name)['crc32c']}",
        }
        whole = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if not whole or fault == "200":
            return self.answer(200, data, **own)
        start, end = int(whole[1]), min(int(whole[2] or len(data)), len(data) - 1)
        if start >= len(data):
            return self.answer(416)
        body = data[start : end + 1]
        if fault == "wrong":
            body = body[:-1] + bytes([body[-1] ^ 1])
        own["Content_Range"] = f"bytes {start}-{end}/{len(data)}"
        return self.answer(206, body, len(body) // 2 if fault == "short" else 0, **own)

    def do_POST(self) -> None:
        _, query = self.route()
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert query["uploadType"] == "multipart", "the fake knows small uploads alone"
        boundary = re.search(r'boundary="?([^";]+)', self.headers["Content-Type"])[1].encode()  # type: ignore[index]
        _, head, content, _ = body.split(b"--" + boundary)
        name = json.loads(head.split(b"\r\n\r\n", 1)[1])["name"]
        data = content.split(b"\r\n\r\n", 1)[1].removesuffix(b"\r\n")
        with self.server.lock:
            if query.get("ifGenerationMatch") == "0" and name in self.server.objects:
                return self.answer_json({"error": {"code": 412, "message": "exists"}}, 412)
            self.server.put(name, data)
            return self.answer_json(self.metadata(name))

    def do_DELETE(self) -> None:
        name, _ = self.route()
        with self.server.lock:
            if self.server.objects.pop(name, None) is None:
                return self.answer_json({"error": {"code": 404, "message": "missing"}}, 404)
        return self.answer(204)


class FakeGcs(ThreadingHTTPServer):
    """objects: name -> (bytes, generation), all in bucket "bucket".

    script: what goes wrong with the next downloads, in order: a status, "reset", "short", "wrong", "stall" (for `stall`
    seconds), "200" (the whole object instead of the range), or "" for nothing.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, tuple[bytes, int]] = {}
        self.lock = threading.Lock()
        self.generation = 0
        self.script: deque[str] = deque()
        self.stall = 5.0
        self.stopping = threading.Event()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that went away are what some tests are about."""

    def put(self, name: str, data: bytes) -> None:
        self.generation += 1
        self.objects[name] = data, self.generation


def fake_gcs() -> AbstractContextManager[FakeGcs]:
    """A running server; its address belongs in STORAGE_EMULATOR_HOST."""
    return running(FakeGcs())
