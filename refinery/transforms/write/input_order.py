"""Input order: documents keep the order of the inputs, and a domain's shards are cut between stretches of files.

The place of a document is a number of 64 bits: its file among all files of the recipe (sources as the recipe lists
them, files as each source lists them), then its offset in the file. Shard k of n begins at the first stretch before
which k n-ths of the domain's kept bytes are (kept_sizes.py). So borders follow from the inputs and the recipe alone:
whatever workers, waves, slices and attempts did, a document is in the same shard. Parts of `documents/` are not aligned
with read tasks, since a bundle may hold several, so texts cross one exchange, keyed by shard, as in shuffled order.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import orjson

from refinery.transforms.core.document import OFFSET_BITS
from refinery.transforms.core.job.task_list import TaskList, read_task_list, write_task_list
from refinery.transforms.write.kept_sizes import File

MOST_FILES = 1 << 64 - OFFSET_BITS
BEHIND_ALL = (1 << 64) - 1
STRETCHES_PER_SHARD = 16  # about: how exact borders are


@dataclass(frozen=True)
class Stretch:
    """Some of a domain's documents, next to each other. start: the place of the first. size: kept bytes."""

    start: int
    size: int


def first_files(files: Mapping[str, int]) -> dict[str, int]:
    """Source -> number of its first file among all. files: how many each source has, in the recipe's order. Raises
    ValueError for more files than places have bits for."""
    ends = list(accumulate(files.values()))
    if ends and ends[-1] > MOST_FILES:
        raise ValueError(f"shards.order: input given for {ends[-1]:,} files, up to {MOST_FILES:,} are allowed")
    return dict(zip(files, [0, *ends], strict=False))


def place_of(first: int, position: int) -> int:
    """The place of a document, by the number of its source's first file."""
    return (first << OFFSET_BITS) + position


def find_borders(stretches: Sequence[Stretch], count: int) -> list[int]:
    """Where shards 1 to count - 1 begin. stretches: of a domain, by start."""
    total, before = sum(each.size for each in stretches), 0
    borders: list[int] = []
    for each in stretches:
        while len(borders) < count - 1 and before * count >= (len(borders) + 1) * total:
            borders.append(each.start)
        before += each.size
    return borders + [BEHIND_ALL] * (count - 1 - len(borders))


def domain_stretches(
    sizes: Iterable[tuple[File, Sequence[int], Sequence[int]]], firsts: Mapping[str, int], domains: Mapping[str, str]
) -> dict[str, list[Stretch]]:
    """Domain -> its stretches, in order. sizes: of each file, of `KeptSizes.joined`."""
    found: dict[str, list[Stretch]] = {}
    for (source, index), starts, bytes_ in sizes:
        mine = found.setdefault(domains[source], [])
        begin = place_of(firsts[source], index << OFFSET_BITS)
        mine += [Stretch(begin + start, size) for start, size in zip(starts, bytes_, strict=True)]
    return {domain: sorted(mine, key=lambda each: each.start) for domain, mine in found.items()}


def write_borders(
    location: str, stretches: Mapping[str, Sequence[Stretch]], counts: Mapping[str, int], firsts: Mapping[str, int]
) -> TaskList:
    """Publish where the shards of each "split/domain" begin, for `InputPlaces`: there may be 100,000. The validation
    split is a sample of the same documents, so it is cut by their bytes, too."""
    borders = {
        place: find_borders(stretches.get(place.partition("/")[2], ()), count) for place, count in counts.items()
    }
    lines = [orjson.dumps(each, option=orjson.OPT_SORT_KEYS) for each in (dict(firsts), borders)]
    return write_task_list(location, "shards", lines)


class InputPlaces:
    """The place and the shard of each document in input order."""

    def __init__(self, borders: TaskList) -> None:
        """borders: of `write_borders`, read here."""
        self.firsts, self.borders = map(orjson.loads, read_task_list(borders))

    def order(self, doc: Any) -> int:
        """The place of an encoded document."""
        return place_of(self.firsts[doc.source], doc.position)

    def index(self, place: str, order: int) -> int:
        """The number of its shard among those of a "split/domain"."""
        return bisect_right(self.borders[place], order)
