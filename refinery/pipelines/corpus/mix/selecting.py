"""The selection of a view, built shard by shard: runs of the documents of each turn, and the file that has them all."""

from collections import Counter
from pathlib import Path
from typing import BinaryIO

import numpy as np

from refinery.loader.format.manifest import FileEntry, ShardEntry
from refinery.loader.format.selection import (
    PADDING,
    SEGMENT,
    SELECTION,
    PackedRuns,
    Segment,
    blocks_of,
    header_bytes,
    pack_runs,
)
from refinery.loader.order.arrays import I64
from refinery.loader.storage.store import checksums
from refinery.pipelines.corpus.mix.candidates import Table

_COLUMNS = ("tokens", "starts", "widths", "ends")


class SelectionWriter:
    """Collects segments in any order; `finish` writes them in that of the format. spill: a file for the runs.

    Memory: 100 bytes per segment, and one shard's runs.
    """

    def __init__(self, spill: Path) -> None:
        self._path = spill
        self._spill: BinaryIO = spill.open("wb")
        self._segments: list[tuple[Segment, int, int]] = []  # with the place of its runs in the spill, and their bytes

    def whole(self, split: int, domain: int, turns: int, corpus: int, shard: int, entry: ShardEntry) -> None:
        """A shard of which every document is delivered equally often."""
        for turn in range(1, turns + 1):
            found = Segment(split, domain, turn, corpus, shard, 0, entry.documents, entry.tokens)
            self._segments.append((found, 0, 0))

    def chosen(
        self, split: int, domain: int, corpus: int, shard: int, entry: ShardEntry, some: Table, times: I64
    ) -> None:
        """Candidates of a shard, ascending, and how often each is delivered."""
        for turn in range(1, int(times.max(initial=0)) + 1):
            mine = some[times >= turn]
            runs = runs_of(mine["start"], mine["tokens"])
            whole = len(mine) == entry.documents
            tokens = int(mine["tokens"].sum())
            count = 0 if whole else len(runs[0])
            found = Segment(split, domain, turn, corpus, shard, count, len(mine), tokens)
            packed = None if whole else pack_runs(*runs)
            self._segments.append((found, self._spill.tell(), 0 if packed is None else len(packed.data)))
            if packed is not None:
                self._put(packed)

    def _put(self, packed: PackedRuns) -> None:
        for name in _COLUMNS:
            self._spill.write(getattr(packed, name).astype("<i8").tobytes())
        self._spill.write(packed.data)

    def __enter__(self) -> "SelectionWriter":
        return self

    def __exit__(self, *error: object) -> None:
        self._spill.close()

    def finish(self, path: Path) -> FileEntry:
        """Write the file; its entry for the manifest."""
        self._spill.close()
        segments = sorted(self._segments)
        blocks = [blocks_of(segment.runs) for segment, _, _ in segments]
        table = np.array([tuple(segment) for segment, _, _ in segments], SEGMENT)
        size = sum(length for _, _, length in segments)
        with path.open("wb") as out, self._path.open("rb") as spill:
            out.write(header_bytes(len(segments), sum(blocks), size))
            out.write(table.tobytes())
            for column in range(3):
                token = byte = 0
                for (segment, place, length), count in zip(segments, blocks, strict=True):
                    if count:
                        spill.seek(place)
                        columns = np.frombuffer(spill.read(32 * count), "<i8").reshape(4, count)
                        begins = byte + np.append(0, columns[3][:-1])
                        values = columns[0] + token, columns[1], begins << 16 | columns[2]
                        out.write(values[column].astype("<i8").tobytes())
                    token, byte = token + segment.tokens, byte + length
            for (_, place, length), count in zip(segments, blocks, strict=True):
                spill.seek(place + 32 * count)
                out.write(spill.read(length))
            out.write(bytes(PADDING))
        sums = checksums(path)
        return FileEntry(SELECTION, sums.size, sums.crc32c, sums.sha256)


def runs_of(starts: I64, tokens: I64) -> tuple[I64, I64]:
    """(starts, lengths) of the runs that documents make, each with one token or more, ascending."""
    ends = starts + tokens
    first = np.append(True, starts[1:] != ends[:-1])
    last = np.append(first[1:], True)
    return starts[first], ends[last] - starts[first]


class TimesTable:
    """Documents and tokens by how often they are delivered."""

    def __init__(self) -> None:
        self._documents: Counter[int] = Counter()
        self._tokens: Counter[int] = Counter()

    def add(self, times: int, documents: int, tokens: int) -> None:
        if times and documents:
            self._documents[times] += documents
            self._tokens[times] += tokens

    def add_each(self, times: I64, tokens: I64) -> None:
        for value in np.unique(times).tolist():
            mine = times == value
            self.add(value, int(mine.sum()), int(tokens[mine].sum()))

    def rows(self) -> list[tuple[int, int, int]]:
        return [(times, self._documents[times], self._tokens[times]) for times in sorted(self._documents)]

    def published(self) -> dict[str, object]:
        """As in a view's manifest."""
        rows = self.rows()
        return {
            "documents": sum(times * documents for times, documents, _ in rows),
            "tokens": sum(times * tokens for times, _, tokens in rows),
            "times": [{"times": t, "documents": d, "tokens": n} for t, d, n in rows],
        }


class BinTable:
    """Documents and tokens of each bin, chosen and delivered, and the values that it has. bins: 0 for no table."""

    def __init__(self, bins: int) -> None:
        self._sums = np.zeros((bins, 4), np.int64)  # documents, tokens, the same with copies
        self._lowest, self._highest = np.full(bins, np.inf), np.full(bins, -np.inf)

    def add(self, some: Table, times: I64) -> None:
        """Candidates with their bins, and how often each is delivered."""
        if not len(self._sums):
            return
        tokens = some["tokens"].astype(np.int64)
        each = np.stack([np.ones(len(some), np.int64), tokens, times, times * tokens], axis=1)
        np.add.at(self._sums, some["bin"], each)
        np.fmin.at(self._lowest, some["bin"], some["value"])
        np.fmax.at(self._highest, some["bin"], some["value"])

    def published(self) -> dict[str, object]:
        """As in the plan of a view's manifest; from, to: null in bins without documents or without values."""
        names = ("documents", "tokens", "delivered_documents", "delivered_tokens")
        bins = [
            {"from": _finite(low), "to": _finite(high), **dict(zip(names, row, strict=True))}
            for low, high, row in zip(self._lowest, self._highest, self._sums.tolist(), strict=True)
        ]
        return {"bins": bins} if bins else {}


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
