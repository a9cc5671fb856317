"""Bytes of a file, decompressed: gzip, Zstandard and LZ4 files of one or many members, with what is needed to survive
damage: where each member begins, whether it ended well, and where the next one begins after a broken one.

A member is what a compressed file is a chain of: a gzip member, a Zstandard or LZ4 frame. Crawl archives keep one
record in each. The kind of compression is taken from the first bytes, and from the name only if they say nothing.
"""

import io
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Protocol, cast

import zstandard
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from fastwarc.stream_io import Lz4Reader
from isal.igzip_lib import DECOMP_GZIP, IgzipDecompressor, IsalError

from refinery.transforms.read.watched_file import WatchedFile
from refinery.transforms.remote.files import is_remote, open_remote

BLOCK = 1 << 16  # bytes read at once; after each member the rest of a block is copied, so small is fast
CHUNK = 1 << 18  # most bytes inflated at once
ZSTD_SLICE = 1 << 11  # compressed bytes fed at once: 4 bytes can stand for 128 KiB, so this is at most 64 MiB
ZSTD_WINDOW = 1 << 31  # some public dumps are made with --long=31
LZ4_BLOCK = 4 << 20  # the largest that the format knows
PROBES = 100_000  # places tried after damage before the rest of a file is given up
PROBE_BYTES = 512
MARKS = 1 << 16  # most members' starts remembered at once

GZIP, ZSTD, LZ4 = b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18"
BAD = {GZIP: "BadGzip", ZSTD: "BadZstd", LZ4: "BadLz4"}


class Broken(Exception):
    """A member that cannot be read to its end. The message is a name for dead letters: "Truncated", "BadGzip", …"""


class ByteSource:
    """Random access to the raw bytes of one open file, a block at a time. Cost: one block of memory."""

    def __init__(self, file: BinaryIO, path: str) -> None:
        self.file = WatchedFile(file)
        self.path = path
        self._offset = 0
        self._block = b""
        self._next = -1

    def view(self, offset: int) -> memoryview:
        """Bytes from `offset` on, as many as the current block holds; empty only at the end of the file."""
        skip = offset - self._offset
        if not 0 <= skip < len(self._block):
            if offset != self._next:
                self.file.seek(offset)
            self._offset, self._block, skip = offset, self.file.read(BLOCK) or b"", 0
            self._next = offset + len(self._block)
        return memoryview(self._block)[skip:]

    def size(self) -> int:
        """Bytes of the file."""
        self._next = -1
        return self.file.seek(0, io.SEEK_END)

    def head(self, offset: int, size: int) -> bytes:
        """`size` bytes from `offset`, fewer at the end of the file."""
        pieces = []
        while size > 0 and (view := self.view(offset)[:size]):
            pieces.append(view)
            offset += len(view)
            size -= len(view)
        return b"".join(pieces)

    def find(self, needle: bytes, offset: int) -> int:
        """Where `needle` next occurs from `offset` on, -1 if nowhere."""
        carry = b""
        while view := self.view(offset):
            found = (window := carry + bytes(view)).find(needle)
            if found >= 0:
                return offset - len(carry) + found
            carry = window[-len(needle) + 1 :]
            offset += len(view)
        return -1

    def skip_zeros(self, offset: int) -> int:
        """The first byte from `offset` on that is not 0 (files padded to a tape's block size)."""
        while view := self.view(offset):
            rest = bytes(view).lstrip(b"\0")
            if rest:
                return offset + len(view) - len(rest)
            offset += len(view)
        return offset


@contextmanager
def open_source(path: str, size: int | None = None, version: str = "") -> Iterator[ByteSource]:
    """The file at `path`, local or remote, never decompressed. Raises OSError (BeamIOError is one).

    size, version: what a remote file was found to be when the run was planned, where it is known.
    """
    opened: Any
    if is_remote(path):
        opened = open_remote(path, size, version)
    elif "://" in path:
        opened = FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)
    else:
        opened = io.FileIO(path)
    with opened as file:
        yield ByteSource(file, path)


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

    def __init__(self, source: ByteSource, start: int) -> None:
        self.source, self.start, self.end, self.fed = source, start, start, start

    def read(self, limit: int = CHUNK) -> bytes:
        data = bytes(self.source.view(self.fed)[:limit])
        self.end = self.fed = self.fed + len(data)
        return data


class GzipMember:
    """A gzip member; its CRC is checked."""

    def __init__(self, source: ByteSource, start: int) -> None:
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

    def __init__(self, source: ByteSource, start: int, dictionary: bytes = b"") -> None:
        self.source, self.start, self.end, self.fed = source, start, -1, start
        given = zstandard.ZstdCompressionDict(dictionary) if dictionary else None
        self.inflater = zstandard.ZstdDecompressor(given, max_window_size=ZSTD_WINDOW).decompressobj()

    def read(self, limit: int = CHUNK) -> bytes:
        while not self.inflater.eof:
            view = self.source.view(self.fed)[:ZSTD_SLICE]
            if not view:
                raise Broken("Truncated")
            self.fed += len(view)
            try:
                data = self.inflater.decompress(view)
            except zstandard.ZstdError as error:
                raise Broken(BAD[ZSTD]) from error
            if self.inflater.eof:
                self.end = self.fed - len(self.inflater.unused_data)
            if data:
                return data
        return b""


class Lz4Member:
    """An LZ4 frame. FastWARC's reader runs on into the next frame, so the end is found first, by the blocks' sizes."""

    def __init__(self, source: ByteSource, start: int) -> None:
        self.start, self.end = start, -1
        self.stop = _lz4_end(source, start)
        self.slice = _Slice(source, start, self.stop if self.stop >= 0 else 1 << 62)
        self.reader = Lz4Reader(cast(BinaryIO, self.slice))

    @property
    def fed(self) -> int:
        return self.slice.at

    def read(self, limit: int = CHUNK) -> bytes:
        if self.stop == self.start:
            raise Broken(BAD[LZ4])
        try:
            data = self.reader.read(limit)
        except OSError as error:
            raise Broken("Truncated" if self.stop < 0 else BAD[LZ4]) from error
        if not data and self.stop < 0:
            raise Broken("Truncated")
        self.end = self.stop
        return data


def _lz4_end(source: ByteSource, start: int) -> int:
    """Where the LZ4 frame at `start` ends: `start` if it is none, -1 if the file ends before (LZ4 frame format 1.6)."""
    head = source.head(start, 5)
    if len(head) < 5 or not head.startswith(LZ4):
        return start
    flags = head[4]
    at = start + 7 + (8 if flags & 8 else 0) + (4 if flags & 1 else 0)
    while len(size := source.head(at, 4)) == 4:
        length = int.from_bytes(size, "little") & 0x7FFFFFFF
        at += 4
        if not length:
            return at + (4 if flags & 4 else 0)
        if length > LZ4_BLOCK:
            return start
        at += length + (4 if flags & 16 else 0)
    return -1


class _Slice:
    """A part of a file as a file, as far as Lz4Reader asks for one. No way back to the reader: gc would not see it."""

    def __init__(self, source: ByteSource, start: int, stop: int) -> None:
        self.source, self.start, self.at, self.stop = source, start, start, stop

    def read(self, size: int = -1) -> bytes:
        left = max(self.stop - self.at, 0)
        data = self.source.head(self.at, left if size < 0 else min(size, left))
        self.at += len(data)
        return data

    def tell(self) -> int:
        return self.at - self.start


class MemberStream:
    """Decompressed bytes of a file, member after member.

    `total`: bytes given out so far. `marks`: (decompressed offset, file offset) of each member's start, to be taken
    off by the user. `broken`: why reading stopped, "" if it did not; `recover` then goes on behind the damage.
    """

    def __init__(self, source: ByteSource) -> None:
        self.source = source
        self.total = 0
        self.marks: deque[tuple[int, int]] = deque()
        self.broken = ""
        self.member: Member | None = None
        self._offset = 0  # where the member at hand begins
        self._before = 0  # where the one before it begins
        self._probes = PROBES
        self._rescanned = 0
        head = source.head(0, 8)
        self.magic = _magic_of(head, source.path)
        self._dictionary = _zstd_dictionary(source) if head[:4] == b"\x5d\x2a\x4d\x18" else b""

    def read(self) -> bytes:
        """The next bytes (never across members); b"" at the end of the file or of what can be read (see `broken`)."""
        while not self.broken:
            try:
                if self.member is None:
                    self._offset = self._next_start(self._offset)
                    head = self.source.head(self._offset, max(len(self.magic), 1))
                    if not head:
                        return b""
                    self._mark()
                    if self.magic and not self.magic.startswith(head):
                        raise Broken(BAD[self.magic])
                    self.member = self._open(self._offset)
                data = self.member.read()
            except Broken as error:
                self.broken = str(error)
                return b""
            if data:
                self.total += len(data)
                return data
            if not self.magic:
                return b""
            self._before, self._offset, self.member = self._offset, self.member.end, None
        return b""

    def _mark(self) -> None:
        if self.marks and self.marks[-1][0] == self.total:  # the last member was empty
            self.marks.pop()
        if len(self.marks) >= MARKS:
            del self.marks[1]
        self.marks.append((self.total, self._offset))

    def go_back(self, to: int) -> bytes:
        """Go on from the decompressed offset `to`, which must not be before the first mark that is left: bytes from
        there on, of what had to be inflated again. What comes after them is given out by `read`."""
        self.broken, self.member = "", None
        if not self.magic:
            self.total, self.member = to, PlainMember(self.source, to)
            return b""
        while len(self.marks) > 1 and self.marks[-1][0] > to:
            self.marks.pop()
        self.total, self._offset = self.marks[-1]
        data = b""
        while self.total <= to and (data := self.read()):
            pass
        return data[len(data) - (self.total - to) :] if self.total > to else b""

    def recover(self, accept: Callable[[bytes], bool]) -> bool:
        """After damage, go to the next member that opens and whose first bytes `accept` takes; False if there is none.

        The search starts inside the broken member, for what broke it may hide the next one (inside the one before if
        no member begins where that ended), as long as the bytes searched twice stay under twice the file's; then
        behind what was read.
        """
        if not self.broken:
            return False
        start, fed = (self._offset, self.member.fed) if self.member else (self._before, self._offset)
        self._rescanned += fed - start
        at = start + 1 if self._rescanned <= 2 * fed + (64 << 20) else max(fed, start + 1)
        while self._probes > 0 and self.magic and (at := self.source.find(self.magic, at)) >= 0:
            self._probes -= 1
            if accept(self._probe(at)):
                self.broken, self.member, self._before, self._offset = "", None, at, at
                return True
            at += 1
        return False

    def _probe(self, offset: int) -> bytes:
        data = b""
        try:
            member = self._open(offset)
            while len(data) < PROBE_BYTES and (more := member.read(PROBE_BYTES)):
                data += more
        except Broken:
            pass  # what came before the damage decides
        return data

    def _open(self, offset: int) -> Member:
        if self.magic == GZIP:
            return GzipMember(self.source, offset)
        if self.magic == ZSTD:
            return ZstdMember(self.source, offset, self._dictionary)
        if self.magic == LZ4:
            return Lz4Member(self.source, offset)
        return PlainMember(self.source, offset)

    def _next_start(self, offset: int) -> int:
        """The next member from `offset` on, behind padding and skippable frames."""
        if self.magic and offset:
            offset = self.source.skip_zeros(offset)
        while self.magic in (ZSTD, LZ4) and _is_skippable(head := self.source.head(offset, 8)):
            if len(head) < 8:
                raise Broken("Truncated")
            offset += 8 + int.from_bytes(head[4:], "little")
        return offset


def _is_skippable(head: bytes) -> bool:
    return len(head) >= 4 and 0x50 <= head[0] <= 0x5F and head[1:4] == b"\x2a\x4d\x18"


def _magic_of(head: bytes, path: str) -> bytes:
    """The magic number of the file's members, b"" for an uncompressed file."""
    for magic in (GZIP, ZSTD, LZ4):
        if head.startswith(magic):
            return magic
    if _is_skippable(head):
        return LZ4 if path.endswith(".lz4") else ZSTD
    if all(byte in b"\t\r\n" or byte >= 32 for byte in head):
        return b""
    return {".gz": GZIP, ".zst": ZSTD, ".lz4": LZ4}.get(path[path.rfind(".") :].lower(), b"")


def _zstd_dictionary(source: ByteSource) -> bytes:
    """The dictionary in the first frame of a .warc.zst file (IIPC's "zstd compression of WARC" draft), or b""."""
    size = int.from_bytes(source.head(4, 4), "little")
    data = source.head(8, min(size, 16 << 20))
    if not data.startswith(ZSTD):
        return data
    try:
        return zstandard.ZstdDecompressor().decompress(data, max_output_size=16 << 20)
    except zstandard.ZstdError:
        return b""
