"""Estimated tokens up to any byte of a text. No library: the parser's process has them, too."""

from array import array
from bisect import bisect_right
from collections.abc import Sequence


class Estimates:
    """marks: ascending offsets, from 0 to the text's end. upto: the estimate up to each. Integers throughout, so every
    machine estimates the same."""

    def __init__(self, marks: Sequence[int], upto: Sequence[int]) -> None:
        self.marks, self.upto = marks, upto

    def at(self, offset: int) -> int:
        """The estimate for the bytes before `offset`. Logarithmic in the number of marks."""
        i = min(bisect_right(self.marks, offset), len(self.marks) - 1) - 1
        begin, before = self.marks[i], self.upto[i]
        return before + (offset - begin) * (self.upto[i + 1] - before) // (self.marks[i + 1] - begin)

    def between(self, begin: int, end: int) -> int:
        """The estimate for a range of bytes."""
        return self.at(end) - self.at(begin)

    def numbers(self, limit: int) -> "array[int]":
        """With a limit, as one list of numbers."""
        return array("q", (limit, *self.marks, *self.upto))


def from_numbers(numbers: "array[int]") -> tuple[Estimates, int]:
    """What `numbers` made, and its limit."""
    count = len(numbers) // 2
    return Estimates(numbers[1 : count + 1].tolist(), numbers[count + 1 :].tolist()), numbers[0]
