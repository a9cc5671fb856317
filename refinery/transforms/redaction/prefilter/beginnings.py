"""How the matches of a pattern begin: a few bytes of known sets, and what may follow them.

Every match of a pattern begins with one of its beginnings. So where none of these stands, the pattern does not match.
"""

from typing import NamedTuple

from refinery.transforms.redaction.prefilter.grammar import Begin, Byte, Edge, Either, Node, Repeat, Sequence, Unknown

ENOUGH = 4  # bytes of a beginning, from which on it is not split any more
LONGEST = 8  # bytes of a beginning
MOST = 1500  # beginnings of a pattern
STEPS = 20_000  # towards them: a repetition of what may be empty has no end


class Beginning(NamedTuple):
    """sets: masks of the first bytes of a match. rest: what follows them. first: only at the beginning of the text.
    edge: only where a word begins or ends."""

    sets: tuple[int, ...]
    rest: tuple[Node, ...]
    first: bool = False
    edge: bool = False


def beginnings(nodes: tuple[Node, ...]) -> list[Beginning]:
    """Those of what `nodes` match one after the other. Raises Unknown where there are too many."""
    found: dict[Beginning, None] = {}
    unfinished = [Beginning((), nodes)]
    for _ in range(STEPS):
        if not unfinished:
            return _without_longer(list(found))
        longer = _longer(unfinished.pop())
        if isinstance(longer, Beginning):
            found[longer] = None
        else:
            unfinished += longer
        if len(found) + len(unfinished) > MOST:
            break
    raise Unknown("it has too many beginnings")


def _longer(start: Beginning) -> Beginning | list[Beginning]:
    """The same with one part more, once for each way to go on; itself where it is finished."""
    if not start.rest or len(start.sets) == LONGEST:
        return start
    sets, (node, *rest), first, edge = start
    while isinstance(node, Byte):
        sets = (*sets, node.mask)
        if len(sets) == LONGEST or not rest:
            return Beginning(sets, tuple(rest), first, edge)
        node, *rest = rest
    if isinstance(node, Sequence):
        return [Beginning(sets, (*node.parts, *rest), first, edge)]
    if isinstance(node, Begin | Edge):
        first, edge = first or (not sets and isinstance(node, Begin)), edge or (not sets and isinstance(node, Edge))
        return [Beginning(sets, tuple(rest), first, edge)]
    if isinstance(node, Either):
        ways = [(part, *rest) for part in node.parts]
    else:
        again = Repeat(node.part, max(node.least - 1, 0), None if node.most is None else node.most - 1)
        ways = [(node.part, again, *rest)] if node.most != 0 else []
        if node.least == 0:
            ways.append(tuple(rest))
    if len(ways) > 1 and len(sets) >= ENOUGH:
        return Beginning(sets, (node, *rest), first, edge)
    return [Beginning(sets, way, first, edge) for way in ways]


def _without_longer(found: list[Beginning]) -> list[Beginning]:
    """Without those that begin as another does, behind which anything may stand."""
    whole = {(each.sets, each.first, each.edge) for each in found if not each.rest}
    return [
        each
        for each in found
        if not any((each.sets[:size], each.first, each.edge) in whole for size in range(1, len(each.sets)))
    ]
