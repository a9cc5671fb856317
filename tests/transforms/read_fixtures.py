"""Archives for the readers' tests, made byte by byte."""

import gzip
import io
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import zstandard
from fastwarc.stream_io import Lz4Writer

from refinery.transforms.core.answers import Damaged, Skipped
from refinery.transforms.core.document import RawDocument
from refinery.transforms.read.sources import LimitParams, ReadTask, read_task

Outcome = RawDocument | Skipped | Damaged
HTML = b"<html><body><p>Otters keep their favourite stone in a pouch.</p></body></html>"


def warc_record(
    block: bytes, kind: str = "response", url: str = "http://a.example/", extra: Sequence[str] = (), length: str = ""
) -> bytes:
    """A WARC record. length: a Content-Length that lies."""
    content_type = "application/http; msgtype=response" if kind == "response" else ""
    lines = [
        "WARC/1.0",
        f"WARC-Type: {kind}",
        f"WARC-Target-URI: {url}",
        "WARC-Date: 2024-05-01T12:00:00Z",
        "WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-000000000001>",
        *([f"Content-Type: {content_type}"] if content_type else []),
        *extra,
        f"Content-Length: {length or len(block)}",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + block + b"\r\n\r\n"


def http(body: bytes = HTML, headers: Sequence[str] = ("Content-Type: text/html",), status: str = "200 OK") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *headers]).encode() + b"\r\n\r\n" + body


def page(number: int, body: bytes = b"") -> bytes:
    """A response record whose URL ends in its number; pages have different lengths."""
    body = body or HTML + b"<!-- %s -->" % (bytes(range(97, 123)) * (number % 5))
    return warc_record(http(body), url=f"http://a.example/{number}")


def arc_record(block: bytes, url: str = "http://a.example/", kind: str = "text/html", length: str = "") -> bytes:
    return f"{url} 192.0.2.1 20080430204825 {kind} {length or len(block)}\n".encode() + block + b"\n"


def lz4(data: bytes) -> bytes:
    buffer = _Unclosed()
    with Lz4Writer(buffer) as writer:
        writer.write(data)
    return bytes(buffer.data)


class _Unclosed(io.RawIOBase):
    def __init__(self) -> None:
        self.data = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.data += data
        return len(data)


COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": lambda data: gzip.compress(data, mtime=0),
    ".zst": zstandard.compress,
    ".lz4": lz4,
}


def task_for(path: Path, format_: str = "warc", **fields: object) -> ReadTask:
    return ReadTask(str(path), format_, "src", 3, path.stat().st_size, **fields)  # type: ignore[arg-type]


def read(
    path: Path, data: bytes, format_: str = "warc", limits: LimitParams | None = None, **fields: object
) -> list[Outcome]:
    """What comes out of a file with these bytes."""
    path.write_bytes(data)
    return list(read_task(task_for(path, format_, **fields), limits or LimitParams()))


def offset_of(outcome: Outcome) -> int:
    return int(outcome.origin.rpartition("@")[2])


def summary(outcomes: Iterable[Outcome]) -> list[str]:
    """One word per record: "html", "text", a reason, or "!" and an error."""
    words = []
    for outcome in outcomes:
        if isinstance(outcome, RawDocument):
            words.append("html" if outcome.is_html else "text")
        else:
            words.append(outcome.reason if isinstance(outcome, Skipped) else "!" + outcome.error)
    return words
