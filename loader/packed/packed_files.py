"""The Parquet files of packed rows, opened for reading: in a local folder, or behind a network through the cache."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.errors import CorruptShard, FormatError
from refinery.loader.format.manifest import FileEntry
from refinery.loader.format.shard_files import describe_size
from refinery.loader.remote.blocks import RemoteParams
from refinery.loader.remote.remote_bytes import ByteRange, RemoteBytes, RemoteFileStream
from refinery.loader.storage.fetch import FetchError, ReadCounters
from refinery.loader.storage.remote_store import RemoteStore
from refinery.loader.storage.store import StorageError, Store, size_and_crc32c

BUFFER = 1 << 16  # of a remote file's stream: more than a footer, less than a column


Source = IO[bytes] | Path


class PackedFiles(Protocol):
    """Files by number. is_remote: whether reading ahead is worth its cost."""

    is_remote: bool

    def footer(self, number: int) -> Source:
        """A file for its footer alone: of a local one only the size was compared. Raises FormatError."""

    def rows(self, number: int) -> Source:
        """A file whose bytes are those of the manifest. Raises CorruptShard."""

    def expect_bytes(self, ranges: Sequence[ByteRange]) -> None:
        """A hint to prefetch these ranges."""

    def release_bytes(self, ranges: Sequence[ByteRange]) -> None:
        """These ranges will not be read again soon."""

    def close(self) -> None:
        """Free all resources."""


class LocalFiles:
    """Files in a local folder: each is compared with its checksum once, when its rows are first read."""

    is_remote = False

    def __init__(self, store: Store, files: Sequence[FileEntry]) -> None:
        self._store, self._files = store, list(files)
        self._verified = [False] * len(self._files)

    def footer(self, number: int) -> Source:
        entry = self._files[number]
        if (found := self._store.size(entry.path)) != entry.size:
            raise FormatError(f"{self._store.url(entry.path)}: {describe_size(found)} found, {entry.size} expected")
        return self._path(entry)

    def rows(self, number: int) -> Source:
        entry = self._files[number]
        if not self._verified[number]:
            with self._store.open(entry.path) as stream:
                found = size_and_crc32c(stream)
            if found != (entry.size, entry.crc32c):
                raise CorruptShard(
                    f"{self._store.url(entry.path)}: {found[0]} bytes, crc32c {found[1]} found, {entry.size} bytes, "
                    f"crc32c {entry.crc32c} expected"
                )
            self._verified[number] = True
        return self._path(entry)

    def _path(self, entry: FileEntry) -> Path:
        path = self._store.local_path(entry.path)
        if path is None:
            raise ValueError(f"store: {self._store.root} given, a local folder is allowed")
        return path

    def expect_bytes(self, ranges: Sequence[ByteRange]) -> None:
        return  # the kernel reads ahead

    def release_bytes(self, ranges: Sequence[ByteRange]) -> None:
        return

    def close(self) -> None:
        return


class RemoteFiles(RemoteBytes):
    """Files behind a network: each MiB is compared with its checksum whenever it is read."""

    is_remote = True

    def footer(self, number: int) -> IO[bytes]:
        return self.rows(number)

    def rows(self, number: int) -> IO[bytes]:
        return io.BufferedReader(RemoteFileStream(self, number, self._files[number].size), BUFFER)


def open_files(
    store: Store, files: Sequence[FileEntry], corpus: str, params: RemoteParams | None, counters: ReadCounters | None
) -> PackedFiles:
    """The files of a store. corpus: the manifest's SHA-256, part of cached files' names."""
    if isinstance(store, RemoteStore):
        return RemoteFiles(store, files, corpus=corpus, params=params, counters=counters)
    return LocalFiles(store, files)


@contextmanager
def parquet(source: Source, url: str) -> Iterator[pq.ParquetFile]:
    """A Parquet file; a stream is closed at the end. What pyarrow raises for wrong bytes becomes a FormatError.

    Errors of reading the bytes pass: those of stores, and those of the system, which have a number.
    """
    try:
        with (
            nullcontext() if isinstance(source, Path) else source,
            pq.ParquetFile(source, page_checksum_verification=True) as file,
        ):
            yield file
    except (FetchError, StorageError, FormatError):
        raise
    except (OSError, pa.ArrowException, UnicodeDecodeError, KeyError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        said = (str(error) or repr(error)).splitlines()[0]
        raise FormatError(f"{url}: not a readable Parquet file: {said:.200}") from None


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
