"""What this process has done so far: for the progress display only, never for the manifest. Without Beam, for commands
that need none."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

# (stage, outcome) -> documents, and (WORK, unit) -> bytes, rows, shards, …
LIVE: Counter[tuple[str, str]] = Counter()
WORK = "work"


def live_totals() -> Counter[str]:
    """Totals of this process, in the form that worker pools report: "stage outcome" -> documents."""
    return Counter({f"{stage} {outcome}": n for (stage, outcome), n in LIVE.copy().items()})


# Gets every change of the files that this process reads: whoever watches it can name them if it dies. A worker sets it.
watch_reading: Callable[[list[str]], None] | None = None
_reading: list[str] = []
_read: set[str] = set()  # files that were opened since `forget_files`, where somebody watches


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Inside, this process reads the file at `path`."""
    _reading.append(path)
    if watch_reading is not None:
        _read.add(path)
    _tell(_reading)
    try:
        yield
    finally:
        _reading.remove(path)
        _tell(_reading)


@contextmanager
def working_on(path: str) -> Iterator[None]:
    """Inside, this process works on what it has read from `path`, while it reads another file, or none any more. For
    files that it has not read this does nothing."""
    if path not in _read or _reading == [path]:
        yield
        return
    _tell([path])
    try:
        yield
    finally:
        _tell(_reading)


def forget_files() -> None:
    """The job is done: nothing is left of what was read."""
    _read.clear()


def _tell(paths: Iterable[str]) -> None:
    if watch_reading is not None:
        watch_reading(sorted(paths))
