"""How a number or a word is distributed over the documents of two corpora, and how far apart that is.

The distance is the total variation: half the sum of |share in A - share in B| over the bins, which is the share of
documents that would have to have another value for both to be alike. For numbers there is the statistic of Kolmogorov
and Smirnov, too: the largest difference of the cumulative shares, here at the edges of bins.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from refinery.pipelines.corpus.compare.joining.side import Side
from refinery.pipelines.published.statistics.published import Category, Point, Statistics, read_statistics
from refinery.transforms.core.histogram import BINS, LEAST, MOST, STEPS, lower_edge, quantile

Bin = float | str  # the lower edge of a bin of numbers; a word
MOST_WORDS = 1_000  # different values of a column; one with more says nothing as a distribution (paths, commits)
PUBLISHED = "published"


@dataclass(frozen=True)
class Distribution:
    """Documents per bin of both. where: the place of the funnel, "published" for the corpus itself."""

    where: str
    name: str
    unit: str
    numbers: bool
    a: Mapping[Bin, int]
    b: Mapping[Bin, int]

    @property
    def total_variation(self) -> float | None:
        """0: alike, 1: no document of one has a value of the other. None where a side has no documents."""
        pairs = list(self._shares())
        return sum(abs(one - other) for one, other in pairs) / 2 if pairs else None

    @property
    def kolmogorov_smirnov(self) -> float | None:
        """Of numbers, 0 to 1; None of words."""
        if not self.numbers:
            return None
        found = most = 0.0
        pairs = list(self._shares())
        for one, other in pairs:
            found += one - other
            most = max(most, abs(found))
        return most if pairs else None

    @property
    def distance(self) -> float | None:
        """The one that says most: of words the total variation; of numbers Kolmogorov's and Smirnov's, since in fine
        bins few documents are apart by chance."""
        return self.kolmogorov_smirnov if self.numbers else self.total_variation

    def _shares(self) -> Iterator[tuple[float, float]]:
        """Of each bin, in order."""
        total_a, total_b = sum(self.a.values()), sum(self.b.values())
        if total_a and total_b:
            for key in sorted({*self.a, *self.b}):
                yield self.a.get(key, 0) / total_a, self.b.get(key, 0) / total_b

    def medians(self) -> tuple[float | None, float | None]:
        """The medians of numbers, each at most 1/16 too small."""
        one, other = (
            quantile(counts, 0.5) if self.numbers and counts else None  # type: ignore[arg-type]
            for counts in (self.a, self.b)
        )
        return one, other


def bins_of(values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """`histogram.bin_of` of every number. Shape of `values`."""
    numbers = values.astype(np.float64)
    good = np.isfinite(numbers) & (numbers > 0)
    fraction, exponent = np.frexp(np.where(good, numbers, 1.0))
    octave = exponent.astype(np.int64) - 1
    found = (octave - LEAST) * STEPS + ((fraction * 2 - 1) * STEPS).astype(np.int64)
    found = np.where(octave < LEAST, 0, np.where(octave > MOST, BINS - 1, found))
    return np.where(good, found, np.where(numbers == np.inf, BINS - 1, 0))


@dataclass
class Columns:
    """The distributions of a side's provenance, counted as it is read. words, numbers: columns of that kind."""

    words: dict[str, Counter[str]] = field(default_factory=dict)
    numbers: dict[str, npt.NDArray[np.int64]] = field(default_factory=dict)

    def add_numbers(self, name: str, values: npt.NDArray[Any]) -> None:
        """Count numbers."""
        counts = np.bincount(bins_of(values), minlength=BINS)
        self.numbers[name] = self.numbers.get(name, 0) + counts

    def add(self, table: pa.Table, names: Iterable[str]) -> None:
        """Count the columns of a row group; nulls, of documents that a stage did not judge, are left out."""
        for name in names:
            column = table[name].drop_null()
            if not pa.types.is_string(column.type):
                self.add_numbers(name, column.to_numpy())
                continue
            counts = self.words.setdefault(name, Counter())
            if len(counts) <= MOST_WORDS:
                for entry in column.value_counts().to_pylist():
                    counts[entry["values"]] += entry["counts"]

    def bins(self, name: str) -> dict[Bin, int] | None:
        """Of a column; None for one with too many different words, or that is not there."""
        if name in self.numbers:
            counts = self.numbers[name]
            return {lower_edge(int(place)): int(counts[place]) for place in np.flatnonzero(counts)}
        found = self.words.get(name)
        return dict[Bin, int](found.items()) if found is not None and len(found) <= MOST_WORDS else None


def column_distributions(a: Columns, b: Columns) -> Iterator[Distribution]:
    """Of the columns that both have."""
    for name in dict.fromkeys((*a.numbers, *a.words)):
        one, other = a.bins(name), b.bins(name)
        if one is not None and other is not None and (name in a.numbers) == (name in b.numbers):
            yield Distribution(PUBLISHED, name, "", name in a.numbers, one, other)


def scored_distributions(a: Side, b: Side) -> Iterator[Distribution]:
    """Of the numbers that stages gave to documents, dropped or not: the funnels' "scored"."""
    found: dict[tuple[str, str], tuple[Counter[Bin], Counter[Bin]]] = {}
    for number, side in enumerate((a, b)):
        for row in side.manifest.funnel:
            for series, bins in row.get("scored", {}).items():
                counts = found.setdefault((row["stage"], series), (Counter(), Counter()))[number]
                for edge, documents in bins:
                    counts[float(edge)] += documents
    for (stage, series), (one, other) in found.items():
        yield Distribution(stage, f"{stage} of {series}", "", True, one, other)


def read_both(a: Side, b: Side) -> tuple[Statistics, Statistics] | None:
    """The statistics that both runs published, or None, with a note at the side that has none."""
    found: list[Statistics] = []
    for side in (a, b):
        statistics = read_statistics(side.corpus)
        if statistics is not None:
            found.append(statistics)
    return (found[0], found[1]) if len(found) == 2 else None


def published_distributions(statistics: tuple[Statistics, Statistics]) -> Iterator[Distribution]:
    """Of every place of the funnel that both measured: series of numbers, categories of words, artefacts."""
    for point in statistics[0].points:
        points = [each.point(point.name) for each in statistics]
        if points[0] is not None and points[1] is not None:
            yield from _point(points[0], points[1])


def _point(a: Point, b: Point) -> Iterator[Distribution]:
    series = {each.name: each for each in b.series}
    for one in a.series:
        if other := series.get(one.name):
            bins = (_edges(one.all.bins), _edges(other.all.bins))
            yield Distribution(a.name, one.name, one.unit, True, *bins)
    categories = {each.name: each for each in b.categories}
    for category in a.categories:
        if there := categories.get(category.name):
            yield Distribution(a.name, category.name, "", False, *(_words(each) for each in (category, there)))
    artefacts = {each.name: each for each in b.artefacts}
    for artefact in a.artefacts:
        if (found := artefacts.get(artefact.name)) and a.total and b.total:
            shares = ((artefact.documents, a.total.documents), (found.documents, b.total.documents))
            signs = [dict[Bin, int]({"with": n, "without": total - n}) for n, total in shares]
            yield Distribution(a.name, f"artefact {artefact.name}", "", False, *signs)


def _edges(bins: Sequence[tuple[float, float, int]]) -> dict[Bin, int]:
    return {lower: documents for lower, _, documents in bins}


def _words(category: Category) -> dict[Bin, int]:
    counts: dict[Bin, int] = {value.value: value.documents for value in category.values}
    if category.other is not None:  # as one value more, that no other has
        counts["(all others)"] = category.other.documents
    return counts
