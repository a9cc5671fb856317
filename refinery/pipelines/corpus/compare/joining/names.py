"""Strings of both corpora as numbers: all rows have one size, and equal strings are equal numbers."""

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Names(Generic[T]):
    """Numbers from 0 for values, in the order in which they first come up."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self._numbers: dict[T, int] = {}

    def number(self, value: T) -> int:
        """The value's number, a new one for a new value."""
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = len(self.values)
            self.values.append(value)
        return found

    def __getitem__(self, number: int) -> T:
        return self.values[number]

    def __len__(self) -> int:
        return len(self.values)
