"""The documents of a split in one global order over all domains, cut into regions that are read independently.

A domain's shards are sorted by `order_key`, a hash that is uniform over 64 bits, and so is what results from merging
the domains by it: a stretch of that order mixes them in proportion to their sizes. Region r of n is the documents whose
key is in the r-th of n equal parts of the range; it is in few shards of each domain, so it is read without the others.
"""

import io
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from refinery.loader.errors import CorruptShard, FormatError
from refinery.loader.format.block_checksums import CHECKSUM_BLOCK, block_values, parse_blocks
from refinery.loader.format.manifest import ShardEntry
from refinery.loader.format.parquet.batches import bounded_table
from refinery.loader.format.shard_files import load_index, read_file
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store
from refinery.pipelines.corpus.export.checkpoint import SplitPlan
from refinery.transforms.write.shuffle import order_key

COLUMNS = ["id", "url", "source", "origin", "text_bytes"]


def overlapping(region: int, regions: int, count: int) -> range:
    """Which of `count` equal parts of a range overlap the region.

    >>> list(overlapping(1, 4, 2)), list(overlapping(0, 2, 4))
    ([0], [0, 1])
    """
    return range(region * count // regions, -(-(region + 1) * count // regions))


def region_count(entries: Iterable[ShardEntry]) -> int:
    """Regions of a split: as many as its largest domain has shards."""
    return max(entry.count for entry in entries)


def region_entries(entries: Iterable[ShardEntry], region: int, regions: int) -> list[ShardEntry]:
    """The shards of a split that hold documents of a region."""
    return [entry for entry in entries if entry.index in overlapping(region, regions, entry.count)]


class Placed(NamedTuple):
    """A document in the order. shard: number of its entry. row, start, tokens: of it in the shard."""

    key: tuple[int, bytes, str, str]  # order, id, source, origin
    shard: int
    row: int
    start: int
    tokens: int
    text_bytes: int
    url: str


@dataclass
class Region:
    """Documents of a region in their order. ends: tokens up to and with each. skipped: documents that were left out."""

    store: Store
    entries: Sequence[ShardEntry]
    dtype: np.dtype[Any]
    documents: Sequence[Placed]
    skipped: int

    def __post_init__(self) -> None:
        self.ends = list(accumulate(document.tokens for document in self.documents))

    @property
    def tokens(self) -> int:
        return self.ends[-1] if self.ends else 0

    def pieces(self, start: int, stop: int) -> Iterator[tuple[Placed, int, int]]:
        """(document, its first and end token of those that are asked for), for tokens [start, stop) of the region."""
        for number in range(bisect_right(self.ends, start), len(self.documents)):
            document = self.documents[number]
            begin = self.ends[number] - document.tokens
            if begin >= stop:
                return
            first, end = max(start - begin, 0), min(stop - begin, document.tokens)
            if first < end:
                yield document, first, end

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Tokens [start, stop) of the region. One read for each shard that they are in."""
        pieces = list(self.pieces(start, stop))
        ranges: dict[int, list[int]] = {}
        for document, first, end in pieces:
            span = ranges.setdefault(document.shard, [document.start + first, document.start + end])
            span[:] = [min(span[0], document.start + first), max(span[1], document.start + end)]
        data = {
            shard: read_tokens(self.store, self.entries[shard], self.dtype, begin, end)
            for shard, (begin, end) in ranges.items()
        }
        out = np.empty(sum(end - first for _, first, end in pieces), self.dtype)
        position = 0
        for document, first, end in pieces:
            offset = document.start - ranges[document.shard][0]
            out[position : position + end - first] = data[document.shard][offset + first : offset + end]
            position += end - first
        return out


def read_tokens(store: Store, entry: ShardEntry, dtype: np.dtype[Any], start: int, stop: int) -> npt.NDArray[Any]:
    """Tokens [start, stop) of a shard, compared with its block checksums. Raises CorruptShard, naming the block."""
    file, size = entry.bin, dtype.itemsize
    first, last = start * size // CHECKSUM_BLOCK, -(-stop * size // CHECKSUM_BLOCK)
    begin, end = first * CHECKSUM_BLOCK, min(last * CHECKSUM_BLOCK, file.size)
    data = store.read(file.path, begin, end - begin)
    expected = parse_blocks(file.block_crc32c, file.size, file.crc32c, file.path)[first:last]
    found = block_values(data)
    if len(data) != end - begin or tuple(found) != tuple(expected):
        raise CorruptShard(f"{store.url(file.path)}: bytes {begin} to {end} are not those of the manifest: damaged")
    return np.frombuffer(data, dtype, stop - start, start * size - begin)


def load_region(
    root: str,
    entries: Sequence[ShardEntry],
    seed: int,
    region: int,
    regions: int,
    known: Collection[bytes] = frozenset(),
) -> Region:
    """The documents of a region, without those whose id is in `known`.

    root: of the corpus. entries: of `region_entries`. Raises FormatError and CorruptShard for damaged files. Cost: the
    index and provenance of these shards, 3 microseconds a row; memory: 300 bytes a document.
    """
    store = open_store(root)
    found: list[Placed] = []
    skipped = 0
    dtype: np.dtype[Any] | None = None
    for number, entry in enumerate(entries):
        index = load_index(store, entry)
        dtype = index.dtype
        offsets, lengths = index.offsets.tolist(), index.lengths.tolist()
        data = io.BytesIO(read_file(store, entry.provenance))
        table = bounded_table(data, store.url(entry.provenance.path), COLUMNS)
        if table.num_rows != len(index):
            raise FormatError(f"{store.url(entry.provenance.path)}: {table.num_rows} rows, {len(index)} expected")
        columns = [table[name].to_pylist() for name in COLUMNS]
        for row, (id_, url, source, origin, size) in enumerate(zip(*columns, strict=True)):
            order = order_key(seed, id_)
            if order * regions >> 64 != region:
                continue
            if id_ in known:
                skipped += 1
                continue
            key = (order, id_, source, origin)
            found.append(Placed(key, number, row, offsets[row], lengths[row], size, url))
    found.sort()
    return Region(store, entries, dtype or np.dtype(np.uint16), found, skipped)


def count_sources(region: Region) -> dict[str, dict[str, int]]:
    """Source -> documents, tokens and bytes of text of a region."""
    counts: dict[str, dict[str, int]] = {}
    for document in region.documents:
        entry = counts.setdefault(document.key[2], {"documents": 0, "tokens": 0, "bytes": 0})
        entry["documents"] += 1
        entry["tokens"] += document.tokens
        entry["bytes"] += document.text_bytes
    return dict(sorted(counts.items()))


PROVENANCE = pa.schema(
    [
        pa.field("id", pa.binary(16), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("domain", pa.string(), nullable=False),
        pa.field("url", pa.string(), nullable=False),
        pa.field("origin", pa.string(), nullable=False),
        pa.field("text_bytes", pa.int64(), nullable=False),
        pa.field(
            "position", pa.int64(), nullable=False
        ),  # of its first token in the split; // shard_tokens is the shard
        pa.field("tokens", pa.int64(), nullable=False),
    ]
)


def provenance_table(region: Region, position: int) -> pa.Table:
    """A row for each document of a region. position: of the region's first token in the split."""
    documents = region.documents
    values: Mapping[str, list[Any]] = {
        "id": [document.key[1] for document in documents],
        "source": [document.key[2] for document in documents],
        "domain": [region.entries[document.shard].domain for document in documents],
        "url": [document.url for document in documents],
        "origin": [document.key[3] for document in documents],
        "text_bytes": [document.text_bytes for document in documents],
        "position": [position + end - d.tokens for d, end in zip(documents, region.ends, strict=True)],
        "tokens": [document.tokens for document in documents],
    }
    return pa.table(values, schema=PROVENANCE)


def cut_shards(
    plan: SplitPlan, size: int, regions: Sequence[dict[str, Any]], left: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    """A task for each region: the shards that begin in it, the leftover if that does, and the regions to read for them.

    Shard k is tokens [k * size, (k + 1) * size) of the split. What was left over before belongs to the first region.
    """
    base = plan.shards * size
    stops = [base + plan.leftover + stop for stop in accumulate(plan.tokens)]
    end = stops[-1]
    tasks = []
    for number, (stop, tokens) in enumerate(zip(stops, plan.tokens, strict=True)):
        start = stop - tokens
        begin = base if number == 0 else start
        first = -(-begin // size)
        complete = range(first, min(-(-stop // size), end // size))
        rest = end // size * size
        leftover = [rest, end] if begin <= rest < stop and rest < end else None
        last = end if leftover else (complete[-1] + 1) * size if complete else stop
        following = sum(other < last for other in stops[number:-1])
        tasks.append(
            {
                "split": plan.split,
                "start": start,
                "tokens": tokens,
                "shards": list(complete),
                "leftover": leftover,
                "before": dict(left) if left and number == 0 else None,
                "regions": list(regions[number : number + following + 1]),
            }
        )
    return tasks
