"""What this process has done so far, and what it works on: for the progress display and for whoever names what it died
on, never for the manifest. Without Beam, for commands that need none."""

import mmap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

# (stage, outcome) -> documents, and (WORK, unit) -> bytes, rows, shards, …
LIVE: Counter[tuple[str, str]] = Counter()
WORK = "work"
HAND_BYTES = 1 << 16
LENGTH = 4  # bytes of the length of what is in hand, which is written last


def live_totals() -> Counter[str]:
    """Totals of this process, in the form that worker pools report: "stage outcome" -> documents."""
    return Counter({f"{stage} {outcome}": n for (stage, outcome), n in LIVE.copy().items()})


class Hand:
    """The record that a process has in hand, in memory that outlives the process. Made before a fork, and shared by
    both sides. The worker writes, the other side reads when the worker is dead. No file is left behind.

    `take` costs one to two microseconds. A place too long for the memory is not noted.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, HAND_BYTES)

    def take(self, stage: str, origin: str) -> None:
        """The process begins with a record. stage: what it does with it. origin: as of documents."""
        data = f"{stage}\n{origin}".encode("utf-8", "surrogatepass")
        self.clear()
        if len(data) <= HAND_BYTES - LENGTH:
            self._memory[LENGTH : LENGTH + len(data)] = data
            self._memory[:LENGTH] = len(data).to_bytes(LENGTH, "little")

    def clear(self) -> None:
        """The process has no record in hand."""
        self._memory[:LENGTH] = bytes(LENGTH)

    def read(self) -> tuple[str, str] | None:
        """Stage and origin; None for no record."""
        size = int.from_bytes(self._memory[:LENGTH], "little")
        if not size:
            return None
        stage, _, origin = self._memory[LENGTH : LENGTH + size].decode("utf-8", "surrogatepass").partition("\n")
        return stage, origin


# Gets every change of the files that this process reads: whoever watches it can name them if it dies. A worker sets it.
watch_reading: Callable[[list[str]], None] | None = None
# Gets every record that a stage begins with, where somebody wants to know on which one this process dies.
hand: Hand | None = None
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
