"""Read ahead: a few reads under way while the first of them is worked on, results in order."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

READS = 4  # under way at once: what hides the latency of a bucket; each holds what it read


def ahead(read: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """`map(read, items)` by threads, at most `READS` results ahead. An error of `read` is raised in its turn."""
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(READS, "refinery-ahead") as pool:
        for item in items:
            waiting.append(pool.submit(read, item))
            if len(waiting) >= READS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
