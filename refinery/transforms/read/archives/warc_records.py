"""The records of web archives: WARC, WET and ARC, plain or compressed, one record per member or not.

The framing is our own. FastWARC 2.0.1 ends a file at its first damaged record, takes a truncated file for a complete
one, knows no ARC, and has no offsets for files that are compressed as a whole; it serves the tests as an oracle, and
reads LZ4. Decompression, not framing, is what reading costs (about 1 GB/s of decompressed bytes per core).

A record counts only if it ends where its length says and, compressed alone, if its checksum is right, and if no other
record begins in its header, or in a member of its own before its end. After damage the next record is looked for from
the damaged one's first byte on, also where a length above the limit led past others, so a wrong length hides no record.
Looking twice is bounded: in all about five times what the file inflates to, and 64 MB.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from refinery.transforms.core.safe_text import printable
from refinery.transforms.read.archives.arc_header import parse_arc_line
from refinery.transforms.read.byte_source import ByteSource, MemberStream
from refinery.transforms.read.http.fields import MAX_HEADER, parse_headers

MAX_LINE = 1 << 13  # longest ARC header line
TAIL = 16  # bytes looked at behind a record
AGAIN = 64 << 20  # bytes that may be looked at again whatever the file's size
HASHED = 1 << 16  # bytes of a damaged record that make its hash
SEARCHED = 1 << 16  # bytes searched at once for the next record
NOWHERE = 1 << 62

_WARC_HEAD = re.compile(rb"WARC/\d\.\d{1,2}[ \t]*\r?\n")
_NEXT_WARC = re.compile(rb"WARC/\d\.\d{1,2}[ \t]*\r?\n[A-Za-z-]{1,64}:")
_NEXT_ARC = re.compile(rb"\n([a-z][a-z0-9+.-]{1,15}:[^\n]{8,%d})(?=\n)" % MAX_LINE)
_USUAL_SCHEME = re.compile(rb"(?:https?|ftp|dns|filedesc|gopher|metadata):", re.IGNORECASE)
_SCHEME = re.compile(rb"[a-z][a-z0-9+.-]{1,15}://")
_BLANK_LINE = re.compile(rb"\n\r?\n")
_NEWLINE = re.compile(rb"\n")


class PartsDoNotMeet(OSError):
    """A part of an archive does not end where the next one begins, so a record would be lost or read twice."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record. `offset`: where it begins (see `Archive.offset_of`). `block` is None if longer than the limit."""

    offset: int
    is_arc: bool
    headers: Mapping[str, str]
    length: int
    block: bytes | None


@dataclass(frozen=True, slots=True)
class Damage:
    """A record, or a stretch between records, that cannot be read. `begun`: the last record of a file that ends in the
    middle of its block, with what is there of it."""

    offset: int
    error: str
    data: bytes
    size: int
    begun: Record | None = None


def read_records(
    source: ByteSource, limit: int, is_arc: bool, begin: int = 0, stop: int = NOWHERE
) -> Iterator[Record | Damage]:
    """All records and damages of an archive, in order. Blocks longer than `limit` bytes are not held.

    is_arc: what the file's name says, for when its first bytes do not say it. begin, stop: of a part (warc_parts.py),
    the members with which it and the next one begin. Raises PartsDoNotMeet.
    """
    return iter(Archive(MemberStream(source, start=begin, watched=stop), limit, is_arc, begin, stop))


class Archive:
    """Frames records in a stream of members. `data` holds decompressed bytes from offset `base` on.

    begin: where the stream begins in the file; further in only where each record is a member. stop: as `read_records`.
    """

    def __init__(self, stream: MemberStream, limit: int, is_arc: bool, begin: int = 0, stop: int = NOWHERE) -> None:
        self.stream = stream
        self.limit = limit
        self.begin, self.stop = begin, stop
        self.is_lost = False  # the last thing that was read was damage
        self.data = bytearray()
        self.base = 0
        self.position = 0
        self.is_whole: bool | None = None if stream.magic else True  # one member for all records; None: not known yet
        if begin:
            self.is_whole = False
        self.is_arc = is_arc
        self.in_member = (-1, 0)  # of the member last looked at: file offset, records begun in it so far
        self.examined = 0  # how far the bytes of the record at hand were looked at
        self.rescanned = 0  # bytes looked at more than once
        self.skipped_head = False  # a header was seen in the record that was last let go of
        self.begun: Record | None = None  # the record at hand, if the file ends in its block

    def __iter__(self) -> Iterator[Record | Damage]:
        if not self.begin:
            self.need(MAX_LINE)
            if looks_like_head(bytes(self.data[:MAX_LINE])):
                self.is_arc = not self.data.startswith(b"WARC/")
        while True:
            self.skip_newlines()
            start = self.position
            if not self.need(1) and not self.stream.broken:
                self.check_stop(False)
                return
            offset = self.offset_of(start)
            if offset >= self.stop:
                self.check_stop(offset == self.stop and start == self.stream.marks[0][0])
                return
            record = self.record(start, offset)
            self.is_lost = not isinstance(record, Record)
            if isinstance(record, Record):
                self.release(self.position)
                yield record
                continue
            self.go_back(start)
            at = max(start - self.base, 0)  # of a record too long to be held only the end may be left
            held = bytes(self.data[at : at + HASHED])
            begun, self.begun = self.begun, None
            found = self.resync(start)
            size = (self.position if found else self.base + len(self.data)) - start
            yield Damage(offset, record, held, max(size, len(held)), None if found else begun)
            if not found:
                self.check_stop(False)
                return

    def check_stop(self, is_there: bool) -> None:
        """Raise PartsDoNotMeet where the record with which the next part begins was not reached, or where no member
        began there, but in the middle of one. Damage may lead over the record: it is proven to be sound."""
        if self.stop < NOWHERE and not is_there and not (self.is_lost and self.stream.has_met):
            raise PartsDoNotMeet(
                f"{printable(self.stream.source.path)}: a record goes on over byte {self.stop}, where another one "
                "seems to begin. An archive inside it is made to look like a part of this one. Leave the file out, or "
                "give its source `cap: 1000000000000`, since one worker reads each file of a source with a cap"
            )

    def record(self, start: int, offset: int) -> Record | str:
        """The record at decompressed offset `start`, or what is wrong with it. Moves `position` behind it."""
        head = self.header(start)
        if isinstance(head, str):
            return head
        headers, length, is_arc = head
        block_start = self.position
        end = block_start + length
        is_held = length <= self.limit
        if not (self.need(length) if is_held else self.skip_to(end)):
            self.examined = min(end, self.base + len(self.data))
            if is_held and self.stream.broken in ("", "Truncated"):
                self.begun = Record(offset, is_arc, headers, length, bytes(self.data[block_start - self.base :]))
            return self.stream.broken or "Truncated"
        # A slice of a bytearray would be a copy, and bytes another one.
        block = bytes(memoryview(self.data)[block_start - self.base : end - self.base]) if is_held else None
        self.position = self.examined = end
        if is_held and self.holds_another(start, end):
            return "BadLength"
        if error := self.check_end(start, end, is_arc):
            return error
        return Record(offset, is_arc, headers, length, block)

    def header(self, start: int) -> tuple[Mapping[str, str], int, bool] | str:
        """Header fields, block length, whether it is ARC; or what is wrong. Moves `position` to the block."""
        self.need(8)
        at = start - self.base
        self.examined = min(start + MAX_HEADER, self.base + len(self.data))
        if self.data.startswith(b"WARC/", at):
            end = self.find(_BLANK_LINE, start, MAX_HEADER)
            if end < 0:
                return self.stream.broken or ("BadHeader" if self.need(MAX_HEADER) else "Truncated")
            at = start - self.base
            if not _WARC_HEAD.match(self.data, at):
                return "BadHeader"
            head = bytes(self.data[at : end - self.base])
            if runs_into_next(head):
                return "BadHeader"
            headers = parse_headers(head)
            length = headers.get("content-length", "")
        else:
            end = self.find(_NEWLINE, start, MAX_LINE)
            line = bytes(self.data[start - self.base : max(end, start) - self.base])
            arc = parse_arc_line(line)
            if not arc:
                return "BadHeader" if end >= 0 or not self.stream.broken else self.stream.broken
            headers, length = arc, arc["content-length"]
        if not (length.isascii() and length.isdigit() and len(length) <= 15):
            return "BadHeader"
        self.position = self.examined = end
        return headers, int(length), not self.data.startswith(b"WARC/", start - self.base)

    def check_end(self, start: int, end: int, is_arc: bool) -> str:
        """What is wrong with the end of the record from `start` to `end`; "" if nothing. Learns `is_whole`."""
        complete = self.need(TAIL)
        tail = bytes(self.data[end - self.base : end - self.base + TAIL])
        newlines = len(tail) - len(tail.lstrip(b"\r\n"))
        next_marks = [mark for mark, _ in self.stream.marks if mark > start]
        if self.stream.broken and not complete and not next_marks and not self.is_whole:
            return self.stream.broken  # its own member is: the checksum did not match, or never came
        at_end = not complete and newlines == len(tail)
        if self.is_whole is None:
            self.is_whole = not (at_end or any(end <= mark <= end + newlines for mark in next_marks))
        is_closed = is_arc or tail.startswith((b"\r\n\r\n", b"\n\n"))
        if not is_closed and self.passed_head(start, end):
            return "BadLength"  # bytes are missing, and the length led to the end of another record's text
        if at_end or tail[newlines:].startswith(b"WARC/") or any(end <= mark <= end + newlines for mark in next_marks):
            return ""
        if is_arc and self.is_arc_line(end + newlines):
            return ""
        # No record follows: the next one's header is damaged, or the length led beyond it, into blank lines of a text.
        may_end = newlines if is_arc else tail.startswith((b"\r\n\r\n", b"\n\n"))
        return "" if may_end and not self.passed_head(start, end) else "BadLength"

    def passed_head(self, start: int, end: int) -> bool:
        """Whether a header begins a line between `start` and `end`, which a record's length led over."""
        if start < self.base:  # the record was not held
            return self.skipped_head
        return self.next_head(start + 1, end) >= 0

    def holds_another(self, start: int, end: int) -> bool:
        """Whether a member begins between `start` and `end` that cannot be a part of the record."""
        inner = [mark for mark, _ in self.stream.marks if start < mark < end]
        return bool(inner) and (self.is_whole is False or any(map(self.has_head, inner)))

    def is_arc_line(self, at: int) -> bool:
        """Whether an ARC header stands at the decompressed offset: some writers leave out the newline before it. Its
        first letters are looked at, too: where bytes are missing before it, the length leads to "tp://…".
        """
        self.need(at - self.position + MAX_LINE)
        line = bytes(self.data[at - self.base : at - self.base + MAX_LINE])
        return bool(_USUAL_SCHEME.match(line) and parse_arc_line(line[: line.find(b"\n") + 1]))

    def resync(self, start: int) -> bool:
        """Move `position` to where the next record may begin, behind `start`; False if there is no such place.

        Bytes that are held are searched again from `start` on, as long as that stays linear in the file's size.
        """
        at = max(start + 1, self.base)
        if self.rescanned > 4 * self.stream.total + AGAIN:
            at = max(at, self.examined)
        joined = self.joined_line(start) if at == start + 1 and self.is_arc else -1
        while True:
            found = joined if joined >= 0 else self.next_head(at)
            for mark, _ in self.stream.marks:
                # A line that a member's start is in the middle of is not a header: its last byte was damaged, too.
                is_first = found < 0 or mark < found + MAX_LINE
                if is_first and 0 <= found < mark:
                    is_first = self.data.find(b"\n", found - self.base, mark - self.base) < 0
                if at <= mark and is_first and (self.is_whole is False or self.has_head(mark)):
                    found = mark
                    break
            if found >= 0:
                self.rescanned += max(0, self.examined - found)
                self.release(found)
                return True
            at = max(at, self.base + len(self.data) - MAX_LINE - 32)
            self.release(max(at - 1, self.base))
            if not self.fill():
                break
            self.need(SEARCHED)  # not byte by byte, if that is what the members hold
        self.release(self.base + len(self.data))
        return self.stream.recover(looks_like_head)

    def next_head(self, at: int, end: int = 1 << 62) -> int:
        """Decompressed offset from `at` to `end` of the next header among the bytes held, -1 if there is none.

        A WARC header may begin in the middle of a line, where a crawler that crashed has appended to half a record.
        """
        if not self.is_arc:
            head = _NEXT_WARC.search(self.data, at - self.base, end - self.base)
            return self.base + head.start() if head else -1
        for line in _NEXT_ARC.finditer(self.data, max(at - 1 - self.base, 0), end - self.base):
            if parse_arc_line(line[1]):
                return self.base + line.start() + 1
        return -1

    def joined_line(self, start: int) -> int:
        """Decompressed offset of an ARC header that begins in the line of the one at `start`, -1 if none does: that one
        was cut short behind its address. (An address may hold another one.)"""
        at = start - self.base
        own, end = _SCHEME.match(self.data, at), self.data.find(b"\n", at, at + 2 * MAX_LINE)
        for scheme in _SCHEME.finditer(self.data, own.end() if own else at + 1, max(end, 0)):
            is_behind = not own or b" " in self.data[at : scheme.start()]
            if is_behind and parse_arc_line(bytes(self.data[scheme.start() : end + 1])):
                return self.base + scheme.start()
        return -1

    def has_head(self, at: int) -> bool:
        return looks_like_head(bytes(self.data[at - self.base : at - self.base + MAX_LINE]))

    def offset_of(self, start: int) -> int:
        """What names the record at decompressed offset `start`: its offset in the file if it begins a member.

        If records are not compressed one by one, its decompressed offset. A later record of a member in a file that
        otherwise has one record per member: the member's offset plus the number of records before it.
        """
        marks = self.stream.marks
        while len(marks) > 1 and marks[1][0] <= start:
            marks.popleft()
        if self.is_whole or not marks:
            return start
        member = marks[0][1]
        self.in_member = (member, self.in_member[1] + 1 if self.in_member[0] == member else 0)
        return member + self.in_member[1]

    def skip_newlines(self) -> None:
        while self.need(1):
            self.release(self.position)
            rest = len(self.data.lstrip(b"\r\n")) if self.data[0] in b"\r\n" else len(self.data)
            self.position += len(self.data) - rest
            if rest:
                return

    def need(self, size: int) -> bool:
        """Hold `size` bytes from `position` on; False if the stream ends or breaks before."""
        while self.base + len(self.data) < self.position + size:
            if not self.fill():
                return False
        return True

    def fill(self) -> bool:
        data = self.stream.read()
        self.data += data
        return bool(data)

    def find(self, pattern: re.Pattern[bytes], start: int, size: int) -> int:
        """Decompressed offset behind the first match of `pattern` in `size` bytes from `start` on, -1 if none."""
        at = start
        while True:
            found = pattern.search(self.data, at - self.base, start - self.base + size)
            if found:
                return self.base + found.end()
            held = self.base + len(self.data)
            if held >= start + size or not self.fill():
                return -1
            at = max(start, held - 2)

    def skip_to(self, end: int) -> bool:
        """Let go of everything before `end`; False if that is not in the file, or not in the record's own member."""
        if not self.stream.magic and end > self.stream.source.size():
            return False
        self.skipped_head = False
        block = self.position  # the record's own header is before it
        while (held := self.base + len(self.data)) < end:
            self.skipped_head = self.skipped_head or self.next_head(max(self.base, block), end) >= 0
            del self.data[:-MAX_LINE]  # for a header that is not whole yet
            self.base = held - len(self.data)
            if not self.fill():
                return False
            is_new = self.stream.marks[-1][0] == held  # what is held now is how a member begins
            if is_new and (self.is_whole is False or self.has_head(held)):
                return False
        self.skipped_head = self.skipped_head or self.next_head(max(self.base, block), end) >= 0
        self.release(end)
        return True

    def go_back(self, start: int) -> None:
        """Hold the bytes from `start` on again, if they were let go of and that stays linear in the file's size."""
        if start < self.base and self.rescanned <= 4 * self.stream.total + AGAIN:
            self.rescanned += self.base + len(self.data) - start
            self.data[:] = self.stream.go_back(start)
            self.base = self.position = self.examined = start

    def release(self, position: int) -> None:
        """Go on from `position` and forget what is before it."""
        del self.data[: position - self.base]
        self.base = self.position = position


def looks_like_head(data: bytes) -> bool:
    """Whether `data` begins with the first line of a WARC or ARC record."""
    return bool(_WARC_HEAD.match(data)) or bool(parse_arc_line(data[: data.find(b"\n") + 1]))


def runs_into_next(head: bytes) -> bool:
    """Whether a WARC header was cut short, so the next record's begins in it: at the start of a line, behind a
    name without a value, or with fields that the first one has, too. (An address may end in "WARC/1.0".)
    """
    inner = _NEXT_WARC.search(head, 1)
    if not inner:
        return False
    own, line = head[: inner.start()], head[head.rfind(b"\n", 0, inner.start()) + 1 : inner.start()]
    return b":" not in line or not parse_headers(own).keys().isdisjoint(parse_headers(head[inner.start() :]))
