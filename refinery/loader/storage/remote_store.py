"""Common code of remote stores: whole reads with retries, and a seekable stream, both made of range requests; of
buckets also their names and listings."""

import errno
import io
import re
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, BinaryIO, ClassVar, NamedTuple, cast

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
from refinery.loader.storage.pace import MOST_BYTES
from refinery.loader.storage.publish_new import TEMPORARY
from refinery.loader.storage.receive import Buffers
from refinery.loader.storage.store import Names, StorageError, Store, check_name, check_range

REQUEST_BYTES = 8 << 20  # of one request; each has its own deadline
CHECK_SECONDS = 15.0  # for `check`


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


class ObjectInfo(NamedTuple):
    """Metadata of an object. crc32c: 8 hexadecimal digits, "" if nobody knows it. version: generation or ETag.
    computed: whether the service says the checksum, rather than whoever wrote the object."""

    size: int
    crc32c: str
    version: str
    computed: bool = True


Page = dict[str, ObjectInfo]  # of a listing: by key


class BucketStore(RemoteStore):
    """A prefix of a bucket. Nothing is asked before the first use. Raises ValueError for a location that is none.

    scheme: with "://". buckets: the names that the service allows.
    """

    scheme: ClassVar[str]
    buckets: ClassVar[re.Pattern[str]]

    def __init__(self, url: str, params: FetchParams | None = None) -> None:
        bucket, _, prefix = url.removeprefix(self.scheme).partition("/")
        prefix = prefix.rstrip("/")
        if not self.buckets.fullmatch(bucket) or (prefix and check_name(prefix) != prefix):
            raise ValueError(f"location: {url!r} given, {self.scheme}bucket or {self.scheme}bucket/prefix is allowed")
        self.params = params or FetchParams()
        self.counters = ReadCounters()
        self._bucket = bucket
        self._buffers = Buffers(2 * MOST_BYTES)  # on their way, and being stored
        self._prefix = f"{prefix}/" if prefix else ""
        self.root = f"{self.scheme}{bucket}/{prefix}".rstrip("/")

    def key(self, name: str) -> str:
        """The object's key. Raises ValueError for a name that is not valid."""
        return self._prefix + check_name(name)

    @abstractmethod
    def info(self, name: str) -> ObjectInfo | None:
        """Current metadata of the object, None if there is none. Raises StorageError."""

    @abstractmethod
    def page(self, prefix: str, token: str = "", most: int = 0, params: FetchParams | None = None) -> tuple[Page, str]:
        """One page of the objects whose keys begin so, in order of their keys, and the next page's token, "" for the
        last. most: objects, 0 for as many as the service gives. Raises StorageError."""

    def open(self, name: str) -> BinaryIO:
        info = self.info(name)
        if info is None:
            raise FileNotFoundError(errno.ENOENT, "no such object", self.url(name))
        stream = CheckedStream(self, name, info.size, info.version, info.crc32c)
        return cast(BinaryIO, io.BufferedReader(stream, REQUEST_BYTES // 8))

    def size(self, name: str) -> int | None:
        info = self.info(name)
        return None if info is None else info.size

    def listed(self, prefix: str) -> Iterator[Page]:
        """All objects whose keys begin so, in pages. Raises StorageError, also where pages repeat themselves."""
        token, tokens = "", set[str]()
        while True:
            page, token = self.page(prefix, token)
            yield page
            if not token:
                return
            if token in tokens:
                raise StorageError(f"{self.root}: cannot be listed: the service repeats a page")
            tokens.add(token)

    def pages(self, folder: str = "") -> Iterator[Names]:
        for page in self.listed(self._prefix + (f"{check_name(folder)}/" if folder else "")):
            yield [key[len(self._prefix) :] for key in page if not self._is_foreign(key)]

    def is_empty(self) -> bool:
        page, token = self.page(self._prefix, most=10)
        return not token and all(map(self._is_foreign, page))

    def _is_foreign(self, key: str) -> bool:
        """Whether a key is of a folder's placeholder, which consoles make, or of something temporary."""
        return key.endswith("/") or f"/{TEMPORARY}" in f"/{key[len(self._prefix) :]}"

    def check(self) -> None:
        self.page(self._prefix, most=1, params=FetchParams(deadline=min(CHECK_SECONDS, self.params.deadline)))


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
            raise StorageError(f"{where}: {found.size} bytes found, {self._size} expected; the object has changed")
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
