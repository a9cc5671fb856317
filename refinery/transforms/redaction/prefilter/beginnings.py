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
    node, rest = start.rest[0], start.rest[1:]
    if isinstance(node, Byte):
        return [start._replace(sets=(*start.sets, node.mask), rest=rest)]
    if isinstance(node, Sequence):
        return [start._replace(rest=(*node.parts, *rest))]
    if isinstance(node, Begin | Edge):
        here = not start.sets
        return [
            start._replace(
                rest=rest,
                first=start.first or (here and isinstance(node, Begin)),
                edge=start.edge or (here and isinstance(node, Edge)),
            )
        ]
    if isinstance(node, Repeat) and node.least:
        again = Repeat(node.part, node.least - 1, None if node.most is None else node.most - 1)
        return [start._replace(rest=(node.part, again, *rest))]
    if isinstance(node, Repeat) and node.most == 0:
        return [start._replace(rest=rest)]
    if len(start.sets) >= ENOUGH:
        return start
    if isinstance(node, Either):
        return [start._replace(rest=(part, *rest)) for part in node.parts]
    again = Repeat(node.part, 0, None if node.most is None else node.most - 1)
    return [start._replace(rest=rest), start._replace(rest=(node.part, again, *rest))]


def _without_longer(found: list[Beginning]) -> list[Beginning]:
    """Without those that begin as another does, behind which anything may stand."""
    whole = {(each.sets, each.first, each.edge) for each in found if not each.rest}
    return [
        each
        for each in found
        if not any((each.sets[:size], each.first, each.edge) in whole for size in range(1, len(each.sets)))
    ]
