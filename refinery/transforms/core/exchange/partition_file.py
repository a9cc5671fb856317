"""Partition files: what a bundle sends into an exchange, in one file on local disk, and groups read from many of them.

Values wait in memory by key; whenever FLUSH_BYTES are held, the values of each key are appended to the file as one
segment. The index of all segments stands behind them, so a reader finds the segments of a key in any file without
reading the rest. A file with more than MOST_SEGMENTS is written once more, by key, so indices stay small
whatever the corpus. Layout, little-endian:

    segments     each: values of one key, `<u4` length and bytes, one after the other
    keys         JSON: all keys (`dump_key`, bytes as Latin-1)
    SEGMENT x n  where each segment is, and its CRC-32C
    TRAILER      bytes of the keys, number of segments, CRC-32C of both tables, MAGIC

A group is lazy: it reads one segment at a time, and the rest of the file is never in memory. What was cut short,
overwritten or swapped is noticed by size and checksum before its values are handed on.
"""

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Any, NoReturn

import google_crc32c
import numpy as np
import orjson
from numpy.typing import NDArray

from refinery.loader.storage.full_disk import naming_scratch
from refinery.loader.storage.local_files import rename_own, retried
from refinery.transforms.core.exchange.tally import ExchangeError, Tally

FLUSH_BYTES = 8 << 20  # of values held by one writer
FILE_BYTES = 4 << 30  # of values in one file, about: what is written once more at its end
MOST_SEGMENTS = 1 << 14  # in a file, unless it has as many keys
HELD_VALUE = 64  # bytes of memory that a value takes beside its own, about
MAGIC = b"refinery partition 1\n"
LENGTH = Struct("<I")
TRAILER = Struct(f"<QQI{len(MAGIC)}s")
SEGMENT = np.dtype([("key", "<u4"), ("values", "<u4"), ("offset", "<u8"), ("size", "<u8"), ("crc32c", "<u4")])
MOST_VALUE = 2**32 - 1  # bytes of one value

Segments = NDArray[Any]  # of SEGMENT


class PartitionWriter:
    """Writes one partition file at `path`; it has that name once it is whole. tally: of all its elements.

    Raises DiskFull, which names the place, where there is no room. Memory: FLUSH_BYTES, twice while they are written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tally = Tally()
        self.numbers: dict[bytes, int] = {}
        self.held: defaultdict[bytes, list[bytes]] = defaultdict(list)
        self.held_bytes = 0
        self.segments: list[Segments] = []
        self.end = 0
        self.file: int | None = None

    def add(self, key: bytes, value: bytes) -> None:
        """Take in an element. key: of `dump_key`."""
        if len(value) > MOST_VALUE:
            raise ValueError(f"value: {len(value):,} bytes given, up to {MOST_VALUE:,} is allowed")
        self.tally.add(key, value)
        self.held[key].append(value)
        self.held_bytes += len(value) + HELD_VALUE
        if self.held_bytes >= FLUSH_BYTES:
            self._flush()

    @property
    def is_full(self) -> bool:
        """Whether the next element should go to another file."""
        return self.end >= FILE_BYTES

    def close(self) -> None:
        """Write what is left and the index, and give the file its name."""
        self._flush()
        segments = np.concatenate([np.empty(0, SEGMENT), *self.segments])
        self.segments = []
        with naming_scratch(str(self.path.parent), self.path.name):
            if len(segments) > max(MOST_SEGMENTS, 2 * len(self.numbers)):
                segments = self._rewrite(segments)
            keys = orjson.dumps([key.decode("latin-1") for key in self.numbers])
            table = segments.tobytes()
            crc32c = google_crc32c.extend(google_crc32c.value(keys), table)
            self._write(keys + table + TRAILER.pack(len(keys), len(segments), crc32c, MAGIC))
            self._descriptor_closed()
            rename_own(self._unfinished, self.path)

    def _rewrite(self, segments: Segments) -> Segments:
        """The file once more, the segments of each key one behind the other and joined up to FLUSH_BYTES; its index."""
        self._descriptor_closed()
        before = self._unfinished.with_suffix(".segments")
        rename_own(self._unfinished, before)
        segments = segments[np.argsort(segments["key"], kind="stable")]
        found: list[tuple[int, int, int, int, int]] = []
        self.end = 0
        with retried(lambda: before.open("rb")) as file:
            for first, last in _stretches(segments):
                part = segments[first:last]
                pieces = [Piece(before, *row) for row in part[["offset", "size", "values", "crc32c"]].tolist()]
                data = b"".join(piece.bytes_of(file.fileno()) for piece in pieces)
                values = int(part["values"].sum(dtype=np.int64))
                found.append((int(part["key"][0]), values, self.end, len(data), google_crc32c.value(data)))
                self._write(data)
                self.end += len(data)
        before.unlink()
        return np.array(found, SEGMENT)

    @property
    def _unfinished(self) -> Path:
        return self.path.with_suffix(".part")

    def _descriptor_closed(self) -> None:
        if self.file is not None:
            os.close(self.file)
            self.file = None

    def _flush(self) -> None:
        held, self.held, self.held_bytes = self.held, defaultdict(list), 0
        found: list[tuple[int, int, int, int, int]] = []
        with naming_scratch(str(self.path.parent), self.path.name):
            for key in sorted(held):
                values = held.pop(key)
                data = b"".join([piece for value in values for piece in (LENGTH.pack(len(value)), value)])
                number = self.numbers.setdefault(key, len(self.numbers))
                found.append((number, len(values), self.end, len(data), google_crc32c.value(data)))
                self._write(data)
                self.end += len(data)
        if found:
            self.segments.append(np.array(found, SEGMENT))

    def _write(self, data: bytes) -> None:
        if self.file is None:
            self.file = os.open(self._unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        view = memoryview(data)
        while view:
            view = view[os.write(self.file, view) :]


def _stretches(segments: Segments) -> Iterator[tuple[int, int]]:
    """Ranges of segments, sorted by key, that become one: of one key, of FLUSH_BYTES together or little more."""
    first = size = 0
    for row, (key, held) in enumerate(zip(segments["key"].tolist(), segments["size"].tolist(), strict=True)):
        if row > first and (key != segments["key"][first] or size >= FLUSH_BYTES):
            yield first, row
            first, size = row, 0
        size += held
    yield first, len(segments)


def read_index(path: Path) -> tuple[list[bytes], Segments]:
    """The keys of a partition file, as `dump_key` gives them, and where their segments are: SEGMENT [n], `key` being a
    position among the keys. Raises ExchangeError, naming it, for a file that is gone, cut short or damaged."""
    try:
        with retried(lambda: path.open("rb")) as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - TRAILER.size))
            last = file.read()
            if len(last) < TRAILER.size:
                raise ExchangeError(f"{path}: {size} bytes, a partition file was cut short")
            keys_size, count, crc32c, magic = TRAILER.unpack(last)
            tables = keys_size + count * SEGMENT.itemsize
            if magic != MAGIC or tables > size - TRAILER.size:
                raise ExchangeError(f"{path}: a partition file was cut short or overwritten")
            file.seek(size - TRAILER.size - tables)
            data = file.read(tables)
    except OSError as error:
        raise ExchangeError(f"{path}: {error.strerror or error}; a partition file is gone or unreadable") from error
    if google_crc32c.value(data) != crc32c:
        raise ExchangeError(f"{path}: the index of a partition file was overwritten")
    keys = [key.encode("latin-1") for key in orjson.loads(data[:keys_size])]
    return keys, np.frombuffer(data, SEGMENT, count, keys_size)


@dataclass(frozen=True)
class Piece:
    """A segment of a key in a file."""

    path: Path
    offset: int
    size: int
    values: int
    crc32c: int

    def bytes_of(self, descriptor: int) -> bytes:
        """Its bytes, from its open file. Raises ExchangeError where they are not what was written."""
        data = os.pread(descriptor, self.size, self.offset)
        while 0 < len(data) < self.size:  # more than one call reads
            more = os.pread(descriptor, self.size - len(data), self.offset + len(data))
            if not more:
                break
            data += more
        if len(data) != self.size or google_crc32c.value(data) != self.crc32c:
            raise ExchangeError(f"{self.path}: a partition file was cut short or overwritten at byte {self.offset:,}")
        return data

    def read(self) -> Iterator[bytes]:
        """Its values. Raises ExchangeError, naming the file, where they are not what was written."""
        try:
            descriptor = retried(lambda: os.open(self.path, os.O_RDONLY))
            try:
                data = self.bytes_of(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise ExchangeError(f"{self.path}: {error.strerror or error}; a partition file is gone") from error
        at = 0
        for _ in range(self.values):
            (length,) = LENGTH.unpack_from(data, at)
            at += LENGTH.size + length
            yield data[at - length : at]


class Group:
    """The values of a key, read again, segment by segment, each time it is iterated. Memory: a segment."""

    def __init__(self, paths: Sequence[Path], files: NDArray[np.int64], segments: Segments) -> None:
        self.paths = paths
        self.files = files  # of each segment: which of the paths
        self.segments = segments

    def __iter__(self) -> Iterator[bytes]:
        rows = self.segments[["offset", "size", "values", "crc32c"]].tolist()
        for file, row in zip(self.files.tolist(), rows, strict=True):
            yield from Piece(self.paths[file], *row).read()

    def __reduce__(self) -> NoReturn:
        raise ExchangeError("a group was about to be copied whole: its reader and its consumer are separated")

    @property
    def size(self) -> int:
        """Bytes of its segments."""
        return int(self.segments["size"].sum(dtype=np.int64))

    @property
    def count(self) -> int:
        """Number of its values."""
        return int(self.segments["values"].sum(dtype=np.int64))


def read_groups(paths: Sequence[Path]) -> dict[bytes, Group]:
    """The groups of several files, by key. Memory: 100 bytes a key, and 40 a segment. Raises the same errors as
    `read_index`."""
    numbers: dict[bytes, int] = {}
    tables, files = [np.empty(0, SEGMENT)], [np.empty(0, np.int64)]
    for file, path in enumerate(paths):
        keys, table = read_index(path)
        known = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.uint32)
        table = table.copy()
        table["key"] = known[table["key"]] if len(table) else table["key"]
        tables.append(table)
        files.append(np.full(len(table), file, np.int64))
    segments, owners = np.concatenate(tables), np.concatenate(files)
    order = np.argsort(segments["key"], kind="stable")
    segments, owners = segments[order], owners[order]
    bounds = np.searchsorted(segments["key"], np.arange(len(numbers) + 1))
    return {
        key: Group(paths, owners[bounds[number] : bounds[number + 1]], segments[bounds[number] : bounds[number + 1]])
        for key, number in numbers.items()
    }
