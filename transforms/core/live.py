"""What this process has done so far: for the progress display only, never for the manifest. Without Beam, for commands
that need none."""

from collections import Counter

# (stage, outcome) -> documents, and (WORK, unit) -> bytes, rows, shards, …
LIVE: Counter[tuple[str, str]] = Counter()
WORK = "work"


def live_totals() -> Counter[str]:
    """Totals of this process, in the form that worker pools report: "stage outcome" -> documents."""
    return Counter({f"{stage} {outcome}": n for (stage, outcome), n in LIVE.copy().items()})
