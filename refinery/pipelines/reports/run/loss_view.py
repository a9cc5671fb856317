"""What was lost: by stage and source, by language, and the scores of what was dropped beside those of what was kept."""

from collections.abc import Iterator

from refinery.pipelines.published.dropped import DroppedScore
from refinery.pipelines.published.statistics.published import Distribution
from refinery.pipelines.recipe.quantities.quantity import three_digits
from refinery.pipelines.reports.pages.charts import Chart, figure
from refinery.pipelines.reports.pages.markup import Html, el
from refinery.pipelines.reports.pages.page import table
from refinery.pipelines.reports.run.distributions import area, distribution_of_bins, exact_rows, top
from refinery.pipelines.reports.run.facts import Facts
from refinery.pipelines.reports.run.histogram import histogram, place_in
from refinery.pipelines.reports.run.words import DROPPED, KEPT, count

SOURCES = 5  # with a colour of their own; the others are summed
COLOURS = (1, 2, 3, 4, 5, 0)
BARS = 30
MOST_SCORES = 12
VALUES = 12


def loss_section(facts: Facts) -> tuple[Html | None, list[Chart]]:
    """Documents that each stage lost, dropped and dead, by source."""
    lost: dict[str, dict[str, int]] = {}
    for row in facts.manifest.funnel:
        gone = sum(entry["documents"] for outcome in ("dropped", "dead") for entry in row[outcome].values())
        by_source = lost.setdefault(row["stage"], {})
        by_source[row["source"]] = by_source.get(row["source"], 0) + gone
    stages = [stage for stage, by_source in lost.items() if any(by_source.values())][:BARS]
    if not stages:
        return None, []
    sums: dict[str, int] = {}
    for stage in stages:
        for source, number in lost[stage].items():
            sums[source] = sums.get(source, 0) + number
    named = top(sums.items(), SOURCES)
    series: dict[str, list[float | None]] = {
        source: [float(lost[stage].get(source, 0)) for stage in stages] for source in named
    }
    if others := [source for source in sums if source not in named]:
        name = "all other sources"
        series[name] = [float(sum(lost[stage].get(source, 0) for source in others)) for stage in stages]
    chart = Chart(
        *("loss-by-source", "Documents lost, by stage and source", stages, series, "bars", "stage"),
        colours=[*COLOURS[: len(named)], *([0] if others else [])],
        is_stacked=True,
    )
    more = sum(1 for by_source in lost.values() if any(by_source.values())) - len(stages)
    return (
        el(
            "section",
            el("h2", "Where documents were lost"),
            figure(chart, "dropped documents and dead letters; a bar is a stage, in the order of the funnel"),
            el("p", f"{more} further stages are in manifest.json.") if more > 0 else None,
            id="losses",
        ),
        [chart],
    )


def language_section(facts: Facts) -> Html | None:
    """Dropped documents by language and other categories, of the stages that know them."""
    tables = list(_categories(facts))
    if not tables:
        return None
    return el(
        "section",
        el("h2", "Languages and other classes of dropped documents"),
        el(
            "p",
            "Stages before the one that notes a class do not know it. Duplicates are not counted here; the classes of "
            "what deduplication kept are under “Content”.",
        ),
        el("div", tables, class_="charts"),
        id="dropped-classes",
    )


def _categories(facts: Facts) -> Iterator[Html]:
    found = facts.dropped.categories if facts.dropped else ()
    point = facts.statistics.point("published") if facts.statistics else None
    order = [stage.name for stage in facts.stages]
    for name in dict.fromkeys(each.name for each in found):
        some = [each for stage in order for each in found if (each.name, each.stage) == (name, stage)]
        sums: dict[str, int] = {}
        for each in some:
            for value in each.values:
                sums[value.value] = sums.get(value.value, 0) + value.documents
        kept = {
            value.value: value.documents
            for category in (point.categories if point else ())
            if category.name == name
            for value in category.values
        }
        columns = [{value.value: value.documents for value in each.values} for each in some]
        rows = [
            [
                value or "(none)",
                *(count(column.get(value, 0)) for column in columns),
                count(kept[value]) if value in kept else "0" if point else "–",
            ]
            for value in top(sums.items(), VALUES)
        ]
        head = [name.replace("_", " "), *(f"{DROPPED} by {each.stage}" for each in some), KEPT]
        more = len(sums) - len(rows)
        if rows:
            yield el("div", table(head, rows), el("p", f"and {more:,} more, in dropped.json") if more > 0 else None)


def score_section(facts: Facts) -> tuple[Html | None, list[Chart]]:
    """The numbers by which stages dropped documents, beside those of the documents that were kept."""
    found = [] if facts.dropped is None else list(facts.dropped.scores)
    order = [stage.name for stage in facts.stages]
    found.sort(key=lambda each: (order.index(each.stage) if each.stage in order else len(order), each.name))
    drawn = [_score(facts, each) for each in found[:MOST_SCORES]]
    if not drawn:
        return None, []
    more = len(found) - len(drawn)
    section = el(
        "section",
        el("h2", "Scores of dropped and kept documents"),
        el("p", "Shares of the documents of each kind. A dashed line is a threshold of the recipe."),
        el("div", [shown for shown, _ in drawn], class_="charts"),
        el("p", f"and {more} more, in dropped.json") if more > 0 else None,
        id="dropped-scores",
    )
    return section, [chart for _, chart in drawn]


def _score(facts: Facts, score: DroppedScore) -> tuple[Html, Chart]:
    gone = distribution_of_bins(score.bins)
    both = {DROPPED: gone}
    if (kept := _kept(facts, score.name)) is not None:
        both[KEPT] = kept
    bins = histogram(both, "")
    limits = [(place_in(bins.edges, limit), three_digits(limit)) for limit in score.limits if bins.edges]
    title = f"{score.name.replace('_', ' ').capitalize()}, measured by {score.stage}"
    name = f"dropped-{score.stage}-{score.name}"
    chart = area(name, title, bins, score.name, colours=(2, 1)[: len(both)], limits=limits)
    said = ", ".join(f"{count(part.documents)} {name}" for name, part in both.items())
    return figure(chart, said, exact_rows(bins)), chart


def _kept(facts: Facts, name: str) -> Distribution | None:
    """The same number of the documents that were published, or of the last place that knows it."""
    points = [point for point in facts.statistics.points if point.collected] if facts.statistics else []
    for point in reversed(points):
        for series in point.series:
            if series.name == name and series.all.documents:
                return series.all
    return None
