"""Slices as indexes of job arrays: ranges, and several arrays where one would be too large."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby


@dataclass(frozen=True)
class Array:
    """Indexes of one array. Slice = offset + index; indexes begin at 0 and are below the cluster's MaxArraySize."""

    offset: int
    indexes: tuple[int, ...]

    @property
    def text(self) -> str:
        """As `sbatch --array` takes it."""
        return ranges(self.indexes)


def arrays(slices: Iterable[int], most: int) -> Iterator[Array]:
    """Arrays that have these slices, in order. most: MaxArraySize, which is one more than the largest index."""
    for block, members in groupby(sorted({*slices}), key=lambda slice: slice // most):
        offset = block * most
        yield Array(offset, tuple(slice - offset for slice in members))


def ranges(numbers: Iterable[int]) -> str:
    """Sorted numbers, in short.

    >>> ranges([0, 1, 2, 5, 7, 8])
    '0-2,5,7-8'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in runs)
