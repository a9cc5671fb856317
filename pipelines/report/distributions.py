"""How numbers and words are distributed over documents, before and after: charts from the statistics."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from refinery.pipelines.pages.charts import Chart, figure
from refinery.pipelines.pages.markup import Html, el
from refinery.pipelines.pages.page import table
from refinery.pipelines.quantities.quantity import show, three_digits
from refinery.pipelines.report.facts import Facts
from refinery.pipelines.statistics.published import Distribution, Point, Series, Statistics

STEPS = 4  # bins of an octave
LINEAR = 32  # bins from 0 to 1, of scores
MOST_BINS = 48
LEFT_OUT = ("characters",)  # as "bytes", but for the few texts that are not mostly ASCII
QUANTILES = ("5 %", "25 %", "50 %", "75 %", "95 %")
TITLES = {
    "bytes": "Length of documents",
    "lines": "Lines of documents",
    "tokens": "Tokens of documents",
    "copies": "Copies of documents that the funnel saw",
}
COUNTED = {"bytes", "characters", "lines", "tokens", "documents"}  # units of whole numbers

Pair = tuple[tuple[Point, Series], tuple[Point, Series] | None]


def pairs(statistics: Statistics) -> dict[str, Pair]:
    """Name of a series -> the first point that has it, and the last, if that is another."""
    found: dict[str, list[tuple[Point, Series]]] = {}
    for point in statistics.points:
        for series in point.series if point.collected else ():
            if series.name not in LEFT_OUT and series.all.documents:
                found.setdefault(series.name, []).append((point, series))
    return {name: (each[0], each[-1] if len(each) > 1 else None) for name, each in found.items()}


def series_chart(name: str, pair: Pair) -> Chart:
    """Both distributions, in percent of their documents."""
    (point, series), after = pair
    both = {point.name: series.all, **({after[0].name: after[1].all} if after else {})}
    labels, columns = shares(both, series.unit)
    axis = series.unit or "score"
    return Chart(f"series-{name}", title_of(series), labels, columns, "area", axis, "share")


def title_of(series: Series) -> str:
    """What a chart of the series is called."""
    return TITLES.get(series.name) or f"{series.name.replace('_', ' ')}: {series.meaning}"


def shares(both: Mapping[str, Distribution], unit: str) -> tuple[list[str], dict[str, list[float]]]:
    """(labels of bins, name -> share of its documents in each): from the first bin that has any to the last. Bins are
    quarters of an octave, or fewer; of numbers up to 1, thirty-seconds."""
    most = max((part.most or 0.0 for part in both.values()), default=0.0)
    linear = not unit and most <= 1
    edge = _linear if linear else _octave
    counts: dict[str, dict[int, int]] = {name: {} for name in both}
    for name, part in both.items():
        for lower, _, documents in part.bins:
            place = edge(lower)
            counts[name][place] = counts[name].get(place, 0) + documents
    places = sorted({place for bins in counts.values() for place in bins})
    if not places:
        return [], {name: [] for name in both}
    first, last = places[0], places[-1]
    width = math.ceil((last - first + 1) / MOST_BINS)
    first -= first % width  # wide bins begin at multiples of their width
    starts = range(first, last + 1, width)
    labels = [_label(start, start + width, linear, unit) for start in starts]
    columns = {
        name: [
            sum(bins.get(start + step, 0) for step in range(width)) / sum(bins.values()) if bins else 0.0
            for start in starts
        ]
        for name, bins in counts.items()
    }
    return labels, columns


def _linear(lower: float) -> int:
    return min(LINEAR - 1, int(lower * LINEAR))


def _octave(lower: float) -> int:
    if lower <= 0:
        return _octave(2.0**-20)
    fraction, exponent = math.frexp(lower)
    return (exponent - 1) * STEPS + int((fraction * 2 - 1) * STEPS)


def _edge(place: int, linear: bool) -> float:
    if linear:
        return place / LINEAR
    octave, step = divmod(place, STEPS)
    return math.ldexp(1 + step / STEPS, octave)


def _label(start: int, end: int, linear: bool, unit: str) -> str:
    lower, upper = _edge(start, linear), _edge(end, linear)
    if unit in COUNTED and upper <= 64:  # small whole numbers: name those that are in the bin
        least, most = math.ceil(lower), math.ceil(upper) - 1
        return str(least) if least == most else f"{least}–{most}" if least < most else f"{lower:g}–"
    kind = "bytes" if unit == "bytes" else ""
    if unit in COUNTED and not kind:
        return show(lower, "tokens").removesuffix("tokens").strip()
    return show(lower, kind) if kind else three_digits(lower)


def quantile_table(pair: Pair) -> Html:
    """Quantiles over all documents and of each source, before and after."""
    rows: list[Sequence[object]] = []
    for point, series in filter(None, pair):
        parts = [("all", series.all), *((each.source or "others", each.distribution) for each in series.sources)]
        for source, part in parts:
            values = [shown(value, series.unit) for value in part.quantiles] or ["–"] * len(QUANTILES)
            rows.append([f"{point.name}, {source}", f"{part.documents:,}", *values])
    return table(["point, source", "documents", *QUANTILES], rows)


def shown(value: float, unit: str) -> str:
    """A number with its unit, shortly."""
    return show(value, "bytes") if unit == "bytes" else three_digits(value)


def distribution_section(facts: Facts) -> tuple[Html | None, list[Chart]]:
    """Lengths, scores, copies and whatever stages note, before and after; and the scores that stages gave."""
    found = [*_series(facts), *_scores(facts)]
    if not found:
        return None, []
    words = (
        "Shares of documents, before and after the funnel: “extracted” is behind the first stage that makes texts, "
        "“published” what is in the shards. Bins widen with the numbers."
    )
    body = el("div", [shown_figure for shown_figure, _ in found], class_="charts")
    section = el("section", el("h2", "Distributions"), el("p", words), body, id="distributions")
    return section, [chart for _, chart in found]


def _series(facts: Facts) -> Iterator[tuple[Html, Chart]]:
    for name, pair in pairs(facts.statistics).items() if facts.statistics else ():
        chart = series_chart(name, pair)
        (_, series), after = pair
        middle = [
            shown(each.all.quantiles[2], series.unit)
            for each in (series, after and after[1])
            if each and each.all.quantiles
        ]
        said = f"median {' → '.join(middle)}" if middle else None
        details = el("details", el("summary", "quantiles, by source"), quantile_table(pair))
        yield el("div", figure(chart, said), details), chart


def _scores(facts: Facts) -> Iterator[tuple[Html, Chart]]:
    """Numbers that stages gave to all documents that they saw, dropped ones included."""
    for stage in facts.stages:
        for name, counts in stage.scored.items():
            part = distribution_of(counts)
            labels, columns = shares({"given": part}, "")
            series = f"{name} of what {stage.name} saw, dropped documents included"
            chart = Chart(f"scored-{stage.name}-{name}", series, labels, columns, "area", "score", "share")
            yield figure(chart, f"{part.documents:,} documents"), chart


def distribution_of(counts: Mapping[float, int]) -> Distribution:
    """The funnel's bins (lower edge -> documents) as a distribution without quantiles."""
    edges = sorted(counts)
    bins = tuple((edge, edge, counts[edge]) for edge in edges)
    ends = (edges[0], edges[-1]) if edges else (None, None)
    return Distribution(documents=sum(counts.values()), least=ends[0], most=ends[1], quantiles=(), bins=bins)


def top(values: Iterable[tuple[str, float]], most: int) -> list[str]:
    """The names with the largest numbers."""
    return [name for name, _ in sorted(values, key=lambda item: (-item[1], item[0]))[:most]]
