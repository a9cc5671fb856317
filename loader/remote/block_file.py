"""The file of a cached block: its bytes, CRC-32C of each page of them, and a footer that says what it is of."""

import contextlib
import fcntl
import hashlib
import os
import struct
import threading
from collections.abc import Sequence
from typing import NamedTuple

import google_crc32c
import numpy as np

from refinery.loader.format.block_checksums import CHECKSUM_BLOCK, combine_blocks

PAGE = 1 << 14
_MAGIC = b"RFBLOCK1"
_FOOTER = struct.Struct("<8s16sII")  # magic, digest of the key, length of the block, CRC-32C of table and footer before


class DamagedBlock(Exception):
    """A cached block is not what was stored."""


class Key(NamedTuple):
    """Block number `block` of a file. file: what `file_id` returns."""

    file: str
    block: int

    @property
    def digest(self) -> bytes:
        return hashlib.blake2b(f"{self.file}/{self.block}".encode(), digest_size=16).digest()


class CachedBlock:
    """An open block, which no process evicts until it is closed. Safe to share between threads."""

    def __init__(self, descriptor: int, length: int, table: tuple[int, ...]) -> None:
        self._descriptor = descriptor
        self.length = length
        self.table = table
        self._lock = threading.Lock()  # a closed descriptor's number may already belong to another file

    @property
    def crc32c(self) -> int:
        return combine_blocks(self.table, self.length, PAGE)

    def read(self, start: int, stop: int) -> memoryview:
        """Bytes [start, stop), verified. Raises DamagedBlock, and OSError also if the block was closed.

        Cost: reading and hashing the pages of 16 KiB that they touch.
        """
        first = start // PAGE
        begin = first * PAGE
        with self._lock:
            size = min(-(-stop // PAGE) * PAGE, self.length) - begin
            data = os.pread(self._descriptor, size, begin)
        for page, value in enumerate(page_values(data), first):
            if value != self.table[page]:
                raise DamagedBlock(f"page {page}")
        if len(data) != size:
            raise DamagedBlock(f"{len(data)} bytes")
        return memoryview(data)[start - begin : stop - begin]

    def close(self) -> None:
        with self._lock:
            if self._descriptor >= 0:
                unlock(self._descriptor)
                self._descriptor = -1

    def abandon(self) -> None:
        """In a forked child: close the inherited descriptor without releasing the parent's lock."""
        os.close(self._descriptor)


def page_values(data: bytes | bytearray | memoryview) -> list[int]:
    """CRC-32C of each page of `data`, without a copy of any."""
    view = np.frombuffer(data, np.uint8)
    return [google_crc32c.value(view[i : i + PAGE]) for i in range(0, len(view), PAGE)]


def footer_of(key: Key, length: int, pages: Sequence[int]) -> bytes:
    """What follows the bytes of a block: the table of its pages' checksums and the footer."""
    table = struct.pack(f"<{len(pages)}I", *pages)
    footer = _FOOTER.pack(_MAGIC, key.digest, length, 0)[:-4]
    return table + footer + struct.pack("<I", google_crc32c.value(table + footer))


def check_size(descriptor: int, length: int) -> None:
    """Raise DamagedBlock unless the open file has the size of a block of `length` bytes."""
    if os.fstat(descriptor).st_size != length + 4 * -(-length // PAGE) + _FOOTER.size:
        raise DamagedBlock("length")


def read_footer(descriptor: int, key: Key) -> tuple[int, tuple[int, ...]]:
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


def unlock(descriptor: int) -> None:
    """Unlock, then close: otherwise a forked child's copy of the descriptor would keep the lock."""
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)
