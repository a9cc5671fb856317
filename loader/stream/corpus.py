"""A published corpus opened for reading: its shards, and the tokens of any document."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from refinery.loader.errors import FormatError
from refinery.loader.format.indexed import Index, IndexedReader
from refinery.loader.format.manifest import Manifest, ShardEntry, read_manifest
from refinery.loader.format.shard_files import describe_size, load_index
from refinery.loader.parquet.batches import stored_table
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store


class Corpus:
    """The corpus at a local folder, gs://bucket/prefix, s3://bucket/prefix or https://host/prefix.

    Raises FormatError if the manifest is missing or invalid. Indexes are compared with their checksums, tokens and
    provenance only by size; `refinery verify` checks the rest.
    """

    def __init__(self, location: str | Store) -> None:
        self.store = open_store(location) if isinstance(location, str) else location
        self.manifest: Manifest = read_manifest(self.store)

    def shards(self, split: str = "train", domain: str | None = None) -> "Iterator[Shard]":
        """The shards of a split in manifest order, each opened when the iterator reaches it."""
        for entry in self.manifest.shards:
            if entry.split == split and domain in (None, entry.domain):
                yield Shard(self.store, entry)


class Shard:
    """One shard: `shard[i]` are the tokens of document i. Memory-mapped on a local store, range reads elsewhere.

    Raises FormatError if the index is missing or invalid, or if it disagrees with the manifest or the size of .bin.
    """

    def __init__(self, store: Store, entry: ShardEntry) -> None:
        self.entry = entry
        self._store = store
        self._local: IndexedReader | None = None
        self.index: Index = load_index(store, entry)
        size = store.size(entry.bin.path)
        if size != self.index.bin_size:
            found, expected = describe_size(size), self.index.bin_size
            raise FormatError(f"{store.url(entry.bin.path)}: {found} found, {expected} expected from its index")
        path = store.local_path(entry.bin.path)
        if path is not None:
            self._local = IndexedReader(path, self.index)

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, i: int) -> npt.NDArray[Any]:
        """Tokens of document i, read-only, in the shard's dtype. Raises IndexError out of range."""
        if self._local is not None:
            return self._local[i]
        if not -len(self) <= i < len(self):
            raise IndexError(f"document {i} of {len(self)}")
        size = int(self.index.lengths[i]) * self.index.dtype.itemsize
        data = self._store.read(self.entry.bin.path, int(self.index.pointers[i]), size)
        if len(data) != size:
            raise FormatError(f"{self._store.url(self.entry.bin.path)}: ends inside document {i}")
        return np.frombuffer(data, self.index.dtype)

    def provenance(self) -> pa.Table:
        """The provenance rows (PROVENANCE_SCHEMA), in memory."""
        return stored_table(self._store, self.entry.provenance.path)
