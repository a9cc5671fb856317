"""selection.bin of a view: which documents of which shards, as runs of tokens. docs/format.md is the specification.

A view's documents are laid out as *segments*: one for each shard, domain, split and *turn*. The first turn has every
chosen document of a shard once, the second those that are delivered at least twice, and so on. All turns of a domain
come one after the other, so two copies of a document are as far apart in its order as any two documents.

A segment is either the whole shard or *runs*: neighbouring chosen documents are one range of tokens. Runs are stored in
blocks of 64, bit-packed, each block with the place of its first token in the view and in the shard, so a token
is found by two binary searches and one block, whatever the size, and the file can be memory-mapped.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from refinery.loader.errors import FormatError
from refinery.loader.order.arrays import I64

SELECTION = "selection.bin"
MAGIC = b"RFSELECT"
VERSION = 1
BLOCK_RUNS = 64
HEADER = struct.Struct("<8sIIQQQ24x")  # magic, version, runs in a block, segments, blocks, bytes of runs
SEGMENT = np.dtype(
    [
        ("split", "<u2"),
        ("domain", "<u2"),
        ("turn", "<u4"),
        ("corpus", "<u4"),
        ("shard", "<u4"),
        ("runs", "<u8"),
        ("documents", "<u8"),
        ("tokens", "<u8"),
    ]
)
MOST_BITS = 48  # of a length or gap: with a shift of 7 it is inside eight bytes
PADDING = 8  # bytes after the runs, so eight can be read at any of them
MOST_TOKENS = 2**62

Table = npt.NDArray[Any]


class Segment(NamedTuple):
    """Documents of one shard in one turn. split: place in SPLITS; domain: in the view's; corpus: in its corpora; shard:
    in that corpus' manifest. turn: from 1. runs: 0 for all of the shard. documents, tokens: what it holds."""

    split: int
    domain: int
    turn: int
    corpus: int
    shard: int
    runs: int
    documents: int
    tokens: int


class PackedRuns(NamedTuple):
    """The runs of a segment as they are stored. tokens, starts: of each block, its first token's place in the segment
    and in the shard. widths: of each block, bits of a gap x 256 + bits of a length. ends: of each block, its last byte
    in `data`, exclusive."""

    tokens: I64
    starts: I64
    widths: I64
    ends: I64
    data: bytes


def pack_runs(starts: I64, lengths: I64) -> PackedRuns:
    """Runs [starts, starts + lengths) of tokens, ascending, with gaps of 1 or more between them, lengths of 1 or more.

    Raises ValueError for anything else. Cost: vectorised per block of 64.
    """
    gaps = starts[1:] - starts[:-1] - lengths[:-1]
    if len(starts) == 0 or starts[0] < 0 or (lengths < 1).any() or (gaps < 1).any():
        raise ValueError("runs: ascending runs with a token or more in each and between them are allowed")
    before = np.concatenate([[0], np.cumsum(lengths)])
    parts, widths = [], []
    for first in range(0, len(starts), BLOCK_RUNS):
        some, between = lengths[first : first + BLOCK_RUNS], gaps[first : first + BLOCK_RUNS - 1]
        bits = [int(each.max(initial=0)).bit_length() for each in (some, between)]
        if max(bits) > MOST_BITS:
            raise ValueError(f"runs: one of 2^{max(bits)} tokens given, less than 2^{MOST_BITS} is allowed")
        widths.append(bits[1] << 8 | bits[0])
        parts.append(_pack(some, bits[0]) + _pack(between, bits[1]))
    ends = np.cumsum([len(part) for part in parts])
    return PackedRuns(before[:-1][::BLOCK_RUNS], starts[::BLOCK_RUNS], np.array(widths), ends, b"".join(parts))


def _pack(values: I64, bits: int) -> bytes:
    """The lowest `bits` of each value, one after the other from the lowest bit on, filled up to a byte."""
    each = values.astype("<u8")[:, None] >> np.arange(bits, dtype=np.uint64) & np.uint64(1)
    return np.packbits(each.astype(np.uint8).ravel(), bitorder="little").tobytes()


def blocks_of(runs: int) -> int:
    """Blocks of a segment with so many runs."""
    return -(-runs // BLOCK_RUNS)


def header_bytes(segments: int, blocks: int, size: int) -> bytes:
    return HEADER.pack(MAGIC, VERSION, BLOCK_RUNS, segments, blocks, size)


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Runs of some blocks, int64 [blocks, 64] each: their first token in the view and in the shard, and their tokens.
    Places behind a segment's last run have length 0."""

    tokens: I64
    starts: I64
    lengths: I64


class Selection:
    """A selection.bin, its segments checked, its blocks when they are read.

    data: the whole file, such as a memory map. starts: int64 [segments + 1], the first token of each segment in the
    view. first_block: int64 [segments + 1]. Memory: 56 bytes per segment.

    Raises FormatError for wrong sizes and for segments that are out of order, empty or too large.
    """

    def __init__(self, data: npt.NDArray[np.uint8], what: str) -> None:
        self.what = what
        if len(data) < HEADER.size:
            raise FormatError(f"{what}: {len(data)} bytes found, at least {HEADER.size} expected")
        magic, version, per_block, segments, blocks, size = HEADER.unpack_from(data[: HEADER.size].tobytes())
        if (magic, version, per_block) != (MAGIC, VERSION, BLOCK_RUNS):
            raise FormatError(
                f"{what}: starts with {magic!r}, version {version}, blocks of {per_block}; "
                f"{MAGIC!r}, version {VERSION}, blocks of {BLOCK_RUNS} expected"
            )
        expected = HEADER.size + SEGMENT.itemsize * segments + 24 * blocks + size + PADDING
        if len(data) != expected:
            raise FormatError(
                f"{what}: {len(data)} bytes found, {expected} expected for {segments} segments, {blocks} blocks and "
                f"{size} bytes of runs"
            )
        at = HEADER.size + SEGMENT.itemsize * segments
        self.segments: Table = np.frombuffer(data, SEGMENT, segments, HEADER.size)
        self._tokens, self._starts, self._places = (
            np.frombuffer(data, "<i8", blocks, at + 8 * blocks * i) for i in range(3)
        )
        self._data: Table = np.frombuffer(data, np.uint8, size + PADDING, at + 24 * blocks)
        self._words: Table = np.ndarray((size + 1,), "<u8", self._data, strides=(1,))
        self._check_segments(blocks)
        self.starts: I64 = np.concatenate([[0], np.cumsum(self.segments["tokens"], dtype=np.int64)])
        needed = -(-self.segments["runs"].astype(np.int64) // BLOCK_RUNS)
        self.first_block: I64 = np.concatenate([[0], np.cumsum(needed)])

    def _check_segments(self, blocks: int) -> None:
        found = self.segments
        keys = [found[name].astype(np.int64) for name in ("split", "domain", "turn", "corpus", "shard")]
        later, same = np.zeros(max(len(found) - 1, 0), np.bool_), np.ones(max(len(found) - 1, 0), np.bool_)
        for key in keys:
            later |= same & (key[1:] > key[:-1])
            same &= key[1:] == key[:-1]
        wrong = np.flatnonzero(~later)
        if len(wrong):
            raise FormatError(
                f"{self.what}: segment {wrong[0] + 1} does not follow segment {wrong[0]} in the order of split, "
                "domain, turn, corpus and shard"
            )
        for name, least in (("documents", 1), ("tokens", 1), ("turn", 1), ("runs", 0)):
            # Compared as floats: a sum of such numbers may be larger than 64 bits.
            if (found[name] < least).any() or float(found[name].astype(np.float64).sum()) >= MOST_TOKENS:
                raise FormatError(f"{self.what}: segments with {name} that are less than {least} or too large")
        if (found["runs"] > found["documents"]).any():
            raise FormatError(f"{self.what}: a segment with more runs than documents")
        needed = int((-(-found["runs"].astype(np.int64) // BLOCK_RUNS)).sum())
        if needed != blocks:
            raise FormatError(f"{self.what}: {blocks} blocks found, {needed} expected for the runs of the segments")

    @property
    def blocks(self) -> tuple[I64, I64, I64, npt.NDArray[np.uint8]]:
        """As they are stored: of each block its first token in the view and in the shard, and the place of its runs
        (offset, bits of a gap, bits of a length); then the runs."""
        return self._tokens, self._starts, self._places, self._data

    def block_at(self, tokens: I64, segments: I64) -> I64:
        """int64 [n]: the block that has each token of the view, which is in that segment, one with runs."""
        found = np.searchsorted(self._tokens, tokens, "right") - 1
        return np.clip(found, self.first_block[segments], self.first_block[segments + 1] - 1)

    def runs(self, blocks: I64, segments: I64) -> Runs:
        """The runs of some blocks, each of that segment. Raises FormatError for blocks that cannot be.

        Cost: vectorised, about 2 us per block.
        """
        places = self._places[blocks]
        offsets, gap_bits, length_bits = places >> 16, places >> 8 & 255, places & 255
        left = self.segments["runs"][segments].astype(np.int64) - BLOCK_RUNS * (blocks - self.first_block[segments])
        counts = np.minimum(left, BLOCK_RUNS)
        gaps_at = offsets + (counts * length_bits + 7 >> 3)
        end = gaps_at + ((counts - 1) * gap_bits + 7 >> 3)
        wrong = (offsets < 0) | (gap_bits > MOST_BITS) | (length_bits > MOST_BITS) | (end > len(self._words) - 1)
        if wrong.any():
            raise self._wrong(blocks, wrong, "refers to bytes after the end, or has too many bits")
        lengths = self._unpack(offsets, length_bits, counts)
        gaps = self._unpack(gaps_at, gap_bits, counts - 1)
        before = np.cumsum(lengths, axis=1) - lengths
        shift = np.cumsum(gaps, axis=1) - gaps
        starts = self._starts[blocks][:, None] + before + shift
        first = self._tokens[blocks]
        inside = np.arange(BLOCK_RUNS) < counts[:, None]
        last = first + lengths.sum(axis=1)
        good = (lengths > 0) | ~inside
        good[:, :-1] &= (gaps[:, :-1] > 0) | ~inside[:, 1:]
        wrong = ~good.all(axis=1) | (self._starts[blocks] < 0) | (self._starts[blocks] >= MOST_TOKENS)
        is_last = blocks + 1 == self.first_block[segments + 1]
        following = self._tokens[np.minimum(blocks + 1, len(self._tokens) - 1)]
        wrong |= last != np.where(is_last, self.starts[segments + 1], following)
        wrong |= (blocks == self.first_block[segments]) & (first != self.starts[segments])
        if wrong.any():
            raise self._wrong(
                blocks, wrong, "has runs that are empty or adjacent, or whose tokens do not add up to its segment"
            )
        return Runs(first[:, None] + before, starts, lengths)

    def _unpack(self, at: I64, bits: I64, counts: I64) -> I64:
        """int64 [n, 64]: `counts` values of so many bits each from byte `at` on; 0 behind them."""
        values = np.arange(BLOCK_RUNS)
        inside = values < counts[:, None]
        first = np.where(inside, values * bits[:, None], 0)
        words = self._words[np.minimum(at[:, None] + (first >> 3), len(self._words) - 1)]
        words = (
            words >> (first & 7).astype(np.uint64) & ((np.uint64(1) << bits.astype(np.uint64)) - np.uint64(1))[:, None]
        )
        found: I64 = np.where(inside, words.astype(np.int64), 0)
        return found

    def _wrong(self, blocks: I64, wrong: npt.NDArray[np.bool_], why: str) -> FormatError:
        return FormatError(f"{self.what}: block {int(blocks[wrong][0])} {why}: damaged or forged")

    def runs_of(self, segment: int, most: int = 1024) -> Iterator[tuple[I64, I64]]:
        """(starts, lengths) of a segment's runs in its shard, in parts of some blocks. Raises FormatError."""
        begin, end = int(self.first_block[segment]), int(self.first_block[segment + 1])
        for first in range(begin, end, most):
            blocks = np.arange(first, min(first + most, end))
            found = self.runs(blocks, np.full(len(blocks), segment))
            some = found.lengths > 0
            yield found.starts[some], found.lengths[some]
