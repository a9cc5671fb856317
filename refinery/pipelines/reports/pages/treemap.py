"""A treemap, drawn as SVG: rectangles whose areas are numbers, as square as can be (Bruls, Huizing, van Wijk 2000)."""

from collections.abc import Sequence
from dataclasses import dataclass

from refinery.pipelines.reports.pages.markup import Html, el

WIDTH, HEIGHT = 600, 340  # units of the drawing
LINE, LETTER = 15, 7.2  # height of a line of text, and width of a letter, about


@dataclass(frozen=True)
class Rectangle:
    """Of a treemap. x, y: of the corner above and left."""

    x: float
    y: float
    width: float
    height: float


def squarify(sizes: Sequence[float], width: float, height: float) -> list[Rectangle]:
    """A rectangle for each size, in order; together they fill the whole. sizes: positive, largest first. Linear in them
    but for the rows, which are short.

    >>> squarify([2, 1, 1], 4, 2)
    [Rectangle(x=0.0, y=0.0, width=2.0, height=2.0), Rectangle(x=2.0, y=0.0, width=2.0, height=1.0), \
Rectangle(x=2.0, y=1.0, width=2.0, height=1.0)]

    Raises ValueError for sizes that are not positive or not in descending order.
    """
    if any(size <= 0 for size in sizes) or list(sizes) != sorted(sizes, reverse=True):
        raise ValueError(f"sizes: {list(sizes)[:10]} given, positive numbers in descending order are allowed")
    if not sizes:
        return []
    scale = width * height / sum(sizes)
    areas = [size * scale for size in sizes]
    found: list[Rectangle] = []
    x = y = 0.0
    start = 0
    while start < len(areas):
        side = min(width, height)
        end = start + 1
        while end < len(areas) and worst(areas[start : end + 1], side) <= worst(areas[start:end], side):
            end += 1
        row = areas[start:end]
        depth = sum(row) / side
        at = 0.0
        for area in row:
            length = area / depth
            standing = height <= width
            found.append(Rectangle(x, y + at, depth, length) if standing else Rectangle(x + at, y, length, depth))
            at += length
        if height <= width:
            x, width = x + depth, max(width - depth, 1e-9)
        else:
            y, height = y + depth, max(height - depth, 1e-9)
        start = end
    return found


def worst(row: Sequence[float], side: float) -> float:
    """The largest ratio of the sides of a row's rectangles, along a side of that length."""
    total = sum(row)
    return max(max(side**2 * area / total**2, total**2 / (side**2 * area)) for area in row)


@dataclass(frozen=True)
class Cell:
    """Of a treemap. share: between 0 and 1, how dark it is; None: of another kind, grey. said: its tooltip."""

    name: str
    size: float
    share: float | None
    said: str


def treemap(cells: Sequence[Cell], label: str) -> Html:
    """The drawing. label: what it shows, for who does not see it. Names stand in the rectangles that have room."""
    some = sorted((cell for cell in cells if cell.size > 0), key=lambda cell: (-cell.size, cell.name))
    places = squarify([cell.size for cell in some], WIDTH, HEIGHT)
    drawn = [_cell(cell, place) for cell, place in zip(some, places, strict=True)]
    view = f"0 0 {WIDTH} {HEIGHT}"
    return el("svg", drawn, viewBox=view, class_="treemap", role="img", aria_label=label)


def _cell(cell: Cell, place: Rectangle) -> Html:
    letters = int((place.width - 8) / LETTER)
    name = cell.name if len(cell.name) <= letters else cell.name[: letters - 1] + "…"
    level = "rest" if cell.share is None else f"level-{min(4, int(cell.share * 5))}"
    text = None
    if letters >= 4 and place.height >= LINE + 4:
        text = el("text", name, x=f"{place.x + 5:.1f}", y=f"{place.y + LINE:.1f}")
    inner = {
        "x": f"{place.x:.1f}",
        "y": f"{place.y:.1f}",
        "width": f"{place.width:.1f}",
        "height": f"{place.height:.1f}",
    }
    return el("g", el("desc", cell.said), el("rect", **inner), text, class_=level)
