"""Numbers as people read them, and a snapshot as one line."""

from collections.abc import Iterator

from refinery.pipelines.progress.measure import Snapshot
from refinery.transforms.core.wording import many

KEPT = "\n\t\xa0"


def human_bytes(size: float) -> str:
    """1536 -> "1.5 kB" (decimal units)."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return ""


def short_number(number: int) -> str:
    """At most five characters.

    >>> [short_number(n) for n in (999, 1234, 12345, 999_999, 5_400_000_000)]
    ['999', '1.2k', '12k', '999k', '5.4G']
    """
    if number < 1000:
        return str(number)
    for unit in "kMGT":
        number_ = number / 1000 ** ("kMGT".index(unit) + 1)
        if number_ < 1000 or unit == "T":
            return f"{int(number_ * 10) / 10:.1f}{unit}" if number_ < 10 else f"{int(number_)}{unit}"
    return ""


def duration(seconds: float) -> str:
    """
    >>> [duration(s) for s in (0.4, 59.6, 61, 3700, 200_000)]
    ['0:00', '1:00', '1:01', '1:01:40', '2 d 7 h']
    """
    whole = round(seconds)
    days, rest = divmod(whole, 86_400)
    hours, rest = divmod(rest, 3600)
    minutes, rest = divmod(rest, 60)
    if days:
        return f"{days} d {hours} h"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def percent(fraction: float | None) -> str:
    """Never "100 %" before the end."""
    return "" if fraction is None else f"{100 if fraction >= 1 else min(99, int(fraction * 100))} %"


def amounts(snapshot: Snapshot) -> Iterator[str]:
    """What is done and how fast, of all that is known: "1.2 of 3.4 GB", "12.3 MB/s", …"""
    if snapshot.work.bytes_total:
        read, total = human_bytes(snapshot.bytes_done), human_bytes(snapshot.work.bytes_total)
        yield total if read == total else f"{read} of {total}"
        if snapshot.bytes_per_second is not None:
            yield f"{human_bytes(snapshot.bytes_per_second)}/s"
    if snapshot.work.files and not snapshot.work.waves > 1:
        yield f"{snapshot.files_done:,}/{many(snapshot.work.files, 'file')}"
    if snapshot.documents:
        yield many(snapshot.documents, "document")
        if snapshot.documents_per_second is not None:
            yield f"{snapshot.documents_per_second:,.0f} documents/s"


def left(snapshot: Snapshot) -> str:
    """How long it will still take, or "" where nobody knows."""
    if snapshot.final or snapshot.eta_seconds is None:
        return ""
    return f"{duration(snapshot.eta_seconds)} left"


def line(snapshot: Snapshot) -> str:
    """All of it in one line: for logs, and where the output is not a terminal."""
    lost = (f"{lost:,} lost in {stage.name}" for stage in snapshot.stages if (lost := stage.dropped + stage.dead))
    return "  ".join([short_line(snapshot, snapshot.label), *lost])


def short_line(snapshot: Snapshot, title: str = "") -> str:
    """The same without the stages. title: in place of the phase's."""
    memory = f"memory {human_bytes(snapshot.memory_bytes)}" if snapshot.memory_bytes else ""
    parts = [title or snapshot.work.title or snapshot.label, snapshot.state, percent(snapshot.fraction)]
    parts += [*amounts(snapshot), duration(snapshot.seconds), left(snapshot), memory]
    return "  ".join(part for part in parts if part)


def for_terminal(text: str) -> str:
    """`text` without what a terminal would obey: control characters and marks that change the direction of text are
    escaped; line breaks and tabs stay.

    >>> for_terminal("a\\x1b[2J\\n")
    'a\\\\x1b[2J\\n'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in KEPT else ascii(c)[1:-1] for c in text)
