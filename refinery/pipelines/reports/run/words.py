"""Numbers of a report as people read them."""

from datetime import UTC, datetime

from refinery.pipelines.published.statistics.published import Point
from refinery.pipelines.recipe.quantities.quantity import show, three_digits

DROPPED, KEPT = "dropped", "kept"  # names of series, the same in all charts
MEDIAN = 2  # its place among the quantiles of 5, 25, 50, 75 and 95 %


def share(part: float, whole: float = 1.0) -> str:
    """A part of a whole, in percent; "–" of nothing.

    >>> share(1, 3), share(1, 100_000), share(0, 0)
    ('33.3 %', '0.001 %', '–')
    """
    if not whole:
        return "–"
    value = part / whole
    return f"{value:.1%}".replace("%", " %") if value >= 0.0095 else show(value, "share")


def count(number: int) -> str:
    """All digits of a whole number."""
    return f"{number:,}"


def seconds(value: float | None) -> str:
    """Time of work: seconds, then minutes and hours.

    >>> seconds(0.113), seconds(412.0), seconds(7.5 * 3600), seconds(None)
    ('0.113 s', '6.87 min', '7.5 h', '–')
    """
    if value is None:
        return "–"
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if value >= 2 * size:
            return f"{three_digits(value / size)} {unit}"
    return f"{three_digits(value)} s"


def moment(seconds_since_1970: float) -> str:
    """A time, in UTC: the same words on every machine.

    >>> moment(1764275196.0)
    '2025-11-27 20:26 UTC'
    """
    return datetime.fromtimestamp(seconds_since_1970, UTC).strftime("%Y-%m-%d %H:%M UTC")


def median(point: Point, name: str) -> float | None:
    """The median of a series at a point, if it was measured there."""
    for series in point.series:
        if series.name == name and len(series.all.quantiles) > MEDIAN:
            return series.all.quantiles[MEDIAN]
    return None
