"""The syntax of RE2 over bytes, as far as this project's patterns use it, read into a tree.

The tree may match more than the pattern does, never less: word boundaries and ends of lines are left out, whether a
repetition is greedy too. What is not known here raises `Unknown`; such a pattern is looked for by RE2 alone.
Source: RE2's syntax page (https://github.com/google/re2/wiki/Syntax).
"""

import re
from functools import cache
from typing import NamedTuple


class Unknown(ValueError):
    """Syntax that is not read here."""


class Byte(NamedTuple):
    """Any byte of a set: bit b of `mask` is byte b."""

    mask: int


class Sequence(NamedTuple):
    """One part after the other."""

    parts: tuple["Node", ...]


class Either(NamedTuple):
    """One of some parts."""

    parts: tuple["Node", ...]


class Repeat(NamedTuple):
    """A part `least` times to `most` times; None: any number of times."""

    part: "Node"
    least: int
    most: int | None


class Begin(NamedTuple):
    """The beginning of the text."""


class Edge(NamedTuple):
    """The beginning or the end of a word."""


Node = Byte | Sequence | Either | Repeat | Begin | Edge

EMPTY = Sequence(())
ALL = (1 << 256) - 1
CONTROLS = {ord("t"): 9, ord("n"): 10, ord("v"): 11, ord("f"): 12, ord("r"): 13, ord("a"): 7}
PUNCTUATION = frozenset(range(33, 127)) - frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")


def mask_of(members: bytes) -> int:
    """The set of some bytes."""
    return sum(1 << byte for byte in set(members))


SETS = {
    ord("d"): mask_of(b"0123456789"),
    ord("s"): mask_of(b"\t\n\f\r "),
    ord("w"): mask_of(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"),
}
PLACES: dict[int, Node] = {ord("b"): Edge(), ord("B"): EMPTY, ord("z"): EMPTY, ord("A"): Begin()}
COUNTS = re.compile(rb"\{([0-9]+)(,([0-9]*))?\}")
PLAIN = re.compile(rb"[\w\x80-\xff \t\n/:,'\"~!@#%&;<>=-]+(?![*+?{])")  # bytes that stand for themselves
SETS |= {letter - 32: ALL & ~members for letter, members in SETS.items()}


@cache
def members(mask: int) -> bytes:
    """The bytes of a set, in order."""
    return bytes(byte for byte in range(256) if mask >> byte & 1)


@cache
def any_case(mask: int) -> int:
    """The set with both cases of its letters, also beyond ASCII, as in Latin-1."""
    for byte in members(mask):
        if 65 <= byte <= 90 or (0xC0 <= byte <= 0xDE and byte != 0xD7):
            mask |= 1 << byte + 32
        elif 97 <= byte <= 122 or (0xE0 <= byte <= 0xFE and byte != 0xF7):
            mask |= 1 << byte - 32
    return mask


def read_pattern(pattern: bytes) -> Node:
    """The tree of a pattern. Raises Unknown."""
    reader = _Reader(pattern)
    tree = reader.alternatives(frozenset())
    if reader.at < len(pattern):
        raise Unknown(f"{pattern!r}: a bracket closes that none opened")
    return tree


class _Reader:
    """A pattern, and how far it is read."""

    def __init__(self, pattern: bytes) -> None:
        self.pattern = pattern
        self.at = 0

    def _sees(self, text: bytes) -> bool:
        return self.pattern.startswith(text, self.at)

    def _takes(self, text: bytes) -> bool:
        found = self._sees(text)
        self.at += len(text) if found else 0
        return found

    def _next(self) -> int:
        if self.at >= len(self.pattern):
            raise Unknown(f"{self.pattern!r}: it ends too early")
        self.at += 1
        return self.pattern[self.at - 1]

    def alternatives(self, flags: frozenset[int]) -> Node:
        """What stands up to the end, or to a bracket that closes. flags: letters of `(?im)` that are set."""
        found: list[Node] = []
        parts: list[Node] = []
        while self.at < len(self.pattern) and not self._sees(b")"):
            if self._takes(b"|"):
                found.append(Sequence(tuple(parts)))
                parts = []
            elif self._takes(b"("):
                inside = self._flags(flags) if self._takes(b"?") else flags
                if self._takes(b")"):  # (?i): from here on
                    flags = inside
                    continue
                group = self.alternatives(inside)
                if not self._takes(b")"):
                    raise Unknown(f"{self.pattern!r}: a bracket stays open")
                parts.append(self._repeated(group))
            elif (plain := PLAIN.match(self.pattern, self.at)) is not None:
                self.at = plain.end()
                parts += [self._byte(1 << byte, flags) for byte in plain[0]]
            else:
                parts.append(self._repeated(self._single(flags)))
        found.append(Sequence(tuple(parts)))
        return found[0] if len(found) == 1 else Either(tuple(found))

    def _flags(self, flags: frozenset[int]) -> frozenset[int]:
        """Of `(?i:` and `(?i)`, up to the colon or the bracket."""
        while not self._takes(b":") and not self._sees(b")"):
            flag = self._next()
            if flag not in b"ims":
                raise Unknown(f"{self.pattern!r}: the flag {chr(flag)}")
            flags |= {flag}
        return flags

    def _single(self, flags: frozenset[int]) -> Node:
        """One byte, a set of bytes, or a place."""
        byte = self._next()
        if byte == ord("["):
            return self._byte(self._set(), flags)
        if byte == ord("."):
            return Byte(ALL if ord("s") in flags else ALL & ~(1 << 10))
        if byte == ord("^"):
            return EMPTY if ord("m") in flags else Begin()
        if byte == ord("$"):
            return EMPTY
        if byte in b"*+?{":
            raise Unknown(f"{self.pattern!r}: {chr(byte)} behind nothing")
        if byte != ord("\\"):
            return self._byte(1 << byte, flags)
        byte = self._next()
        if byte in b"bBzA":
            return PLACES[byte]
        self.at -= 1
        return self._byte(self._escaped(), flags)

    @staticmethod
    def _byte(mask: int, flags: frozenset[int]) -> Byte:
        return Byte(any_case(mask) if ord("i") in flags else mask)

    def _escaped(self) -> int:
        """The set of bytes that stands behind a backslash."""
        byte = self._next()
        if byte in SETS:
            return SETS[byte]
        if byte in CONTROLS:
            return 1 << CONTROLS[byte]
        if byte == ord("x"):
            digits = bytes((self._next(), self._next()))
            try:
                return 1 << int(digits, 16)
            except ValueError:
                raise Unknown(f"{self.pattern!r}: \\x{digits!r}") from None
        if byte in PUNCTUATION or byte == ord(" ") or byte > 127:
            return 1 << byte
        raise Unknown(f"{self.pattern!r}: \\{chr(byte)}")

    def _set(self) -> int:
        """The bytes of [...], behind the bracket that opens it."""
        negated, mask, first = self._takes(b"^"), 0, True
        while first or not self._takes(b"]"):
            first = False
            if self._sees(b"[:"):
                raise Unknown(f"{self.pattern!r}: a class by name")
            low = self._escaped() if self._takes(b"\\") else 1 << self._next()
            if self._sees(b"-") and not self.pattern.startswith(b"-]", self.at):
                self.at += 1
                high = self._escaped() if self._takes(b"\\") else 1 << self._next()
                if low & (low - 1) or high & (high - 1) or low > high:
                    raise Unknown(f"{self.pattern!r}: a range of a set")
                low = (high << 1) - low
            mask |= low
        return ALL & ~mask if negated else mask

    def _repeated(self, part: Node) -> Node:
        """The part with the repetitions that stand behind it."""
        while self.at < len(self.pattern) and self.pattern[self.at] in b"*+?{":
            if self._takes(b"*"):
                part = Repeat(part, 0, None)
            elif self._takes(b"+"):
                part = Repeat(part, 1, None)
            elif self._takes(b"?"):
                part = Repeat(part, 0, 1)
            elif (counts := COUNTS.match(self.pattern, self.at)) is not None:
                self.at = counts.end()
                least = int(counts[1])
                part = Repeat(part, least, least if counts[2] is None else int(counts[3]) if counts[3] else None)
            else:
                break
            self._takes(b"?")  # of few, rather than many: the same matches
        return part
