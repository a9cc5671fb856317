"""What a terminal shows of a job: bars of the phases, amounts, a table of the stages. Pure: from numbers to rich's
renderables, for any width and height."""

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Column, Table
from rich.text import Text

from refinery.pipelines.progress.measure import Snapshot
from refinery.pipelines.progress.words import amounts, duration, for_terminal, human_bytes, left, percent, short_number
from refinery.pipelines.progress.work import StageCounts

NARROW = 60  # columns below which numbers are short and what is less important goes
WIDEST = 100  # bars do not grow further
LEAST_ROWS, LEAST_WIDTH = 3, 30  # of the table of stages: with less room there is none


def render(snapshot: Snapshot, ended: Mapping[str, float], width: int, height: int) -> RenderableType:
    """ended: phases that this command has finished, and their seconds."""
    width = min(width, WIDEST)
    lines = [*flow(amounts(snapshot), width), *flow(details(snapshot), width)]
    parts: list[RenderableType] = [bars(snapshot, ended, width), *(Text(line, style="dim") for line in lines)]
    room = height - len(snapshot.work.phases or (1,)) - len(lines) - 3  # a header, an empty line, the cursor's
    if snapshot.stages and room >= LEAST_ROWS and width >= LEAST_WIDTH:
        parts += [Text(""), stage_table(snapshot.stages, width, room)]
    return Group(*parts)


def bars(snapshot: Snapshot, ended: Mapping[str, float], width: int) -> Table:
    """A row for each phase of the run."""
    narrow = width < NARROW
    grid = Table.grid(  # of the same widths whatever the numbers are, so that nothing jumps
        Column(no_wrap=True, overflow="ellipsis"),
        Column(ratio=1),
        Column(justify="right", no_wrap=True, width=5),
        Column(justify="right", no_wrap=True, width=9 if narrow else 14),
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    grid.width = width
    work = snapshot.work
    for number, name in enumerate(work.phases or (work.phase or snapshot.label,), 1):
        title = Text(for_terminal(f"{number}/{len(work.phases)} {name}" if work.phases else name))
        if work.phases and number != work.number:
            is_over = number < work.number
            title.stylize("green" if is_over else "dim")
            bar = ProgressBar(total=1, completed=float(is_over)) if is_over else Text("")
            grid.add_row(title, bar, "100 %" if is_over else "", duration(ended[name]) if name in ended else "")
            continue
        title.stylize("bold")
        if work.waves > 1:
            title.append(f" {work.wave}/{work.waves}" if narrow else f" wave {work.wave} of {work.waves}", "not bold")
        known = snapshot.fraction
        bar = ProgressBar(total=1, completed=known) if known is not None else Text(for_terminal(snapshot.state) or "…")
        time = left(snapshot).removesuffix(" left") if narrow else left(snapshot)
        grid.add_row(title, bar, percent(known), time)
    return grid


def details(snapshot: Snapshot) -> Iterator[str]:
    """Time, memory and state of the phase at work."""
    yield f"{duration(snapshot.seconds)} so far"
    if snapshot.memory_bytes:
        yield f"memory {human_bytes(snapshot.memory_bytes)}"
    if snapshot.state and snapshot.fraction is not None:
        yield for_terminal(snapshot.state)


def flow(items: Iterator[str], width: int, gap: str = "   ") -> Iterator[str]:
    """The items in lines of that width; one that is longer is cut."""
    held = ""
    for item in items:
        item = item[:width]
        if held and len(held) + len(gap) + len(item) > width:
            yield held
            held = ""
        held += f"{gap}{item}" if held else item
    if held:
        yield held


def stage_table(stages: Sequence[StageCounts], width: int, room: int) -> Table:
    """Counts by stage; with too little room the first ones, and how many more there are."""
    narrow = width < NARROW
    table = Table(box=None, padding=(0, 2 if not narrow else 1, 0, 0), pad_edge=False, header_style="dim", expand=False)
    table.add_column("stage", no_wrap=True, overflow="ellipsis", max_width=max(8, width - (26 if narrow else 46)))
    for name in ("in", "kept", "dropped", "dead"):
        table.add_column(name, justify="right", no_wrap=True, min_width=5 if narrow else 9)
    shown = stages if len(stages) <= room else stages[: room - 1]
    for stage in shown:
        counts = [short_number(n) if narrow else f"{n:,}" for n in stage.plain().values()]
        dead = Text(counts[3], style="red" if stage.dead else "dim")
        table.add_row(for_terminal(stage.name), counts[0], counts[1], Text(counts[2], style="yellow"), dead)
    if len(shown) < len(stages):
        table.add_row(Text(f"… {len(stages) - len(shown)} more", style="dim"))
    return table
