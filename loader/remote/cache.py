"""Blocks of remote files on local disk, shared by all processes of a host and bounded in size.

FOLDER/blocks/<file>/<block>   a block, then CRC-32C of each 16 KiB page of it, then a footer with its own checksum
FOLDER/locks/<stripe>          which group of blocks is being fetched
FOLDER/usage                   bytes in use; locked by whoever changes them

<file> is a digest of corpus, path, size and checksum, so that corpora cannot collide. A block is written under a
temporary name, synced, then renamed, so a block file is never partial. Every read from disk is verified page by page in
memory, so bit rot, torn writes and outside modification are detected before a token is delivered. All locks are flock
locks: the kernel releases them when their holder dies, also by SIGKILL.
"""

import contextlib
import fcntl
import hashlib
import logging
import os
import secrets
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import google_crc32c

from refinery.loader.format.block_checksums import CHECKSUM_BLOCK, combine_blocks
from refinery.loader.storage.fetch import ReadCounters

PAGE = 1 << 14
STRIPES = 1024
_MAGIC = b"RFBLOCK1"
_FOOTER = struct.Struct("<8s16sII")  # magic, digest of the key, length of the block, CRC-32C of table and footer before
_TEMPORARY = ".tmp-"
LOW = 0.9  # share of the bound that eviction leaves, so that one pass frees room for many blocks
_USAGE_LOCK_SECONDS = 10.0  # longest wait for the lock on `usage`: its holder may be suspended
_FULL_SECONDS = 1.0  # for which a cache full of blocks in use is not searched again
_FAILED_SECONDS = 30.0  # without attempts to write after one failed
_ABANDONED_SECONDS = 60.0  # after which an unlocked temporary file counts as abandoned

_log = logging.getLogger("refinery.loader")


class DamagedBlock(Exception):
    """A cached block is not what was stored."""


def default_folder() -> Path:
    """$XDG_CACHE_HOME/refinery, or ~/.cache/refinery."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "refinery"


def bytes_in_use(folder: Path) -> int:
    """Of the cache in `folder`; 0 if there is none."""
    try:
        return int.from_bytes((folder / "usage").read_bytes()[:8], "little")
    except OSError:
        return 0


class Key(NamedTuple):
    """Block number `block` of a file. file: what `file_id` returns."""

    file: str
    block: int

    @property
    def digest(self) -> bytes:
        return hashlib.blake2b(f"{self.file}/{self.block}".encode(), digest_size=16).digest()


def file_id(corpus: str, path: str, size: int, crc32c: str) -> str:
    """The name of a file's folder: 32 hexadecimal digits."""
    return hashlib.blake2b(f"{corpus}\0{path}\0{size}\0{crc32c}\0{CHECKSUM_BLOCK}".encode(), digest_size=16).hexdigest()


class CachedBlock:
    """An open block, which no process evicts until it is closed. Safe to share between threads."""

    def __init__(self, descriptor: int, length: int, table: tuple[int, ...]) -> None:
        self._descriptor = descriptor
        self.length = length
        self._table = table
        self._lock = threading.Lock()  # a closed descriptor's number may already belong to another file

    @property
    def crc32c(self) -> int:
        return combine_blocks(self._table, self.length, PAGE)

    def read(self, start: int, stop: int) -> memoryview:
        """Bytes [start, stop), verified. Raises DamagedBlock, and OSError also if the block was closed.

        Cost: reading and hashing the pages of 16 KiB that they touch.
        """
        first = start // PAGE
        begin = first * PAGE
        with self._lock:
            size = min(-(-stop // PAGE) * PAGE, self.length) - begin
            data = os.pread(self._descriptor, size, begin)
        for page in range(first, -(-stop // PAGE)):
            piece = data[(page - first) * PAGE : (page - first + 1) * PAGE]
            if google_crc32c.value(piece) != self._table[page]:  # also after a short read
                raise DamagedBlock(f"page {page}")
        return memoryview(data)[start - begin : stop - begin]

    def close(self) -> None:
        with self._lock:
            if self._descriptor >= 0:
                _unlock(self._descriptor)
                self._descriptor = -1

    def abandon(self) -> None:
        """In a forked child: close the inherited descriptor without releasing the parent's lock."""
        os.close(self._descriptor)


class BlockCache:
    """The cache in `folder`, of at most `max_bytes`. Safe to share between threads and processes of a host, and
    consistent after a crash.

    If the folder cannot be written, cached blocks are still served and nothing is stored; each failure is counted in
    `cache_errors`, and the first is logged as a warning.
    """

    def __init__(self, folder: Path, max_bytes: int, counters: ReadCounters) -> None:
        if max_bytes < 0:
            raise ValueError(f"max_bytes: {max_bytes} given, 0 or more is allowed")
        self.folder = folder
        self.max_bytes = max_bytes
        self._counters = counters
        self._lock = threading.Lock()
        self._warned = False
        self._not_before = 0.0  # time.monotonic() at which storing may be tried again
        with self._tolerate_errors():
            self._make_folders()

    def _make_folders(self) -> None:
        for name in ("blocks", "locks"):
            (self.folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)

    def _open_own(self, name: str) -> int:
        """Open one of the cache's own files; creates it, and the folders in case they were removed."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        try:
            return os.open(self.folder / name, flags, 0o600)
        except FileNotFoundError:
            self._make_folders()
            return os.open(self.folder / name, flags, 0o600)

    def open(self, key: Key, expected: int | None) -> CachedBlock | None:
        """The block; None if it is not cached. expected: its CRC-32C if known.

        A damaged block is removed, counted in `repairs`, and None is returned.
        """
        path = self._path(key)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            block = CachedBlock(descriptor, *_read_footer(descriptor, key))
            if expected is not None and block.crc32c != expected:
                raise DamagedBlock("checksum")
        except DamagedBlock:
            _unlock(descriptor)
            self.repair(key)
            return None
        except OSError:  # being evicted, or a failing disk
            _unlock(descriptor)
            return None
        with contextlib.suppress(OSError):  # a read-only folder
            os.utime(descriptor)
        return block

    def has(self, key: Key) -> bool:
        return self._path(key).exists()

    def may_store(self) -> bool:
        """False while nothing can be stored: the folder failed or was full of blocks in use a moment ago."""
        return self.max_bytes > 0 and time.monotonic() >= self._not_before

    def store(self, key: Key, data: bytes | bytearray | memoryview) -> bool:
        """Store a block; False if the cache is full of blocks in use or cannot be written."""
        if self.has(key):
            return True
        if len(data) > self.max_bytes or not self.may_store():
            return False
        view = memoryview(data)
        pages = (bytes(view[i : i + PAGE]) for i in range(0, len(view), PAGE))
        table = b"".join(google_crc32c.value(page).to_bytes(4, "little") for page in pages)
        footer = _FOOTER.pack(_MAGIC, key.digest, len(view), 0)[:-4]
        tail = table + footer + struct.pack("<I", google_crc32c.value(table + footer))
        with self._tolerate_errors():
            path = self._path(key)
            temporary = path.parent / f"{_TEMPORARY}{secrets.token_hex(8)}"
            try:
                descriptor = self._reserve(temporary, len(view) + len(tail))
                if descriptor is None:
                    self._not_before = time.monotonic() + _FULL_SECONDS
                    return False
                try:
                    with open(descriptor, "wb", closefd=False) as stream:
                        stream.write(view)
                        stream.write(tail)
                    os.fsync(descriptor)
                    temporary.rename(path)
                finally:
                    _unlock(descriptor)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
            return True
        return False

    def done(self, key: Key) -> None:
        """The block is not needed any more: it is evicted before others. Opening it again reverts that."""
        with contextlib.suppress(OSError):
            os.utime(self._path(key), (0, 0))

    def repair(self, key: Key) -> None:
        """Remove a damaged block."""
        self._counters.add(repairs=1)
        with contextlib.suppress(OSError):
            self._path(key).unlink(missing_ok=True)

    @contextlib.contextmanager
    def fetching(self, file: str, group: int) -> Iterator[bool]:
        """False if another thread or process is fetching blocks of this group; True excludes all others while inside.

        Groups share 1,024 locks, so collisions are rare. Never blocks. True if locks are not available.
        """
        stripe = int.from_bytes(hashlib.blake2b(f"{file}/{group}".encode(), digest_size=8).digest()) % STRIPES
        descriptor = -1
        with self._tolerate_errors():
            descriptor = self._open_own(f"locks/{stripe:03x}")
        if descriptor < 0:
            yield True
            return
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                yield False
            else:
                yield True
        finally:
            _unlock(descriptor)

    def _path(self, key: Key) -> Path:
        return self.folder / "blocks" / key.file / f"{key.block:08x}"

    def _reserve(self, temporary: Path, size: int) -> int | None:
        """A locked temporary file of `size` bytes within the bound, evicting as needed; None if there is no room.

        It has its size before the lock on `usage` is released, so a process that counts the folder includes it.
        """
        with self._usage() as usage:
            if usage is None:
                return None
            stored = os.pread(usage, 8, 0)
            used = int.from_bytes(stored, "little") if len(stored) == 8 else None
            if used is None or used + size > self.max_bytes:
                used = self._evict(max(0, int(self.max_bytes * LOW) - size))
            descriptor = None
            if used + size <= self.max_bytes:
                temporary.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX)
                    os.truncate(descriptor, size)
                except BaseException:
                    _unlock(descriptor)
                    raise
                used += size
            os.pwrite(usage, used.to_bytes(8, "little"), 0)
            return descriptor

    @contextlib.contextmanager
    def _usage(self) -> Iterator[int | None]:
        descriptor = self._open_own("usage")
        try:
            until = time.monotonic() + _USAGE_LOCK_SECONDS
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > until:
                        yield None
                        return
                    time.sleep(0.002)
            yield descriptor
        finally:
            _unlock(descriptor)

    def _evict(self, target: int) -> int:
        """Remove blocks until `target` bytes are left: those marked done first, then by last use; never an open one.

        Returns the bytes that are left. Cost: one stat per file.
        """
        found: list[tuple[float, int, str]] = []
        total = 0
        now = time.time()
        for folder in os.scandir(self.folder / "blocks"):
            with os.scandir(folder) as entries:
                for entry in entries:
                    with contextlib.suppress(FileNotFoundError):
                        stat = entry.stat()
                        if entry.name.startswith(_TEMPORARY):
                            # abs(): the clock may have been set back since.
                            if abs(now - stat.st_mtime) > _ABANDONED_SECONDS and _remove_unused(entry.path):
                                continue
                        else:
                            found.append((stat.st_mtime, stat.st_size, entry.path))
                        total += stat.st_size
        for _, size, path in sorted(found):
            if total <= target:
                break
            if _remove_unused(path):
                total -= size
                self._counters.add(evictions=1)
                with contextlib.suppress(OSError):  # not empty
                    os.rmdir(os.path.dirname(path))
        return total

    @contextlib.contextmanager
    def _tolerate_errors(self) -> Iterator[None]:
        """Count and log an error of the folder (full, read-only, removed), and continue without the cache."""
        try:
            yield
        except OSError as error:
            self._counters.add(cache_errors=1)
            self._not_before = time.monotonic() + _FAILED_SECONDS
            with self._lock:
                first, self._warned = not self._warned, True
            if first:
                _log.warning("cache %s: %s; continuing without it", self.folder, error)


def _read_footer(descriptor: int, key: Key) -> tuple[int, tuple[int, ...]]:
    """Length and page checksums of the block in an open file. Raises DamagedBlock."""
    size = os.fstat(descriptor).st_size
    rest = min(size, _FOOTER.size + 4 * (CHECKSUM_BLOCK // PAGE))
    tail = os.pread(descriptor, rest, size - rest)
    if len(tail) != rest or rest < _FOOTER.size:
        raise DamagedBlock("too short")
    magic, digest, length, crc32c = _FOOTER.unpack(tail[-_FOOTER.size :])
    pages = -(-length // PAGE)
    table = tail[-_FOOTER.size - 4 * pages :]
    if magic != _MAGIC or digest != key.digest or size != length + 4 * pages + _FOOTER.size or length > CHECKSUM_BLOCK:
        raise DamagedBlock("footer")
    if google_crc32c.value(table[:-4]) != crc32c:
        raise DamagedBlock("footer checksum")
    return length, struct.unpack(f"<{pages}I", table[: 4 * pages])


def _unlock(descriptor: int) -> None:
    """Unlock, then close: otherwise a forked child's copy of the descriptor would keep the lock."""
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def _remove_unused(path: str) -> bool:
    """Remove a file unless a process has it locked; whether it was removed."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)
    except OSError:
        return False
    finally:
        _unlock(descriptor)
    return True
