"""What remote stores share: whole reads with retries, and a seekable stream, both over single range requests."""

import io
import threading
import time
from typing import Any

import google_crc32c

from refinery.loader.errors import FormatError
from refinery.loader.storage.fetch import Answer, Attempt, Counters, FetchParams, Stop, WrongBytes, retrying
from refinery.loader.storage.store import Store, check_range

PIECE = 8 << 20  # bytes of one request: each has a deadline of its own


class CorruptObject(FormatError):
    """Bytes came twice with another checksum than they should have. The message names the file and both values."""


class RemoteStore(Store):
    """A store that reads by `get`. `params` rule its patience, `counters` what it has cost."""

    params: FetchParams
    counters: Counters

    def get(self, name: str, start: int, stop: int, attempt: Attempt, version: str = "") -> Answer:
        """One attempt at bytes [start, stop): see refinery.loader.storage.fetch.RangeStore."""
        raise NotImplementedError

    def read(self, name: str, start: int = 0, length: int | None = None, stop_by: Stop | None = None) -> bytes:
        """As Store.read. stop_by: what may end it from another thread, with a FetchError."""
        check_range(start, length)
        stop = None if length is None else start + length
        pieces: list[bytes | bytearray] = []
        position, crc32c, version = start, 0, ""
        while True:
            end = position + PIECE if stop is None else min(position + PIECE, stop)
            # A read of nothing still has to find out whether there is such an object.
            answer = self._piece(
                name, position, max(end, position + 1), version, crc32c if start == 0 else None, stop_by
            )
            data = answer.data[: end - position]
            pieces.append(data)
            crc32c = google_crc32c.extend(crc32c, bytes(data))
            position += len(data)
            if len(data) < PIECE or position in (stop, answer.size):
                return b"".join(pieces)
            version = answer.version

    def _piece(
        self, name: str, start: int, stop: int, version: str, before: int | None, stop_by: Stop | None = None
    ) -> Answer:
        """One piece with retries. before: CRC-32C of all bytes up to `start`, None where they were not read."""
        ending = stop_by or Stop()

        def once(until: float) -> Answer:
            now = time.monotonic()
            attempt = Attempt(self.params, min(until, now + self.params.attempt_seconds))
            ending.add(attempt)
            # Stores look at the clock between pieces of an answer. One that has no end before its first piece must
            # not hold the reader either.
            timer = threading.Timer(attempt.until - now, attempt.cancel)
            timer.daemon = True
            timer.start()
            try:
                self.counters.add(requests=1)
                answer = self.get(name, start, stop, attempt, version)
            finally:
                timer.cancel()
                ending.discard(attempt)
            last = len(answer.data) < stop - start or stop == answer.size
            if before is not None and last and answer.crc32c:
                found = f"{google_crc32c.extend(before, bytes(answer.data)):08x}"
                if found != answer.crc32c:
                    text = f"{self.url(name)}: crc32c {found} found, {answer.crc32c} expected by the server"
                    raise WrongBytes(CorruptObject(text))
            return answer

        answer = retrying(once, self.url(name), (start, stop), self.params, self.counters, ending.event)
        self.counters.add(bytes=len(answer.data))
        return answer


class RangeStream(io.RawIOBase):
    """A seekable stream of an object of `size` bytes that stays on one version; wrap it in io.BufferedReader."""

    def __init__(self, store: RemoteStore, name: str, size: int, version: str) -> None:
        super().__init__()
        self._store, self._name, self._size, self._version = store, name, size, version
        self._position = 0

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
        stop = min(self._position + min(len(view), PIECE), self._size)
        if stop <= self._position:
            return 0
        data = self._store._piece(self._name, self._position, stop, self._version, None).data
        view[: len(data)] = data
        self._position += len(data)
        return len(data)
