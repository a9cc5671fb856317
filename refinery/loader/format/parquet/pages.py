"""How large the pages of a Parquet file's columns are, as their own headers say it: that is what a reader allocates.

The footer's sizes are sums, and whoever wrote it may have lied. A page of a few hundred bytes can stand for gigabytes:
a dictionary of one long value that every row repeats, values of which each repeats the last one's beginning, zeros in
Zstandard. Footer and headers are Thrift's compact protocol (FileMetaData and PageHeader in parquet-format). Arrow reads
both, but shows no header to anybody, and its view of a damaged footer's columns ends the process (pyarrow 25).
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from refinery.loader.errors import FormatError

MAGIC = b"PAR1"
TAIL = 8  # bytes at a file's end: length of the footer, magic
HEADERS = 1 << 9, 1 << 16  # bytes read for a page's header; some hold long values, as statistics
MAX_FOOTER = 1 << 27
MAX_PAGES = 100_000  # of a column in a row group
MAX_ITEMS = 1_000_000  # of all lists of a footer: each may take 250 bytes in memory; our files have 160 a row group
MAX_DEPTH = 12

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12


class Seekable(Protocol):
    """A file of which parts can be read."""

    def seek(self, offset: int, whence: int = ..., /) -> int: ...
    def read(self, size: int = ..., /) -> bytes | None: ...


@dataclass(frozen=True, slots=True)
class Column:
    """A column in a row group. name: of the column of the table that it is, or is a part of. start, size: of its pages
    in the file, in bytes."""

    name: str
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class PageHeader:
    """size: bytes of the page, inflated. compressed: as they are in the file. values: how many it has, with nulls and
    elements of lists; 0 of a dictionary. encoding: of the values; None of a dictionary. header_bytes: of the header
    itself."""

    size: int
    compressed: int
    values: int
    encoding: int | None
    header_bytes: int


@dataclass(slots=True)
class Pages:
    """Bytes of pages of some columns, inflated. largest: of one. stored: of those whose values stand in them each by
    itself. repeated: what one row may take at most of the others: dictionaries, and values made of those before."""

    largest: int = 0
    stored: int = 0
    repeated: int = 0

    def rows_within(self, size: int) -> int:
        """How many rows surely take less than so many bytes, whichever they are."""
        return max(0, size - self.stored) // max(self.repeated, 1)


def footer_bytes(tail: bytes) -> int:
    """Length of the footer of a file that ends with these 8 bytes, including them; 0 if the file is not Parquet."""
    size = int.from_bytes(tail[:4], "little")
    return size + 8 if tail[4:] == MAGIC and 0 < size <= MAX_FOOTER else 0


def read_footer(file: Seekable) -> list[list[Column]]:
    """The columns of each row group. Raises FormatError, and what the storage raises. Cost: a pass over the footer."""
    end = file.seek(0, io.SEEK_END)
    size = footer_bytes(_read(file, max(end - TAIL, 0), TAIL))
    if not 0 < size <= end:
        raise FormatError("no footer of Parquet")
    try:
        groups: list[list[Column]] = _Thrift(_read(file, end - size, size - 8)).struct(FOOTER)[4]
        return groups
    except (IndexError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise FormatError("a damaged footer") from error


def _column(chunk: Mapping[int, Any]) -> Column:
    fields = chunk[3]
    start = min((offset for offset in (fields[9], fields.get(11, 0)) if offset), default=0)  # 0: there is no such page
    return Column(fields[3][0].decode("utf-8", "replace"), start, fields[7])


def _columns(group: Mapping[int, Any]) -> list[Column]:
    return group[1]  # type: ignore[no-any-return]


# What is asked for, by number of field: of the footer, row groups -> columns -> meta_data -> path_in_schema,
# total_compressed_size, data_page_offset, dictionary_page_offset; of a header, both sizes and, of either kind of page,
# the number of values and their encoding. MAKE: what becomes of a struct as soon as it is read, so a footer of
# millions of empty ones ends with the first, and no tree of it is held.
MAKE = 0
FOOTER: Mapping[int, Any] = {4: {MAKE: _columns, 1: {MAKE: _column, 3: {3: None, 7: None, 9: None, 11: None}}}}
HEADER: Mapping[int, Any] = {2: None, 3: None, 5: {1: None, 2: None}, 8: {1: None, 4: None}}
PLAIN, BY_NUMBER = 0, (2, 8)  # encodings: of values, of their numbers in the dictionary


def measure_pages(file: Seekable, columns: Sequence[Column], most_values: int = 1 << 62) -> Pages:
    """What the pages of these columns of a row group take. Raises FormatError, also for a column of more than
    `most_values` values, and what the storage raises. Cost: a read of 512 bytes for each page."""
    found = Pages()
    for column in columns:
        at, values, repeated = column.start, 0, 0
        for _ in range(MAX_PAGES):
            if at >= column.start + column.size:
                break
            page = _header_at(file, at, column.start + column.size - at)
            found.largest = max(found.largest, page.size)
            if page.encoding == PLAIN:
                found.stored += page.size
            elif page.encoding not in BY_NUMBER:
                repeated = max(repeated, page.size)
            values += page.values
            if values > most_values:
                raise FormatError(f"more than {most_values:,} values in one column of a row group")
            at += page.header_bytes + page.compressed
        else:
            raise FormatError(f"more than {MAX_PAGES} pages in one column of a row group")
        found.repeated += repeated
    return found


def read_header(data: bytes) -> PageHeader:
    """The header of a page that `data` begins with. Raises FormatError."""
    reader = _Thrift(data)
    try:
        fields = reader.struct(HEADER)
        size, compressed = int(fields[2]), int(fields[3])
        page, number = (fields[5], 2) if fields.get(5) else (fields.get(8) or {}, 4)
        values, encoding = int(page.get(1, 0)), page.get(number)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise FormatError("not the header of a page") from error
    if size < 0 or compressed < 0 or values < 0:
        raise FormatError(f"a page of {size} bytes, {compressed} in the file, and {values} values")
    return PageHeader(size, compressed, values, encoding, reader.at)


def _header_at(file: Seekable, at: int, most: int) -> PageHeader:
    for size in HEADERS[:-1]:
        try:
            return read_header(_read(file, at, min(size, most)))
        except FormatError:
            continue
    return read_header(_read(file, at, min(HEADERS[-1], most)))


def _read(file: Seekable, at: int, size: int) -> bytes:
    if not 0 <= at < 1 << 62:
        raise FormatError(f"an offset of {at}")
    file.seek(at)
    parts = []
    while size > 0 and (data := file.read(size)):
        parts.append(data)
        size -= len(data)
    return b"".join(parts)


class _Thrift:
    """As much of the compact protocol as it takes: what is not asked for is passed over, and takes no memory."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.items_left = MAX_ITEMS

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        data, at = self.data, self.at
        part = data[at]
        value, shift = part & 127, 7
        while part >= 128:
            if shift > 63:
                raise IndexError("a number of more than 64 bits")
            at += 1
            part = data[at]
            value |= (part & 127) << shift
            shift += 7
        self.at = at + 1
        return value

    def number(self) -> int:
        raw = self.varint()
        return (raw >> 1) ^ -(raw & 1)

    def struct(self, wanted: Mapping[int, Any], depth: int = 0) -> dict[int, Any]:
        """Its fields by number, those that are wanted alone."""
        fields: dict[int, Any] = {}
        number = 0
        while head := self.byte():
            number = number + (head >> 4) if head >> 4 else self.number()
            is_wanted = number in wanted and number != MAKE
            value = self.value(head & 15, wanted.get(number) or {} if is_wanted else {}, is_wanted, depth)
            if is_wanted:
                fields[number] = value
        return fields

    def value(self, kind: int, wanted: Mapping[int, Any], is_wanted: bool, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise IndexError("nested too deep")
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if _BYTE < kind < _DOUBLE:
            return self.number()
        if kind == _BINARY:
            return self.take(self.varint(), is_wanted)
        if kind in (_BYTE, _DOUBLE):
            return self.take(1 if kind == _BYTE else 8, is_wanted)
        if kind in (_LIST, _SET):
            return self.items(wanted, is_wanted, depth)
        if kind == _STRUCT:
            found = self.struct(wanted, depth + 1)
            return wanted[MAKE](found) if is_wanted and MAKE in wanted else found
        raise IndexError(f"type {kind}")  # maps among them, of which Parquet has none

    def items(self, wanted: Mapping[int, Any], is_wanted: bool, depth: int) -> list[Any]:
        head = self.byte()
        kept = []
        count = head >> 4 if head >> 4 < 15 else self.varint()
        self.items_left -= count
        if self.items_left < 0:
            raise IndexError(f"lists of more than {MAX_ITEMS} items")
        for _ in range(count):
            if head & 15 in (_TRUE, _FALSE):
                item: Any = self.byte()  # a byte each, in a list
            else:
                item = self.value(head & 15, wanted, is_wanted, depth + 1)
            if is_wanted:
                kept.append(item)
        return kept

    def take(self, size: int, is_wanted: bool) -> bytes:
        self.at += size
        if self.at > len(self.data):
            raise IndexError("cut off")
        return self.data[self.at - size : self.at] if is_wanted else b""
