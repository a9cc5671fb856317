"""How many bytes of text deduplication kept of each stretch of each input file: what shards in input order are cut by.

A stretch is `1 << shift` offsets of a file. Offsets are bytes or rows, as the format counts them, so the shift follows
from the largest offset that was kept: the smallest for which the file has at most `1 << bits` stretches. Sums and
shifts are the same however documents were spread over parts, waves, workers and attempts.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from refinery.loader.storage.open_store import open_store
from refinery.transforms.core.document import OFFSET_BITS
from refinery.transforms.core.part_errors import naming
from refinery.transforms.write.kept_documents import PartPair, read_verdicts

File = tuple[str, int]  # a source, and the index of a file in its listing
PER_STRETCH = 8  # stretches of a file, as stored, for each `grain` of bytes: text is larger than what it is stored as


def stretch_bits(largest: int, grain: int) -> int:
    """How many bits number the stretches of a file. largest: bytes of the largest input, as stored. grain: bytes of
    text to which borders are to be exact."""
    return max(0, PER_STRETCH * largest // grain).bit_length()


@dataclass
class KeptSizes:
    """Kept bytes of one file. stretches: int64 [n], ascending numbers of those that have any; sizes: int64 [n]."""

    shift: int
    stretches: NDArray[np.int64]
    sizes: NDArray[np.int64]

    def merge(self, other: "KeptSizes") -> "KeptSizes":
        """The sums of both."""
        shift = max(self.shift, other.shift)
        numbers = [each.stretches >> (shift - each.shift) for each in (self, other)]
        return _summed(shift, np.concatenate(numbers), np.concatenate([self.sizes, other.sizes]))

    def joined(self, grain: int) -> tuple[list[int], list[int]]:
        """Neighbours joined until they have `grain` bytes: the first offset of each, and its bytes."""
        starts: list[int] = []
        sizes: list[int] = []
        for number, size in zip(self.stretches.tolist(), self.sizes.tolist(), strict=True):
            if not sizes or sizes[-1] >= grain:
                starts.append(number << self.shift)
                sizes.append(0)
            sizes[-1] += size
        return starts, sizes


def _summed(shift: int, stretches: NDArray[np.int64], sizes: NDArray[np.int64]) -> KeptSizes:
    numbers, places = np.unique(stretches, return_inverse=True)
    total = np.zeros(len(numbers), np.int64)
    np.add.at(total, places, sizes)
    return KeptSizes(shift, numbers, total)


def count_offsets(offsets: NDArray[np.int64], sizes: NDArray[np.int64], bits: int) -> KeptSizes:
    """The kept sizes of documents of one file; at least one."""
    shift = max(0, int(offsets.max()).bit_length() - bits)
    return _summed(shift, offsets >> shift, sizes)


def count_part(pair: PartPair, bits: int) -> Iterator[tuple[File, KeptSizes]]:
    """The kept sizes of the files that a part has documents of, by file. Reads its positions, sizes and verdicts, and
    no text. Raises what `read_kept_documents` raises. Memory: some 40 bytes for each document of the part."""
    sources, positions = _columns(pair.documents_root, pair.documents, ("source", "position"))
    signatures = pair.documents.replace("documents/", "signatures/", 1)  # row-aligned, in the same work location
    sizes = _columns(pair.documents_root, signatures, ("bytes",))[0].to_numpy()
    if len(sizes) != len(positions):
        raise ValueError(f"{signatures}: {len(sizes)} rows for {len(positions)} documents")
    kept = np.ones(len(sizes), np.bool_)
    if pair.verdicts:
        kept = ~read_verdicts(pair, len(sizes), ())[0]["removed"].to_numpy()
    coded = sources.combine_chunks().dictionary_encode()
    codes, names = coded.indices.to_numpy()[kept], coded.dictionary.to_pylist()
    places, sizes = positions.to_numpy()[kept], sizes[kept]
    keys = np.stack([codes.astype(np.int64), places >> OFFSET_BITS], axis=1)
    files, inverse = np.unique(keys, axis=0, return_inverse=True)
    offsets = places & ((1 << OFFSET_BITS) - 1)
    order = np.argsort(inverse.reshape(-1), kind="stable")
    ends = np.cumsum(np.bincount(inverse.reshape(-1), minlength=len(files)))
    for (code, index), rows in zip(files.tolist(), np.split(order, ends[:-1]), strict=True) if len(files) else ():
        yield (names[code], index), count_offsets(offsets[rows], sizes[rows], bits)


def _columns(root: str, path: str, names: Sequence[str]) -> list[pa.ChunkedArray]:
    store = open_store(root)
    with store.open(path) as stream, naming(store.url(path)):
        table = pq.read_table(stream, columns=list(names), page_checksum_verification=True, use_threads=False)
    return [table[name] for name in names]


def merge_sizes(many: Iterable[KeptSizes]) -> KeptSizes:
    """The sum of the kept sizes of one file; at least one."""
    remaining = iter(many)
    total = next(remaining)
    for each in remaining:
        total = total.merge(each)
    return total
