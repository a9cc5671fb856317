"""A shard's files, checked against the manifest: sizes, checksums, counts, and ranges of tokens."""

import google_crc32c
import numpy as np
import numpy.typing as npt

from refinery.loader.errors import CorruptShard, FormatError
from refinery.loader.format.entries import FileEntry, ShardEntry
from refinery.loader.format.indexed import Index, read_index
from refinery.loader.storage.fetch import Stop
from refinery.loader.storage.remote_store import RemoteStore
from refinery.loader.storage.store import Checksums, Store, checksums


def read_file(store: Store, entry: FileEntry, stop_by: Stop | None = None) -> bytes:
    """A whole file of the manifest, such as an .idx, verified by size and CRC-32C; a mismatch is read once more.

    stop_by: lets another thread cancel a remote read. Raises CorruptShard, with both sizes and checksums, if the second
    read is wrong too, and FormatError if the file is missing.
    """
    url = store.url(entry.path)
    for _ in range(2):
        try:
            if isinstance(store, RemoteStore):
                # One byte more than expected detects a longer object without reading all of it.
                data = store.read(entry.path, 0, entry.size + 1, stop_by)
            else:
                data = store.read(entry.path)
        except FileNotFoundError:
            raise FormatError(f"{url}: missing, {entry.size} bytes expected") from None
        if (len(data), f"{google_crc32c.value(data):08x}") == (entry.size, entry.crc32c):
            return data
    raise CorruptShard(f"{url}: {differences(entry, checksums(data))}")


def differences(entry: FileEntry, found: Checksums) -> str:
    """All of size, crc32c and sha256 that differ, as every tool says it; "" where it is the file that is listed."""
    expected = (entry.size, entry.crc32c, entry.sha256)
    return "; ".join(
        f"{name} {have} found, {want} expected"
        for name, have, want in zip(("size", "crc32c", "sha256"), found, expected, strict=True)
        if have != want
    )


def load_index(store: Store, entry: ShardEntry, stop_by: Stop | None = None) -> Index:
    """A shard's index. Raises FormatError if it is invalid or disagrees with the manifest; otherwise as `read_file`."""
    url = store.url(entry.idx.path)
    index = read_index(read_file(store, entry.idx, stop_by), url)
    if (len(index), index.tokens) != (entry.documents, entry.tokens):
        raise FormatError(
            f"{url}: {len(index)} documents and {index.tokens} tokens found, "
            f"{entry.documents} and {entry.tokens} expected from the manifest"
        )
    return index


def check_bin_size(store: Store, entry: ShardEntry, dtype: npt.DTypeLike) -> None:
    """Raise FormatError unless the manifest's size of a .bin fits its number of tokens."""
    expected = entry.tokens * np.dtype(dtype).itemsize
    if entry.bin.size != expected:
        raise FormatError(
            f"{store.url(entry.bin.path)}: {entry.bin.size} bytes found in the manifest, "
            f"{expected} expected for {entry.tokens} tokens"
        )


def check_token_range(entry: ShardEntry, start: int, count: int) -> None:
    """Raise ValueError unless tokens [start, start + count) are inside the shard."""
    if start < 0 or start + count > entry.tokens:
        raise ValueError(
            f"tokens: {start} to {start + count} of {entry.bin.path} given, 0 to {entry.tokens} is allowed"
        )


def describe_size(size: int | None) -> str:
    """For messages about a file that may be missing."""
    return "no file" if size is None else f"{size} bytes"
