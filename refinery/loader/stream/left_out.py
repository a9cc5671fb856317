"""What a stream could not deliver because it is damaged: noted with each batch, counted, kept in states."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from refinery.loader.order.arrays import Batch
from refinery.loader.read.token_source import Lost
from refinery.loader.stream.masks import IGNORE
from refinery.loader.stream.schedule import StepPlan
from refinery.loader.stream.state import StateError

MOST_PLACES = 32  # runs of tokens in a state, some 30 bytes each; with more it has their number of tokens only


class LeftOut(NamedTuple):
    """Tokens [start, stop) of shard number `shard` that a row had in this epoch of its domain, and that it is without.
    row: (domain, sample) of the row; () where several were put together."""

    epoch: int
    shard: int
    start: int
    stop: int
    row: tuple[int, ...] = ()


def hide(batch: Batch, lost: Sequence[Lost], first: int, shape: tuple[int, int]) -> Batch:
    """The batch without labels, and with a false loss_mask, where a token is lost. Labels are those of the next token.
    first: number of the batch's first row. shape: rows and inputs of a row as they were read."""
    found: Batch = {}
    for name, value in (("labels", IGNORE), ("loss_mask", False)):
        if name in batch:
            array = np.array(batch[name], order="C")
            rows = array.reshape(shape)  # also where each was cut into several
            for each in lost:
                rows[each.row - first, max(each.place - 1, 0) : each.place + each.size - 1] = value
            found[name] = array
    return batch | found


def left_out_of(lost: Sequence[Lost], plan: StepPlan, step: int, first: int, length: int) -> tuple[LeftOut, ...]:
    """Which inputs these are. length: inputs of a row: what comes behind is a label that is another row's input."""
    found = []
    for each in lost:
        count = min(each.size, length - each.place)
        if count > 0:
            at = int(plan.mine[step][each.row - first])
            row = int(plan.domains[at]), int(plan.samples[at])
            found.append(LeftOut(int(plan.epochs[at]), each.shard, each.start, each.start + count, row))
    return tuple(found)


class LeftOuts:
    """What was left out up to a position. `places` are put together where they follow each other."""

    def __init__(self, places: Iterable[LeftOut] = (), tokens: int | None = None) -> None:
        self._places = dict.fromkeys(places)
        self._more = 0  # tokens whose places a state had no room for
        if tokens is not None:
            self._more = tokens - self.tokens

    def add(self, places: Iterable[LeftOut]) -> None:
        """A place that is added again, because a batch was made again, counts once."""
        self._places.update(dict.fromkeys(places))

    @property
    def tokens(self) -> int:
        """Inputs that were not delivered."""
        return self._more + sum(place.stop - place.start for place in self._places)

    @property
    def is_complete(self) -> bool:
        """Whether `places` are all of them."""
        return not self._more

    @property
    def places(self) -> list[LeftOut]:
        found: list[LeftOut] = []
        for place in sorted(self._places):
            last = found[-1] if found else None
            if last is not None and (last.epoch, last.shard, last.stop) == place[:3]:
                found[-1] = last._replace(stop=place.stop)
            else:
                found.append(place._replace(row=()))
        return found

    def state(self) -> dict[str, Any] | None:
        """What a state says of it; None for nothing."""
        if not self.tokens:
            return None
        places = self.places
        known = self.is_complete and len(places) <= MOST_PLACES
        return {"tokens": self.tokens, "places": [list(place[:4]) for place in places] if known else None}


def left_outs_in(state: Mapping[str, Any]) -> LeftOuts:
    """What a state says. Raises StateError."""
    given = state.get("damaged")
    if given is None:
        return LeftOuts()
    try:
        tokens, places = given["tokens"], [LeftOut(*place) for place in given["places"] or ()]
        numbers = [tokens, *(number for place in places for number in place[:4])]
        if not all(type(number) is int and number >= 0 for number in numbers) or any(place.row for place in places):
            raise ValueError
        found = LeftOuts(places, tokens)
    except (TypeError, ValueError, KeyError):
        found = LeftOuts((), -1)
    if found.tokens < 0 or (found._more < 0):
        raise StateError(f"state: damaged {given!r:.80} given, tokens and places of a state_dict are allowed")
    return found
