"""Resumable uploads to Cloud Storage: a session, chunks, and after a fault a query for what was received.

The protocol: cloud.google.com/storage/docs/performing-resumable-uploads. The library's own loop resends a chunk of
which the service kept a part, and deletes an object whose checksum is wrong; here the service gets the checksum in
advance and rejects other bytes.
"""

import base64
import contextlib
import io
import re
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from refinery.loader.storage.fetch import FetchParams, Permanent, Transient

UploadedObject = tuple[int, str]  # size and CRC-32C, 8 hexadecimal digits, of a finished object

UPLOAD_CHUNK = 8 << 20  # bytes of one request, and of memory; a multiple of 256 KiB


class SessionLost(Exception):
    """The service does not know the session, or the bytes were corrupted in transit: start over."""


def check_session(session: str, service: str) -> None:
    """Raise Permanent for a session URL that is not the service's: requests to it carry credentials."""
    there, own = urlsplit(session), urlsplit(service)
    google = there.scheme == "https" and (there.hostname or "").endswith(".googleapis.com")
    if (there.scheme, there.netloc) != (own.scheme, own.netloc) and not google:
        raise Permanent(
            f"the service gave an upload address at {there.scheme}://{there.hostname}, which is not its own"
        )


def open_bytes(source: bytes | Path) -> BinaryIO:
    """The source as a stream."""
    return io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")


def size_and_sum(read: Callable[[], tuple[Any, Any]]) -> UploadedObject:
    """Size and checksum in a response; read: extracts both. Raises Transient if they are missing or invalid."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        size, crc32c = read()
        if int(size) >= 0 and len(summed := base64.b64decode(crc32c, validate=True)) == 4:
            return int(size), summed.hex()
    raise Transient("a response without size and checksum, perhaps from a proxy")


def send_chunks(
    http: Any, session: str, stream: BinaryIO, size: int, params: FetchParams,
    retried: Callable[[Callable[[], UploadedObject | None]], UploadedObject | None],
) -> UploadedObject:  # fmt: skip
    """Send `size` bytes of `stream` to a session URL; returns what the service reports about the object.

    http: an authorized requests.Session. retried: calls a function until it succeeds, with a deadline for each chunk.
    Raises SessionLost, google.api_core's errors and what `retried` raises. Memory: one chunk.
    """
    position = sent = 0
    unsure = False  # whether it is unknown how much of the last chunk was received

    def put(data: bytes, span: str) -> Any:
        from google.api_core import exceptions

        timeout = params.read_timeout, params.read_timeout
        headers = {"Content-Range": f"bytes {span}/{size}", "Content-Type": "application/octet-stream"}
        # A stream is sent in small blocks, and the timeout applies to each; for bytes it would apply to the whole body.
        response = http.put(session, data=io.BytesIO(data) if data else b"", headers=headers, timeout=timeout)
        if response.status_code in (400, 404, 410):
            raise SessionLost(f"status {response.status_code}")
        if response.status_code not in (200, 201, 308):
            raise exceptions.from_http_response(response)  # type: ignore[no-untyped-call]
        return response

    def kept(response: Any) -> int:
        match = re.fullmatch(r"bytes=0-(\d+)", response.headers.get("Range", ""))
        found = int(match[1]) + 1 if match else 0
        if not position <= found <= sent:
            raise SessionLost(f"the service reports {found} bytes, after {position} before and {sent} sent")
        return found

    def made(response: Any) -> UploadedObject:
        return size_and_sum(lambda: itemgetter("size", "crc32c")(response.json()))

    def advance() -> UploadedObject | None:
        """Send one chunk from the service's position. Returns the finished object, or None if there is more to send."""
        nonlocal position, sent, unsure
        if unsure:
            response = put(b"", "*")
            if response.status_code != 308:
                return made(response)
            position = kept(response)
        before, unsure = position, True
        stream.seek(position)
        data = stream.read(min(UPLOAD_CHUNK, size - position))
        sent = max(sent, position + len(data))
        response = put(data, f"{position}-{position + len(data) - 1}" if data else "*")
        if response.status_code != 308:
            return made(response)
        position, unsure = kept(response), False
        if position <= before:
            raise Transient(f"none of the bytes from {before} on was stored")
        return None

    while (done := retried(advance)) is None:
        pass
    return done
