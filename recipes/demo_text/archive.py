"""WARC records, each its own gzip member, the same bytes for the same content; and ways to damage them."""

import base64
import gzip
import hashlib
import uuid
from datetime import UTC, datetime, timedelta

START = datetime(2024, 3, 1, 6, 0, tzinfo=UTC)


def record(
    kind: str, url: str, number: int, content_type: str, block: bytes, payload: bytes, length: str = ""
) -> bytes:
    """One record, not compressed. number: of the record, for its date and id. length: a false Content-Length."""
    identity = hashlib.sha256(f"{number} {kind} {url}".encode()).digest()
    headers = [
        "WARC/1.0",
        f"WARC-Type: {kind}",
        f"WARC-Date: {(START + timedelta(seconds=7 * number)).strftime('%Y-%m-%dT%H:%M:%SZ')}",
        f"WARC-Record-ID: <urn:uuid:{uuid.UUID(bytes=identity[:16], version=4)}>",
        f"Content-Type: {content_type}",
        f"Content-Length: {length or len(block)}",
        f"WARC-Block-Digest: sha1:{_sha1(block)}",
    ]
    if url:
        headers.append(f"WARC-Target-URI: {url}")
    if payload:
        headers.append(f"WARC-Payload-Digest: sha1:{_sha1(payload)}")
    return "\r\n".join(headers).encode() + b"\r\n\r\n" + block + b"\r\n\r\n"


def _sha1(data: bytes) -> str:
    return base64.b32encode(hashlib.sha1(data, usedforsecurity=False).digest()).decode()


def response(url: str, number: int, body: bytes, content_type: str, status: str = "200 OK", length: str = "") -> bytes:
    """A response record: HTTP status line, headers and body."""
    head = (
        f"HTTP/1.1 {status}\r\nServer: demo\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
        f"Cache-Control: max-age=600\r\n\r\n"
    )
    return record("response", url, number, "application/http; msgtype=response", head.encode() + body, body, length)


def request(url: str, number: int) -> bytes:
    host, _, path = url.split("://", 1)[1].partition("/")
    block = f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: demo-crawler\r\nAccept: */*\r\n\r\n".encode()
    return record("request", url, number, "application/http; msgtype=request", block, b"")


def warcinfo(name: str, number: int) -> bytes:
    block = f"software: refinery demo crawl\r\nformat: WARC File Format 1.0\r\nfilename: {name}\r\n".encode()
    return record("warcinfo", "", number, "application/warc-fields", block, b"")


def metadata(url: str, number: int) -> bytes:
    return record("metadata", url, number, "application/warc-fields", b"fetchTimeMs: 120\r\n", b"")


def member(data: bytes) -> bytes:
    """A gzip member without name and time. Its tenth byte, the operating system, is Unix as before Python 3.13."""
    packed = gzip.compress(data, 6, mtime=0)
    return packed[:9] + b"\x03" + packed[10:]


def cut(data: bytes) -> bytes:
    """The first 60 % of a member, as if its writer had died."""
    return data[: len(data) * 6 // 10]


def flip(data: bytes) -> bytes:
    """A member with bytes in its middle overwritten, as by a bad disk."""
    middle = len(data) // 2
    return data[:middle] + bytes(byte ^ 0x5A for byte in data[middle : middle + 24]) + data[middle + 24 :]
