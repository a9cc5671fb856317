"""Sums by key for a bounded number of keys, the same ones in whatever order documents and parts come together."""

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from refinery.transforms.core.document import hash64

T = TypeVar("T")

KEYS = 256


class Keyed(Generic[T]):
    """Key -> a sum. Of more than `keys` keys those with the least hash are kept, the others are summed in `rest`.

    Among the least of all keys a key is among the least of any part, so no part drops it: its sum is exact, and which
    keys are kept depends on the set of keys alone. zero: makes an empty sum. add: adds its second argument to the
    first, in place; in any order, with the same result. Memory: up to twice `keys`.
    """

    def __init__(self, zero: Callable[[], T], add: Callable[[T, T], None], keys: int = KEYS) -> None:
        self.zero, self.add, self.keys = zero, add, keys
        self.sums: dict[str, T] = {}
        self.rest: T | None = None

    def at(self, key: str) -> T:
        """The sum of a key, to be added to in place before the next call of any method."""
        found = self.sums.get(key)
        if found is None:
            if len(self.sums) >= 2 * self.keys:
                self.trim()
            found = self.sums[key] = self.zero()
        return found

    def trim(self) -> None:
        """Move what is too much to `rest`."""
        if len(self.sums) <= self.keys:
            return
        order = sorted(self.sums, key=lambda key: (hash64("statistics", key), key))
        for key in order[self.keys :]:
            self.add_rest(self.sums.pop(key))

    def add_rest(self, value: T) -> None:
        """Add to the sum of keys that are not counted one by one."""
        if self.rest is None:
            self.rest = self.zero()
        self.add(self.rest, value)

    def merge(self, other: "Keyed[T]") -> None:
        """Add the sums of another one."""
        for key, value in other.sums.items():
            self.add(self.at(key), value)
        if other.rest is not None:
            self.add_rest(other.rest)
        self.trim()

    def plain(self, dump: Callable[[T], Any] = lambda value: value) -> dict[str, Any]:
        """As JSON knows it; `read` is the inverse."""
        self.trim()
        rest = None if self.rest is None else dump(self.rest)
        return {"sums": {key: dump(value) for key, value in sorted(self.sums.items())}, "rest": rest}

    def read(self, plain: dict[str, Any], load: Callable[[Any], T] = lambda value: value) -> "Keyed[T]":
        """This, filled with what `plain` gave."""
        self.sums = {key: load(value) for key, value in plain["sums"].items()}
        self.rest = None if plain["rest"] is None else load(plain["rest"])
        return self


class Chosen(Keyed[T]):
    """Of more than `keys` keys nothing is left of the others: for a sample of what is counted once each."""

    def add_rest(self, value: T) -> None:
        """Forget it."""


def add_numbers(total: list[int], more: Iterable[int]) -> None:
    """Element by element."""
    for place, number in enumerate(more):
        total[place] += number


def counts(keys: int = KEYS) -> Keyed[list[int]]:
    """Documents, bytes and tokens by key."""
    return Keyed(lambda: [0, 0, 0], add_numbers, keys)
