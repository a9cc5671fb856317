"""Many files looked through at once, in order, with a line now and then that says how far it is."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")
Say = Callable[[str], None]

THREADS = 16
SECONDS = 5.0  # between two lines; what takes less says nothing


def silent(line: str) -> None:
    """Says nothing."""


def scan(look: Callable[[T], R], items: Sequence[T], what: str, say: Say = silent) -> Iterator[R]:
    """look(item) of each, in order, THREADS at once. what: the items in the plural, for the lines."""
    pool = ThreadPoolExecutor(min(THREADS, max(len(items), 1)), "refinery-trace")
    try:
        last = time.monotonic()
        for done, result in enumerate(pool.map(look, items), 1):
            yield result
            if time.monotonic() - last > SECONDS:
                last = time.monotonic()
                say(f"{done:,} of {len(items):,} {what} searched")
    finally:  # also where the caller stops early, or Ctrl-C
        pool.shutdown(wait=False, cancel_futures=True)
