"""What every match of a pattern has in it: beginnings of the match or of a part of it, or a long run of bytes of a set.

Of all that holds for a pattern, what is rarest in text is taken. RE2 does the same with literals (its `Prefilter`).
"""

from typing import NamedTuple

from refinery.transforms.redaction.prefilter.beginnings import Beginning, beginnings
from refinery.transforms.redaction.prefilter.grammar import SETS, Byte, Either, Node, Repeat, Sequence, Unknown
from refinery.transforms.redaction.prefilter.tables import window_of

RARE = 1.2e-2  # of the places of a text: nothing rarer is looked for
COMMON = 0.02  # of the places of a text: too many to look at
INSTEAD = 5  # times rarer than the beginning is a run that is taken instead of it
RUN = 16  # letters and digits that are found as a run; rows of other signs fill lines
ALNUM = SETS[ord("w")] & ~(1 << ord("_"))
RUN_SHARE = 2e-3


class Needed(NamedTuple):
    """One of these is in every match: a beginning, or a run of bytes of a set and its length.

    share: how many places of a text are like one of them.
    """

    share: float
    starts: tuple[Beginning, ...] = ()
    runs: tuple[tuple[int, int], ...] = ()


NOTHING = Needed(1.0)


def needed(tree: Node) -> Needed:
    """What all matches of a pattern need. Raises Unknown where nothing is rare."""
    return _if_rare(_of_parts((tree,)))


def starts(tree: Node) -> Needed:
    """The beginnings of all matches of a pattern. Raises Unknown where they are common."""
    return _if_rare(_beginning((tree,)))


def _if_rare(found: Needed) -> Needed:
    if found.share > COMMON:
        raise Unknown("nothing in it is rare")
    return found


def _beginning(parts: tuple[Node, ...]) -> Needed:
    """How some parts begin that stand one after the other."""
    try:
        found = beginnings(parts)
    except Unknown:
        return NOTHING
    if any(len(start.sets) < 2 for start in found):
        return NOTHING
    return Needed(sum(window_of(start)[0] for start in found if not start.first), tuple(found))


def _of_parts(parts: tuple[Node, ...]) -> Needed:
    """The rarest that is needed where some parts stand one after the other."""
    if len(parts) == 1 and isinstance(parts[0], Sequence):
        return _of_parts(parts[0].parts)
    best = _beginning(parts)
    for part in parts:
        run = _run_of(part)
        if run.share * INSTEAD < best.share:
            best = run
    for place, part in enumerate(parts):
        if best.share <= RARE:
            break
        rest = _beginning(parts[place:]) if place else NOTHING
        best = min(best, rest, _of_part(part), key=lambda found: found.share)
    return best


def _of_part(part: Node) -> Needed:
    """The rarest that is needed for one part."""
    if isinstance(part, Sequence):
        return _of_parts(part.parts)
    if isinstance(part, Either):
        each = [_of_parts((alternative,)) for alternative in part.parts]
        return Needed(
            sum(found.share for found in each),
            tuple(start for found in each for start in found.starts),
            tuple(run for found in each for run in found.runs),
        )
    if isinstance(part, Repeat) and part.least:
        return min(_run_of(part), _of_part(part.part), key=lambda found: found.share)
    return NOTHING


def _run_of(part: Node) -> Needed:
    """A long run of letters and digits."""
    if not isinstance(part, Repeat) or not isinstance(part.part, Byte):
        return NOTHING
    is_run = part.least >= RUN and not part.part.mask & ~ALNUM
    return Needed(RUN_SHARE, runs=((part.part.mask, part.least),)) if is_run else NOTHING
