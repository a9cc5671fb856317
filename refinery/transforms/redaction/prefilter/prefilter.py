"""Which of many patterns a text may match, and where: one look at all its bytes, far faster than the patterns are.

What is looked for is derived from the patterns (`needed.py`). A pattern of which nothing rare is needed is left out.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

from refinery.transforms.native.cues import Cues
from refinery.transforms.redaction.prefilter.beginnings import Beginning
from refinery.transforms.redaction.prefilter.grammar import Unknown, read_pattern
from refinery.transforms.redaction.prefilter.needed import needed, starts
from refinery.transforms.redaction.prefilter.tables import Cue, tables_of, window_of

Places = dict[str, list[int] | None]
PLACES = 256  # where a pattern may match that are kept; a text with more is read whole


class Made(NamedTuple):
    """The kernel, the patterns that it knows by their numbers, and the names of those that it does not."""

    cues: Cues
    names: tuple[str, ...]
    unknown: frozenset[str]


class Prefilter:
    """Where a text may match some patterns of RE2 over bytes (UTF-8 or any others, with options for Latin-1).

    patterns: name -> pattern. placed: those of which every place is wanted where a match may begin.
    """

    def __init__(self, patterns: Mapping[str, bytes], placed: frozenset[str] = frozenset()) -> None:
        self._patterns = patterns
        self._placed = placed

    @cached_property
    def _made(self) -> Made:
        """Cost: some 0.1 ms a pattern, when the first text is read."""
        names: list[str] = []
        found: dict[tuple[int, Beginning], None] = {}
        runs: list[tuple[int, int, int]] = []
        for name, pattern in self._patterns.items():
            try:
                wanted = (starts if name in self._placed else needed)(read_pattern(pattern))
            except Unknown:
                continue
            found |= {(len(names), start): None for start in wanted.starts}
            runs += [(mask, len(names), least) for mask, least in wanted.runs]
            names.append(name)
        cues = [Cue(number, start, window_of(start)[1]) for number, start in found]
        most = [PLACES if name in self._placed else 1 for name in names]
        kernel = Cues(*tables_of(cues, most, runs).values())
        return Made(kernel, tuple(names), frozenset(self._patterns) - set(names))

    @property
    def unknown(self) -> frozenset[str]:
        """Patterns that a text may match wherever it likes: nothing rare is needed for them."""
        return self._made.unknown

    def look(self, data: bytes) -> Places | None:
        """Name -> where matches may begin, for every pattern that may match, except for those that are `unknown`.

        Of patterns that are not placed it is one place of something that they need. None instead of places: anywhere.
        None altogether: the text has so much that looks like something that looking does not pay. Cost: linear, about
        1 ms a MB.
        """
        found = self._made.cues.find(data)
        if not found:
            return None if found is None else {}
        names = self._made.names
        return {names[number]: places for number, places in found.items()}
