"""Resumable uploads to Cloud Storage: a session, chunks, and after a fault the question how far it has come.

The protocol: cloud.google.com/storage/docs/performing-resumable-uploads. The library's own loop would start a chunk
again where the service kept a part of it, and delete an object whose checksum is wrong; here the service is told the
checksum beforehand and refuses other bytes.
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

Made = tuple[int, str]  # size and CRC-32C, 8 hexadecimal digits, of a finished object

CHUNK = 8 << 20  # bytes of one request, and all that is held in memory; a multiple of 256 KiB


class SessionLost(Exception):
    """The service does not know the session (any more), or the bytes changed on their way: begin again."""


def check_session(session: str, service: str) -> None:
    """Raise Permanent for a session at an address that is not the service's: whoever gets a chunk gets credentials."""
    there, own = urlsplit(session), urlsplit(service)
    google = there.scheme == "https" and (there.hostname or "").endswith(".googleapis.com")
    if (there.scheme, there.netloc) != (own.scheme, own.netloc) and not google:
        raise Permanent(f"the service names {there.scheme}://{there.hostname} to send to, which is not its own")


def open_bytes(source: bytes | Path) -> BinaryIO:
    """The source as a stream."""
    return io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")


def size_and_sum(answer: Callable[[], tuple[Any, Any]]) -> Made:
    """What an answer names of an object. Raises Transient where it names nothing."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        size, crc32c = answer()
        if int(size) >= 0 and len(summed := base64.b64decode(crc32c, validate=True)) == 4:
            return int(size), summed.hex()
    raise Transient("an answer without size and checksum, perhaps of a proxy on the way")


def send_chunks(
    http: Any, session: str, stream: BinaryIO, size: int, params: FetchParams,
    retried: Callable[[Callable[[], Made | None]], Made | None],
) -> Made:  # fmt: skip
    """Send `size` bytes of `stream` to a session's address; returns what the service says about the object.

    http: an authorized requests.Session. retried: calls a function until it succeeds; each chunk has a deadline of its
    own. Raises SessionLost, google.api_core's errors and what `retried` raises. Memory: one chunk.
    """
    position = sent = 0
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
        found = int(match[1]) + 1 if match else 0
        if not position <= found <= sent:
            raise SessionLost(f"{found} bytes are kept, it says, after {position} were, and {sent} were sent")
        return found

    def made(response: Any) -> Made:
        return size_and_sum(lambda: itemgetter("size", "crc32c")(response.json()))

    def advance() -> Made | None:
        """One chunk, from where the service stands. Returns what is told of the finished object, or None."""
        nonlocal position, sent, unsure
        if unsure:
            response = put(b"", "*")
            if response.status_code != 308:
                return made(response)
            position = kept(response)
        before, unsure = position, True
        stream.seek(position)
        data = stream.read(min(CHUNK, size - position))
        sent = max(sent, position + len(data))
        response = put(data, f"{position}-{position + len(data) - 1}" if data else "*")
        if response.status_code != 308:
            return made(response)
        position, unsure = kept(response), False
        if position <= before:
            raise Transient(f"nothing of the bytes from {before} on was kept")
        return None

    while (done := retried(advance)) is None:
        pass
    return done
