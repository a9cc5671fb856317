"""Blocks of remote files on local disk, shared by all processes of a host and bounded in size.

FOLDER/blocks/<file>/<block>   a block, then CRC-32C of each 16 KiB page of it, then a footer with its own checksum
FOLDER/locks/<stripe>          which group of blocks is being fetched
FOLDER/usage                   bytes in use; locked by whoever changes them

<file> is a digest of corpus, path, size and checksum, so corpora cannot collide. A block is written under a
temporary name, then renamed, so a process that dies leaves no partial one. It is not synced, which would take more
time than fetching it: what a power failure leaves is found by its checksums, as any damage. Every read from disk is
verified page by page in memory, so bit rot, torn writes and outside modification are detected before a token is
delivered. All locks are flock locks: the kernel releases them when their holder dies, also by SIGKILL.
"""

import contextlib
import fcntl
import hashlib
import logging
import os
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

from refinery.loader.format.block_checksums import CHECKSUM_BLOCK
from refinery.loader.read.remote.block_file import (
    CachedBlock,
    DamagedBlock,
    Key,
    check_size,
    footer_of,
    page_values,
    read_footer,
    unlock,
)
from refinery.loader.storage.fetch import ReadCounters

STRIPES = 1024
_TEMPORARY = ".tmp-"
LOW = 0.9  # share of the bound that eviction leaves, so one pass frees room for many blocks
_USAGE_LOCK_SECONDS = 10.0  # longest wait for the lock on `usage`: its holder may be suspended
_FULL_SECONDS = 1.0  # for which a cache full of blocks in use is not searched again
_FAILED_SECONDS = 30.0  # without attempts to write after one failed
_ABANDONED_SECONDS = 60.0  # after which an unlocked temporary file counts as abandoned
_MOST_TABLES = 1 << 14  # blocks whose page checksums are remembered: 6 MiB

_log = logging.getLogger("refinery.loader")


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


def file_id(corpus: str, path: str, size: int, crc32c: str) -> str:
    """The name of a file's folder: 32 hexadecimal digits."""
    return hashlib.blake2b(f"{corpus}\0{path}\0{size}\0{crc32c}\0{CHECKSUM_BLOCK}".encode(), digest_size=16).hexdigest()


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
        self._stripes: dict[int, tuple[int, int]] = {}  # locks of this process: descriptor, threads inside
        self._striping = threading.Lock()
        self._reserving = threading.Lock()  # threads of a process wait for each other without polling a file's lock
        self._tables: OrderedDict[Key, tuple[int, bytes]] = OrderedDict()  # verified: length, page checksums
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

        A damaged block is removed, counted in `repairs`, and None is returned. Its table of checksums is compared with
        `expected` the first time only: whatever becomes of the file, its pages must match that one.
        """
        path = self._path(key)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            length, table = self._tables.get(key) or read_footer(descriptor, key)
            check_size(descriptor, length)
            block = CachedBlock(descriptor, length, table)
            if expected is not None and key not in self._tables:
                if block.crc32c != expected:
                    raise DamagedBlock("checksum")
                self._remember(key, length, table)
        except DamagedBlock:
            unlock(descriptor)
            self.repair(key)
            return None
        except OSError:  # being evicted, or a failing disk
            unlock(descriptor)
            return None
        with contextlib.suppress(OSError):  # a read-only folder
            os.utime(descriptor)
        return block

    def has(self, key: Key) -> bool:
        return os.path.exists(self._path(key))

    def may_store(self) -> bool:
        """False while nothing can be stored: the folder failed or was full of blocks in use a moment ago."""
        return self.max_bytes > 0 and time.monotonic() >= self._not_before

    def store(self, key: Key, data: bytes | bytearray | memoryview, table: bytes | None = None) -> bool:
        """Store a block; False if the cache is full of blocks in use or cannot be written. table: `page_values` of it,
        None to compute them."""
        if self.has(key):
            return True
        if len(data) > self.max_bytes or not self.may_store():
            return False
        tail = footer_of(key, len(data), page_values(data) if table is None else table)
        with self._tolerate_errors():
            path = self._path(key)
            temporary = f"{os.path.dirname(path)}/{_TEMPORARY}{secrets.token_hex(8)}"
            try:
                descriptor = self._reserve(temporary, len(data) + len(tail))
                if descriptor is None:
                    self._not_before = time.monotonic() + _FULL_SECONDS
                    return False
                try:
                    _write(descriptor, memoryview(data))
                    _write(descriptor, memoryview(tail))
                    with self._reserving, self._usage():  # or who counts the folder may see neither name
                        os.rename(temporary, path)
                finally:
                    unlock(descriptor)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary)
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
        with self._lock:
            self._tables.pop(key, None)
        with contextlib.suppress(OSError):
            os.unlink(self._path(key))

    @contextlib.contextmanager
    def fetching(self, file: str, group: int) -> Iterator[bool]:
        """False if another process is fetching blocks of this group; True excludes other processes while inside.

        Groups share 1,024 locks, so collisions are rare. Never blocks. True if locks are not available.
        """
        digest = hashlib.blake2b(f"{file}/{group}".encode(), digest_size=8).digest()
        stripe = int.from_bytes(digest) % STRIPES
        with self._striping:
            descriptor, users = self._stripes.get(stripe) or (self._lock_stripe(stripe), 0)
            if descriptor is not None:
                self._stripes[stripe] = descriptor, users + 1
        if descriptor is None:
            yield False
            return
        try:
            yield True
        finally:
            with self._striping:
                _, users = self._stripes.pop(stripe)
                if users > 1:
                    self._stripes[stripe] = descriptor, users - 1
                elif descriptor >= 0:
                    unlock(descriptor)

    def _lock_stripe(self, stripe: int) -> int | None:
        """The descriptor of its file, locked; -1 if locks are not available, None if another process has it."""
        descriptor = -1
        with self._tolerate_errors():
            descriptor = self._open_own(f"locks/{stripe:03x}")
        if descriptor >= 0:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(descriptor)
                return None if isinstance(error, BlockingIOError) else -1  # a file system may have no locks
        return descriptor

    def _path(self, key: Key) -> str:
        return f"{self.folder}/blocks/{key.file}/{key.block:08x}"

    def _remember(self, key: Key, length: int, table: bytes) -> None:
        with self._lock:
            self._tables[key] = length, table
            if len(self._tables) > _MOST_TABLES:
                self._tables.popitem(last=False)

    def _reserve(self, temporary: str, size: int) -> int | None:
        """A locked temporary file of `size` bytes within the bound, evicting as needed; None if there is no room.

        It has its size before the lock on `usage` is released, so a process that counts the folder includes it.
        """
        with self._reserving, self._usage() as usage:
            if usage is None:
                return None
            stored = os.pread(usage, 8, 0)
            used = int.from_bytes(stored, "little") if len(stored) == 8 else None
            if used is None or used + size > self.max_bytes:
                used = self._evict(max(0, int(self.max_bytes * LOW) - size))
            fits = used + size <= self.max_bytes
            # Counted before it is there: whoever is killed in between leaves too much in the count, never too little.
            os.pwrite(usage, (used + size * fits).to_bytes(8, "little"), 0)
            return self._create(temporary, size) if fits else None

    @staticmethod
    def _create(temporary: str, size: int) -> int:
        """A new file of that size, locked."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            descriptor = os.open(temporary, flags, 0o600)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(temporary), 0o700, exist_ok=True)
            descriptor = os.open(temporary, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            os.truncate(descriptor, size)
        except BaseException:
            unlock(descriptor)
            raise
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
            unlock(descriptor)

    def _evict(self, target: int) -> int:
        """Remove blocks until `target` bytes are left: those marked done first, then by last use; never an open one.

        Returns the bytes that are left. Cost: one stat per file.
        """
        found: list[tuple[float, int, str]] = []
        total = 0
        now = time.time()
        with os.scandir(self.folder / "blocks") as folders:
            for folder in folders:
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


def _write(descriptor: int, data: memoryview) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _remove_unused(path: str) -> bool:
    """Remove a file unless a process has it locked; whether it was removed."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)  # NFS locks alone what is open for writing
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)
    except OSError:
        return False
    finally:
        unlock(descriptor)
    return True
