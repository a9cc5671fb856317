"""A finished corpus opened for reading: its files behind one guard, its documents in batches, tokens of any of them.

Every tool that looks at a finished corpus opens its files here, so all refuse the same files in the same words.
`refinery.corpus.open` gives the same for views, exports and adopted corpora, with texts, rules and lookups; this module
needs only numpy and pyarrow.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from refinery.loader.errors import FormatError
from refinery.loader.format.indexed import Index, IndexedReader
from refinery.loader.format.manifest import RUN, FileEntry, Manifest, ShardEntry, load_manifest, unseal
from refinery.loader.format.parquet.batches import BATCH_ROWS, stored_table
from refinery.loader.format.parquet.guarded import GuardedFile, listed_parquet
from refinery.loader.format.provenance import ADOPTED
from refinery.loader.format.removals import FOLDER as REMOVALS
from refinery.loader.format.removals import REMOVALS_SCHEMA
from refinery.loader.format.shard_files import describe_size, differences, load_index, read_file
from refinery.loader.format.takedown import Takedown
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store, checksums

MAX_RUN = 1 << 28  # bytes of _run.json: 130 for each input file
MAX_SMALL = 1 << 30  # bytes of any other file that is read whole, such as a tokenizer


class Corpus:
    """The corpus at a local folder, gs://bucket/prefix, s3://bucket/prefix or https://host/prefix.

    store; manifest; sha256: of manifest.json, which names this version of the corpus; manifest_bytes: its size.

    Opening reads manifest.json alone; what else is read says each method. Raises FormatError if the manifest is missing
    or invalid. Indexes and small files are compared with their checksums; of tables and tokens `refinery verify` checks
    the bytes, here every read is bounded and damage is an error that names the file.
    """

    def __init__(self, location: str | Store) -> None:
        self.store = open_store(location) if isinstance(location, str) else location
        self.manifest: Manifest
        self.manifest, data = load_manifest(self.store)
        self.sha256 = hashlib.sha256(data).hexdigest()
        self.manifest_bytes = len(data)

    def with_manifest(self, manifest: Manifest) -> Self:
        """The same files as another manifest describes them: an earlier version, of which some are left."""
        other = copy(self)
        other.manifest = manifest
        return other

    def load(self) -> Self:
        """Read every listing now: FormatError for one that is missing or invalid. Returns itself."""
        self.manifest.load()
        return self

    def load_with_run(self) -> Self:
        """As `load`, and _run.json: FormatError where it is not the listed one, so the corpus is of several runs."""
        if self.load().lists(RUN):
            _ = self.run
        return self

    # --- what it is ---

    @property
    def root(self) -> str:
        """Where it is, as a folder or an address."""
        return self.store.root

    @property
    def name(self) -> str:
        """The recipe's name."""
        return self.manifest.name

    @property
    def is_adopted(self) -> bool:
        """Whether another tool wrote its tokens: it has no provenance, no removals and no funnel then."""
        return self.manifest.lane == ADOPTED

    @property
    def versions(self) -> Sequence[Takedown]:
        """The takedowns that made this version of it, the first one first; each names the version before."""
        return self.manifest.takedowns

    # --- its files ---

    @cached_property
    def _listed(self) -> Mapping[str, FileEntry]:
        return {entry.path: entry for entry in self.manifest.files}

    def file(self, path: str) -> FileEntry:
        """What the manifest says of a file beside the shards. Raises FormatError for one that it does not list."""
        entry = self._listed.get(path)
        if entry is None:
            raise FormatError(f"{self.store.url(path)}: not listed in the manifest; refinery verify says what is there")
        return entry

    def files(self, folder: str = "") -> list[FileEntry]:
        """The files beside the shards, or those of a folder such as "rejects", by path."""
        return sorted(
            (entry for entry in self.manifest.files if not folder or entry.path.startswith(f"{folder}/")),
            key=lambda entry: entry.path,
        )

    def lists(self, path: str) -> bool:
        """Whether the manifest lists a file beside the shards."""
        return path in self._listed

    def read(self, path: str, most: int = MAX_SMALL) -> bytes:
        """All of a listed file, compared with its checksums. Raises FormatError and CorruptShard as `read_file`, and
        FormatError for one of more than `most` bytes."""
        entry = self.file(path)
        url = self.store.url(path)
        if entry.size > most:
            raise FormatError(f"{url}: {entry.size} bytes listed, {most} at most expected")
        data = read_file(self.store, entry)
        if told := differences(entry, checksums(data)):
            raise FormatError(f"{url}: {told}")
        return data

    def parquet(self, path: str, schema: pa.Schema | None = None) -> AbstractContextManager[GuardedFile]:
        """A Parquet file of the corpus, whose reads are bounded. schema: all columns that it must have. Raises the same
        errors as `GuardedFile`, and FormatError where it is missing."""
        return listed_parquet(self.store, path, schema)

    @cached_property
    def run(self) -> Mapping[str, Any]:
        """_run.json: recipe, inputs, stages and fingerprints of the run. Raises FileNotFoundError where there is none,
        FormatError for what no run writes."""
        if self.lists(RUN):
            return unseal(self.read(RUN, MAX_RUN), self.store.url(RUN))
        data = self.store.read(RUN, 0, MAX_RUN + 1)  # older corpora do not list it
        if len(data) > MAX_RUN:
            raise FormatError(f"{self.store.url(RUN)}: more than {MAX_RUN} bytes found, {MAX_RUN} at most expected")
        return unseal(data, self.store.url(RUN))

    # --- its documents ---

    def shards(self, split: str = "train", domain: str | None = None) -> "Iterator[Shard]":
        """The shards of a split in manifest order, each opened when the iterator reaches it."""
        for entry in self.manifest.shards:
            if entry.split == split and domain in (None, entry.domain):
                yield Shard(self.store, entry)

    def entries(self, split: str = "", domain: str = "") -> Iterator[ShardEntry]:
        """What the manifest says of the shards, of a split and a domain or of all, in its order."""
        for entry in self.manifest.shards:
            if split in ("", entry.split) and domain in ("", entry.domain):
                yield entry

    def index_of(self, entry: ShardEntry) -> Index:
        """Where the documents of a shard are. Raises the same errors as `load_index`."""
        return load_index(self.store, entry)

    @property
    def schema(self) -> pa.Schema:
        """The columns of its documents beside their texts."""
        return self.manifest.row_schema

    def provenance(self, entry: ShardEntry, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The provenance rows of a shard: row i describes document i. Batches have up to BATCH_ROWS rows.

        Raises FormatError for an adopted corpus, which has none, for other columns, for damage, and where there are
        more or fewer rows than documents. Memory: a batch.
        """
        if entry.provenance_file is None:
            raise FormatError(f"{self.root} was adopted from files without provenance, so it cannot be traced")
        rows = 0
        columns = self.schema.names if columns is None else columns
        with self.parquet(entry.provenance.path, self.manifest.provenance_schema) as file:
            for batch in file.iter_batches(BATCH_ROWS, columns=columns):
                rows += batch.num_rows
                yield batch
        if rows != entry.documents:
            raise FormatError(
                f"{self.store.url(entry.provenance.path)}: {rows} rows found, {entry.documents} expected from the "
                "manifest"
            )

    def removals(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """What deduplication removed, and which document was kept instead (REMOVALS_SCHEMA), by ascending id."""
        return self._tables(REMOVALS, columns, REMOVALS_SCHEMA)

    def rejects(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The sample of what stages dropped: stage, reason, source, url, origin, excerpt, found."""
        return self._tables("rejects", columns)

    def dead_letters(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Records that failed: stage, error, source, origin, sha256, size."""
        return self._tables("dead_letters", columns)

    def _tables(
        self, folder: str, columns: Sequence[str] | None, schema: pa.Schema | None = None
    ) -> Iterator[pa.RecordBatch]:
        for entry in self.files(folder):
            with self.parquet(entry.path, schema) as file:
                yield from file.iter_batches(BATCH_ROWS, columns=columns)


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
