"""Decoded row groups on local disk, shared by a host's processes: Parquet is decoded and checked once, then mapped.

FOLDER/<corpus>/<digest of file, checksum and group>.rows

A file is a header and plain arrays, each at a multiple of 64 bytes; the header has the key and a CRC-32C of all. It is
created exclusively under its name when it is complete (LocalStore.create), and compared with its checksum when a
process first maps it: what is damaged, cut or foreign is removed, and decoded again. Nothing depends on it.
"""

import hashlib
import logging
import mmap
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import numpy.typing as npt

from refinery.loader.format.packed import STRUCTURE
from refinery.loader.order.arrays import I64
from refinery.loader.read.remote.cache import default_folder
from refinery.loader.storage.fetch import ReadCounters
from refinery.loader.storage.store import LocalStore, StorageConflict

_MAGIC = b"RFROWS01"  # another layout or another meaning of the arrays: another number
_HEADER = struct.Struct("<8s32sqqqqqI")  # magic, key, rows, places, bytes of a token, documents, further, CRC-32C
_ALIGN = 64
_SUFFIX = ".rows"

_log = logging.getLogger("refinery.loader")


@dataclass(frozen=True)
class DecodedParams:
    """Where decoded row groups are kept between epochs and processes.

    folder: on a local disk, None for `decoded` in the user's cache folder. most_bytes: bound of the folder, all corpora
    together; what does not fit is decoded in every epoch. memory_bytes: of decoded groups that a process holds beside
    those that it maps, which are the page cache's.
    """

    folder: Path | None = None
    most_bytes: int = 64 << 30
    memory_bytes: int = 1 << 30

    def __post_init__(self) -> None:
        for name in ("most_bytes", "memory_bytes"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name}: {getattr(self, name)} given, 0 or more is allowed")


@dataclass(frozen=True, slots=True)
class DecodedGroup:
    """A row group: tokens [n, S + 1], documents' starts, row by row, from starts[bounds[i]] to bounds[i + 1], valid
    tokens [n]; loss [n, S] where it leaves out more than documents' ends, else None; columns: [n, S] by name, of those
    that were asked for and are in the file."""

    tokens: npt.NDArray[Any]
    starts: I64
    bounds: I64
    valid: I64
    loss: npt.NDArray[np.bool_] | None
    columns: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)

    @property
    def further(self) -> int:
        """Which arrays of places it has: a bit for the loss, then for each of STRUCTURE."""
        names = [name for name in STRUCTURE if name in self.columns]
        return int(self.loss is not None) | sum(2 << list(STRUCTURE).index(name) for name in names)

    @property
    def arrays(self) -> list[npt.NDArray[Any]]:
        """In the order of the file."""
        loss = [] if self.loss is None else [self.loss]
        columns = [self.columns[name] for name in STRUCTURE if name in self.columns]
        return [self.tokens, self.starts, self.bounds, self.valid, *loss, *columns]

    @property
    def size(self) -> int:
        return sum(array.nbytes for array in self.arrays)


class DecodedCache:
    """The groups of one corpus. corpus: the manifest's SHA-256. Not for several threads; safe across a fork.

    A disk that is full or fails is a warning, once: groups are then decoded as without a cache.
    """

    def __init__(self, params: DecodedParams, corpus: str, counters: ReadCounters) -> None:
        self._root = default_folder() / "decoded" if params.folder is None else params.folder
        self._own, self._most, self._counters = corpus[:32], params.most_bytes, counters
        self._store = LocalStore(str(self._root / self._own))
        self._stores_more = True
        self._verified: dict[str, tuple[int, ...]] = {}  # name -> inode, size, time of change of what was compared
        try:
            LocalStore(str(self._root)).sweep()  # temporary files of processes that were killed
        except OSError as error:
            self._give_up(error)

    def load(self, name: str) -> DecodedGroup | None:
        """The group of a name, mapped; None where there is none, or where it is not what was stored."""
        path = self._path(name)
        try:
            with path.open("rb") as stream:
                found = os.fstat(stream.fileno())
                size = found.st_size
                mapped = mmap.mmap(stream.fileno(), size, access=mmap.ACCESS_READ) if size >= _HEADER.size else None
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            self._give_up(error)
            return None
        identity = found.st_ino, size, found.st_mtime_ns
        is_verified = self._verified.get(name) == identity
        group = None if mapped is None else _parse(mapped, _key(name), is_verified)
        if group is not None:
            self._verified[name] = identity
            return group
        self._counters.add(repairs=1)
        self._remove(path)
        return None

    def has(self, name: str) -> bool:
        """Whether there is a file of a group, sound or not."""
        return self._path(name).exists()

    def store(self, name: str, group: DecodedGroup) -> bool:
        """Keep a group, where there is room; whether it is there now."""
        if not self._stores_more:
            return False
        data = _bytes(group, _key(name))
        try:
            if self._make_room(len(data)):
                self._store.create(self._path(name).name, data)
                return True
            self._counters.add(bypasses=1)
        except StorageConflict:  # another process was faster, and what it wrote was damaged since
            self._remove(self._path(name))
        except OSError as error:  # DiskFull is one: it names the file and the room
            self._give_up(error)
        return False

    def _remove(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            self._give_up(error)

    def _path(self, name: str) -> Path:
        return self._root / self._own / (hashlib.sha256(name.encode()).hexdigest()[:40] + _SUFFIX)

    def _make_room(self, size: int) -> bool:
        """Whether the file fits; groups of other corpora go first. Those of this one stay: an epoch reads each once,
        so removing the one not used for longest would remove just those that come next."""
        files: list[tuple[float, int, Path]] = []
        used = 0
        for path in self._root.glob(f"*/*{_SUFFIX}"):
            try:
                found = path.stat()
            except FileNotFoundError:
                continue
            used += found.st_size
            if path.parent.name != self._own:
                files.append((found.st_mtime, found.st_size, path))
        for _, old, path in sorted(files):
            if used + size <= self._most:
                break
            path.unlink(missing_ok=True)
            self._counters.add(evictions=1)
            used -= old
        return used + size <= self._most

    def _give_up(self, error: Exception) -> None:
        if self._stores_more:
            _log.warning("decoded rows are not kept on disk any more: %s", error)
        self._stores_more = False
        self._counters.add(cache_errors=1)


def _key(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


def _bytes(group: DecodedGroup, key: bytes) -> bytes:
    n, places = group.tokens.shape
    facts = (n, places, group.tokens.dtype.itemsize, len(group.starts), group.further)
    pieces = [bytes(_HEADER.size)]
    position = _HEADER.size
    for array in group.arrays:
        gap = -position % _ALIGN
        pieces += [bytes(gap), array.tobytes()]
        position += gap + array.nbytes
    data = bytearray().join(pieces)
    _HEADER.pack_into(data, 0, _MAGIC, key, *facts, 0)
    _HEADER.pack_into(data, 0, _MAGIC, key, *facts, google_crc32c.value(bytes(data)))
    return bytes(data)


def _parse(mapped: mmap.mmap, key: bytes, is_verified: bool) -> DecodedGroup | None:
    """The group in a file, None if it is not one, not of this key, or damaged. Cost: a checksum of all."""
    magic, found, n, places, itemsize, documents, further, crc = _HEADER.unpack_from(mapped)
    if (magic, found) != (_MAGIC, key) or itemsize not in (2, 4) or min(n, places, documents) < 0:
        return None
    head = bytearray(mapped[: _HEADER.size])
    head[-4:] = bytes(4)
    view = np.frombuffer(mapped, np.uint8)
    if not is_verified and google_crc32c.extend(google_crc32c.value(bytes(head)), view[_HEADER.size :]) != crc:
        return None
    names = [name for bit, name in enumerate(STRUCTURE) if further & 2 << bit]
    shapes: list[tuple[Any, tuple[int, ...]]] = [
        (np.uint16 if itemsize == 2 else np.int32, (n, places)),
        (np.int64, (documents,)),
        (np.int64, (n + 1,)),
        (np.int64, (n,)),
        *([(np.bool_, (n, places - 1))] if further & 1 else []),
        *((STRUCTURE[name], (n, places - 1)) for name in names),
    ]
    arrays: list[Any] = []
    position = _HEADER.size
    for dtype, shape in shapes:
        position += -position % _ALIGN
        count = int(np.prod(shape))
        size = count * np.dtype(dtype).itemsize
        if position + size > len(view):
            return None
        arrays.append(np.frombuffer(mapped, dtype, count, position).reshape(shape))
        position += size
    tokens, starts, bounds, valid, *others = arrays
    loss = others.pop(0) if further & 1 else None
    return DecodedGroup(tokens, starts, bounds, valid, loss, dict(zip(names, others, strict=True)))
