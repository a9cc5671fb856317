"""Row tables of large corpora on local disk: made once a host, then mapped by every process and every later start.

FOLDER/<digest>/rows    a header with the key and a CRC-32C of the rest, then the four arrays of the table
FOLDER/<digest>/lock    locked by the process that makes the file; others wait for it

A file has its name when it is complete, and is compared with its checksum when a process opens it: what is damaged, cut
or foreign is made again. Nothing depends on it.
"""

import contextlib
import logging
import mmap
import os
import struct
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import numpy.typing as npt

from refinery.loader.packing.row_table import RowTable
from refinery.loader.storage.full_disk import naming_full_disk
from refinery.loader.storage.locks import hold

MOST_BYTES = 32 << 30  # of the folder; tables that were opened longest ago go first
_MAGIC = b"RFTABLE2"  # another layout, or another way to pack: another number
_HEADER = struct.Struct("<8s32sqqQ")  # magic, key, pieces, blocks, CRC-32C of the arrays

_log = logging.getLogger("refinery.loader")


def kept_table(folder: Path, key: str, make: Callable[[], RowTable]) -> RowTable:
    """The table of a key from its file; made, and kept there, if there is none. key: all that the table depends on.

    A folder that cannot be written is a warning, and the table is made without it. Cost: a checksum of the file.
    """
    digest = sha256(key.encode()).digest()
    own = folder / digest.hex()[:40]
    with contextlib.suppress(OSError):  # then nothing can be written either, which says so
        own.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(own / "lock"):
        found = _read(own / "rows", digest)
        if found is not None:
            return found
        table = make()
        try:
            _write(own / "rows", digest, table)
            _make_room(folder, own)
        except OSError as error:
            _log.warning("%s: %s; the rows of this corpus are packed again at the next start", folder, error)
        return table


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Alone among the processes of the host, if the lock is to be had at all."""
    descriptor = lock = -1
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        lock = hold(descriptor, path)
    try:
        yield
    finally:
        for each in {descriptor, lock} - {-1}:
            os.close(each)


def _read(path: Path, digest: bytes) -> RowTable | None:
    """The table in a file, mapped; None if there is none, or another one, or a damaged one, which goes."""
    try:
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            mapped = mmap.mmap(stream.fileno(), size, access=mmap.ACCESS_READ) if size >= _HEADER.size else b""
        os.utime(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        _log.warning("%s: %s", path, error)
        return None
    found = _parse(mapped, digest)
    if found is None:
        _log.warning("%s: damaged; the rows are packed again", path)
        with contextlib.suppress(OSError):
            path.unlink()
    return found


def _parse(data: mmap.mmap | bytes, digest: bytes) -> RowTable | None:
    if len(data) < _HEADER.size:
        return None
    magic, key, pieces, blocks, crc = _HEADER.unpack_from(data)
    sizes = _HEADER.size, 8 * (blocks + 1), 8 * (blocks + 1), 8 * pieces, 4 * pieces
    if (magic, key) != (_MAGIC, digest) or min(pieces, blocks) < 0 or sum(sizes) != len(data):
        return None
    if google_crc32c.value(np.frombuffer(data, np.uint8, offset=_HEADER.size)) != crc:
        return None
    ends = np.cumsum(sizes).tolist()
    bounds = [np.frombuffer(data, np.int64, blocks + 1, end) for end in ends[:2]]
    starts, reads = np.frombuffer(data, np.int64, pieces, ends[2]), np.frombuffer(data, np.int32, pieces, ends[3])
    return RowTable(starts, reads, *bounds)


def _arrays(table: RowTable) -> tuple[npt.NDArray[Any], ...]:
    return table.piece_bounds, table.row_bounds, table.starts, table.reads


def _write(path: Path, digest: bytes, table: RowTable) -> None:
    arrays = [array.view(np.uint8) for array in _arrays(table)]
    crc = 0
    for array in arrays:
        crc = google_crc32c.extend(crc, array)
    temporary = path.with_name("rows.partial")  # one process at a time: the lock
    with naming_full_disk(path), temporary.open("wb") as stream:
        stream.write(_HEADER.pack(_MAGIC, digest, len(table.starts), len(table.row_bounds) - 1, crc))
        for array in arrays:
            stream.write(array.data)
    os.replace(temporary, path)


def _make_room(folder: Path, own: Path) -> None:
    """Remove tables that were opened longest ago until the rest fits; a process that maps one keeps it."""
    files = []
    for path in folder.glob("*/rows"):
        with contextlib.suppress(FileNotFoundError):
            found = path.stat()
            files.append((path.parent == own, -found.st_mtime, found.st_size, path))
    used = 0
    for _, _, size, path in sorted(files, key=lambda file: (not file[0], file[1])):
        used += size
        if used > MOST_BYTES and path.parent != own:
            path.unlink(missing_ok=True)
