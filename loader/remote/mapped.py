"""A local .bin, memory-mapped: verified when it is touched first, and looked at again while it is used.

Behind the end of a file that was cut short its map has no bytes: touching it there ends the process (SIGBUS), and
nothing in Python can catch that. So the size is compared before a block is hashed, and about once in a millisecond of
use. Measured per batch of 8 x 4,096 int32 tokens in the page cache: 13.7 us, of which looking is 0.2; copying by pread
instead of through a map would take 24 to 33.
"""

import mmap
import os
import time
from array import array
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import numpy.typing as npt

from refinery.loader.errors import FormatError
from refinery.loader.format.block_checksums import BLOCK, parse_blocks
from refinery.loader.format.manifest import FileEntry
from refinery.loader.remote.blocks import CorruptShard

_LOOK = 0.001  # seconds between two looks, and ...
_LOOK_SHARE = 50  # ... at least so many times what one takes, for file systems where that is slow


class Checked:
    """Which blocks of a local .bin were compared with their checksums; it outlives the memory map.

    Memory: 5 bytes per block of a MiB.
    """

    def __init__(self, path: Path, file: FileEntry, identity: tuple[int, ...]) -> None:
        self.identity = identity  # of the file: another one in its place is checked again
        self.checksums = array("I", parse_blocks(file.block_crc32c, file.size, file.crc32c, str(path)))
        self.done = bytearray(len(self.checksums))


class Mapped:
    """A memory-mapped .bin, not empty."""

    def __init__(self, path: Path, file: FileEntry, dtype: np.dtype[Any], known: Checked | None) -> None:
        self._path, self._name, self._size = path, str(path), file.size
        with path.open("rb") as stream:
            found = os.fstat(stream.fileno())
            self._check_size(found.st_size)
            try:
                self._map = mmap.mmap(stream.fileno(), file.size, access=mmap.ACCESS_READ)
            except ValueError:  # cut just now: mmap compares sizes too
                self._check_size(os.fstat(stream.fileno()).st_size)
                raise
        identity = found.st_dev, found.st_ino, found.st_mtime_ns
        self.checked = known if known and known.identity == identity else Checked(path, file, identity)
        self._bytes = np.frombuffer(self._map, np.uint8)
        self.tokens: npt.NDArray[Any] = np.frombuffer(self._map, dtype)
        self.per_block = BLOCK // dtype.itemsize  # tokens
        self.done = self.checked.done
        self.look_at = 0.0  # when to look at the file again, by time.monotonic

    def check(self, first: int, last: int) -> None:
        """Compare blocks `first` to `last`, each once; CorruptShard where one differs. Threads may repeat a check."""
        for block in range(first, last + 1):
            if not self.done[block]:
                begin, end = block * BLOCK, min((block + 1) * BLOCK, self._size)
                self._check_size(self._map.size())
                found, expected = google_crc32c.value(self._bytes[begin:end]), self.checked.checksums[block]
                if found != expected:
                    raise CorruptShard(
                        f"{self._path}: bytes {begin} to {end} have crc32c {found:08x}, {expected:08x} "
                        "expected: the file is damaged; copy or make it again"
                    )
                self.done[block] = 1

    def look(self, now: float) -> bool:
        """False where the file was written to, so that it must be mapped and verified anew.

        Raises FormatError where it was cut short: touching the map behind its end would kill the process.
        """
        self._check_size(self._map.size())
        try:
            found = os.stat(self._name)
        except OSError:
            same = True  # its name is gone; what is mapped is still there
        else:
            device, inode, written = self.checked.identity
            same = (found.st_dev, found.st_ino) != (device, inode) or found.st_mtime_ns == written
        self.look_at = now + max(_LOOK, _LOOK_SHARE * (time.monotonic() - now))
        return same

    def _check_size(self, found: int) -> None:
        if found != self._size:
            raise FormatError(f"{self._path}: its size has changed, {found} bytes found, {self._size} expected")
