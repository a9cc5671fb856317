"""How large the pages of a Parquet column are, as their own headers say it: that is what a reader allocates.

The footer's sizes are sums, and whoever wrote it may have lied. A page of a few hundred bytes can stand for gigabytes:
a dictionary of one long value that every row repeats, values of which each repeats the last one's beginning, zeros in
Zstandard. Headers are Thrift's compact protocol (PageHeader in parquet-format); arrow reads them, and shows them to
nobody.
"""

from dataclasses import dataclass
from typing import Any

from refinery.transforms.read.watched_file import WatchedFile

HEADERS = 1 << 9, 1 << 16  # bytes read for a header; some hold long values, as statistics
MAX_PAGES = 100_000  # of a column in a row group

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12


class BadPages(ValueError):
    """A page's header is damaged, or leads out of the file."""


def largest_page(file: WatchedFile, column: Any, first_alone: bool) -> int:
    """Bytes of the largest page of a column in a row group, inflated. column: pyarrow's ColumnChunkMetaData.

    first_alone: look at the first page alone, which is the dictionary if there is one. Raises BadPages, and what the
    storage raises. Cost: a read of 512 bytes for each page.
    """
    first = column.dictionary_page_offset if column.has_dictionary_page else None
    at = min((offset for offset in (first, column.data_page_offset) if offset), default=0)
    end, largest = at + column.total_compressed_size, 0
    for _ in range(MAX_PAGES):
        if at >= end:
            return largest
        page = header_at(file, at)
        largest = max(largest, page.size)
        if first_alone:
            return largest
        at += page.header_bytes + page.compressed
    raise BadPages(f"more than {MAX_PAGES} pages in one column of a row group")


def header_at(file: WatchedFile, at: int) -> "PageHeader":
    """The header at an offset of the file. Raises BadPages, and what the storage raises."""
    if at < 0:
        raise BadPages(f"a page at {at}")
    for size in HEADERS[:-1]:
        file.seek(at)
        try:
            return read_header(file.read(size))
        except BadPages:
            continue
    file.seek(at)
    return read_header(file.read(HEADERS[-1]))


@dataclass(frozen=True, slots=True)
class PageHeader:
    """size: bytes of the page, inflated. compressed: as they are in the file. header_bytes: of the header itself."""

    size: int
    compressed: int
    header_bytes: int


def read_header(data: bytes) -> PageHeader:
    """The header that `data` begins with. Raises BadPages."""
    reader = _Thrift(data)
    try:
        fields = reader.struct(0)
        size, compressed = fields[2], fields[3]
    except (IndexError, KeyError, RecursionError) as error:
        raise BadPages("not the header of a page") from error
    if size < 0 or compressed < 0:
        raise BadPages(f"a page of {size} bytes, {compressed} in the file")
    return PageHeader(size, compressed, reader.at)


class _Thrift:
    """As much of the compact protocol as it takes to pass over what is not asked for: whole numbers are read."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        value = shift = 0
        while True:
            part = self.byte()
            value |= (part & 127) << shift
            shift += 7
            if part < 128:
                return value
            if shift > 63:
                raise IndexError("a number of more than 64 bits")

    def struct(self, depth: int) -> dict[int, int]:
        """Its whole numbers, by field."""
        fields: dict[int, int] = {}
        field = 0
        while head := self.byte():
            field = field + (head >> 4) if head >> 4 else self.number()
            value = self.value(head & 15, depth)
            if value is not None:
                fields[field] = value
        return fields

    def number(self) -> int:
        raw = self.varint()
        return (raw >> 1) ^ -(raw & 1)

    def value(self, kind: int, depth: int) -> int | None:
        """A whole number; None for anything else, which is passed over."""
        if depth > 8:
            raise IndexError("nested too deep")
        if kind in (_TRUE, _FALSE):
            return None
        if _BYTE < kind < _DOUBLE:
            return self.number()
        if kind in (_BYTE, _DOUBLE, _BINARY):
            self.skip({_BYTE: 1, _DOUBLE: 8}.get(kind) or self.varint())
        elif kind in (_LIST, _SET):
            head = self.byte()
            for _ in range(head >> 4 if head >> 4 < 15 else self.varint()):
                self.skip(1) if head & 15 in (_TRUE, _FALSE) else self.value(head & 15, depth + 1)
        elif kind == _STRUCT:
            self.struct(depth + 1)
        else:  # a map, of which Parquet has none here
            raise IndexError(f"type {kind}")
        return None

    def skip(self, size: int) -> None:
        self.at += size
        if self.at > len(self.data):
            raise IndexError("cut off")
