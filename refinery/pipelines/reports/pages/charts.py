"""Charts of a page: each a declaration that charts.js draws, and the same numbers as a table for who sees no chart."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from refinery.pipelines.recipe.quantities.quantity import show
from refinery.pipelines.reports.pages.chart_library import chart_library
from refinery.pipelines.reports.pages.markup import Html, el
from refinery.pipelines.reports.pages.page import own_file, table

MOST_ROWS = 60  # of a chart: more are neither legible nor needed


@dataclass(frozen=True)
class Chart:
    """name: unique on its page. labels: of the places on the axis. series: name ->
    a number for each label, None for none. kind: "area", steps over ordered places, or "bars", a row for each label.
    axis: what the labels are. unit: of the numbers: a kind of `quantities.quantity.show`. colours: of the series, by
    number; without them in order. ticks: of an area, (place, text) of the labels that its axis has. limits: of an area,
    (place, text) of lines across it; a place between two labels is a fraction. is_stacked: whether the bars of a label
    are one bar.
    """

    name: str
    title: str
    labels: Sequence[str]
    series: Mapping[str, Sequence[float | None]]
    kind: Literal["area", "bars"]
    axis: str
    unit: str = "count"
    colours: Sequence[int] = ()
    ticks: Sequence[tuple[int, str]] = ()
    limits: Sequence[tuple[float, str]] = ()
    is_stacked: bool = False

    def __post_init__(self) -> None:
        wrong = [name for name, values in self.series.items() if len(values) != len(self.labels)]
        if wrong or len(self.labels) > MOST_ROWS:
            raise ValueError(f"chart {self.name}: {len(self.labels)} labels, up to {MOST_ROWS} allowed; wrong: {wrong}")


def figure(chart: Chart, note: object = None, rows: Sequence[Sequence[object]] | None = None) -> Html:
    """The place of a chart, and its table. note: what there is to say about it. rows: of the table, where it says the
    numbers otherwise than the chart shows them; none where the page has such a table beside it."""
    if rows is None:
        columns = chart.series.values()
        rows = [
            [label, *(_cell(column[place], chart.unit) for column in columns)]
            for place, label in enumerate(chart.labels)
        ]
    size = "small" if len(chart.labels) <= 6 else "middle" if len(chart.labels) <= 14 else "large"
    return el(
        "figure",
        el("figcaption", el("b", chart.title), el("span", " ", note) if note else None),
        el(
            "div",
            el(
                "canvas",
                role="img",
                aria_label=f"{chart.title}; the table below has its numbers",
                data_chart=chart.name,
            ),
            class_=f"chart {chart.kind} {size}",
        ),
        el("details", el("summary", "as a table"), table([chart.axis, *chart.series], rows)) if rows else None,
    )


def _cell(value: float | None, unit: str) -> str:
    return "–" if value is None else show(value, unit)


def chart_data(charts: Iterable[Chart]) -> list[dict[str, Any]]:
    """What charts.js reads as "charts" of a page's data."""
    return [
        {
            "name": chart.name,
            "kind": chart.kind,
            "labels": list(chart.labels),
            "axis": chart.axis,
            "unit": chart.unit,
            **({"colours": list(chart.colours)} if chart.colours else {}),
            **({"ticks": [list(each) for each in chart.ticks]} if chart.ticks else {}),
            **({"limits": [list(each) for each in chart.limits]} if chart.limits else {}),
            **({"stacked": True} if chart.is_stacked else {}),
            "series": [{"label": name, "data": list(values)} for name, values in chart.series.items()],
        }
        for chart in charts
    ]


def chart_scripts() -> list[str]:
    """The scripts that a page with charts needs, in order."""
    return [chart_library(), own_file("charts.js", __package__)]
