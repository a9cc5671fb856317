"""The drawings of docs/pictures: SVG from declarations and counts, the same bytes every time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from refinery.transforms.core.lane import Lane

WIDTH = 960
LETTER = 7.4  # pixels of a letter of 13 px, at most
PAPER, INK, SOFT, BOX, OFF, KEPT, LOST = "#ffffff", "#1f2430", "#5b6475", "#e8ecfb", "#f6f6f6", "#3f51b5", "#d9dce6"


@dataclass(frozen=True)
class Row:
    """A row of the funnel: documents."""

    stage: str
    came: int
    kept: int


def svg(height: float, parts: Iterable[str], title: str) -> str:
    """A picture on its own card, which makes it readable on a dark page, too."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="13">\n<title>{escape(title)}</title>\n'
        f'<rect width="{WIDTH}" height="{height:g}" rx="10" fill="{PAPER}"/>\n'
    )
    return head + "".join(f"{part}\n" for part in parts) + "</svg>\n"


def text(x: float, y: float, words: str, color: str = INK, more: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" fill="{color}"{more and " " + more}>{escape(words)}</text>'


# --- phases ---------------------------------------------------------------------------------------------------------


def phases(lane: Lane) -> str:
    """The stages of a lane, phase by phase, and what each phase leaves. Stages that are off by default are dashed."""
    pages, y, parts = list(phase_rows(lane)), 18.0, []
    for number, (name, stages, leaves) in enumerate(pages, 1):
        found, bottom = boxes(stages, y)
        parts += [text(20, y + 24, f"{number} {name}", more='font-weight="600" font-size="16"'), *found]
        parts.append(text(130, bottom + 20, f"→ {leaves}", SOFT))
        y = bottom + 46
    parts.append(text(20, y, "dashed: off, unless the recipe has its section", SOFT))
    return svg(y + 16, parts, f"The three phases of the {lane.name} lane")


def phase_rows(lane: Lane) -> Iterable[tuple[str, list[tuple[str, bool]], str]]:
    """(phase, (stage, whether it is on) each, what it leaves)."""

    def named(stages: Sequence[object]) -> list[tuple[str, bool]]:
        return [(stage.name, bool(stage.on)) for stage in stages]  # type: ignore[attr-defined]

    yield "clean", named(lane.clean), "work/: documents and their signatures"
    yield "dedup", named(lane.dedup), "work/: a verdict on every document that is a copy, removals"
    ends = [("shuffle", True), ("write", True)]
    files = ", ".join(f".{kind}" for kind in lane.writer.kinds)
    yield "shards", named(lane.shards) + ends, f"train/ and validation/: {files}; then removals, rejects, manifest.json"


def boxes(stages: Sequence[tuple[str, bool]], top: float) -> tuple[list[str], float]:
    """Boxes with arrows between them, in as many lines as they need. Returns the bottom of the last line, too."""
    parts, x, y = [], 130.0, top
    for number, (name, on) in enumerate(stages):
        width = round(len(name) * LETTER + 20)
        if x + width > WIDTH - 20:
            x, y = 130.0, y + 48
        style = f'fill="{BOX}"' if on else f'fill="{OFF}" stroke="{SOFT}" stroke-dasharray="4 3"'
        parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width}" height="36" rx="6" {style}/>')
        parts.append(text(x + width / 2, y + 23, name, more='text-anchor="middle"'))
        if number + 1 < len(stages):
            parts.append(text(x + width + 3, y + 23, "→", SOFT))
        x += width + 20
    return parts, y + 36


# --- the funnel -----------------------------------------------------------------------------------------------------


def funnel(rows: Sequence[Row], name: str) -> str:
    """A band for each stage, as wide as the documents that came in; dark what it kept."""
    left, room, step = 190, 600, 30
    scale = room / max(row.came for row in rows)
    parts = [text(20, 32, f"Documents of {name}, stage by stage", more='font-weight="600" font-size="16"')]
    for number, row in enumerate(rows):
        y = 50 + number * step
        came, kept = round(row.came * scale, 1), round(row.kept * scale, 1)
        x = left + (room - came) / 2
        parts.append(text(left - 12, y + 16, row.stage, more='text-anchor="end"'))
        parts.append(f'<rect x="{x:g}" y="{y}" width="{came:g}" height="22" rx="3" fill="{LOST}"/>')
        if kept:
            x = left + (room - kept) / 2
            parts.append(f'<rect x="{x:g}" y="{y}" width="{kept:g}" height="22" rx="3" fill="{KEPT}"/>')
        lost = f"{row.kept:,} kept" + (f", {row.came - row.kept:,} lost" if row.kept < row.came else "")
        parts.append(text(left + room + 14, y + 16, lost, SOFT))
    return svg(50 + len(rows) * step + 16, parts, f"The funnel of {name}")


def funnel_rows(entries: Iterable[dict[str, object]]) -> list[Row]:
    """A row for each stage of a manifest's funnel, all sources together, in order."""
    came: dict[str, int] = {}
    kept: dict[str, int] = {}
    for entry in entries:
        stage = str(entry["stage"])
        came[stage] = came.get(stage, 0) + entry["in"]["documents"]  # type: ignore[index]
        kept[stage] = kept.get(stage, 0) + entry["kept"]["documents"]  # type: ignore[index]
    return [Row(stage, came[stage], kept[stage]) for stage in came]
