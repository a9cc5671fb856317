"""The body of a response to a range request, received into the memory where it stays.

That memory is used again: new memory costs the kernel about as much as receiving the bytes.
"""

import base64
import http.client
import os
import re
import sys
import threading

import numpy as np
import numpy.typing as npt

from refinery.loader.storage.fetch import Attempt, Transient

Memory = npt.NDArray[np.uint8]

_LARGE = 1 << 20  # bytes of a response from which on its memory is used again
_READ = 1 << 18  # bytes between two checks of the time limit
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,19})-([0-9]{1,19})/([0-9]{1,19}|\*)")


class Buffers:
    """Buffers that nobody refers to any more, given out again. Safe to share between threads.

    most_bytes: kept at most, in use or not; what is asked for beyond that is new, and freed as any other object.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._kept: list[Memory] = []  # their sizes are powers of two, so few kinds are needed
        self._begin()

    def _begin(self) -> None:
        self._process, self._lock = os.getpid(), threading.Lock()

    def take(self, size: int) -> memoryview:
        """`size` bytes of any content, the caller's for as long as anything refers to them.

        Cost: some microseconds; new memory if none of that size is free.
        """
        if self._process != os.getpid():  # a thread of the parent may have taken the lock
            self._begin()
        room = 1 << max(size - 1, 0).bit_length()
        with self._lock:
            free = [i for i in range(len(self._kept)) if sys.getrefcount(self._kept[i]) == _UNUSED]
            for i in free:
                if len(self._kept[i]) == room:
                    return self._kept[i].data[:size]
            buffer = np.empty(room, np.uint8)  # not a bytearray, which is filled with zeros first
            left = self._most - room - sum(map(len, self._kept))
            for i in reversed(free):  # those of other sizes make room
                if left >= 0 or room > self._most:
                    break
                left += len(self._kept.pop(i))
            if left >= 0:
                self._kept.append(buffer)
            return buffer.data[:size]


def _count_of_unused() -> int:
    """What sys.getrefcount says in `take` of an object that only the list refers to."""
    kept = [np.empty(0, np.uint8)]
    return sys.getrefcount(kept[0])


_UNUSED = _count_of_unused()


def receive(
    response: http.client.HTTPResponse, start: int, stop: int, attempt: Attempt, buffers: Buffers
) -> tuple[memoryview, int | None]:
    """The body of a response with status 200 or 206 to a request for bytes [start, stop), and the size of the whole
    object if the server says so. Fewer bytes only if the object ends earlier.

    Raises Transient if the headers or the body are those of other bytes, OSError if the connection breaks.
    """
    declared = _content_length(response)
    if response.status == 206:
        text = response.getheader("Content-Range") or ""
        match = _CONTENT_RANGE.fullmatch(text)
        total = int(match[3]) if match and match[3] != "*" else None
        last = stop - 1 if total is None else min(stop, total) - 1
        if match is None or (int(match[1]), int(match[2])) != (start, last):
            raise Transient(f"Content-Range {text!r:.80}, bytes {start}-{last} requested")
        size = last + 1 - start
    else:
        # Some caches send the whole object while they fetch it, which is fine if it is no longer than requested.
        if start or declared is None or declared > stop:
            raise Transient("status 200: the server ignores Range")
        total = size = declared
    if declared not in (None, size):
        raise Transient(f"Content-Length {declared}, {size} expected")
    data = buffers.take(size) if size >= _LARGE else np.empty(size, np.uint8).data
    _fill(data, response, attempt)
    return data, total


def crc32c_of(response: http.client.HTTPResponse) -> str:
    """The whole object's CRC-32C if Cloud Storage, perhaps behind a CDN, sends it; else ""."""
    stored = response.getheader("x-goog-stored-content-encoding") or "identity"
    match = re.search(r"crc32c=([A-Za-z0-9+/]{6}==)", response.getheader("x-goog-hash") or "")
    return base64.b64decode(match[1]).hex() if match and stored == "identity" else ""


def _fill(data: memoryview, response: http.client.HTTPResponse, attempt: Attempt) -> None:
    size, view, filled = len(data), data, 0
    # http.client has no way to read what has arrived into memory that is there already, but its file has: without it
    # every byte is copied twice more. `length` is what it has to know of that.
    straight = not response.chunked and response.length == size
    while filled < size:
        attempt.check()
        room = view[filled : filled + _READ]
        if straight:
            count = response.fp.readinto1(room)
            response.length = size - filled - count
        else:
            piece = response.read1(len(room))
            count = len(piece)
            if count > len(room):  # of chunks whose sizes are none
                raise Transient(f"more than the {size} bytes requested")
            room[:count] = piece
        if not count:
            raise Transient(f"{filled} bytes found, {size} expected")
        filled += count
    attempt.check()
    if response.read1(1):
        raise Transient(f"more than the {size} bytes requested")
    response.read()  # at the end already; lets http.client finish the response


def _content_length(response: http.client.HTTPResponse) -> int | None:
    values = response.headers.get_all("Content-Length") or []
    if len(values) > 1 or any(not re.fullmatch("[0-9]{1,19}", value.strip()) for value in values):
        raise Transient(f"Content-Length {', '.join(values):.80}")
    return int(values[0]) if values else None
