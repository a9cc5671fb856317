"""What differs between two texts, word by word: the shortest edit script (Myers 1986), with a bound on its work."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Literal

WORD = re.compile(r"\s+|\w+|[^\w\s]")
WORDS = 6_000  # of each text that are compared
EDITS = 400  # words that may differ for the script to be looked for: its cost grows with their square

Kind = Literal["same", "gone", "new"]
Piece = tuple[Kind, str]


def words_of(text: str) -> list[str]:
    """Words, runs of white space and signs, which together are the text; the rest of a long one is one word."""
    found = WORD.findall(text)
    return found if len(found) <= WORDS else [*found[:WORDS], "".join(found[WORDS:])]


@dataclass(frozen=True)
class Differences:
    """Both texts in pieces, (whether the other lacks it, piece). aligned: whether the order of words was compared, too;
    texts that differ in more than `EDITS` words are not aligned: a word differs where the other text nowhere has it."""

    before: Sequence[tuple[bool, str]]
    after: Sequence[tuple[bool, str]]
    aligned: bool


def differences(before: str, after: str) -> Differences:
    """What differs.

    >>> differences("a big house", "a house")
    Differences(before=[(False, 'a '), (True, 'big '), (False, 'house')], after=[(False, 'a house')], aligned=True)
    """
    a, b = words_of(before), words_of(after)
    first = _common(a, b)
    last = _common(a[first:][::-1], b[first:][::-1])
    middle = _script(a[first : len(a) - last], b[first : len(b) - last])
    if middle is None:
        here, there = set(a), set(b)
        one = [(word not in there and not word.isspace(), word) for word in a]
        other = [(word not in here and not word.isspace(), word) for word in b]
        return Differences(_joined(one), _joined(other), False)
    start: list[Piece] = [("same", word) for word in a[:first]]
    pieces = [*start, *middle, *[("same", word) for word in a[len(a) - last :]]]
    one, other = ([(kind == odd, word) for kind, word in pieces if kind in ("same", odd)] for odd in ("gone", "new"))
    return Differences(_joined(one), _joined(other), True)


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    """Length of the common beginning."""
    count = 0
    for one, other in zip(a, b, strict=False):
        if one != other:
            break
        count += 1
    return count


def _script(a: Sequence[str], b: Sequence[str]) -> list[Piece] | None:
    """Myers' greedy algorithm, forwards; None where more than `EDITS` words differ. Memory: EDITS² numbers."""
    reached = {1: 0}  # diagonal x - y -> the furthest x
    trace: list[dict[int, int]] = []
    for edits in range(min(EDITS, len(a) + len(b)) + 1):
        trace.append(dict(reached))
        for k in range(-edits, edits + 1, 2):
            down = k == -edits or (k != edits and reached[k - 1] < reached[k + 1])
            x = reached[k + 1] if down else reached[k - 1] + 1
            y = x - k
            while x < len(a) and y < len(b) and a[x] == b[y]:
                x, y = x + 1, y + 1
            reached[k] = x
            if x >= len(a) and y >= len(b):
                return _walked_back(a, b, trace)
    return None


def _walked_back(a: Sequence[str], b: Sequence[str], trace: Sequence[dict[int, int]]) -> list[Piece]:
    x, y = len(a), len(b)
    found: list[Piece] = []
    for edits in range(len(trace) - 1, -1, -1):
        reached, k = trace[edits], x - y
        down = k == -edits or (k != edits and reached[k - 1] < reached[k + 1])
        old_k = k + 1 if down else k - 1
        old_x = reached[old_k] if edits else 0
        old_y = old_x - old_k if edits else 0
        while x > old_x and y > old_y and (x > 0 and y > 0) and a[x - 1] == b[y - 1]:
            x, y = x - 1, y - 1
            found.append(("same", a[x]))
        if edits:
            found.append(("new", b[old_y]) if down else ("gone", a[old_x]))
        x, y = old_x, old_y
    return found[::-1]


def _joined(words: Sequence[tuple[bool, str]]) -> list[tuple[bool, str]]:
    """Neighbours of one kind as one."""
    return [(differs, "".join(word for _, word in some)) for differs, some in groupby(words, itemgetter(0))]
