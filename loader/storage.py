"""Local folders and Google Cloud Storage behind one small interface, and checksums in one pass.

Names are relative to a store's root and '/'-separated on every backend. Publishing is exclusive: an object that exists
is never replaced by other bytes.
"""

import base64
import contextlib
import errno
import fcntl
import hashlib
import os
import re
import secrets
import shutil
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import google_crc32c

Names = list[str]  # inside the classes `list` is a method

CHUNK = 8 << 20
TEMPORARY = ".tmp-"
_OWN_TEMPORARY = re.compile(r"\.tmp-[0-9a-f]{16}")  # as `_temporary` makes them


class StorageConflict(Exception):
    """An object exists with other bytes than the ones to be published. The message names both."""


class Checksums(NamedTuple):
    """Size in bytes, and CRC-32C (8 digits) and SHA-256 (64 digits) in lower-case hexadecimal."""

    size: int
    crc32c: str
    sha256: str


class Hasher:
    """Checksums of bytes that arrive piece by piece. Releases the GIL on large pieces."""

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
    """Checksums of bytes, of a local file, or of the rest of a stream (of an object: `checksums(store.open(name))`).

    Memory: one chunk of 8 MiB. Raises OSError as the file or stream does.
    """
    hasher = Hasher()
    for chunk in _chunks(source):
        hasher.update(chunk)
    return hasher.result()


def size_and_crc32c(source: bytes | Path | BinaryIO) -> tuple[int, str]:
    """Size and CRC-32C alone, at several GB/s: what two objects are compared by."""
    size = value = 0
    for chunk in _chunks(source):
        size += len(chunk)
        value = google_crc32c.extend(value, chunk)
    return size, f"{value:08x}"


def _chunks(source: bytes | Path | BinaryIO) -> Iterator[bytes]:
    if isinstance(source, bytes):
        yield source
    elif isinstance(source, Path):
        with source.open("rb") as stream:
            yield from _chunks(stream)
    else:
        while chunk := source.read(CHUNK):
            yield chunk


def check_name(name: str) -> str:
    """`name` itself if it can name an object: relative, no empty, '.' or '..' part, no NUL, no temporary's prefix.

    Raises ValueError otherwise.
    """
    parts = name.split("/")
    if "\0" in name or not {"", ".", ".."}.isdisjoint(parts) or any(part.startswith(TEMPORARY) for part in parts):
        raise ValueError(f"name: {name!r} given, a relative path without '', '.', '..' and '{TEMPORARY}*' is allowed")
    name.encode()  # lone surrogates: UnicodeEncodeError is a ValueError
    return name


class Store(ABC):
    """Objects under one root. Safe to share between threads; pickles as its root.

    Every method takes names relative to the root and raises ValueError for those that `check_name` refuses. Reading
    what is missing raises FileNotFoundError; the network and the disk raise their own errors.
    """

    root: str

    def __reduce__(self) -> tuple[Any, ...]:
        return open_store, (self.root,)

    def __repr__(self) -> str:
        return f"open_store({self.root!r})"

    def url(self, name: str) -> str:
        """Where `name` is, for people and for other tools."""
        return f"{self.root.rstrip('/')}/{check_name(name)}"

    def local_path(self, name: str) -> Path | None:
        """The file behind `name` where it can be memory-mapped, else None."""
        check_name(name)
        return None

    @abstractmethod
    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        """Bytes [start, start + length) of the object, fewer where it ends earlier; to its end without `length`."""

    @abstractmethod
    def open(self, name: str) -> BinaryIO:
        """A seekable stream of the object's bytes; on GCS it reads ahead and stays on one generation."""

    @abstractmethod
    def size(self, name: str) -> int | None:
        """Size in bytes, None when there is no such object."""

    @abstractmethod
    def list(self, folder: str = "") -> Names:
        """Sorted names of all objects below `folder` ("" is the root), recursively; temporary files never show."""

    @abstractmethod
    def create(self, name: str, source: bytes | Path) -> None:
        """Publish exclusively and atomically. The same bytes already there: success. Others: StorageConflict."""

    @abstractmethod
    def replace(self, name: str, data: bytes) -> None:
        """Overwrite atomically. For small mutable markers only, never for what a manifest lists."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Remove the object; a missing one is fine."""

    def sweep(self) -> int:
        """Remove temporary files that killed writers left behind; returns how many. Nothing to do for object stores."""
        return 0


def open_store(url: str | Path) -> Store:
    """The store at a local folder (which need not exist yet) or at gs://bucket/prefix. Touches nothing.

    Raises ValueError for any other kind of address.
    """
    text = str(url)
    if text.startswith("gs://"):
        return GcsStore(text)
    if not text or "\0" in text or "://" in text:
        raise ValueError(f"location: {text!r} given, a local folder or gs://bucket/prefix is allowed")
    return LocalStore(text)


def _conflict(url: str, found: tuple[int, str], given: tuple[int, str]) -> StorageConflict:
    return StorageConflict(
        f"{url} exists with other bytes: {found[0]} bytes, crc32c {found[1]} there; "
        f"{given[0]} bytes, crc32c {given[1]} to be published"
    )


class LocalStore(Store):
    """A folder. What `create` and `replace` return from has reached the disk."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._folder = Path(root)

    def local_path(self, name: str) -> Path:
        return self._folder / check_name(name)

    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        _check_range(start, length)
        with self.open(name) as stream:
            stream.seek(start)
            return stream.read(-1 if length is None else length)

    def open(self, name: str) -> BinaryIO:
        path = self.local_path(name)
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # a folder has an error of its own
            # Before opening: a FIFO would wait for its writer for ever, and a device never ends.
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return path.open("rb")

    def size(self, name: str) -> int | None:
        path = self.local_path(name)
        return path.stat().st_size if path.is_file() else None

    def list(self, folder: str = "") -> Names:
        top = self.local_path(folder) if folder else self._folder
        names = []
        for base, folders, files in os.walk(top, onerror=_raise_unless_missing):
            folders[:] = [name for name in folders if not name.startswith(TEMPORARY)]
            inside = Path(base).relative_to(self._folder)
            names += [(inside / name).as_posix() for name in files if not name.startswith(TEMPORARY)]
        return sorted(names)

    def create(self, name: str, source: bytes | Path) -> None:
        final = self.local_path(name)
        if not final.exists():
            with _temporary(final, source) as temporary:
                try:
                    os.link(temporary, final)  # atomic, and fails where rename would overwrite
                except FileExistsError:
                    pass  # someone was faster: compare below
                else:
                    _sync_folder(final.parent)
                    return
        with self.open(name) as stream:
            found, given = size_and_crc32c(stream), size_and_crc32c(source)
        if found != given:
            raise _conflict(self.url(name), found, given)

    def replace(self, name: str, data: bytes) -> None:
        final = self.local_path(name)
        with _temporary(final, data) as temporary:
            os.replace(temporary, final)
        _sync_folder(final.parent)

    def delete(self, name: str) -> None:
        self.local_path(name).unlink(missing_ok=True)

    def sweep(self) -> int:
        found = 0
        for base, _, files in os.walk(self._folder, onerror=_raise_unless_missing):
            for name in files:
                if _OWN_TEMPORARY.fullmatch(name):
                    found += _remove_abandoned(Path(base) / name)
        return found


@contextlib.contextmanager
def _temporary(final: Path, source: bytes | Path) -> Iterator[Path]:
    """A synced temporary file with the bytes of `source`, in the folder of `final`; removed at the end if still there.

    Locked as long as its writer lives, so that `sweep` can tell what a killed writer left behind.
    """
    final.parent.mkdir(parents=True, exist_ok=True)
    temporary = final.parent / f"{TEMPORARY}{secrets.token_hex(8)}"
    try:
        with temporary.open("xb") as out:
            fcntl.flock(out, fcntl.LOCK_EX)
            if isinstance(source, bytes):
                out.write(source)
            else:
                with source.open("rb") as stream:
                    shutil.copyfileobj(stream, out, CHUNK)
            out.flush()
            os.fsync(out.fileno())
            yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def _remove_abandoned(temporary: Path) -> int:
    """1 if the file was removed, 0 if its writer lives or has just finished."""
    try:
        with temporary.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            temporary.unlink()
    except (BlockingIOError, FileNotFoundError):
        return 0
    return 1


class GcsStore(Store):
    """A prefix of a Cloud Storage bucket. google-cloud-storage is imported, and its client made, at the first use."""

    def __init__(self, url: str) -> None:
        bucket, _, prefix = url.removeprefix("gs://").partition("/")
        prefix = prefix.rstrip("/")
        if not bucket or (prefix and check_name(prefix) != prefix):
            raise ValueError(f"location: {url!r} given, gs://bucket or gs://bucket/prefix is allowed")
        self._bucket_name = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self.root = f"gs://{bucket}/{prefix}".rstrip("/")

    @cached_property
    def _bucket(self) -> Any:
        from google.cloud import storage

        # Objects need no project: without None the client insists on a default one.
        return storage.Client(project=None).bucket(self._bucket_name)

    def _blob(self, name: str) -> Any:
        return self._bucket.blob(self._prefix + check_name(name))

    def _found(self, name: str) -> Any:
        """The blob with its metadata, or None."""
        return self._bucket.get_blob(self._prefix + check_name(name))

    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        from google.api_core import exceptions

        _check_range(start, length)
        blob = self._blob(name)
        if length == 0:
            if self.size(name) is None:
                raise FileNotFoundError(self.url(name))
            return b""
        end = None if length is None else start + length - 1  # inclusive
        try:
            # raw: the stored bytes, also of objects that carry Content-Encoding: gzip
            data = blob.download_as_bytes(start=start or None, end=end, raw_download=True)
        except exceptions.RequestRangeNotSatisfiable:
            return b""
        except exceptions.NotFound as error:
            raise FileNotFoundError(self.url(name)) from error
        return cast(bytes, data)

    def open(self, name: str) -> BinaryIO:
        blob = self._found(name)
        if blob is None:
            raise FileNotFoundError(self.url(name))
        stream = blob.open("rb", chunk_size=CHUNK, if_generation_match=blob.generation, raw_download=True)
        return cast(BinaryIO, stream)

    def size(self, name: str) -> int | None:
        blob = self._found(name)
        return None if blob is None else int(blob.size)

    def list(self, folder: str = "") -> Names:
        prefix = self._prefix + (f"{check_name(folder)}/" if folder else "")
        blobs = self._bucket.client.list_blobs(self._bucket_name, prefix=prefix, fields="items(name),nextPageToken")
        # Consoles make empty objects "folder/" to show folders; no such name can be read here.
        names = (blob.name[len(self._prefix) :] for blob in blobs if not blob.name.endswith("/"))
        return sorted(name for name in names if f"/{TEMPORARY}" not in f"/{name}")

    def create(self, name: str, source: bytes | Path) -> None:
        from google.api_core import exceptions

        blob = self._blob(name)
        upload = blob.upload_from_string if isinstance(source, bytes) else blob.upload_from_filename
        try:
            upload(source, content_type="application/octet-stream", if_generation_match=0, checksum="crc32c")
        except exceptions.PreconditionFailed:  # it exists: perhaps by an attempt of ours whose answer was lost
            blob.reload()
            found, given = (int(blob.size), base64.b64decode(blob.crc32c).hex()), size_and_crc32c(source)
            if found != given:
                raise _conflict(self.url(name), found, given) from None

    def replace(self, name: str, data: bytes) -> None:
        from google.cloud.storage.retry import DEFAULT_RETRY

        # Writing the same bytes twice does no harm, so retries need no precondition.
        self._blob(name).upload_from_string(
            data, content_type="application/octet-stream", checksum="crc32c", retry=DEFAULT_RETRY
        )

    def delete(self, name: str) -> None:
        from google.api_core import exceptions
        from google.cloud.storage.retry import DEFAULT_RETRY

        with contextlib.suppress(exceptions.NotFound):
            self._blob(name).delete(retry=DEFAULT_RETRY)


def _check_range(start: int, length: int | None) -> None:
    if start < 0 or (length is not None and length < 0):
        raise ValueError(f"range: start {start}, length {length} given, 0 or more is allowed")


def _raise_unless_missing(error: OSError) -> None:
    if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
        raise error


def _sync_folder(folder: Path) -> None:
    """Make a new directory entry durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
