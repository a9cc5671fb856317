"""How numbers are distributed over documents, before and after: charts and quantiles from the statistics."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from refinery.pipelines.published.statistics.published import Distribution, Point, Series, Statistics
from refinery.pipelines.recipe.quantities.quantity import show, three_digits
from refinery.pipelines.reports.pages.charts import Chart, figure
from refinery.pipelines.reports.pages.markup import Html, el
from refinery.pipelines.reports.pages.page import table
from refinery.pipelines.reports.run.facts import Facts
from refinery.pipelines.reports.run.histogram import Histogram, histogram, place_in, round_numbers
from refinery.pipelines.reports.run.words import MEDIAN, count, share

LEFT_OUT = ("text-characters",)  # as the bytes, but for the few texts that are not mostly ASCII
MOST_CHARTS = 24
QUANTILES = ("5 %", "25 %", "50 %", "75 %", "95 %")

Measured = tuple[Point, Series]
Pair = tuple[Measured, Measured | None]


def pairs(statistics: Statistics) -> dict[str, Pair]:
    """Name of a series -> the first point that has it, and the last, if that is another."""
    found: dict[str, list[Measured]] = {}
    for point in statistics.points:
        for series in point.series if point.collected else ():
            if series.name not in LEFT_OUT and series.all.documents:
                found.setdefault(series.name, []).append((point, series))
    return {name: (each[0], each[-1] if len(each) > 1 else None) for name, each in found.items()}


def distribution_section(facts: Facts) -> tuple[Html | None, list[Chart]]:
    """Lengths, scores, copies and whatever stages note, before and after; and the scores that stages gave."""
    found = [*_series(facts), *_scores(facts)]
    if not found:
        return None, []
    drawn = [(made, chart) for made, chart in found if chart is not None]
    same = [made for made, chart in found if chart is None]
    more = len(drawn) - MOST_CHARTS
    section = el(
        "section",
        el("h2", "Distributions"),
        el(
            "p",
            "Shares of documents: in grey where the number is first known, in colour what is published. The axis of "
            "lengths is logarithmic; a bin is a quarter of an octave.",
        ),
        el("div", [made for made, _ in drawn[:MOST_CHARTS]], class_="charts"),
        el("p", "The same for every document: ", el("span", same), ".") if same else None,
        el("p", f"and {more} more, in statistics.json") if more > 0 else None,
        id="distributions",
    )
    return section, [chart for _, chart in drawn[:MOST_CHARTS]]


def _series(facts: Facts) -> Iterator[tuple[Html, Chart | None]]:
    for name, ((point, series), after) in pairs(facts.statistics).items() if facts.statistics else ():
        both = {point.name: series.all, **({after[0].name: after[1].all} if after else {})}
        bins = histogram(both, series.unit)
        if len(bins.labels) < 2:
            documents = max(part.documents for part in both.values())
            yield el("span", f"{name} {''.join(bins.labels)} ({documents:,} documents) "), None
            continue
        if after and len({tuple(each) for each in bins.heights.values()}) == 1:  # nothing has changed: once is enough
            both = {after[0].name: after[1].all}
            bins = histogram(both, series.unit)
        title = series.meaning[:1].upper() + series.meaning[1:]
        if not series.unit:
            title = f"{name.replace('_', ' ').capitalize()}: {series.meaning}"
        chart = area(f"series-{name}", title, bins, series.unit or name, series.unit)
        middle = [shown(each.quantiles[MEDIAN], series.unit) for each in both.values() if each.quantiles]
        said = f"median {' → '.join(dict.fromkeys(middle))}" if middle else None
        quantiles = el("details", el("summary", "quantiles, by source"), quantile_table((point, series), after))
        yield el("div", figure(chart, said, exact_rows(bins)), quantiles), chart


def _scores(facts: Facts) -> Iterator[tuple[Html, Chart | None]]:
    """Numbers that stages gave to all documents that they saw, dropped ones included."""
    for stage in facts.stages:
        for name, counts in stage.scored.items():
            part = distribution_of(counts)
            bins = histogram({f"all that {stage.name} saw": part}, "")
            if len(bins.labels) < 2:
                continue
            title = f"{name}, of all that {stage.name} saw, dropped documents included"
            chart = area(f"scored-{stage.name}-{name}", title, bins, name)
            yield figure(chart, f"{part.documents:,} documents", exact_rows(bins)), chart


def area(name: str, title: str, bins: Histogram, axis: str, unit: str = "", **more: Any) -> Chart:
    """A histogram as a chart. unit: of the numbers on the axis. more: of the chart."""
    ticks = axis_ticks(bins, unit)
    return Chart(name, title, bins.labels, bins.heights, "area", axis, "share", ticks=ticks, **more)


def axis_ticks(bins: Histogram, unit: str) -> list[tuple[int, str]]:
    """(place, text) of the labels of an axis: round numbers, each at the bin that holds it."""
    if len(bins.edges) < 2:
        return []
    least = bins.edges[0] if bins.edges[0] > 0 or bins.upper <= 1 else bins.edges[1]
    found = {0: "0"} if bins.edges[0] == 0 else {}
    is_even = math.isclose(bins.edges[1] - bins.edges[0], bins.upper - bins.edges[-1]) and len(bins.edges) > 2
    values = round_numbers(least, bins.upper, is_even)
    texts = [(shown(value, unit), int(place_in(bins.edges, value))) for value in values]
    for text, place in sorted(texts, key=lambda each: len(each[0])):  # of several in one bin the shortest
        found.setdefault(place, text)
    return [(place, text) for place, text in sorted(found.items()) if 0 <= place < len(bins.edges)]


def exact_rows(bins: Histogram) -> list[list[str]]:
    """The table of a chart: documents and shares as they are, of each bin from its label to the next one's."""
    rows = []
    for place, label in enumerate(bins.labels):
        numbers = [(column[place], sum(column)) for column in bins.documents.values()]
        rows.append([label, *(f"{count(number)} ({share(number, total)})" for number, total in numbers)])
    return rows


def quantile_table(before: Measured, after: Measured | None) -> Html:
    """Quantiles over all documents and of each source, before and after."""
    rows: list[Sequence[object]] = []
    for point, series in (before, after) if after else (before,):
        parts = [("all", series.all), *((each.source or "others", each.distribution) for each in series.sources)]
        for source, part in parts:
            values = [shown(value, series.unit) for value in part.quantiles] or ["–"] * len(QUANTILES)
            rows.append([f"{point.name}, {source}", count(part.documents), *values])
    return table(["point, source", "documents", *QUANTILES], rows)


def shown(value: float, unit: str) -> str:
    """A number with its unit, shortly."""
    return show(value, "bytes") if unit == "bytes" else three_digits(value)


def distribution_of_bins(bins: Sequence[tuple[float, float, int]]) -> Distribution:
    """Bins as a distribution without quantiles."""
    ends = (bins[0][0], bins[-1][0]) if bins else (None, None)
    return Distribution(
        documents=sum(each[2] for each in bins), least=ends[0], most=ends[1], quantiles=(), bins=tuple(bins)
    )


def distribution_of(counts: Mapping[float, int]) -> Distribution:
    """The funnel's bins (lower edge -> documents) as a distribution without quantiles."""
    edges = sorted(counts)
    bins = tuple((edge, edge, counts[edge]) for edge in edges)
    ends = (edges[0], edges[-1]) if edges else (None, None)
    return Distribution(documents=sum(counts.values()), least=ends[0], most=ends[1], quantiles=(), bins=bins)


def top(values: Iterable[tuple[str, float]], most: int) -> list[str]:
    """The names with the largest numbers."""
    return [name for name, _ in sorted(values, key=lambda item: (-item[1], item[0]))[:most]]
