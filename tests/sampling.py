"""Which cells of a large matrix a session runs: some of them, chosen by the commit's number, so that every cell comes
round.

`make test-all` (REFINERY_TESTS=all) runs all of them. The choice depends on nothing but a seed: the summary prints it,
and REFINERY_TEST_SEED sets it.

`make test-tenth` (REFINERY_TESTS=tenth) runs one tenth of what `make test-all` runs. The rule: a test, with its
parameters, belongs to the tenth that the hash of its node id gives, and a commit runs the tenth of its number, so that
ten commits in a row run each test once. A test too long for that has its cells as parameters.
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
Node = TypeVar("Node", bound=pytest.Item)

ROOT = Path(__file__).parents[1]
TESTS = "REFINERY_TESTS"
SEED = "REFINERY_TEST_SEED"
TENTH = "REFINERY_TEST_TENTH"
TENTHS = 10
HOW_MANY = ("some", "tenth", "all")  # what REFINERY_TESTS may be
SOURCES = ("loader", "transforms", "pipelines", "tests")


def how_many() -> str:
    given = os.environ.get(TESTS) or "some"
    if given not in HOW_MANY:
        raise pytest.UsageError(f"{TESTS}: {given!r} was given, allowed are {', '.join(HOW_MANY)}")
    return given


ALL = how_many() != "some"  # every test at full size, be it of a tenth
ONE_TENTH = how_many() == "tenth"
NODES = "tests of the tenth"  # in `chosen`
REASON = "one commit in four, and test-all, runs it"
FILE = "file_on_one_commit_in_four"  # the marker
FILE_ON_ONE_COMMIT_IN_FOUR = getattr(pytest.mark, FILE)

chosen: dict[str, tuple[int, int]] = {}  # matrix -> how many of its cells run, of how many


@functools.cache
def seed() -> str:
    """The commit's number, so an amended commit has the same samples; where that is not known its hash, and where there
    is no git that of the sources. REFINERY_TEST_SEED comes first.
    """
    given = os.environ.get(SEED, "")
    if given:
        return given
    number = commit_number()
    return f"commit-{number}" if number is not None else (git("rev-parse", "HEAD") or source_digest())[:12]


def commit_number() -> int | None:
    """Of the checked-out commit along first parents; None where the history is not there: no git, a shallow clone."""
    is_whole = git("rev-parse", "--is-shallow-repository") == "false"
    count = git("rev-list", "--count", "--first-parent", "HEAD") if is_whole else ""
    return int(count) if count else None


def git(*words: str) -> str:
    """What git answers about this tree; nothing where there is no git or no repository."""
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


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
    marked: Test = pytest.mark.skipif(not (ALL or turn), reason=REASON)(test)
    return marked


def skip_three_in_four(items: Iterable[pytest.Item]) -> None:
    """Files that say `pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR`: a quarter of commits run each, with all of its tests,
    since what takes long are the runs that they share.
    """
    marked = [item for item in items if item.get_closest_marker(FILE)]
    files = {item.nodeid.partition("::")[0] for item in marked}
    kept = {file for file in files if ALL or digest_number(f"{seed()} {file}") % 4 == 0}
    for item in marked:
        if item.nodeid.partition("::")[0] not in kept:
            item.add_marker(pytest.mark.skip(reason=REASON))
    chosen["files for one commit in four"] = len(kept), len(files)


def skip_syncs() -> None:
    """What a killed process wrote is there without a sync, and no test takes the power away. test-all syncs."""
    if not ALL:
        os.fsync = lambda fd: None


def scaled(full: int, small: int) -> int:
    """A size that `test-all` has in full: for what does not depend on it, a smaller one shows the same."""
    return full if ALL else small


# --- tenths ---------------------------------------------------------------------------------------------------------


@functools.cache
def tenth() -> int:
    """The commit's number modulo ten, or where that is not known, by the seed. REFINERY_TEST_TENTH comes first."""
    given = os.environ.get(TENTH, "")
    if given:
        if given not in map(str, range(TENTHS)):
            raise pytest.UsageError(f"{TENTH}: {given!r} was given, allowed are 0 to {TENTHS - 1}")
        return int(given)
    number = commit_number()
    return number % TENTHS if number is not None else tenth_of(seed())


def tenth_of(node: str) -> int:
    """The tenth that a test belongs to. node: its id, as pytest prints it."""
    return digest_number(node) % TENTHS


def digest_number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])


def of_the_tenth(items: Sequence[Node]) -> tuple[list[Node], list[Node]]:
    """The tests that this session runs, and the others. All run but where REFINERY_TESTS is tenth."""
    if not ONE_TENTH:
        return [*items], []
    mine = [item for item in items if tenth_of(item.nodeid) == tenth()]
    chosen[NODES] = len(mine), len(items)
    return mine, [item for item in items if tenth_of(item.nodeid) != tenth()]


def the_same_tenth() -> str:
    """The tenth of this session, in words: how to run it again."""
    return f"tenth {tenth()}; again: {TENTH}={tenth()} {SEED}={seed()} make test-tenth"
