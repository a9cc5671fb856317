"""Bars and curves of the page, as SVG without scripts and styles: the policy of a page allows neither in markup."""

from collections.abc import Sequence
from itertools import pairwise

from refinery.pipelines.corpus.compare.distributions import Distribution
from refinery.pipelines.reports.pages.markup import Html, el

POINTS = 60  # of a curve: neighbouring bins are taken together
WIDTH, HEIGHT = 600, 120  # of a curve's coordinates


def bars(parts: Sequence[Sequence[tuple[str, float]]], label: str) -> Html:
    """A bar for each of `parts`, one below the other: (class, share of the width) of its pieces from the left. label:
    what a screen reader says of it."""
    height = 100 / max(1, len(parts))
    shown = []
    for number, pieces in enumerate(parts):
        left = 0.0
        for kind, part in pieces:
            part = min(max(part, 0.0), 1.0 - left)
            place = {"x": _percent(left), "y": f"{number * height:.2f}%"}
            shown.append(el("rect", class_=kind, width=_percent(part), height=f"{height * 0.84:.2f}%", **place))
            left += part
    return el("svg", shown, class_="bars", role="img", aria_label=label, preserveAspectRatio="none")


def _percent(part: float) -> str:
    return f"{100 * part:.3f}%"


def curves(each: Distribution) -> Html:
    """The shares of both over the bins, A and B as lines over each other."""
    keys = sorted({*each.a, *each.b}, key=lambda key: (isinstance(key, str), key))
    step = max(1, -(-len(keys) // POINTS))
    groups = [keys[n : n + step] for n in range(0, len(keys), step)]
    lines = []
    for counts in (each.a, each.b):
        total = sum(counts.values()) or 1
        lines.append([sum(counts.get(key, 0) for key in group) / total for group in groups])
    most = max((*lines[0], *lines[1]), default=1) or 1
    shown = [
        el("polyline", class_=kind, points=" ".join(_points(line, most)), vector_effect="non-scaling-stroke")
        for kind, line in zip(("a", "b"), lines, strict=True)
    ]
    view = {"viewBox": f"0 0 {WIDTH} {HEIGHT}", "preserveAspectRatio": "none"}
    return el("svg", shown, class_="curves", role="img", aria_label=f"shares of A and B: {each.name}", **view)


def _points(line: Sequence[float], most: float) -> list[str]:
    """A step for every bin."""
    edges = [WIDTH * n / len(line) for n in range(len(line) + 1)]
    heights = [HEIGHT - (HEIGHT - 4) * part / most for part in line]
    return [
        f"{x:.1f},{y:.1f}" for (left, right), y in zip(pairwise(edges), heights, strict=True) for x in (left, right)
    ]
