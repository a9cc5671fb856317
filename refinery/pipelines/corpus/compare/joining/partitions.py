"""Rows on disk by ranges of a hash, and the join of two sets of such rows: what lets a comparison of any size run in
the memory of one range.

Rows are numpy records with keys of 16 bytes that are hashes already: ids, and hashes of origins. Equal keys fall into
the same range, so each range is joined by itself.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from refinery.loader.format.removals import ID_BYTES, removals_file

Rows = npt.NDArray[Any]  # of a structured dtype
I64 = npt.NDArray[np.int64]

RANGE_ROWS = 500_000  # rows of both sides that a range has on average
HELD_BYTES = 32 << 20  # of rows that wait in memory before they are written


def ranges_of(rows: int) -> int:
    """How many ranges so many rows are dealt to."""
    return max(1, -(-rows // RANGE_ROWS))


class Partitions:
    """Rows that are dealt to ranges of one of their keys, in files of a folder.

    `add` in any order, then `read` each range once: the rows come in the order in which they were added. Memory:
    `HELD_BYTES`, and the range that is read. Disk: the rows.
    """

    def __init__(self, folder: Path, dtype: np.dtype[Any], key: str, count: int) -> None:
        folder.mkdir()
        self.folder, self.dtype, self.key, self.count = folder, dtype, key, count
        self.rows = 0
        self._waiting: dict[int, list[bytes]] = {}
        self._held = 0

    def add(self, rows: Rows) -> None:
        """Deal rows out."""
        if not len(rows):
            return
        self.rows += len(rows)
        places = removals_file(key_bytes(rows[self.key]), self.count)
        order = np.argsort(places, kind="stable")
        sorted_places = places[order]
        edges = np.flatnonzero(np.diff(sorted_places)) + 1
        for part in np.split(order, edges):
            data = rows[part].tobytes()
            self._waiting.setdefault(int(places[part[0]]), []).append(data)
            self._held += len(data)
        if self._held >= HELD_BYTES:
            self._write()

    def _write(self) -> None:
        for number, blocks in sorted(self._waiting.items()):
            with (self.folder / str(number)).open("ab") as stream:
                stream.writelines(blocks)
        self._waiting, self._held = {}, 0

    def read(self, number: int) -> Rows:
        """The rows of a range, whose file is removed."""
        if self._held:
            self._write()
        path = self.folder / str(number)
        if not path.exists():
            return np.empty(0, self.dtype)
        rows = np.fromfile(path, self.dtype)
        path.unlink()
        return rows

    def __iter__(self) -> Iterator[Rows]:
        """The rows of each range in turn."""
        return (self.read(number) for number in range(self.count))


def key_bytes(keys: Rows) -> npt.NDArray[np.uint8]:
    """Keys (S16 [n]) as uint8 [n, 16]."""
    return np.ascontiguousarray(keys).view(np.uint8).reshape(-1, ID_BYTES)


def joined(*keys: Rows) -> Rows:
    """Keys side by side as one: S16 [n] each -> S32 [n] of two."""
    table = np.concatenate([key_bytes(key) for key in keys], axis=1)
    return np.ascontiguousarray(table).view(f"S{table.shape[1]}").reshape(-1)


def match(a: Rows, b: Rows) -> tuple[I64, I64]:
    """Places in `a` and `b` [pairs] of equal keys: the n-th of a key in `a` with the n-th of it in `b`, so a key that
    is there three times and twice makes two pairs. Cost: a sort of both."""
    _, codes = np.unique(np.concatenate([a, b]), return_inverse=True)
    first, second = codes[: len(a)], codes[len(a) :]
    nth_a, nth_b = _nth(first), _nth(second)
    step = 1 + max(nth_a.max(initial=0), nth_b.max(initial=0))
    _, in_a, in_b = np.intersect1d(first * step + nth_a, second * step + nth_b, assume_unique=True, return_indices=True)
    return in_a.astype(np.int64), in_b.astype(np.int64)


def _nth(codes: I64) -> I64:
    """How many equal codes stand before each. Shape [n]."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(codes) else codes
    lengths = np.diff(np.append(starts, len(codes)))
    counts = np.empty(len(codes), np.int64)
    counts[order] = np.arange(len(codes)) - np.repeat(starts, lengths)
    return counts


def without(rows: Rows, places: I64) -> Rows:
    """The rows at all other places, in order."""
    keep = np.ones(len(rows), np.bool_)
    keep[places] = False
    return rows[keep]


def first_of_key(sorted_keys: Rows, wanted: Rows) -> I64:
    """Place of the first of each wanted key among sorted ones, -1 where it is not there. Shape of `wanted`."""
    if not len(sorted_keys):
        return np.full(len(wanted), -1, np.int64)
    places = np.searchsorted(sorted_keys, wanted)
    places = np.where(places < len(sorted_keys), places, 0)
    return np.where(sorted_keys[places] == wanted, places, -1).astype(np.int64)
