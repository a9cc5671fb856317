"""Where something that was found in a cleaned text is in the text as it was written.

Cleaning changes little: line ends, spaces, invisible characters, composed letters. So both texts are walked side by
side; what they have in common is a block, and where they differ the walk looks for the nearest place from which they go
on alike. What lies in a block has exactly its place. What touches a difference takes all of that difference, so a span
never misses a part of what it stands for.
"""

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

NEAR = 12  # characters that both sides may skip together, tried in all ways
ALIKE = 4  # characters that must be equal behind a near difference
ANCHOR = 24  # and behind a far one
SHORT = 8  # at the end of a text
ANCHORS = (ANCHOR, SHORT, 1)  # behind a cut
SKIPPED = (0, 8, 32, 128, 512, 2048)  # of the second text, tried before a far anchor
WINDOW = 1 << 16  # characters in which an anchor is looked for
PIECE = 1 << 12


class Block(NamedTuple):
    """a[a_start:a_start + size] is b[b_start:b_start + size]."""

    a_start: int
    b_start: int
    size: int


def common_blocks(a: str, b: str) -> list[Block]:
    """What two texts have in common, in order. Not the longest such list: the one that a walk finds. Cost: linear where
    differences are small; for each difference a look at WINDOW characters at most."""
    tail = _common_end(a, b)
    stop_a, stop_b = len(a) - tail, len(b) - tail
    blocks, at_a, at_b = [], 0, 0
    while at_a < stop_a and at_b < stop_b:
        size = _common_start(a, at_a, stop_a, b, at_b, stop_b)
        if size:
            blocks.append(Block(at_a, at_b, size))
            at_a, at_b = at_a + size, at_b + size
            continue
        step = _next_alike(a, at_a, stop_a, b, at_b, stop_b)
        if step is None:
            break
        at_a, at_b = at_a + step[0], at_b + step[1]
    return [*blocks, *([Block(stop_a, stop_b, tail)] if tail else [])]


def _common_start(a: str, at_a: int, stop_a: int, b: str, at_b: int, stop_b: int) -> int:
    size, most = 0, min(stop_a - at_a, stop_b - at_b)
    while size < most:
        piece = min(PIECE, most - size)
        first, second = a[at_a + size : at_a + size + piece], b[at_b + size : at_b + size + piece]
        if first != second:
            return size + _alike(first, second)
        size += piece
    return size


def _common_end(a: str, b: str) -> int:
    size, most = 0, min(len(a), len(b))
    while size < most:
        piece = min(PIECE, most - size)
        first, second = (text[len(text) - size - piece : len(text) - size] for text in (a, b))
        if first != second:
            return size + _alike(first[::-1], second[::-1])
        size += piece
    return size


def _alike(first: str, second: str) -> int:
    """Characters at the beginning of two pieces that are the same; the pieces differ."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _next_alike(a: str, at_a: int, stop_a: int, b: str, at_b: int, stop_b: int) -> tuple[int, int] | None:
    """How far both sides go to where they are alike again; None where that is not found."""
    for both in range(1, NEAR + 1):
        for skipped_b in range(both + 1):
            first, second = at_a + both - skipped_b, at_b + skipped_b
            if first > stop_a or second > stop_b:
                continue
            alike = a[first : min(first + ALIKE, stop_a)]
            if alike == b[second : min(second + ALIKE, stop_b)] and (len(alike) == ALIKE or first + ALIKE > stop_a):
                return both - skipped_b, skipped_b
    for skipped_b in SKIPPED:
        anchor = b[at_b + skipped_b : min(at_b + skipped_b + ANCHOR, stop_b)]
        found = a.find(anchor, at_a, min(at_a + WINDOW, stop_a)) if len(anchor) >= SHORT else -1
        if found >= 0:
            return found - at_a, skipped_b
    return None


class Places:
    """The places of a cleaned text in the one that it was made of."""

    def __init__(self, written: str, cleaned: str) -> None:
        self.length = len(written)
        self.blocks = [Block(0, 0, len(written))] if written == cleaned else common_blocks(written, cleaned)
        self._starts = [block.b_start for block in self.blocks]

    def of(self, start: int, end: int) -> tuple[int, int]:
        """The span of the written text for cleaned[start:end], which has a character at least."""
        return self._before(start), self._behind(end)

    def _before(self, at: int) -> int:
        number = bisect_right(self._starts, at) - 1
        if number < 0:
            return 0
        block = self.blocks[number]
        return block.a_start + min(at - block.b_start, block.size)

    def _behind(self, at: int) -> int:
        number = bisect_right(self._starts, at - 1) - 1
        block = self.blocks[number] if number >= 0 else Block(0, 0, 0)
        if at <= block.b_start + block.size:
            return block.a_start + at - block.b_start
        return self.blocks[number + 1].a_start if number + 1 < len(self.blocks) else self.length


def kept_spans(text: str, left: str) -> list[tuple[int, int]] | None:
    """The pieces of `text` that make up `left`, where `left` is `text` without some pieces; None where such pieces are
    not found. Cost: a search for each piece."""
    kept: list[tuple[int, int]] = []
    at = taken = 0
    while taken < len(left):
        if size := _common_start(text, at, len(text), left, taken, len(left)):
            kept.append((at, at + size))
            at, taken = at + size, taken + size
            continue
        found = (text.find(left[taken : taken + size], at) for size in ANCHORS)
        at = next((place for place in found if place >= 0), -1)
        if at < 0:
            return None
    return kept


def cut_spans(text: str, left: str) -> list[tuple[int, int]]:
    """What is cut out of `text` where `left` is what is left of it: `text` without these spans is `left`. Where it is
    more than a cut, one span from the first difference to the last."""
    kept = kept_spans(text, left)
    if kept is None:
        start = _common_start(text, 0, len(text), left, 0, len(left))
        end = len(text) - min(_common_end(text, left), len(text) - start, len(left) - start)
        return [(start, end)] if start < end else []
    found: list[tuple[int, int]] = []
    for start, end in gaps(kept, len(text)):
        found.append(_at_line_start(text, start, end, found[-1][1] if found else 0))
    return found


def gaps(spans: Iterable[tuple[int, int]], length: int) -> list[tuple[int, int]]:
    """What is between spans that ascend, in a text of that length."""
    found, at = [], 0
    for start, end in spans:
        if start > at:
            found.append((at, start))
        at = end
    return [*found, *([(at, length)] if at < length else [])]


def _at_line_start(text: str, start: int, end: int, least: int) -> tuple[int, int]:
    """The same cut, beginning with a line, where that leaves the same text: of "one", "two", "two" either of the last
    two lines, with the line break behind it. least: where the cut before ends."""
    first, last = start, end
    while first > least and text[first - 1] != "\n" and text[first - 1] == text[last - 1]:
        first, last = first - 1, last - 1
    return (first, last) if not first or text[first - 1] == "\n" else (start, end)
