"""How numbers are distributed: documents by bin of histogram.py, and the least and largest number."""

import math
from collections.abc import Sequence
from typing import Any

from refinery.transforms.core.histogram import bin_of, count_bins


class Bins:
    """counts: bin -> documents. least, most: infinite while it is empty. Parts can be merged in any order."""

    __slots__ = ("counts", "least", "most")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.least, self.most = math.inf, -math.inf

    def add(self, value: float) -> None:
        """Count a document. value: finite."""
        place = bin_of(value)
        self.counts[place] = self.counts.get(place, 0) + 1
        if value < self.least:
            self.least = value
        if value > self.most:
            self.most = value

    def add_all(self, values: Sequence[float]) -> None:
        """Count a document by each value: one or more, finite."""
        for place, documents in count_bins(values).items():
            self.counts[place] = self.counts.get(place, 0) + documents
        self.least, self.most = min(self.least, min(values)), max(self.most, max(values))

    def merge(self, other: "Bins") -> None:
        """Count the documents of another one, too."""
        for place, documents in other.counts.items():
            self.counts[place] = self.counts.get(place, 0) + documents
        self.least, self.most = min(self.least, other.least), max(self.most, other.most)

    @property
    def documents(self) -> int:
        return sum(self.counts.values())

    def plain(self) -> list[Any]:
        """As JSON knows it; `read_bins` is the inverse. Only of one that is not empty."""
        return [float(self.least), float(self.most), sorted(self.counts.items())]


def read_bins(plain: list[Any]) -> Bins:
    """Inverse of `Bins.plain`."""
    bins = Bins()
    bins.least, bins.most = plain[0], plain[1]
    bins.counts = dict(plain[2])
    return bins


def merge_bins(total: Bins, more: Bins) -> None:
    """Add `more` to `total`."""
    total.merge(more)
