"""Reading around damage: where a shard's bytes are not those of the manifest, a filler, and a note of what is missing.

What is damaged follows from the bytes alone: a block of CHECKSUM_BLOCK bytes whose checksum is not the manifest's, or a
shard whose index is damaged. Positions, order and steps do not change, so ranks need not agree on anything: each leaves
out tokens of its own rows only.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from refinery.loader.errors import FormatError
from refinery.loader.format.block_checksums import CHECKSUM_BLOCK
from refinery.loader.format.indexed import MAX_LENGTH, Index
from refinery.loader.order.arrays import I64
from refinery.loader.read.token_source import Lost, TokenRanges, TokenSource

ON_DAMAGE = ("error", "skip")
_log = logging.getLogger("refinery.loader")


@dataclass
class Damage:
    """What this process has found to be damaged: blocks by (shard, block), and shards without an index, by number, each
    with what was wrong. touch: loads a shard's index, if indexes are needed.

    What was found stays so until the stream is closed: a block is not fetched again and again.
    """

    blocks: dict[tuple[int, int], str] = field(default_factory=dict)
    shards: dict[int, str] = field(default_factory=dict)
    touch: Callable[[int], Any] | None = None
    _touched: set[int] = field(default_factory=set)

    def add_block(self, shard: int, block: int, error: FormatError) -> None:
        self.blocks[shard, block] = str(error)
        _log.warning("%s; its tokens are left out (on_damage='skip')", error)

    def load_index(self, load: Callable[[int], Index], entries: Sequence[Any], dtype: npt.DTypeLike) -> Any:
        """`load`, but of a damaged index one that has a single document; none of the shard's tokens is delivered."""

        def found(number: int) -> Index:
            try:
                return load(number)
            except FormatError as error:
                if number not in self.shards:
                    self.shards[number] = str(error)
                    _log.warning("%s; no token of this shard is delivered (on_damage='skip')", error)
                lengths = np.array([min(entries[number].tokens, MAX_LENGTH)], np.int32)
                return Index(np.dtype(dtype), lengths, np.zeros(1, np.int64))

        return found

    def look_at_indexes(self, touch: Callable[[int], Any], shards: Iterable[int]) -> None:
        """Load the indexes of shards that are read for the first time: afterwards it is known which are damaged."""
        for shard in shards:
            if shard not in self._touched:
                touch(shard)
                self._touched.add(shard)


class SkippingSource:
    """A TokenSource that fills what is damaged. sound: the source of the shards. fill: the token in its place."""

    def __init__(self, sound: TokenSource, itemsize: int, fill: int, damage: Damage) -> None:
        self.sound = sound
        self._per_block, self._fill, self._damage = CHECKSUM_BLOCK // itemsize, fill, damage

    def read_into(self, shard: int, start: int, out: npt.NDArray[Any]) -> None:
        tokens = np.empty((1, len(out)), np.int64)
        self.read_pieces(np.array([[0, shard, start, len(out), 0]]), 0, tokens)
        out[...] = tokens[0]

    def read_pieces(self, pieces: I64, row: int, out: I64) -> list[Lost]:
        """As TokenSource; returns what could not be read, where `out` has the filler."""
        if self._damage.touch is not None:
            self._damage.look_at_indexes(self._damage.touch, set(pieces[:, 1].tolist()))
        while True:
            sound, lost = self._without_damage(pieces)
            try:
                if len(sound):
                    self.sound.read_pieces(sound, row, out)
            except FormatError:
                if not self._look(sound):
                    raise
                continue
            for each in lost:
                out[each.row - row, each.place : each.place + each.size] = self._fill
            return lost

    def _without_damage(self, pieces: I64) -> tuple[I64, list[Lost]]:
        """The pieces cut where known damage begins and ends, and what is damaged."""
        known = self._damage
        if not known.blocks and not known.shards:
            return pieces, []
        touched = np.isin(pieces[:, 1], [*known.shards, *(shard for shard, _ in known.blocks)])
        sound, lost = [pieces[~touched]], []
        for its, shard, start, count, place in pieces[touched].tolist():
            for block, first, some in self._parts(start, count):
                part = its, shard, first, some, place + first - start
                if shard in known.shards or (shard, block) in known.blocks:
                    lost.append(Lost(*part))
                else:
                    sound.append(np.array([part], np.int64))
        return np.concatenate(sound), lost

    def _parts(self, start: int, count: int) -> list[tuple[int, int, int]]:
        """(block, first token, tokens) of a range of tokens."""
        found, stop = [], start + count
        while start < stop:
            block = start // self._per_block
            some = min((block + 1) * self._per_block, stop) - start
            found.append((block, start, some))
            start += some
        return found

    def _look(self, pieces: I64) -> bool:
        """Find what of the blocks of these pieces is damaged. False: nothing that was not known."""
        before, one = len(self._damage.blocks), np.empty(1, np.int64)
        seen: set[tuple[int, int]] = set()
        for shard, start, count in pieces[:, 1:4].tolist():
            for block, first, _ in self._parts(start, count):
                if (shard, block) not in seen:
                    seen.add((shard, block))
                    try:
                        self.sound.read_into(shard, first, one)
                    except FormatError as error:
                        self._damage.add_block(shard, block, error)
        return len(self._damage.blocks) > before

    def will_need(self, ranges: TokenRanges) -> None:
        self.sound.will_need(ranges)

    def done_with(self, ranges: TokenRanges) -> None:
        self.sound.done_with(ranges)

    def close(self) -> None:
        self.sound.close()
