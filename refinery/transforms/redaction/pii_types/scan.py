"""What the families share: patterns over bytes, one look that tells which families a text may have, groups of digits.

Everything runs on RE2 over UTF-8 bytes: linear time, and offsets are bytes until the very end. Before that, one look at
all bytes says which patterns may match at all (redaction/prefilter).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import re2

from refinery.transforms.redaction.pii_types.lazy_pattern import LazyPattern
from refinery.transforms.redaction.prefilter.prefilter import Places, Prefilter

CONTEXT = 64  # bytes to the left that are read for a cue: a label and a few words
WORD_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
DIGITS = frozenset(b"0123456789")
# Between digit groups: space, dot, slash, hyphen, brackets; no-break spaces and typographic hyphens.
GAP = rb"(?:[ ./()-]|\xc2\xa0|\xe2\x80[\x90-\x93\xaf])"


def byte_options() -> Any:
    """Options of a pattern over bytes: what is beyond ASCII is written as the UTF-8 sequences that it is."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = 64 << 20  # room for the table of states; it is filled as far as texts need it
    return options


def compile_bytes(pattern: bytes) -> Any:
    """A linear-time pattern over bytes, compiled when it is first used."""
    return LazyPattern(lambda: re2.compile(pattern, byte_options()))


class Hints:
    """Which of some patterns occur in a text, and where. They are read when the first text is.

    patterns: name -> pattern, or what makes it. placed: others, of which every match is wanted.
    """

    def __init__(
        self, patterns: Mapping[str, bytes | Callable[[], bytes]], placed: Mapping[str, bytes] = MappingProxyType({})
    ) -> None:
        self._given = patterns
        self.compiled = {name: compile_bytes(pattern) for name, pattern in placed.items()}
        self.placed = placed

    @cached_property
    def patterns(self) -> dict[str, bytes]:
        """The patterns by name, those that are placed left out."""
        made = {name: given if isinstance(given, bytes) else given() for name, given in self._given.items()}
        self.compiled |= {name: compile_bytes(pattern) for name, pattern in made.items()}
        return made

    @cached_property
    def prefilter(self) -> Prefilter:
        """What says where the patterns may match."""
        return Prefilter({**self.patterns, **self.placed}, frozenset(self.placed))

    @cached_property
    def _set(self) -> Any:
        """All patterns as one, for texts in which nearly everything looks like a match."""
        found = re2.Set.SearchSet(byte_options())
        for pattern in (*self.patterns.values(), *self.placed.values()):
            found.Add(pattern)
        found.Compile()
        return found

    @cached_property
    def _nothing(self) -> "Hinted":
        """The answer for texts that may match no pattern."""
        return Hinted(self, b"", {}, ())

    def of(self, data: bytes) -> "Hinted":
        """The names of the patterns that occur. Cost: one look at every byte, about 2 ms a MB."""
        places = self.prefilter.look(data)
        if places is None:
            names = (*self.patterns, *self.placed)
            occur = [names[i] for i in self._set.Match(data) or ()]
            anywhere: Places = {name: None for name in occur if name in self.placed}
            return Hinted(self, data, anywhere, (name for name in occur if name not in self.placed))
        if unknown := self.prefilter.unknown:
            places |= dict.fromkeys(unknown)
        if not places:
            return self._nothing
        return Hinted(self, data, places, (name for name in places if self._occurs(name, data, places[name])))

    def _occurs(self, name: str, data: bytes, places: list[int] | None) -> bool:
        """Whether a pattern that may match does, first where it was seen."""
        if name in self.placed:
            return False
        search = self.compiled[name].search
        return bool((search(data, places[0]) if places else None) or search(data))


class Hinted(frozenset[str]):
    """The names of the patterns that occur in a text, and the matches of those that are placed.

    places: where patterns may match.
    """

    def __new__(cls, hints: Hints, data: bytes, places: Places, names: Iterable[str]) -> "Hinted":
        made = super().__new__(cls, names)
        made._hints, made._data, made._places = hints, data, places
        return made

    _hints: Hints
    _data: bytes
    _places: Places

    @property
    def nothing(self) -> bool:
        """Whether no pattern occurs, and none that is placed can match."""
        return not self and not self._places

    def everywhere(self, name: str) -> bool:
        """Whether a pattern that is placed may match in so many places that they are not known."""
        return name in self._places and self._places[name] is None

    def again(self, data: bytes) -> "Hinted":
        """The same of another text."""
        return self._hints.of(data)

    def matches(self, name: str) -> Iterable[Any]:
        """All matches of a pattern that is placed, as in `finditer`. It runs only where it may match."""
        if name not in self._places:
            return ()
        places = self._places[name]
        return self._hints.compiled[name].finditer(self._data) if places is None else self._matches(name, places)

    def _matches(self, name: str, places: list[int]) -> Iterator[Any]:
        match, at = self._hints.compiled[name].match, 0
        for start in sorted(places):
            if start >= at and (found := match(self._data, start)):
                yield found
                at = found.end()


class Group(NamedTuple):
    """data[start:end] are digits, as many as there are."""

    start: int
    end: int


RUN_HINT = rb"\b[0-9](?:" + GAP + rb"{0,3}[0-9]){5}"
RUN = compile_bytes(rb"\b[0-9](?:" + GAP + rb"{0,3}[0-9]){5,}")
GROUP = re.compile(rb"[0-9]+")


class Run(NamedTuple):
    """data[start:end] are groups of digits with separators between them."""

    start: int
    end: int
    groups: list[Group]


def number_runs(data: bytes) -> Iterator[Run]:
    """Stretches of six digits and more, at most three separators between two, none of them the end of a word."""
    for match in RUN.finditer(data):
        start, end = match.span()
        yield Run(start, end, digit_groups(data, start, end))


def digit_groups(data: bytes, start: int, end: int) -> list[Group]:
    """The groups of digits in data[start:end]."""
    return [Group(*match.span()) for match in GROUP.finditer(data, start, end)]


def only_digits(match: bytes) -> bytes:
    """The digits of a match."""
    return bytes(byte for byte in match if byte in DIGITS)


def before(data: bytes, start: int) -> bytes:
    """What is read for a cue."""
    return data[max(0, start - CONTEXT) : start]


def stands_alone(data: bytes, start: int, end: int) -> bool:
    """Whether digits are not part of a word, a longer number, an amount of money or a URL."""
    left, right = data[max(0, start - 3) : start], data[end : end + 3]
    # Digits beside a space belong to a number that has spaces itself; a sign or a bracket begins another.
    spaced = b" " if b" " in data[start:end] else b""
    joined = b".,:" if data[start] in b"+(" else b".,:" + spaced
    if left:
        last = left[-1]
        if last in WORD_BYTES or last in b"$#=%&@/+~*^-" or left[-2:] == b"\xc2\xa3" or left == b"\xe2\x82\xac":
            return False
        if last in joined and len(left) > 1 and left[-2] in DIGITS:
            return False
    if right:
        if right[0] in WORD_BYTES or right[0] in b"%@=":
            return False
        if right[0] in b".,:-/" + spaced and len(right) > 1 and right[1] in DIGITS:
            return False
    return True


def luhn(digits: bytes) -> bool:
    """The check digit of ISO/IEC 7812-1, annex B: doubled from the right, every second."""
    total = 0
    for i, byte in enumerate(reversed(digits)):
        value = byte - 48
        total += value if i % 2 == 0 else (2 * value - 9 if value > 4 else 2 * value)
    return total % 10 == 0
