"""Partition files: what a bundle sends into an exchange, in one file on local disk, and groups read from many of them.

Values wait in memory by key; whenever FLUSH_BYTES are held, the values of each key are appended to the file as one
segment. The index of all segments stands behind them, so that a reader finds the segments of a key in any file without
reading the rest. Layout, little-endian:

    segments     each: values of one key, `<u4` length and bytes, one after the other
    keys         JSON: all keys (`dump_key`, bytes as Latin-1)
    SEGMENT x n  where each segment is, and its CRC-32C
    TRAILER      bytes of the keys, number of segments, CRC-32C of both tables, MAGIC

A group is lazy: it reads one segment at a time, and the rest of the file is never in memory. What was cut short,
overwritten or swapped is noticed by size and checksum before its values are handed on.
"""

import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Any

import google_crc32c
import numpy as np
import orjson
from numpy.typing import NDArray

from refinery.loader.storage.full_disk import naming_scratch
from refinery.transforms.exchange.tally import ExchangeError, Tally

FLUSH_BYTES = 8 << 20  # of values held by one writer
HELD_VALUE = 64  # bytes of memory that a value takes beside its own, about
MAGIC = b"refinery partition 1\n"
LENGTH = Struct("<I")
TRAILER = Struct(f"<QQI{len(MAGIC)}s")
SEGMENT = np.dtype([("key", "<u4"), ("values", "<u4"), ("offset", "<u8"), ("size", "<u8"), ("crc32c", "<u4")])
MOST_VALUE = 2**32 - 1  # bytes of one value


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
        self.segments: list[tuple[int, int, int, int, int]] = []
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

    def close(self) -> None:
        """Write what is left and the index, and give the file its name."""
        self._flush()
        keys = orjson.dumps([key.decode("latin-1") for key in self.numbers])
        table = np.array(self.segments, SEGMENT).tobytes()
        crc32c = google_crc32c.extend(google_crc32c.value(keys), table)
        with naming_scratch(str(self.path.parent), self.path.name):
            self._write(keys + table + TRAILER.pack(len(keys), len(self.segments), crc32c, MAGIC))
            self._descriptor_closed()
            os.rename(self._unfinished, self.path)

    def abandon(self) -> None:
        """Remove what was written so far."""
        self._descriptor_closed()
        self._unfinished.unlink(missing_ok=True)

    @property
    def _unfinished(self) -> Path:
        return self.path.with_suffix(".part")

    def _descriptor_closed(self) -> None:
        if self.file is not None:
            os.close(self.file)
            self.file = None

    def _flush(self) -> None:
        held, self.held, self.held_bytes = self.held, defaultdict(list), 0
        with naming_scratch(str(self.path.parent), self.path.name):
            for key in sorted(held):
                values = held.pop(key)
                data = b"".join([piece for value in values for piece in (LENGTH.pack(len(value)), value)])
                number = self.numbers.setdefault(key, len(self.numbers))
                self.segments.append((number, len(values), self.end, len(data), google_crc32c.value(data)))
                self._write(data)
                self.end += len(data)

    def _write(self, data: bytes) -> None:
        if self.file is None:
            self.file = os.open(self._unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        view = memoryview(data)
        while view:
            view = view[os.write(self.file, view) :]


@dataclass(frozen=True)
class PartitionIndex:
    """Where the segments of each key of a file are. keys: as `dump_key` gives them. segments: SEGMENT [n]."""

    path: Path
    keys: tuple[bytes, ...]
    segments: NDArray[Any]


def read_index(path: Path) -> PartitionIndex:
    """The index of a partition file. Raises ExchangeError, naming it, for one that is gone, cut short or damaged."""
    try:
        with path.open("rb") as file:
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
    keys = tuple(key.encode("latin-1") for key in orjson.loads(data[:keys_size]))
    return PartitionIndex(path, keys, np.frombuffer(data, SEGMENT, count, keys_size))


@dataclass(frozen=True)
class Piece:
    """A segment of a key in a file."""

    path: Path
    offset: int
    size: int
    values: int
    crc32c: int

    def read(self) -> Iterator[bytes]:
        """Its values. Raises ExchangeError, naming the file, where they are not what was written."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY)
            try:
                data = os.pread(descriptor, self.size, self.offset)
                while 0 < len(data) < self.size:  # more than one call reads
                    more = os.pread(descriptor, self.size - len(data), self.offset + len(data))
                    if not more:
                        break
                    data += more
            finally:
                os.close(descriptor)
        except OSError as error:
            raise ExchangeError(f"{self.path}: {error.strerror or error}; a partition file is gone") from error
        if len(data) != self.size or google_crc32c.value(data) != self.crc32c:
            raise ExchangeError(f"{self.path}: a partition file was cut short or overwritten at byte {self.offset:,}")
        at = 0
        for _ in range(self.values):
            (length,) = LENGTH.unpack_from(data, at)
            at += LENGTH.size + length
            yield data[at - length : at]


class Group:
    """The values of a key, read anew, segment by segment, each time it is iterated. Memory: a segment."""

    def __init__(self, pieces: list[Piece]) -> None:
        self.pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        for piece in self.pieces:
            yield from piece.read()

    @property
    def size(self) -> int:
        """Bytes of its segments."""
        return sum(piece.size for piece in self.pieces)


def read_groups(paths: list[Path]) -> dict[bytes, Group]:
    """The groups of several files, by key; keys in the order in which the files have them. Memory: 100 bytes a
    segment."""
    groups: dict[bytes, Group] = {}
    for path in paths:
        index = read_index(path)
        for number, values, offset, size, crc32c in index.segments.tolist():
            group = groups.setdefault(index.keys[number], Group([]))
            group.pieces.append(Piece(path, offset, size, values, crc32c))
    return groups
