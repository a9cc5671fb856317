"""Every command of a run by slices, killed at a change of its folder, or without room for a file, and started again:
the same bytes, nothing left.

A chain kills each command once, at a point that its number chooses; `make test-all` runs enough chains for all points.
"""

from pathlib import Path

import pytest

from tests.fork_server import ForkServer
from tests.pipelines.small_runs import check_corpus, check_work, command, digests, folder_files
from tests.sampling import sampled, scaled

OF = 2
CHAINS = scaled(40, 2)
STEPS = ("clean", "dedup", "shards-0", "shards-1")
NEAR = ("--set", "near_dup={}")


def chain() -> list[tuple[object, ...]]:
    """The words of each command, in order."""
    slices = [("--slice", f"{number}/{OF}", "--until", step) for step in STEPS for number in range(OF)]
    return [("--slices", OF, "--until", "cut"), *slices, ("--until", "publish")]


@pytest.fixture(scope="module")
def expected(
    small: Path, forks: ForkServer, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, str], list[int]]:
    """What one command publishes, and how many changes of the folder each command of the chain makes."""
    folder = tmp_path_factory.mktemp("slices")
    assert forks.run(*command(small, folder / "plain", *NEAR)).code == 0
    changes = []
    for words in chain():
        count = [("at_change", {"root": str(folder / "sliced")})]
        done = forks.run(*command(small, folder / "sliced", *NEAR, *words), faults=count)
        assert done.code == 0, done.err
        changes.append(done.notes["changes"])
    found = folder_files(folder / "sliced")
    assert digests(found) == digests(folder_files(folder / "plain"))
    check_corpus(found)
    return digests(found), changes


@pytest.mark.parametrize("number", range(CHAINS))
def test_killed_at_a_change(
    number: int, small: Path, forks: ForkServer, expected: tuple[dict[str, str], list[int]], tmp_path: Path
) -> None:
    published, changes = expected
    prefix = tmp_path / "out"
    kills = 0
    for place, words in enumerate(chain()):
        point = (number * 7 + place * 3) % changes[place]
        kill = [("at_change", {"root": str(prefix), "kill": point})]
        killed = forks.run(*command(small, prefix, *NEAR, *words), faults=kill)
        assert killed.was_killed or killed.code == 0, f"{words} at {point}: {killed}"
        kills += killed.was_killed
        again = forks.run(*command(small, prefix, *NEAR, *words))
        assert again.code == 0, f"{words} at {point}: {again.err}"
    assert kills >= len(changes) - 1  # the last change of a command may be one less in another run
    files = folder_files(prefix)
    assert digests(files) == published
    check_work(files)
    assert not [name for name in files if name.startswith(("work/exchange/", "work/at_work/"))]


FULL = [  # what fails for want of room, and how many commands of the chain that ends
    ("link", r"clean/cut\.json", 1),
    ("fill", "work/documents", 2),
    ("link", r"clean/wave-.*\.json", 2),
    ("make", "work/verdicts", 1),
    ("fill", "work/exchange/shards-0/", 2),
    ("link", r"exchange/shards-0/slice-.*\.json", 2),
    ("link", r"sealed\.json", 2),
    ("fill", "train/", 1),
    ("link", r"^manifest\.json", 1),
]


@pytest.mark.parametrize(("what", "name", "times"), sampled("full disks of slices", FULL, 1))
def test_a_full_disk(
    what: str,
    name: str,
    times: int,
    small: Path,
    forks: ForkServer,
    expected: tuple[dict[str, str], list[int]],
    tmp_path: Path,
) -> None:
    prefix, refused = tmp_path / "out", 0
    full = [("refuse", {"root": str(prefix), "what": what, "name": name, "code": "ENOSPC"})]
    for words in chain():
        done = forks.run(*command(small, prefix, *NEAR, *words), faults=full)
        if done.code:
            refused += 1
            last = done.err.strip().splitlines()[-1]
            assert (done.code, last.startswith("refinery: ")) == (1, True) and "No space left" in last, done.err
            again = forks.run(*command(small, prefix, *NEAR, *words))
            assert again.code == 0, f"{words}: {again.err}"
    assert refused == times
    files = folder_files(prefix)
    assert digests(files) == expected[0]
    check_work(files)
    assert not [name for name in files if name.startswith(("work/exchange/", "work/at_work/"))]
