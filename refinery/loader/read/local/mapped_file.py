"""A local .bin, memory-mapped: each block is verified when first read, and the file is checked for changes during use.

Reading a map beyond the end of a truncated file raises SIGBUS, which Python cannot catch. So the size is compared
before a block is hashed, and about once per millisecond of use. Measured per batch of 8 x 4,096 int32 tokens in the
page cache: 13.7 us, 0.2 of them for these checks; copying with pread instead of through a map would take 24 to 33.
"""

import mmap
import os
import time
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import numpy.typing as npt

from refinery.loader.errors import CorruptShard, FormatError
from refinery.loader.format.block_checksums import CHECKSUM_BLOCK, parse_blocks
from refinery.loader.format.manifest import FileEntry
from refinery.loader.native import rows
from refinery.loader.order.arrays import I64

_CHECK_SECONDS = 0.001  # between two checks for changes, and ...
_CHECK_SHARE = 50  # ... at least this many times the duration of one, for file systems where stat is slow


class VerifiedBlocks:
    """Which blocks of a local .bin were compared with their checksums; it outlives the memory map.

    identity: device, inode and modification time of the file, so another file at its path is verified again.
    Memory: 5 bytes per MiB of the file.
    """

    def __init__(self, path: Path, file: FileEntry, identity: tuple[int, ...]) -> None:
        self.identity = identity
        self.checksums = array("I", parse_blocks(file.block_crc32c, file.size, file.crc32c, str(path)))
        self.done = bytearray(len(self.checksums))


def gather(files: Mapping[int, "MappedFile"], pieces: I64, row: int, out: I64, labels: I64 | None = None) -> None:
    """Copy pieces of files, as TokenSource.read_pieces; to labels, too. Raises CorruptShard.

    Cost: one call of a kernel, and another for each block that is read for the first time.
    """
    shards = {shard: file.readable for shard, file in files.items()}
    per_block = CHECKSUM_BLOCK // next(iter(files.values())).tokens.itemsize if files else 1
    while (unread := rows.gather(shards, per_block, pieces, row, out, labels)) is not None:
        _, shard, start, count, _ = pieces[unread].tolist()
        files[shard].verify(start, start + count)


class MappedFile:
    """A memory-mapped .bin, not empty."""

    def __init__(self, path: Path, file: FileEntry, dtype: np.dtype[Any], known: VerifiedBlocks | None) -> None:
        self._path, self._name, self._size = path, str(path), file.size
        with path.open("rb") as stream:
            found = os.fstat(stream.fileno())
            self._check_size(found.st_size)
            try:
                self._map = mmap.mmap(stream.fileno(), file.size, access=mmap.ACCESS_READ)
            except ValueError:  # truncated between fstat and mmap, which compares sizes too
                self._check_size(os.fstat(stream.fileno()).st_size)
                raise
        identity = found.st_dev, found.st_ino, found.st_mtime_ns
        self.verified = known if known and known.identity == identity else VerifiedBlocks(path, file, identity)
        self._bytes = np.frombuffer(self._map, np.uint8)
        self.tokens: npt.NDArray[Any] = np.frombuffer(self._map, dtype)
        self.per_block = CHECKSUM_BLOCK // dtype.itemsize  # tokens
        self.done = self.verified.done
        self.readable = self.tokens, self.done  # as rows.gather takes them
        self.check_at = 0.0  # when to check for changes again, on the clock of time.monotonic

    def verify(self, start: int, stop: int) -> None:
        """Compare the blocks of tokens [start, stop) with their checksums, each once; CorruptShard if one differs.

        Two threads may verify the same block, which is harmless.
        """
        for block in range(start // self.per_block, -(-stop // self.per_block)):
            if not self.done[block]:
                begin, end = block * CHECKSUM_BLOCK, min((block + 1) * CHECKSUM_BLOCK, self._size)
                self._check_size(self._map.size())
                found, expected = google_crc32c.value(self._bytes[begin:end]), self.verified.checksums[block]
                if found != expected:
                    raise CorruptShard(
                        f"{self._path}: bytes {begin} to {end} have crc32c {found:08x}, {expected:08x} expected; "
                        "the file is damaged, copy it again or rebuild it"
                    )
                self.done[block] = 1

    def is_unchanged(self, now: float) -> bool:
        """False if the file was written to, so it must be mapped and verified again.

        Raises FormatError if its size has changed: reading the map beyond the end would kill the process.
        """
        self._check_size(self._map.size())
        try:
            found = os.stat(self._name)
        except OSError:
            same = True  # unlinked or renamed; the mapped file still exists
        else:
            device, inode, written = self.verified.identity
            same = (found.st_dev, found.st_ino) != (device, inode) or found.st_mtime_ns == written
        self.check_at = now + max(_CHECK_SECONDS, _CHECK_SHARE * (time.monotonic() - now))
        return same

    def _check_size(self, found: int) -> None:
        if found != self._size:
            raise FormatError(f"{self._path}: its size has changed, {found} bytes found, {self._size} expected")
