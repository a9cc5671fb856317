"""A file that tells a failure of the storage from damage of the file."""

import io
from collections.abc import Callable
from typing import BinaryIO


class WatchedFile(io.RawIOBase):
    """A file that remembers how its storage failed: libraries that read it report their own errors instead.

    told: gets the size of every read.
    """

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file
        self.failure: OSError | None = None
        self.told: Callable[[int], None] | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._file.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def read(self, size: int = -1) -> bytes:
        try:
            data = self._file.read(size)
        except OSError as error:
            self.failure = error
            raise
        if self.told is not None:
            self.told(len(data or b""))
        return data

    def check(self) -> None:
        """Raise what the storage failed with, if it did."""
        if self.failure is not None:
            raise self.failure
