"""One interface for local folders, Cloud Storage, S3 and web servers; local folders; checksums in one pass.

Names are relative to a store's root and '/'-separated on every backend. Publishing is exclusive: an object that exists
is never replaced by other bytes.
"""

import contextlib
import errno
import hashlib
import os
import stat
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import google_crc32c

from refinery.loader.storage.local_files import (
    HIDDEN_SECONDS,
    files_below,
    is_hidden,
    is_seen,
    retried,
    sweep_temporaries,
    sync_folder,
    temporary_file,
)
from refinery.loader.storage.publish_new import TEMPORARY, publish_new

Names = list[str]  # inside the classes, `list` is a method

CHUNK = 8 << 20
_NO_PARTS = frozenset({"", ".", ".."})
REVALIDATED = (".json", ".html", ".md")  # files that tell of others, and may be others in a later version of a prefix
WRITES = 3  # of a temporary file that is swept or whose folder is pruned meanwhile


class StorageConflict(Exception):
    """An object already exists with different bytes. The message has size and crc32c of both."""


class StorageError(OSError):
    """A remote location cannot be read or written. One line: the location, what was tried, and what to do about it.

    status: of the service's last response, 0 if there was none.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Checksums(NamedTuple):
    """Size in bytes, and CRC-32C (8 digits) and SHA-256 (64 digits) in lower-case hexadecimal."""

    size: int
    crc32c: str
    sha256: str


class Hasher:
    """Checksums of bytes that arrive in pieces. Releases the GIL for large pieces."""

    def __init__(self) -> None:
        self.size = 0
        self._crc32c = 0
        self._sha256 = hashlib.sha256()

    def update(self, data: bytes) -> None:
        self.size += len(data)
        self._crc32c = google_crc32c.extend(self._crc32c, data)
        self._sha256.update(data)

    def result(self) -> Checksums:
        return Checksums(self.size, f"{self._crc32c:08x}", self._sha256.hexdigest())


def checksums(source: bytes | Path | BinaryIO) -> Checksums:
    """Checksums of bytes, a local file, or the rest of a stream (for an object: `checksums(store.open(name))`).

    Memory: one chunk of 8 MiB. Raises OSError as the file or stream does.
    """
    hasher = Hasher()
    for chunk in _chunks(source):
        hasher.update(chunk)
    return hasher.result()


def size_and_crc32c(source: bytes | Path | BinaryIO) -> tuple[int, str]:
    """Size and CRC-32C only, at several GB/s: enough to compare two objects."""
    size = value = 0
    for chunk in _chunks(source):
        size += len(chunk)
        value = google_crc32c.extend(value, chunk)
    return size, f"{value:08x}"


def _chunks(source: bytes | Path | BinaryIO) -> Iterator[bytes]:
    if isinstance(source, bytes):
        yield source
    elif isinstance(source, Path):
        with retried(lambda: source.open("rb")) as stream:
            yield from _chunks(stream)
    else:
        while chunk := source.read(CHUNK):
            yield chunk


def cache_control(name: str, is_replaced: bool = False) -> str:
    """How long a cache may keep an object, as the header of that name (RFC 9111; RFC 8246): data files never change, so
    it need not ask again. What names them is asked for again each time, which costs an answer without a body.

    Not `public`, so no shared cache keeps what was sent to somebody who signed in. is_replaced: by Store.replace.

    >>> cache_control("train/web/shard-00000-of-00001.bin"), cache_control("manifest.json")
    ('max-age=31536000, immutable', 'no-cache')
    """
    return "no-cache" if is_replaced or name.endswith(REVALIDATED) else "max-age=31536000, immutable"


def check_name(name: str) -> str:
    """`name` itself if it is valid: relative, no empty, '.' or '..' part, no NUL, no part with the temporary prefix.

    Raises ValueError otherwise.
    """
    parts = name.split("/")
    if "\0" in name or not _NO_PARTS.isdisjoint(parts) or f"/{TEMPORARY}" in f"/{name}":
        raise ValueError(f"name: {name!r} given, a relative path without '', '.', '..' and '{TEMPORARY}*' is allowed")
    name.encode()  # raises UnicodeEncodeError, a ValueError, for lone surrogates
    return name


class Store(ABC):
    """Objects under one root. Safe to share between threads; pickles as its root.

    Every method takes names relative to the root and raises ValueError for those that `check_name` rejects. Reading a
    missing object raises FileNotFoundError; other failures are OSErrors (StorageError or FetchError for remote stores).
    """

    root: str

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.root,)

    def __repr__(self) -> str:
        return f"open_store({self.root!r})"

    def url(self, name: str) -> str:
        """Full path or URL of `name`, for messages and other tools."""
        return f"{self.root.rstrip('/')}/{check_name(name)}"

    def local_path(self, name: str) -> Path | None:
        """The file behind `name` if it can be memory-mapped, else None."""
        check_name(name)
        return None

    @abstractmethod
    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        """Bytes [start, start + length) of the object, fewer if it ends earlier; without `length`, up to its end."""

    @abstractmethod
    def open(self, name: str) -> BinaryIO:
        """A seekable stream of the object's bytes.

        On GCS and S3 it is buffered, reads one version only, and after a read from beginning to end compares the
        CRC-32C (CorruptObject).
        """

    @abstractmethod
    def size(self, name: str) -> int | None:
        """Size in bytes, None if there is no such object."""

    @abstractmethod
    def pages(self, folder: str = "") -> Iterator[Names]:
        """The names of `list`, some at a time, in no particular order: of more objects than can be held. What was
        yielded may be deleted meanwhile."""

    def list(self, folder: str = "") -> Names:
        """Sorted names of all objects below `folder` ("" is the root), recursively, without temporary files."""
        return sorted(name for page in self.pages(folder) for name in page)

    def is_empty(self) -> bool:
        """Whether there are no objects. Cost: that of `list`, or less."""
        return not self.list()

    @abstractmethod
    def create(self, name: str, source: bytes | Path) -> None:
        """Publish exclusively and atomically. The same bytes already there are success, others StorageConflict."""

    @abstractmethod
    def replace(self, name: str, data: bytes) -> None:
        """Overwrite atomically. For small mutable markers only, never for files in a manifest."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Remove the object if it exists."""

    def delete_many(self, names: Iterable[str]) -> Names:
        """Remove objects, in no particular order. Returns those that may not be removed (403). Raises the same
        errors as `delete`."""
        refused = []
        for name in names:
            try:
                self.delete(name)
            except StorageError as error:
                if error.status != 403:
                    raise
                refused.append(name)
        return refused

    def check(self) -> None:
        """Raise StorageError within seconds if a remote location cannot be reached or listed. Costs one request."""
        return

    def close(self) -> None:
        """Close idle connections. The store can still be used."""
        return

    def sweep(self) -> int:
        """Remove temporary files of killed writers; returns how many. Object stores have none."""
        return 0

    def prune(self, folder: str) -> None:
        """Remove the folders of `folder` that are empty, itself too. Object stores have none."""
        check_name(folder)


def conflict(url: str, found: tuple[int, str], given: tuple[int, str]) -> StorageConflict:
    """The error for an object at `url` whose bytes differ from those to be published; found, given: size and crc32c."""
    return StorageConflict(
        f"{url} exists with other bytes: {found[0]} bytes, crc32c {found[1]} there; "
        f"{given[0]} bytes, crc32c {given[1]} to be published"
    )


class LocalStore(Store):
    """A folder, on a disk of this machine or one that several share. When `create` or `replace` returns, the object is
    on disk."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._folder = Path(root)

    def local_path(self, name: str) -> Path:
        return self._folder / check_name(name)

    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        check_range(start, length)

        def read() -> bytes:
            with self.open(name) as stream:
                stream.seek(start)
                return stream.read(-1 if length is None else length)

        return retried(read)

    def open(self, name: str) -> BinaryIO:
        path = self.local_path(name)

        def opened() -> BinaryIO:
            mode = path.stat().st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # opening a folder raises IsADirectoryError
                # Before opening: opening a FIFO blocks until it has a writer, and a device has no end.
                raise OSError(errno.EINVAL, "not a regular file", str(path))
            return path.open("rb")

        return retried(opened)

    def size(self, name: str) -> int | None:
        path = f"{self.root}/{check_name(name)}"  # no Path: corpora have 100,000 shards
        try:
            found = retried(lambda: os.stat(path))  # once
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            return None
        return found.st_size if stat.S_ISREG(found.st_mode) else None

    def pages(self, folder: str = "") -> Iterator[Names]:
        """A page for each folder. On a shared disk what other machines made or removed a moment ago may be missing, or
        be there still: what must be complete is asked for by name."""
        for base, files in files_below(self.local_path(folder) if folder else self._folder):
            inside = base.relative_to(self._folder)
            yield [(inside / name).as_posix() for name in files if not is_hidden(name)]

    def create(self, name: str, source: bytes | Path) -> None:
        final = self.local_path(name)
        if not retried(final.exists) and self._published(final, source):
            return
        with self.open(name) as stream:
            found, given = size_and_crc32c(stream), size_and_crc32c(source)
        if found != given:
            raise conflict(self.url(name), found, given)
        sync_folder(final.parent)  # who published it may have been killed in between

    def _published(self, final: Path, source: bytes | Path) -> bool:
        """Whether `final` is new, and of this call. False if it is there: another writer was first, or an answer from
        the server was lost."""
        until = time.monotonic() + HIDDEN_SECONDS
        for attempt in range(1, WRITES + 1):
            with temporary_file(final, source) as temporary:
                while True:
                    try:
                        publish_new(temporary, final)
                        sync_folder(final.parent)
                        return True
                    except FileExistsError:
                        if is_seen(final):
                            return False
                        if time.monotonic() > until:
                            raise
                    except FileNotFoundError:
                        if is_seen(final):
                            return False
                        if attempt == WRITES:
                            raise
                        break
        raise AssertionError("unreachable")

    def replace(self, name: str, data: bytes) -> None:
        final = self.local_path(name)
        for attempt in range(1, WRITES + 1):
            with temporary_file(final, data) as temporary:
                try:
                    os.replace(temporary, final)
                except FileNotFoundError:  # it was swept, or it was renamed and the answer from the server was lost
                    if not (is_seen(final) and final.read_bytes() == data):
                        if attempt == WRITES:
                            raise
                        continue
            break
        sync_folder(final.parent)

    def delete(self, name: str) -> None:
        path = self.local_path(name)
        retried(lambda: path.unlink(missing_ok=True))

    def prune(self, folder: str) -> None:
        for base, _, _ in os.walk(self.local_path(folder), topdown=False):
            with contextlib.suppress(OSError):  # not empty, or somebody else's to remove
                os.rmdir(base)

    def sweep(self) -> int:
        return sweep_temporaries(self._folder)


def check_range(start: int, length: int | None) -> None:
    """Raise ValueError if either is negative."""
    if start < 0 or (length is not None and length < 0):
        raise ValueError(f"range: start {start}, length {length} given, 0 or more is allowed")
