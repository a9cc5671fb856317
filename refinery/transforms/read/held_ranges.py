"""Stretches of a file that are read in one go and kept: of a remote file every read costs a request."""

import io
from collections.abc import Iterable

from refinery.transforms.read.watched_file import WatchedFile

GAP = 8 << 10  # bytes between two stretches that are read rather than asked for twice


class HeldRanges(io.RawIOBase):
    """A file of which some stretches are in memory; the rest is read as it is asked for."""

    def __init__(self, file: WatchedFile) -> None:
        super().__init__()
        self._file = file
        self._at = 0
        self._size = file.seek(0, io.SEEK_END)
        self._held: list[tuple[int, bytes]] = []

    def hold(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Keep these stretches, (start, size) each, instead of those before; what is not in the file is left out.
        Memory: their sizes, and the gaps between those that are near each other."""
        joined: list[list[int]] = []
        for start, size in sorted(ranges):
            start, end = max(start, 0), min(start + size, self._size)
            if start >= end:
                continue
            if joined and start <= joined[-1][1] + GAP:
                joined[-1][1] = max(joined[-1][1], end)
            else:
                joined.append([start, end])
        self._held = []
        self._held = [(start, self._read(start, end - start)) for start, end in joined]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def read(self, size: int = -1) -> bytes:
        left = max(self._size - self._at, 0)
        size = left if size is None or size < 0 else min(size, left)
        for start, data in self._held:
            if start <= self._at and self._at + size <= start + len(data):
                found = data[self._at - start : self._at - start + size]
                break
        else:
            found = self._read(self._at, size)
        self._at += len(found)
        return found

    def _read(self, at: int, size: int) -> bytes:
        self._file.seek(at)
        parts = []
        while size > 0 and (data := self._file.read(size)):
            parts.append(data)
            size -= len(data)
        return b"".join(parts)
