"""Common code of remote stores: whole reads with retries, and a seekable stream, both made of range requests."""

import io
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any

import google_crc32c

from refinery.loader.errors import CorruptObject
from refinery.loader.storage.fetch import (
    Attempt,
    FetchParams,
    RangeResponse,
    ReadCounters,
    Stop,
    WrongBytes,
    retrying,
    timed,
)
from refinery.loader.storage.store import StorageError, Store, check_range

REQUEST_BYTES = 8 << 20  # of one request; each has its own deadline


class RemoteStore(Store):
    """A store that reads with `get`. params: timeouts and retries. counters: what reading has cost."""

    params: FetchParams
    counters: ReadCounters

    def get(self, name: str, start: int, stop: int, attempt: Attempt, version: str = "") -> RangeResponse:
        """One attempt at bytes [start, stop): see refinery.loader.storage.fetch.RangeStore."""
        raise NotImplementedError

    def open_ahead(self, connections: int) -> None:
        """Open connections in the background, where the store does that: soon as many requests will be sent at once."""
        return

    def read(self, name: str, start: int = 0, length: int | None = None, stop_by: Stop | None = None) -> bytes:
        """As Store.read. stop_by: lets another thread cancel it, which raises FetchError."""
        check_range(start, length)
        stop = None if length is None else start + length
        pieces: list[bytes | bytearray | memoryview] = []
        position, crc32c, version = start, 0, ""
        while True:
            end = position + REQUEST_BYTES if stop is None else min(position + REQUEST_BYTES, stop)
            # Reading 0 bytes must still raise FileNotFoundError for a missing object.
            response = self._piece(
                name, position, max(end, position + 1), version, crc32c if start == 0 else None, stop_by
            )
            data = response.data[: end - position]
            pieces.append(data)
            crc32c = google_crc32c.extend(crc32c, bytes(data))
            position += len(data)
            if len(data) < REQUEST_BYTES or position in (stop, response.size):
                return b"".join(pieces)
            version = response.version

    def range(self, name: str, start: int, stop: int, version: str = "") -> RangeResponse:
        """Bytes [start, stop) of one version of an object, with retries; fewer at its end. version: "" for any."""
        return self._piece(name, start, stop, version, None)

    def _piece(
        self, name: str, start: int, stop: int, version: str, before: int | None, stop_by: Stop | None = None
    ) -> RangeResponse:
        """One piece with retries. before: CRC-32C of all bytes up to `start`, None if they were not read."""
        ending = stop_by or Stop()

        def once(until: float) -> RangeResponse:
            with timed(self.params, until) as attempt:
                ending.add(attempt)
                try:
                    self.counters.add(requests=1)
                    response = self.get(name, start, stop, attempt, version)
                finally:
                    ending.discard(attempt)
            last = len(response.data) < stop - start or stop == response.size
            if before is not None and last and response.crc32c:
                found = f"{google_crc32c.extend(before, bytes(response.data)):08x}"
                if found != response.crc32c:
                    text = f"{self.url(name)}: crc32c {found} found, {response.crc32c} expected by the server"
                    raise WrongBytes(CorruptObject(text))
            return response

        response = retrying(once, self.url(name), (start, stop), self.params, self.counters, ending.event)
        self.counters.add(bytes=len(response.data))
        return response


class PiecesStream(io.RawIOBase):
    """A seekable stream of `size` bytes that are asked for in pieces; wrap it in io.BufferedReader."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size, self._position = size, 0

    def piece(self, start: int, stop: int) -> bytes | bytearray | memoryview:
        """Bytes [start, stop), up to REQUEST_BYTES of them and at least one; fewer only where the object has ended."""
        raise NotImplementedError

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if position < 0:
            raise ValueError(f"seek: position {position} given, 0 or more is allowed")
        self._position = position
        return position

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        stop = min(self._position + min(len(view), REQUEST_BYTES), self._size)
        if stop <= self._position:
            return 0
        data = self.piece(self._position, stop)
        view[: len(data)] = data
        self._position += len(data)
        return len(data)


class RangeStream(PiecesStream):
    """One version of an object of `size` bytes. version: "" for that of the first response."""

    def __init__(self, store: RemoteStore, name: str, size: int, version: str) -> None:
        super().__init__(size)
        self._store, self._name, self._version = store, name, version

    def piece(self, start: int, stop: int) -> bytes | bytearray | memoryview:
        found = self._store.range(self._name, start, stop, self._version)
        if found.size not in (None, self._size):
            where = self._store.url(self._name)
            raise StorageError(f"{where}: {found.size} bytes found, {self._size} expected: the object has changed")
        self._version = self._version or found.version
        return found.data


class CheckedStream(RangeStream):
    """A stream that compares the CRC-32C with the service's after being read from beginning to end. crc32c: 8
    hexadecimal digits, "" where the service knows none."""

    def __init__(self, store: RemoteStore, name: str, size: int, version: str, crc32c: str) -> None:
        super().__init__(store, name, size, version)
        self._expected = crc32c
        self._summed = self._crc32c = 0  # bytes read from the beginning, and their checksum

    def readinto(self, buffer: Any) -> int:
        start = self.tell()
        count = super().readinto(buffer)
        if not count and start < self._size and len(buffer):
            raise CorruptObject(f"{self._store.url(self._name)}: it ends at byte {start}, {self._size} expected")
        if count and start == self._summed:
            self._crc32c = google_crc32c.extend(self._crc32c, bytes(memoryview(buffer).cast("B")[:count]))
            self._summed += count
            if self._summed == self._size and f"{self._crc32c:08x}" != (self._expected or f"{self._crc32c:08x}"):
                text = f"crc32c {self._crc32c:08x} found, {self._expected} expected by the server"
                raise CorruptObject(f"{self._store.url(self._name)}: {text}")
        return count


def in_batches(names: Iterable[str], size: int, threads: int, call: Callable[[list[str]], list[str]]) -> list[str]:
    """What `call` returns for each batch of names, put together; several batches at once, in no particular order.

    Memory: the names of twice as many batches as there are threads. Raises what `call` does, when the calls that are
    under way have ended.
    """
    found: list[str] = []
    running: deque[Future[list[str]]] = deque()
    left: Iterator[str] = iter(names)
    with ThreadPoolExecutor(threads, "refinery-delete") as pool:
        while batch := list(islice(left, size)):
            if len(running) == 2 * threads:
                found += running.popleft().result()
            running.append(pool.submit(call, batch))
        for future in running:
            found += future.result()
    return found
