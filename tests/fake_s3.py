"""S3's protocol on this machine: objects in ranges, listings in pages, signatures checked, faults on demand."""

import hashlib
import hmac
import re
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.loader.range_server import running

PAGE = 2  # objects of one page of a listing
KEY, SECRET = "AKIAFAKEFAKEFAKEFAKE", "not-a-secret"


class FakeS3(ThreadingHTTPServer):
    """objects: "bucket/key" -> bytes. signed: whether requests must be signed with KEY and SECRET. script: faults of
    the next answers to GET of an object: "503", "short", "ignored range".

    seen: (method, path) of every request. unsigned: how many carried no signature.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}
        self.signed = False
        self.script: deque[str] = deque()
        self.seen: list[tuple[str, str]] = []
        self.unsigned = 0
        self.stopping = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that went away."""


def etag(data: bytes) -> str:
    return f'"{hashlib.md5(data).hexdigest()}"'  # noqa: S324 - as S3 does


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeS3

    def log_message(self, *args: Any) -> None:
        pass

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        headers.setdefault("Content_Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        bucket, _, key = unquote(parts.path.lstrip("/")).partition("/")
        self.server.seen.append((self.command, parts.path))
        self.server.unsigned += "Authorization" not in self.headers
        if self.server.signed and not self.is_signed():
            return self.answer(403, b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>")
        if not key:
            return self.list_objects(bucket, dict(parse_qsl(parts.query)))
        data = self.server.objects.get(f"{bucket}/{key}")
        if data is None:
            return self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        facts = {"ETag": etag(data), "Last_Modified": "Sun, 22 Nov 2026 10:00:00 GMT"}
        if self.command == "HEAD":
            return self.answer(200, Content_Length=str(len(data)), **facts)
        if (wanted := self.headers.get("If-Match")) and wanted != etag(data):
            return self.answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
        fault = self.server.script.popleft() if self.server.script else ""
        if fault == "503":
            return self.answer(503, b"<Error><Code>SlowDown</Code></Error>")
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range") or "")
        if not asked or fault == "ignored range":
            return self.answer(200, data, **facts)
        start, stop = int(asked[1]), min(int(asked[2]) + 1, len(data))
        facts["Content_Range"] = f"bytes {start}-{stop - 1}/{len(data)}"
        if fault == "short":
            self.close_connection = True
            return self.answer(206, data[start:stop][:-1], Content_Length=str(stop - start), **facts)
        return self.answer(206, data[start:stop], **facts)

    do_HEAD = do_GET

    def list_objects(self, bucket: str, query: dict[str, str]) -> None:
        """ListObjectsV2, PAGE objects at once."""
        names = sorted(name.removeprefix(f"{bucket}/") for name in self.server.objects if name.startswith(f"{bucket}/"))
        names = [name for name in names if name.startswith(query.get("prefix", ""))]
        start = int(query.get("continuation-token", "0"))
        more = start + PAGE < len(names)
        entries = "".join(
            f"<Contents><Key>{escape(name)}</Key><LastModified>2026-11-22T10:00:00.000Z</LastModified>"
            f"<ETag>{escape(etag(data))}</ETag><Size>{len(data)}</Size></Contents>"
            for name in names[start : start + PAGE]
            for data in [self.server.objects[f"{bucket}/{name}"]]
        )
        token = f"<NextContinuationToken>{start + PAGE}</NextContinuationToken>" if more else ""
        body = f"<ListBucketResult><IsTruncated>{str(more).lower()}</IsTruncated>{token}{entries}</ListBucketResult>"
        self.answer(200, body.encode(), Content_Type="application/xml")

    def is_signed(self) -> bool:
        """Whether the signature is that of KEY and SECRET: AWS's "Create a signed request", steps 1 to 4."""
        found = re.fullmatch(
            r"AWS4-HMAC-SHA256 Credential=(\S+?)/(\d{8})/([\w-]+)/s3/aws4_request, "
            r"SignedHeaders=(\S+), Signature=(\w+)",
            self.headers.get("Authorization") or "",
        )
        if not found or found[1] != KEY:
            return False
        _, day, region, names, signature = found.groups()
        parts = urlsplit(self.path)
        pairs = sorted((quote(k, "-_.~"), quote(v, "-_.~")) for k, v in parse_qsl(parts.query, True))
        lines = [self.command, quote(unquote(parts.path), "/-_.~"), "&".join(f"{k}={v}" for k, v in pairs)]
        lines += [f"{name}:{' '.join((self.headers.get(name) or '').split())}" for name in names.split(";")]
        lines += ["", names, self.headers["x-amz-content-sha256"]]
        scope = f"{day}/{region}/s3/aws4_request"
        digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        text = "\n".join(["AWS4-HMAC-SHA256", self.headers["x-amz-date"], scope, digest])
        key = f"AWS4{SECRET}".encode()
        for part in (day, region, "s3", "aws4_request", text):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        return hmac.compare_digest(key.hex(), signature)


@contextmanager
def fake_s3() -> Iterator[FakeS3]:
    """A running one."""
    with running(FakeS3()) as server:
        yield server
