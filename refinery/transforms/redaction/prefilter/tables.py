"""The beginnings of many patterns as tables that transforms/native/cues.c reads."""

from collections import defaultdict
from collections.abc import Sequence
from functools import cache, reduce
from math import prod
from operator import or_
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from refinery.transforms.redaction.prefilter.automaton import Automaton, automaton_of
from refinery.transforms.redaction.prefilter.beginnings import LONGEST, Beginning
from refinery.transforms.redaction.prefilter.grammar import ALL, members

BUCKETS = 21
WINDOW = 4
STATE_WORDS = 4
# Bytes of text and markup, the most frequent first, and how many of a thousand bytes they are: half of them are letters
# of English, the rest is thinly spread. Only speed depends on it.
FREQUENT = b" etaoinsrhldcumfpgwyb,.vk\n\"'-=/<>:;()_0123456789"
COMMON_ROWS = (
    b"the ing and ion ent tio for her ter hat tha ere ate his con res ver all ons nce men ith ted ers pro thi wit"
    b" are ess not ive was ect rea com eve per int est sta cti ica ist ear ain one our iti rat pre por che cal str"
    b" tra cou ort man ide der par act end ill tin ame oth sin ard red har --- ... === 000"
).split()
FILLERS = (b"   ", b"\t\t\t")  # rows that fill lines: where one is, there are more
COMMON_SHARE, FILLER_SHARE = 0.003, 0.05
SHARES = (160, 100, 70, 65, 60, 56, 56, 52, 50, 42, 33, 28, 25, 23, 20, 18, 17, 16, 15, 14, 12, 10, 10, 8, 6, 15)


class Cue(NamedTuple):
    """A beginning of a pattern, by the pattern's number, and where the window is that is looked for."""

    pattern: int
    start: Beginning
    window: int


def _shares() -> NDArray[np.float64]:
    found = np.full(256, 0.001)
    found[128:] = 0.003
    found[list(FREQUENT)] = 0.006
    for byte, share in zip(FREQUENT, SHARES, strict=False):
        found[byte] = share / 1000
    return found


SHARE = _shares()


@cache
def places(mask: int) -> NDArray[np.intp]:
    """The bytes of a set as an index."""
    return np.frombuffer(members(mask), np.uint8).astype(np.intp)


@cache
def share(mask: int) -> float:
    """How many bytes of a text are of a set."""
    return float(SHARE[places(mask)].sum())


def _by_byte(place: int) -> tuple[int, ...]:
    """For each byte the rows of COMMON_ROWS and FILLERS that have it at a place, as bits."""
    rows = (*COMMON_ROWS, *FILLERS)
    return tuple(sum(1 << number for number, row in enumerate(rows) if row[place] == byte) for byte in range(256))


ROWS_WITH = tuple(map(_by_byte, range(3)))
FILLERS_FROM = len(COMMON_ROWS)


@cache
def _rows_with(place: int, mask: int) -> int:
    """The rows that have a byte of a set at a place."""
    return reduce(or_, (ROWS_WITH[place][byte] for byte in members(mask)), 0)


def _common_share(one: int, two: int, three: int) -> float:
    """How often rows of COMMON_ROWS and FILLERS occur that three sets have, one after the other."""
    rows = _rows_with(0, one) & _rows_with(1, two) & _rows_with(2, three)
    return FILLER_SHARE if rows >> FILLERS_FROM else COMMON_SHARE if rows else 0.0


def padded(sets: tuple[int, ...]) -> tuple[int, ...]:
    """As many sets as a window has, at least."""
    return (*sets, *[ALL] * (WINDOW - len(sets)))


def window_of(start: Beginning) -> tuple[float, int]:
    """How often the rarest WINDOW bytes of a beginning occur, and where they are in it."""
    sets = padded(start.sets)
    return min((_share_of(sets[i : i + WINDOW]), i) for i in range(len(sets) - WINDOW + 1))


@cache
def _share_of(window: tuple[int, ...]) -> float:
    """How often bytes of these sets stand one after the other, if they were independent of each other,
    except for rows that are known to be common."""
    found = prod(map(share, window))
    for i in range(WINDOW - 2):
        found += _common_share(*window[i : i + 3]) * prod(map(share, (*window[:i], *window[i + 3 :])))
    return found


def tables_of(
    cues: Sequence[Cue], most: Sequence[int], runs: Sequence[tuple[int, int, int]]
) -> dict[str, NDArray[np.generic]]:
    """The arguments of the kernel by name. most: places that are kept, by pattern; runs: a set of bytes, the pattern of
    which every match has a run of them, and its length."""
    sets: dict[int, int] = {ALL: 0}
    automata: dict[Automaton | None, int] = {None: 0}
    rows: list[tuple[int, ...]] = []
    bucket = [0]
    for grouped in _buckets(cues):
        for cue in grouped:
            numbers = [sets.setdefault(mask, len(sets)) for mask in cue.start.sets]
            automaton = automata.setdefault(automaton_of_rest(cue.start.rest), len(automata))
            flags = cue.start.first + 2 * cue.start.edge
            rows.append(
                (cue.pattern, automaton, cue.window, len(numbers), flags, *numbers, *[0] * (LONGEST - len(numbers)))
            )
        bucket.append(len(rows))
    run_rows = [(sets.setdefault(mask, len(sets)), pattern, least) for mask, pattern, least in runs]
    first, ends, states = _states([automaton for automaton in automata if automaton])
    return {
        "bucket": np.array(bucket, np.uint32),
        "cues": np.array(rows, np.uint32),
        "sets": _words(list(sets)),
        "first": first,
        "automata": ends,
        "states": states,
        "most": np.array(most, np.uint32),
        "runs": np.array(run_rows, np.uint32),
    }


automaton_of_rest = cache(automaton_of)


def _states(automata: Sequence[Automaton]) -> tuple[Any, Any, Any]:
    """What kernels read of automata: the first states, where the states end, and each with what it reads and leads to;
    before them one without states."""
    first, ends = [0], [0, 0]
    reads: list[int] = []
    follow: list[int] = []
    for each in automata:
        first.append(each.first)
        reads += each.sets
        follow += each.follow
        ends.append(len(reads))
    return _words(first), np.array(ends, np.uint32), np.concatenate([_words(reads), _words(follow)], axis=1)


def _words(numbers: Sequence[int]) -> NDArray[np.uint64]:
    """Numbers of 256 bits as four words each."""
    data = b"".join(number.to_bytes(8 * STATE_WORDS, "little") for number in numbers)
    return np.frombuffer(data, np.uint64).reshape(-1, STATE_WORDS)


def _buckets(cues: Sequence[Cue]) -> list[list[Cue]]:
    """The cues in BUCKETS lists, so that few places of a text look like a window of a list: the pairs of two windows
    with the same byte in their middle make two windows more. Behind them those of the beginning of a text."""
    by_window: defaultdict[tuple[int, ...], list[Cue]] = defaultdict(list)
    for cue in (cue for cue in cues if not cue.start.first):
        by_window[padded(cue.start.sets)[cue.window : cue.window + WINDOW]].append(cue)
    left, right = np.zeros((BUCKETS, 256)), np.zeros((BUCKETS, 256))
    found: list[list[Cue]] = [[] for _ in range(BUCKETS)]
    for window, group in sorted(by_window.items(), key=lambda item: -_share_of(item[0])):
        one, two, three = prod(map(share, window[:1])), places(window[1]), prod(map(share, window[2:]))
        before, behind = left[:, two], right[:, two]
        more = ((before + one) * (behind + three) - before * behind) @ SHARE[two]
        bucket = int(more.argmin())
        left[bucket, two] += one
        right[bucket, two] += three
        found[bucket] += group
    return [*found, [cue._replace(window=0) for cue in cues if cue.start.first]]
