"""The file of a cached block: its bytes, CRC-32C of each page of them, and a footer that says what it is of."""

import contextlib
import fcntl
import hashlib
import os
import struct
from typing import NamedTuple

import google_crc32c
import numpy as np

from refinery.loader.format.block_checksums import CHECKSUM_BLOCK, combine_blocks
from refinery.loader.native import pages

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
    """An open block, which no process evicts until it is freed.

    table: CRC-32C of each page, uint32. closed: to be freed once nobody holds it
    (refinery.loader.read.remote.open_blocks).
    """

    __slots__ = ("closed", "descriptor", "length", "table")

    def __init__(self, descriptor: int, length: int, table: bytes) -> None:
        self.descriptor, self.length, self.table = descriptor, length, table
        self.closed = False

    @property
    def crc32c(self) -> int:
        return combine_pages(self.table, self.length)

    def read(self, start: int, stop: int) -> memoryview:
        """Bytes [start, stop), verified. Raises DamagedBlock and OSError.

        Cost: reading and hashing the pages of 16 KiB that they touch.
        """
        first = start // PAGE
        begin = first * PAGE
        size = min(-(-stop // PAGE) * PAGE, self.length) - begin
        data = os.pread(self.descriptor, size, begin)
        if len(data) != size:
            raise DamagedBlock(f"{len(data)} bytes")
        if page_values(data) != self.table[4 * first : 4 * -(-stop // PAGE)]:
            raise DamagedBlock(f"pages {first} to {stop // PAGE}")
        return memoryview(data)[start - begin : stop - begin]

    def free(self) -> None:
        """A second call does nothing."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            unlock(descriptor)

    def abandon(self) -> None:
        """In a forked child: close the inherited descriptor without releasing the parent's lock."""
        os.close(self.descriptor)


def page_values(data: bytes | bytearray | memoryview) -> bytes:
    """CRC-32C of each page of `data`, uint32. Cost: 60 us for a MiB, without the GIL."""
    return pages.values(data, PAGE)


def combine_pages(table: bytes, length: int) -> int:
    """CRC-32C of `length` bytes from the table of their pages."""
    return combine_blocks(np.frombuffer(table, "<u4").tolist(), length, PAGE)


def footer_of(key: Key, length: int, table: bytes) -> bytes:
    """What follows the bytes of a block: the table of its pages' checksums and the footer."""
    footer = _FOOTER.pack(_MAGIC, key.digest, length, 0)[:-4]
    return table + footer + struct.pack("<I", google_crc32c.value(table + footer))


def check_size(descriptor: int, length: int) -> None:
    """Raise DamagedBlock unless the open file has the size of a block of `length` bytes."""
    if os.fstat(descriptor).st_size != length + 4 * -(-length // PAGE) + _FOOTER.size:
        raise DamagedBlock("length")


def read_footer(descriptor: int, key: Key) -> tuple[int, bytes]:
    """Length and table of page checksums of the block in an open file. Raises DamagedBlock."""
    size = os.fstat(descriptor).st_size
    rest = min(size, _FOOTER.size + 4 * (CHECKSUM_BLOCK // PAGE))
    tail = os.pread(descriptor, rest, size - rest)
    if len(tail) != rest or rest < _FOOTER.size:
        raise DamagedBlock("too short")
    magic, digest, length, crc32c = _FOOTER.unpack(tail[-_FOOTER.size :])
    size_of_table = 4 * -(-length // PAGE)
    table = tail[-_FOOTER.size - size_of_table :]
    if (
        magic != _MAGIC
        or digest != key.digest
        or size != length + size_of_table + _FOOTER.size
        or length > CHECKSUM_BLOCK
    ):
        raise DamagedBlock("footer")
    if google_crc32c.value(table[:-4]) != crc32c:
        raise DamagedBlock("footer checksum")
    return length, table[:size_of_table]


def unlock(descriptor: int) -> None:
    """Unlock, then close: otherwise a forked child's copy of the descriptor would keep the lock."""
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)
