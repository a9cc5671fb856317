"""Cues: short sequences of bytes of which a pattern needs one, all looked for in one pass of a kernel.

A cue is written as a regular expression of literal bytes and classes, each with or without {n}, and of alternatives:
`[ \\t]{5}|\\n{4}`. It may begin with (?i). In most texts no cue is found, so no pattern has to be searched for.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache

import numpy as np

from refinery.transforms.native import signs as kernel

LANES, LANE_BITS = 4, 64  # of the kernel; a sequence is in one of the lanes
BYTES = 256
IGNORE_CASE = "(?i)"
KNOWN = 1024  # combinations of cues that are remembered

_PLACE = re.compile(r"(\\x[0-9a-f]{2}|\\.|\[(?:\\.|[^\]\\])+\]|[^\\\[\](){}|*+?.^$])(?:\{(\d+)\})?", re.DOTALL)


def sequences(cue: str) -> Iterator[list[str]]:
    """The alternatives of a cue, each as the regular expressions of its bytes. Raises ValueError for a pattern that is
    none."""
    flag = IGNORE_CASE if cue.startswith(IGNORE_CASE) else ""
    found: list[str] = []
    at = len(flag)
    while at < len(cue):
        if found and cue[at] == "|":
            yield found
            found, at = [], at + 1
        elif place := _PLACE.match(cue, at):
            found += [flag + place[1]] * int(place[2] or 1)
            at = place.end()
        else:
            raise ValueError(f"cue: {cue[at:]!r} given, only bytes, classes, {{n}} and | are allowed")
    if not found:
        raise ValueError(f"cue: {cue!r} given, a byte or more in each alternative is needed")
    yield found


def is_cue(pattern: str) -> bool:
    """Whether the pattern is a cue itself, so nothing is left to search for."""
    try:
        list(sequences(pattern))
    except ValueError:
        return False
    return True


@cache
def _bytes_of(place: str) -> list[int]:
    """The bytes that a regular expression of one byte stands for."""
    fits = re.compile(place.encode("latin-1"), re.DOTALL).fullmatch
    return [byte for byte in range(BYTES) if fits(bytes([byte]))]


class Cues:
    """Finds which of several cues are in some bytes."""

    def __init__(self, cues: Sequence[str]) -> None:
        self._table = np.zeros((BYTES + 2, LANES), np.uint64)
        self._last: list[tuple[int, int, int]] = []  # lane, bit, cue
        room = [LANE_BITS] * LANES
        placed = [(sequence, number) for number, cue in enumerate(cues) for sequence in sequences(cue)]
        for sequence, number in sorted(placed, key=lambda each: -len(each[0])):
            lane = next((lane for lane, left in enumerate(room) if left >= len(sequence)), None)
            if lane is None:
                raise ValueError(f"cues: {sum(len(each) for each, _ in placed)} bytes given, {LANES * LANE_BITS} fit")
            self._place(sequence, lane, LANE_BITS - room[lane])
            room[lane] -= len(sequence)
            self._last.append((lane, LANE_BITS - room[lane] - 1, number))
        self._named = lru_cache(KNOWN)(self._numbers)

    def _place(self, sequence: list[str], lane: int, first: int) -> None:
        for bit, place in enumerate(sequence, first):
            self._table[_bytes_of(place), lane] |= np.uint64(1 << bit)
        self._table[BYTES, lane] |= np.uint64(1 << first)
        self._table[BYTES + 1, lane] |= np.uint64(1 << bit)

    def _numbers(self, last: bytes) -> tuple[int, ...]:
        lanes = np.frombuffer(last, np.uint64).tolist()
        return tuple(sorted({number for lane, bit, number in self._last if lanes[lane] >> bit & 1}))

    def find(self, data: bytes) -> tuple[int, ...]:
        """The numbers of the cues that are in `data`, ascending. Cost: about a nanosecond a byte."""
        return self._named(kernel.find(data, self._table))
