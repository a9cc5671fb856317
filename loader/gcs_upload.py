"""Resumable uploads to Cloud Storage: a session, chunks, and after a fault the question how far it has come.

The protocol: cloud.google.com/storage/docs/performing-resumable-uploads. The library's own loop would start a chunk
again where the service kept a part of it, and delete an object whose checksum is wrong; here the service is told the
checksum beforehand and refuses other bytes.
"""

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from loader.fetch import FetchParams, Transient

T = TypeVar("T")

CHUNK = 8 << 20  # bytes of one request, and all that is held in memory; a multiple of 256 KiB


class SessionLost(Exception):
    """The service does not know the session (any more), or the bytes changed on their way: begin again."""


def open_bytes(source: bytes | Path) -> BinaryIO:
    """The source as a stream."""
    return io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")


def send_chunks(
    http: Any, session: str, stream: BinaryIO, size: int, params: FetchParams, retried: Callable[[Callable[[], T]], T]
) -> Any:
    """Send `size` bytes of `stream` to a session's address; returns what the service says about the object.

    http: an authorized requests.Session. retried: calls a function until it succeeds; each chunk has a deadline of its
    own. Raises SessionLost, google.api_core's errors and what `retried` raises. Memory: one chunk.
    """
    position = 0
    unsure = False  # how much of the last chunk has arrived

    def put(data: bytes, span: str) -> Any:
        from google.api_core import exceptions

        timeout = params.read_timeout, params.read_timeout
        headers = {"Content-Range": f"bytes {span}/{size}", "Content-Type": "application/octet-stream"}
        # As a stream, a chunk is sent in small blocks, each with the timeout; as bytes it would have one in all.
        response = http.put(session, data=io.BytesIO(data) if data else b"", headers=headers, timeout=timeout)
        if response.status_code in (400, 404, 410):
            raise SessionLost(f"status {response.status_code}")
        if response.status_code not in (200, 201, 308):
            raise exceptions.from_http_response(response)  # type: ignore[no-untyped-call]
        return response

    def kept(response: Any) -> int:
        match = re.fullmatch(r"bytes=0-(\d+)", response.headers.get("Range", ""))
        return int(match[1]) + 1 if match else 0

    def advance() -> Any:
        """One chunk, from where the service stands. Returns the finished object's metadata, or None."""
        nonlocal position, unsure
        if unsure:
            response = put(b"", "*")
            if response.status_code != 308:
                return response.json()
            position = kept(response)
        before, unsure = position, True
        stream.seek(position)
        data = stream.read(min(CHUNK, size - position))
        response = put(data, f"{position}-{position + len(data) - 1}" if data else "*")
        if response.status_code != 308:
            return response.json()
        position, unsure = kept(response), False
        if position <= before:
            raise Transient(f"nothing of the bytes from {before} on was kept")
        return None

    while (done := retried(advance)) is None:
        pass
    return done
