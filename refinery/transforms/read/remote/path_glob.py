"""What paths a glob means, decided in one pass over the path: for every pattern, whoever wrote it.

The pattern becomes a nondeterministic automaton (Thompson 1968), whose sets of states are made as paths need them and
kept: a path costs one look-up a character. A backtracking engine takes minutes for `*a*a*a*b`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

MAX_KEPT = 50_000  # transitions that are kept; then the automaton begins anew

Eats = Callable[[str], object]


@dataclass
class _Node:
    """A state. eats: which character leads to `then`. free: states that are reached without one. visible: those that a
    "." at the beginning of a name does not reach."""

    eats: Eats | None = None
    then: int = -1
    free: list[int] = field(default_factory=list)
    visible: list[int] = field(default_factory=list)


class _Set(dict[str, "_Set"]):
    """A set of states, and the set that each character leads to. begins: whether a name begins here."""

    def __init__(self, states: frozenset[int], begins: bool, accepts: bool) -> None:
        super().__init__()
        self.states, self.begins, self.accepts = states, begins, accepts


class Glob:
    """The paths that one of some patterns means.

    `*` and `?` stand for characters within a folder, `**` across folders, `[ab]` and `{this,that}` for one of those.
    `a/**/b` means `a/b`, too. A name that begins with "." is meant only where the pattern has that "." itself, as in
    shells: files that tools leave beside data are skipped. A pattern that ends in "/" means everything below that
    folder. Raises ValueError for brackets that do not close. Cost: for patterns of m characters together a path of n
    takes n look-ups, and m steps for each that was not made before.
    """

    def __init__(self, *patterns: str) -> None:
        self._nodes = [_Node(), _Node()]
        self._end = 1
        for pattern in patterns:
            begin = self._new()
            self._nodes[0].free.append(begin)
            end = self._parse(begin, pattern + ("**" if pattern.endswith("/") else ""))
            self._nodes[end].free.append(self._end)
        self._clear()

    def matches(self, path: str) -> bool:
        here = self._start
        for character in path:
            there = here.get(character)
            here = self._step(here, character) if there is None else there
            if not here.states:
                return False
        return here.accepts

    def _clear(self) -> None:
        self._sets: dict[tuple[frozenset[int], bool], _Set] = {}
        self._kept = 0
        self._start = self._set(frozenset([0]), True)

    def _set(self, states: frozenset[int], begins: bool) -> _Set:
        known = self._sets.get((states, begins))
        if known is None:
            known = self._sets[states, begins] = _Set(states, begins, self._end in self._reached(states, True))
        return known

    def _reached(self, states: frozenset[int], may_be_hidden: bool) -> set[int]:
        """All states that no character leads to. may_be_hidden: False where a "." begins a name here."""
        reached, waiting = set(states), list(states)
        while waiting:
            node = self._nodes[waiting.pop()]
            new = {*node.free, *(node.visible if may_be_hidden else ())} - reached
            reached |= new
            waiting += new
        return reached

    def _step(self, here: _Set, character: str) -> _Set:
        nodes = [self._nodes[state] for state in self._reached(here.states, not (here.begins and character == "."))]
        states = frozenset(node.then for node in nodes if node.eats is not None and node.eats(character))
        if self._kept >= MAX_KEPT:
            self._clear()
        self._kept += 1
        there = self._set(states, character == "/")
        here[character] = there
        return there

    def _new(self) -> int:
        self._nodes.append(_Node())
        return len(self._nodes) - 1

    def _eat(self, at: int, eats: Eats) -> int:
        """The state behind a character."""
        then = self._new()
        self._nodes[at].eats, self._nodes[at].then = eats, then
        return then

    def _wild(self, at: int) -> int:
        """The state at which a wildcard begins."""
        wild = self._new()
        self._nodes[at].visible.append(wild)
        return wild

    def _across(self, at: int) -> int:
        """The state of any number of names, none of them hidden."""
        loop, slash = self._wild(at), self._new()
        inside = self._new()
        self._nodes[loop].free += [inside, slash]
        self._nodes[inside].eats, self._nodes[inside].then = _in_a_name, loop
        behind = self._eat(slash, _is_slash)
        self._nodes[behind].visible.append(loop)
        return loop

    def _parse(self, at: int, pattern: str) -> int:
        """The state behind a pattern that begins at `at`."""
        place = 0
        braces: list[tuple[int, list[int]]] = []  # where each begins, and the ends of its branches
        while place < len(pattern):
            character = pattern[place]
            place += 1
            if pattern.startswith("**", place - 1):
                deep = pattern.startswith("/", place + 1)
                place += 2 if deep else 1
                loop, then = self._across(at), self._new()
                if deep:
                    last = self._new()
                    self._nodes[loop].free.append(last)
                    self._nodes[last].eats, self._nodes[last].then = _is_slash, then
                    self._nodes[at].free.append(then)
                else:
                    self._nodes[loop].free.append(then)
                at = then
            elif character == "*":
                loop = self._wild(at)
                self._nodes[loop].eats, self._nodes[loop].then = _in_a_name, loop
                at = self._new()
                self._nodes[loop].free.append(at)
            elif character == "?":
                at = self._eat(self._wild(at), _in_a_name)
            elif character == "[" and (end := pattern.find("]", place + 1)) > 0:
                at = self._eat(self._wild(at), _one_of(pattern, pattern[place:end]))
                place = end + 1
            elif character == "{":
                braces.append((at, []))
                at = self._branch(braces)
            elif character == "," and braces:
                braces[-1][1].append(at)
                at = self._branch(braces)
            elif character == "}" and braces:
                ends = [*braces.pop()[1], at]
                at = self._new()
                for end in ends:
                    self._nodes[end].free.append(at)
            else:
                at = self._eat(at, character.__eq__)
        if braces:
            raise ValueError(f"pattern: {pattern!r} given, braces that close are allowed")
        return at

    def _branch(self, braces: list[tuple[int, list[int]]]) -> int:
        branch = self._new()
        self._nodes[braces[-1][0]].free.append(branch)
        return branch


def _in_a_name(character: str) -> bool:
    return character != "/"


def _is_slash(character: str) -> bool:
    return character == "/"


def _one_of(pattern: str, inside: str) -> Eats:
    """The characters of a bracket, with ranges; all others where it begins with "!" or "^". Raises ValueError."""
    negated = inside[:1] in ("!", "^")
    listed, at = inside[negated:], 0
    ranges: list[tuple[str, str]] = []
    while at < len(listed):
        last = at + 2 if listed[at + 1 : at + 2] == "-" and at + 2 < len(listed) else at
        ranges.append((listed[at], listed[last]))
        at = last + 1
    if not ranges or any(first > last for first, last in ranges):
        raise ValueError(f"pattern: {pattern!r} given, a glob is allowed")
    return lambda character: any(first <= character <= last for first, last in ranges) != negated
