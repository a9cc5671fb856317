"""Inputs behind web servers: https:// (http:// on this machine), read in ranges, each response checked.

What a file is was settled when the run was planned: its size and its ETag. Every range must be of that version.
"""

import hashlib
import io
import os
from functools import lru_cache
from typing import Any, BinaryIO, cast
from urllib.parse import unquote, urlsplit

import google_crc32c

from refinery.loader.storage.fetch import FetchParams
from refinery.loader.storage.http_store import HttpStore
from refinery.loader.storage.remote_store import RangeStream
from refinery.loader.storage.store import StorageError
from refinery.transforms.read.remote.globs import is_glob

BUFFER = 8 << 20  # one request
ENDS = 1 << 16  # bytes of both ends that stand for a file whose server names no version
# Reading waits through a restart of the server; planning says within half a minute what cannot be reached.
READING = FetchParams(deadline=300, read_timeout=30, max_delay=30, hedge_after=0)
PLANNING = FetchParams(deadline=30, hedge_after=0)


class Sha256Stream(RangeStream):
    """A stream that compares the SHA-256 of a file read from beginning to end, in order. sha256: "" for no check.

    Raises StorageError, which fails the bundle, so nothing of the file counts.
    """

    def __init__(self, store: HttpStore, name: str, size: int, version: str, sha256: str) -> None:
        super().__init__(store, name, size, version)
        self._expected, self._hashed, self._digest = sha256, 0, hashlib.sha256()

    def readinto(self, buffer: Any) -> int:
        start = self._position
        count = super().readinto(buffer)
        if self._expected and start == self._hashed and count:
            self._digest.update(memoryview(buffer).cast("B")[:count])
            self._hashed += count
            if self._hashed == self._size and (found := self._digest.hexdigest()) != self._expected:
                where = self._store.url(self._name)
                raise StorageError(f"{where}: sha256 {found} found, {self._expected} expected; read it again")
        return count


def split_address(path: str) -> tuple[str, str]:
    """(origin, name) of https://host/name. Raises ValueError, without a query or password of it in the message."""
    parts = urlsplit(path)
    name = unquote(parts.path.lstrip("/"))
    if is_glob(parts.path):
        raise ValueError("web servers cannot be listed; name every file, or a list of files in `path_lists`")
    if "?" in path or "#" in path or not name or name.endswith("/"):
        raise ValueError(
            f"{parts.scheme}://{parts.hostname or '...'}: https://host/path/to/file without query is allowed"
        )
    return f"{parts.scheme}://{parts.netloc}", name


def store_of(origin: str, params: FetchParams = READING) -> HttpStore:
    """The store of a host; its connections are kept for the next file."""
    return _store_of(origin, params, os.getpid())


@lru_cache(maxsize=64)
def _store_of(origin: str, params: FetchParams, process: int) -> HttpStore:  # a fork has connections of its own
    return HttpStore(origin, params, anywhere=True)


def describe(path: str) -> tuple[int, str]:
    """Size in bytes and version of a file: its ETag, or a checksum of both ends where the server sends none.

    Costs one request, or three. Raises OSError, ValueError.
    """
    origin, name = split_address(path)
    store = store_of(origin, PLANNING)
    found = store.range(name, 0, 1)
    if found.size is None:
        raise StorageError(f"{store.url(name)}: the server does not say how large the file is")
    if found.version:
        return found.size, f"etag:{found.version}"
    tail = store.read(name, max(0, found.size - ENDS), ENDS)
    crc = google_crc32c.extend(google_crc32c.value(store.read(name, 0, ENDS)), tail)
    return found.size, f"ends:{crc:08x}"


def open_web(path: str, size: int | None = None, version: str = "") -> BinaryIO:
    """A seekable, buffered stream. version: as `describe` told it; "" for whatever is there."""
    origin, name = split_address(path)
    store = store_of(origin)
    etag = version.removeprefix("etag:") if version.startswith("etag:") else ""
    if size is None:
        found = store.range(name, 0, 1, etag)
        size, etag = cast(int, found.size), found.version
    return buffered(RangeStream(store, name, size, etag))


def buffered(stream: io.RawIOBase) -> BinaryIO:
    return cast(BinaryIO, io.BufferedReader(stream, BUFFER))
