"""Members of compressed files: a gzip member, a Zstandard or LZ4 frame, or all of a file that is not compressed.

Each gives its decompressed bytes piece by piece, knows where it ends, and says how it is broken.
"""

from typing import Any, BinaryIO, Protocol, cast

import zstandard
from fastwarc.stream_io import Lz4Reader
from isal.igzip_lib import DECOMP_GZIP, IgzipDecompressor, IsalError

GZIP, ZSTD, LZ4 = b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18"
CHUNK = 1 << 18  # most bytes inflated at once
ZSTD_SLICE = 1 << 11  # compressed bytes fed at once: 4 bytes can stand for 128 KiB, so this is at most 64 MiB
ZSTD_WINDOW = 1 << 27  # of --ultra and --long; some public dumps are made with --long=31, 2 GB
LZ4_BLOCK = 4 << 20  # the largest that the format knows
PROBE_BYTES = 512  # of a place that is tried after damage
BAD = {GZIP: "BadGzip", ZSTD: "BadZstd", LZ4: "BadLz4"}


class Broken(Exception):
    """A member that cannot be read to its end. The message is a name for dead letters: "Truncated", "BadGzip", …"""


class Source(Protocol):
    """The raw bytes of a file, as from `ByteSource`. window: bytes that a Zstandard frame may ask for."""

    window: int

    def view(self, offset: int) -> memoryview:
        """Bytes from `offset` on, as many as are available; empty only at the end of the file."""

    def head(self, offset: int, size: int) -> bytes:
        """`size` bytes from `offset`, fewer at the end of the file."""


class Member(Protocol):
    """One member. `start`, `end`: where it lies in the file; `end` is known once `read` has returned b""."""

    start: int
    end: int

    @property
    def fed(self) -> int:
        """How far the file has been read for it."""

    def read(self, limit: int = CHUNK) -> bytes:
        """The next decompressed bytes, b"" at the member's end. Raises Broken."""


class PlainMember:
    """An uncompressed file: one member that never breaks."""

    def __init__(self, source: Source, start: int) -> None:
        self.source, self.start, self.end, self.fed = source, start, start, start

    def read(self, limit: int = CHUNK) -> bytes:
        data = bytes(self.source.view(self.fed)[:limit])
        self.end = self.fed = self.fed + len(data)
        return data


class GzipMember:
    """A gzip member; its CRC is checked."""

    def __init__(self, source: Source, start: int) -> None:
        self.source, self.start, self.end, self.fed = source, start, -1, start
        self.inflater = IgzipDecompressor(flag=DECOMP_GZIP)

    def read(self, limit: int = CHUNK) -> bytes:
        inflater = self.inflater
        while not inflater.eof:
            view: Any = b""
            if inflater.needs_input:
                view = self.source.view(self.fed)
                if not view:
                    raise Broken("Truncated")
                self.fed += len(view)
            try:
                data = inflater.decompress(view, limit)
            except IsalError as error:  # type: ignore[misc]  # isal's stub makes it a plain class
                raise Broken(BAD[GZIP]) from error
            if inflater.eof:
                self.end = self.fed - len(inflater.unused_data)
            if data:
                return bytes(data)
        return b""


class ZstdMember:
    """A Zstandard frame, with the dictionary of a .warc.zst file if there is one."""

    def __init__(self, source: Source, start: int, dictionary: bytes = b"") -> None:
        self.source, self.start, self.end, self.fed = source, start, -1, start
        given = zstandard.ZstdCompressionDict(dictionary) if dictionary else None
        self.inflater = zstandard.ZstdDecompressor(given, max_window_size=source.window).decompressobj()

    def read(self, limit: int = CHUNK) -> bytes:
        while not self.inflater.eof:
            view = self.source.view(self.fed)[:ZSTD_SLICE]
            if not view:
                raise Broken("Truncated")
            self.fed += len(view)
            try:
                data = self.inflater.decompress(view)
            except zstandard.ZstdError as error:
                raise Broken("WindowTooLarge" if "too much memory" in str(error) else BAD[ZSTD]) from error
            if self.inflater.eof:
                self.end = self.fed - len(self.inflater.unused_data)
            if data:
                return data
        return b""


def zstd_head(source: Source, start: int, size: int, dictionary: bytes = b"") -> bytes:
    """At most `size` decompressed bytes of the frame at `start`, b"" of none. Cost: a block of it (128 KiB)."""
    given = zstandard.ZstdCompressionDict(dictionary) if dictionary else None
    inflater = zstandard.ZstdDecompressor(given, max_window_size=source.window)
    data = source.head(start, PROBE_BYTES + (1 << 17))
    try:
        with inflater.stream_reader(data, read_size=PROBE_BYTES) as reader:
            return bytes(reader.read(size))
    except zstandard.ZstdError:
        return b""


class Lz4Member:
    """An LZ4 frame. FastWARC's reader would run on into the next frame, so it is given one block after the other.

    A block of length 0 ends a frame, so one whose blocks were never written to the disk, and are zeros there, reads as
    empty. A frame without content that zeros follow is broken.
    """

    def __init__(self, source: Source, start: int) -> None:
        self.source, self.start, self.end, self.is_empty = source, start, -1, True
        self.frame = _Lz4Frame(source, start)
        self.reader = Lz4Reader(cast(BinaryIO, self.frame))

    @property
    def fed(self) -> int:
        return self.frame.at

    def read(self, limit: int = CHUNK) -> bytes:
        try:
            data = self.reader.read(limit)
        except OSError as error:
            raise Broken(self._problem()) from error
        if data:
            self.is_empty = False
            return data
        if not self.frame.is_complete or (self.is_empty and self.source.head(self.frame.at, 4) == bytes(4)):
            raise Broken(self._problem())
        self.end = self.frame.at
        return b""

    def _problem(self) -> str:
        return "Truncated" if self.frame.is_cut else BAD[LZ4]


class _Lz4Frame:
    """One frame as a file, as far as Lz4Reader asks for one: it ends where the sizes of its blocks say (LZ4 frame
    format 1.6), and no more of it is looked at than is read. No way back to the reader: gc would not see it.
    """

    def __init__(self, source: Source, start: int) -> None:
        self.source, self.start, self.at = source, start, start
        self.is_complete = self.is_cut = False
        head = source.head(start, 5)
        self.flags = head[4] if len(head) == 5 else 0
        self.stop = start + 7 + (8 if self.flags & 8 else 0) + (4 if self.flags & 1 else 0)  # of the piece at hand
        self.is_last = not head.startswith(LZ4)
        if self.is_last:
            self.stop, self.is_cut = start, len(head) < 4

    def read(self, size: int = -1) -> bytes:
        if self.at == self.stop and not self.is_last:
            self._next_block()
        left = self.stop - self.at
        data = self.source.head(self.at, left if size < 0 else min(size, left))
        self.at += len(data)
        self.is_cut = self.is_cut or (not data and left > 0)
        self.is_complete = self.is_last and self.at == self.stop and self.at > self.start
        return data

    def _next_block(self) -> None:
        size = self.source.head(self.at, 4)
        length = int.from_bytes(size, "little") & 0x7FFFFFFF
        self.is_cut = len(size) < 4
        if self.is_cut or length > LZ4_BLOCK:
            self.is_last, self.start = True, self.at  # nothing more comes, and it is not complete
        elif length:
            self.stop += 4 + length + (4 if self.flags & 16 else 0)
        else:
            self.stop, self.is_last = self.stop + 4 + (4 if self.flags & 4 else 0), True

    def tell(self) -> int:
        return self.at - self.start
