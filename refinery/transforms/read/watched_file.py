"""A file that tells a failure of the storage from damage of the file."""

import io
from collections.abc import Callable
from typing import BinaryIO

from refinery.transforms.core.input_sums.crc32c import StretchSum


class WatchedFile(io.RawIOBase):
    """A file that remembers how its storage failed: libraries that read it report their own errors instead.

    told: gets the size of every read. sum: gets what is read, where somebody wants its checksum.
    """

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file
        self.failure: OSError | None = None
        self.told: Callable[[int], None] | None = None
        self.sum: StretchSum | None = None
        self._at = file.tell()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._file.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = self._file.seek(offset, whence)
        return self._at

    def read(self, size: int = -1) -> bytes:
        try:
            data = self._file.read(size)
        except OSError as error:
            self.failure = error
            raise
        if self.told is not None:
            self.told(len(data or b""))
        if data:
            if self.sum is not None:
                self.sum.add(self._at, data)
            self._at += len(data)
        return data

    def sum_from(self, begin: int, end: int) -> None:
        """Of what `sum` is the sum, where only these bytes are read: said before any behind `begin` are."""
        if self.sum is not None:
            self.sum = self.sum.narrowed(begin, end)

    def check(self) -> None:
        """Raise what the storage failed with, if it did."""
        if self.failure is not None:
            raise self.failure
