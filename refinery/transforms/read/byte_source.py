"""Decompressed bytes of gzip, Zstandard and LZ4 files of one or many members, with what is needed to survive damage:
where each member begins, whether it ended well, and where the next one begins after a broken one.

A member is what a compressed file is a chain of: a gzip member, a Zstandard or LZ4 frame. Crawl archives keep one
record in each. The kind of compression is taken from the first bytes. Where they are not a magic number, the name of
the file counts, unless its first bytes are text: a damaged first byte costs a member, and not the file.
"""

import io
import re
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

import zstandard

from refinery.transforms.read.members import (
    BAD,
    GZIP,
    LZ4,
    PROBE_BYTES,
    ZSTD,
    ZSTD_WINDOW,
    Broken,
    GzipMember,
    Lz4Member,
    Member,
    PlainMember,
    ZstdMember,
    zstd_head,
)
from refinery.transforms.read.remote.files import is_remote, open_remote
from refinery.transforms.read.watched_file import WatchedFile

BLOCK = 1 << 16  # bytes read at once; after each member the rest of a block is copied, so small is fast
PROBE_COST = {GZIP: 1 << 14, ZSTD: 1 << 17, LZ4: 1 << 14}  # bytes that one may have to decode: a block of Zstandard's
PROBED = 1 << 27  # bytes decoded by tries before the rest of a file is given up, beside twice what was read of it
NAMED_HEAD = 1 << 12  # first bytes of a file that tell text from what its name says
MARKS = 1 << 16  # most members' starts remembered at once

_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


class ByteSource:
    """Random access to the raw bytes of one open file, a block at a time. Cost: one block of memory.

    Blocks begin at multiples of their size, so what `view` gives depends on the offset alone, and not on what was read
    before. window: bytes that Zstandard frames of it may ask for, to look back into.
    """

    def __init__(self, file: BinaryIO, path: str, window: int = ZSTD_WINDOW) -> None:
        self.file = WatchedFile(file)
        self.path = path
        self.window = window
        self._offset = 0
        self._block = b""
        self._next = -1
        self._first = b""

    def view(self, offset: int) -> memoryview:
        """Bytes from `offset` on, as many as the current block holds; empty only at the end of the file."""
        skip = offset - self._offset
        if not 0 <= skip < len(self._block):
            start = offset - offset % BLOCK
            data = self._read(start)
            skip = offset - start
            if skip >= len(data):  # the block at hand is kept: whoever looked for the end goes on from before it
                return memoryview(b"")
            self._offset, self._block = start, data
        return memoryview(self._block)[skip:]

    def _read(self, start: int) -> bytes:
        """The block at `start`, shorter at the end of the file only."""
        if start == self._offset and 0 < len(self._block) < BLOCK:
            return self._block
        if start != self._next:
            self.file.seek(start)
        data = self.file.read(BLOCK) or b""
        while 0 < len(data) < BLOCK and (more := self.file.read(BLOCK - len(data))):
            data += more
        self._next = start + len(data)
        return data

    def beside(self) -> "ByteSource":
        """The same file, with a block and a place of its own, to be done with before this one is read."""
        self.first()
        self._next, self._offset, self._block = -1, 0, b""  # all of it is read again, so a checksum misses nothing
        other = ByteSource(cast(BinaryIO, self.file), self.path, self.window)
        other._first = self._first
        return other

    def first(self) -> bytes:
        """The first bytes of the file, NAMED_HEAD at most. They are kept: far seeks in remote files cost requests."""
        self._first = self._first or self.head(0, NAMED_HEAD)
        return self._first

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

    def find(self, needle: bytes, offset: int, end: int = 1 << 62) -> int:
        """Where `needle` next occurs from `offset` on, -1 if nowhere. end: where to give up, about."""
        carry = b""
        while offset - len(carry) < end and (view := self.view(offset)):
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
def open_source(
    path: str, size: int | None = None, version: str = "", window: int = ZSTD_WINDOW, payer: str = ""
) -> Iterator[ByteSource]:
    """The file at `path`, local or remote, never decompressed. Raises OSError.

    size, version: what a remote file was found to be when the run was planned, where it is known. window: as of
    `ByteSource`. payer: as of `open_remote`.
    """
    opened = open_remote(path, size, version, payer) if is_remote(path) else cast(BinaryIO, io.FileIO(path))
    with opened as file:
        yield ByteSource(file, path, window)


class MemberStream:
    """Decompressed bytes of a file, member after member.

    `total`: bytes given out so far. `marks`: (decompressed offset, file offset) of each member's start, to be taken
    off by the user. `broken`: why reading stopped, "" if it did not; `recover` then goes on behind the damage.
    most_members: more of them are "TooManyMembers". start: the member to begin with. `has_met`: a member began at file
    offset `watched`.
    """

    def __init__(self, source: ByteSource, most_members: int = 1 << 62, start: int = 0, watched: int = 1 << 62) -> None:
        self.source = source
        self.members_left = most_members
        self.total = 0
        self.marks: deque[tuple[int, int]] = deque()
        self.watched, self.has_met = watched, False
        self.broken = ""
        self.member: Member | None = None
        self._offset = start  # where the member at hand begins
        self._before = start  # where the one before it begins
        self._rescanned = 0
        self._probed = 0
        head = source.first()
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
                    if not self.members_left:
                        raise Broken("TooManyMembers")
                    self.members_left -= 1
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
        self.has_met = self.has_met or self._offset == self.watched

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
        behind what was read. Tries are bounded by what they may decode, so a file of magic numbers costs no more than
        twice its size and 128 MB.
        """
        if not self.broken:
            return False
        start, fed = (self._offset, self.member.fed) if self.member else (self._before, self._offset)
        self._rescanned += fed - start
        at = start + 1 if self._rescanned <= 2 * fed + (64 << 20) else max(fed, start + 1)
        while self.magic and self._probed <= PROBED + 2 * at and (at := self.source.find(self.magic, at)) >= 0:
            self._probed += PROBE_COST[self.magic]
            if accept(self.probe(at)):
                self.broken, self.member, self._before, self._offset = "", None, at, at
                return True
            at += 1
        return False

    def probe(self, offset: int) -> bytes:
        """The first bytes of the member at `offset`, as many of them as can be read."""
        if self.magic == ZSTD:
            return zstd_head(self.source, offset, PROBE_BYTES, self._dictionary)
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
    return b"" if _CONTROL.search(head) is None else magic_named(path)


def magic_named(path: str) -> bytes:
    """The magic number that the ending of a name stands for, b"" for none."""
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
