"""The Parquet files of packed rows, opened for reading: in a local folder, or behind a network through the cache."""

import io
import time
from collections.abc import Sequence
from typing import Any, Protocol

import google_crc32c
import numpy.typing as npt

from refinery.loader.errors import CorruptShard, FormatError
from refinery.loader.format.block_checksums import CHECKSUM_BLOCK, parse_blocks
from refinery.loader.format.manifest import FileEntry
from refinery.loader.format.packed import COUNTS, PLACES, STRUCTURE, PackedFormat
from refinery.loader.format.parquet.pages import TAIL
from refinery.loader.format.parquet.parquet_file import Source
from refinery.loader.format.shard_files import describe_size
from refinery.loader.read.remote.blocks import RemoteParams
from refinery.loader.read.remote.remote_bytes import RemoteBytes, RemoteFileStream
from refinery.loader.storage.fetch import ReadCounters
from refinery.loader.storage.remote_store import RemoteStore
from refinery.loader.storage.store import Store

BUFFER = 1 << 16  # of a remote file's stream: more than a footer, less than a column


class PackedFiles(Protocol):
    """Files by number. is_remote: whether reading ahead is worth its cost. read_ns: nanoseconds spent so far on getting
    the bytes of `rows` and on comparing them with their checksums."""

    is_remote: bool
    read_ns: int

    def footer(self, number: int) -> Source:
        """A file whose size and footer are those of the manifest. Raises FormatError."""

    def rows(self, number: int, start: int, stop: int) -> Source:
        """A file whose bytes [start, stop) are those of the manifest, too. Raises CorruptShard."""

    def expect_bytes(self, ranges: npt.ArrayLike) -> None:
        """A hint to prefetch these ranges."""

    def release_bytes(self, ranges: npt.ArrayLike) -> None:
        """These ranges will not be read again soon."""

    def close(self) -> None:
        """Free all resources."""


class LocalFiles:
    """Files in a local folder: each MiB is compared with its checksum before what is in it is first parsed."""

    is_remote = False

    def __init__(self, store: Store, files: Sequence[FileEntry]) -> None:
        self._store, self._files, self.read_ns = store, list(files), 0
        self._verified = [bytearray(-(-entry.size // CHECKSUM_BLOCK)) for entry in self._files]

    def footer(self, number: int) -> Source:
        entry = self._files[number]
        if (found := self._store.size(entry.path)) != entry.size:
            raise FormatError(f"{self._store.url(entry.path)}: {describe_size(found)} found, {entry.size} expected")
        self._verify(number, entry.size - TAIL, entry.size)
        with self._store.open(entry.path) as stream:
            stream.seek(max(0, entry.size - TAIL))
            tail = stream.read(TAIL)
        length = int.from_bytes(tail[:4], "little")  # Parquet ends with the footer, its length and its magic
        return self.rows(number, entry.size - TAIL - length, entry.size)

    def rows(self, number: int, start: int, stop: int) -> Source:
        started = time.perf_counter_ns()
        self._verify(number, start, stop)
        self.read_ns += time.perf_counter_ns() - started
        path = self._store.local_path(self._files[number].path)
        if path is None:
            raise ValueError(f"store: {self._store.root} given, a local folder is allowed")
        return path

    def _verify(self, number: int, start: int, stop: int) -> None:
        entry, done = self._files[number], self._verified[number]
        blocks = range(max(0, start) // CHECKSUM_BLOCK, -(-min(stop, entry.size) // CHECKSUM_BLOCK))
        if all(done[block] for block in blocks):
            return
        url = self._store.url(entry.path)
        expected = parse_blocks(entry.block_crc32c, entry.size, entry.crc32c, url)
        with self._store.open(entry.path) as stream:
            for block in blocks:
                if not done[block]:
                    stream.seek(block * CHECKSUM_BLOCK)
                    found = google_crc32c.value(stream.read(CHECKSUM_BLOCK))
                    if found != expected[block]:
                        raise CorruptShard(
                            f"{url}: block {block}: crc32c {found:08x} found, {expected[block]:08x} expected; the file "
                            "is damaged, copy it again or rebuild it"
                        )
                    done[block] = 1

    def expect_bytes(self, ranges: npt.ArrayLike) -> None:
        return  # the kernel reads ahead

    def release_bytes(self, ranges: npt.ArrayLike) -> None:
        return

    def close(self) -> None:
        return


class RemoteFiles(RemoteBytes):
    """Files behind a network: each MiB is compared with its checksum whenever it is read."""

    is_remote = True
    read_ns = 0

    def footer(self, number: int) -> Source:
        return self.rows(number, 0, 0)

    def rows(self, number: int, start: int, stop: int) -> Source:
        return io.BufferedReader(_TimedStream(self, number, self._file(number).size), BUFFER)


class _TimedStream(RemoteFileStream):
    """A RemoteFileStream whose waiting is counted in its files."""

    def __init__(self, files: RemoteFiles, number: int, size: int) -> None:
        super().__init__(files, number, size)
        self._files = files

    def piece(self, start: int, stop: int) -> bytes:
        started = time.perf_counter_ns()
        try:
            return super().piece(start, stop)
        finally:
            self._files.read_ns += time.perf_counter_ns() - started


def open_files(
    store: Store, files: Sequence[FileEntry], corpus: str, params: RemoteParams | None, counters: ReadCounters | None
) -> PackedFiles:
    """The files of a store. corpus: the manifest's SHA-256, part of cached files' names."""
    if isinstance(store, RemoteStore):
        return RemoteFiles(store, files, corpus=corpus, params=params, counters=counters)
    return LocalFiles(store, files)


def group_spans(metadata: Any, size: int) -> list[tuple[int, int]]:
    """First byte and end of each row group, by the footer; never outside of the file."""
    spans = []
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        columns = [group.column(j) for j in range(group.num_columns)]
        starts = [min(c.data_page_offset, c.dictionary_page_offset or c.data_page_offset) for c in columns]
        ends = [start + c.total_compressed_size for start, c in zip(starts, columns, strict=True)]
        first, end = max(0, min(starts, default=0)), min(size, max(ends, default=0))
        spans.append((first, max(first, end)))
    return spans


def check_counts(metadata: Any, layout: PackedFormat, url: str) -> None:
    """Raise FormatError for values that the footer alone shows to be wrong: a column of places that has not `length`
    values a row, and counts outside of a row."""
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        for column in (group.column(j) for j in range(group.num_columns)):
            name = column.path_in_schema.partition(".")[0]
            expected = group.num_rows * layout.length
            if name in (*PLACES, *STRUCTURE) and column.num_values != expected:
                raise FormatError(
                    f"{url}: column {name}: {column.num_values} values in row group {i} found, {expected} expected: "
                    f"{layout.length} in each row"
                )
            known = column.statistics
            if name in COUNTS and known is not None and known.has_min_max:
                least = 0 if name == "slack_tokens" else 1
                if not least <= known.min <= known.max <= layout.length:
                    raise FormatError(
                        f"{url}: column {name}: {known.min} to {known.max} found, {least} to {layout.length} expected"
                    )
