"""What follows the beginning of a match, as an automaton that a kernel runs: the positions of Glushkov's construction.

It has a limited number of states. What they do not reach counts as found, so the automaton may find more than the
pattern does, never less. Sources: Glushkov, "The abstract theory of automata", 1961; Navarro and Raffinot, "Flexible
Pattern Matching in Strings", 2002, section 5.2.
"""

from collections.abc import Iterable
from typing import NamedTuple

from refinery.transforms.redaction.prefilter.grammar import Begin, Byte, Edge, Either, Node, Repeat, Sequence

STATES = 256  # of an automaton at most; the kernel has four words of them
END = 0  # the state in which a match is found


class Automaton(NamedTuple):
    """States by number. first: those before the first byte, as bits. sets: the bytes that a state reads; follow: the
    states that it leads to. State 0 is the end, which reads nothing."""

    first: int
    sets: tuple[int, ...]
    follow: tuple[int, ...]


class _Found(NamedTuple):
    """The end, wherever it stands."""


def automaton_of(nodes: tuple[Node, ...]) -> Automaton | None:
    """That of what `nodes` match one after the other; None where they match the empty text, and so always."""
    made = _States([0], [set()])
    first = made.before(_cut(nodes, STATES - 1), {END})
    if END in first:
        return None
    return Automaton(_bits(first), tuple(made.sets), tuple(map(_bits, made.follow)))


def _bits(states: Iterable[int]) -> int:
    return sum(1 << state for state in states)


def _size(node: Node | _Found) -> int:
    """States that a part takes."""
    if isinstance(node, Sequence | Either):
        return sum(map(_size, node.parts))
    if isinstance(node, Repeat):
        return _size(node.part) * (max(node.least, 1) if node.most is None else node.most)
    return isinstance(node, Byte)


def _cut(nodes: Iterable[Node], room: int) -> list[Node | _Found]:
    """The parts as far as there is room for their states."""
    kept: list[Node | _Found] = []
    for node in nodes:
        size = _size(node)
        if size <= room:
            kept.append(node)
            room -= size
            continue
        if isinstance(node, Sequence):
            kept += _cut(node.parts, room)
        elif isinstance(node, Repeat) and 0 < _size(node.part) <= room:
            copies = min(node.least, room // _size(node.part))
            kept.append(Repeat(node.part, copies, copies))
        kept.append(_Found())
        break
    return kept


class _States(NamedTuple):
    """The states made so far, from the last to the first."""

    sets: list[int]
    follow: list[set[int]]

    def before(self, nodes: Iterable[Node | _Found], behind: set[int]) -> set[int]:
        """The states before some parts, if `behind` are those behind them."""
        for node in reversed(tuple(nodes)):
            behind = self._before(node, behind)
        return behind

    def _before(self, node: Node | _Found, behind: set[int]) -> set[int]:
        if isinstance(node, _Found):
            return {END}
        if isinstance(node, Begin | Edge):
            return behind
        if isinstance(node, Byte):
            self.sets.append(node.mask)
            self.follow.append(behind)
            return {len(self.sets) - 1}
        if isinstance(node, Sequence):
            return self.before(node.parts, behind)
        if isinstance(node, Either):
            return set().union(*(self._before(part, behind) for part in node.parts))
        return self._before_repeated(node, behind)

    def _before_repeated(self, node: Repeat, behind: set[int]) -> set[int]:
        if node.most is None:
            again: set[int] = set()
            first = self._before(node.part, again)
            again |= first | behind  # the states that lead here hold this very set
            behind = again if node.least == 0 else first
        else:
            for _ in range(node.most - node.least):
                behind = self._before(node.part, behind) | behind
        for _ in range(node.least - (node.most is None and node.least > 0)):
            behind = self._before(node.part, behind)
        return behind
