"""Which cells of a large matrix a session runs: some of them, chosen by the commit, so that every cell comes round.

`make test-all` (REFINERY_TESTS=all) runs all of them. The choice depends on nothing but a seed: the summary prints it,
and REFINERY_TEST_SEED sets it.
"""

import functools
import hashlib
import itertools
import math
import os
import random
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")
Test = TypeVar("Test", bound=Callable[..., object])

ROOT = Path(__file__).parents[1]
SEED = "REFINERY_TEST_SEED"
ALL = os.environ.get("REFINERY_TESTS") == "all"
SOURCES = ("loader", "transforms", "pipelines", "tests")

chosen: dict[str, tuple[int, int]] = {}  # matrix -> how many of its cells run, of how many


@functools.cache
def seed() -> str:
    """The commit's hash; where there is no git, that of the sources. REFINERY_TEST_SEED comes first."""
    given = os.environ.get(SEED, "")
    if given:
        return given
    try:
        done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
        commit = done.stdout.strip() if done.returncode == 0 else ""
    except OSError:
        commit = ""
    return (commit or source_digest())[:12]


def source_digest() -> str:
    found = hashlib.sha256()
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            found.update(path.read_bytes())
    return found.hexdigest()


def sampled(
    matrix: str, cells: Iterable[T], keep: int, axes: Callable[[T], Sequence[object]] = lambda cell: ()
) -> list[T]:
    """`keep` of the cells, in their order, or a few more: every value of every axis is in one of them. All in test-all.

    matrix: its name, which the summary gives. axes: a cell's place in the matrix.
    """
    everything = list(cells)
    order = random.Random(f"{seed()} {matrix}").sample(range(len(everything)), len(everything))
    values = {number: set(enumerate(axes(everything[number]))) for number in order}
    taken: set[int] = set()
    seen: set[tuple[int, object]] = set()
    for number in order:
        if values[number] - seen:
            taken.add(number)
            seen |= values[number]
    for number in order:
        if len(taken) < keep:
            taken.add(number)
    if ALL:
        taken = set(order)
    chosen[matrix] = len(taken), len(everything)
    return [cell for number, cell in enumerate(everything) if number in taken]


def spread(sequence: str, points: Sequence[T], keep: int) -> list[T]:
    """One point of each of `keep` equal stretches of a sequence. All in test-all."""
    rng = random.Random(f"{seed()} {sequence}")
    keep = len(points) if ALL else min(keep, len(points))
    edges = [len(points) * part // keep for part in range(keep + 1)] if keep else []
    chosen[sequence] = keep, len(points)
    return [points[rng.randrange(start, stop)] for start, stop in itertools.pairwise(edges)]


def examples(count: int) -> int:
    """Examples that Hypothesis tries where `test-all` tries `count`: an eighth, at least 10; the seed varies them."""
    return count if ALL else max(min(count, 10), math.ceil(count / 8))


def one_commit_in_four(test: Test) -> Test:
    """For a test that takes seconds of its own, such as one that installs a package: a quarter of commits run it."""
    turn = random.Random(f"{seed()} {test.__module__}.{test.__name__}").random() < 0.25
    chosen[f"one commit in four: {test.__name__}"] = int(ALL or turn), 1
    marked: Test = pytest.mark.skipif(not (ALL or turn), reason="one commit in four, and test-all, runs it")(test)
    return marked


def skip_syncs() -> None:
    """What a killed process wrote is there without a sync, and no test takes the power away. test-all syncs."""
    if not ALL:
        os.fsync = lambda fd: None


def scaled(full: int, small: int) -> int:
    """A size that `test-all` has in full: for what does not depend on it, a smaller one shows the same."""
    return full if ALL else small
