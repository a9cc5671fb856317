"""Batch sizes that change with what was delivered: small batches first.

A stage is a range of places, which are samples of all ranks, counted from the stream's first step on through all
epochs. A step belongs to the stage in which it begins. So what a step has follows from its place alone: a stream goes
on exactly from any state, and with stages in tokens every world size has the same ones. (Ramps of the batch size: Smith
et al. 2018, "Don't Decay the Learning Rate, Increase the Batch Size", ICLR.)
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from refinery.loader.arguments import MOST, whole


@dataclass(frozen=True)
class BatchStage:
    """`batch_size` rows of each rank for the next `tokens` input tokens of all ranks, or the next `steps` steps; with
    neither for the rest."""

    batch_size: int
    tokens: int | None = None
    steps: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "batch_size", whole("batch_size", self.batch_size, 1, MOST))
        for name in ("tokens", "steps"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, whole(name, getattr(self, name), 1))
        if self.tokens is not None and self.steps is not None:
            raise ValueError("tokens, steps: both given for a stage, one of them is allowed")


def batch_stages(given: Any) -> tuple[BatchStage, ...]:
    """The stages of TokenStream's batch_size; a single one for a number. Raises ValueError for stages that are none,
    for one without end that is not the last, and a last one with an end."""
    if not isinstance(given, list | tuple):
        return (BatchStage(given),)
    if not given or not all(isinstance(stage, BatchStage) for stage in given):
        raise ValueError(f"batch_size: {given!r:.80} given, a number or a list of BatchStage is allowed")
    open_ended = [stage.tokens is None and stage.steps is None for stage in given]
    if any(open_ended[:-1]) or not open_ended[-1]:
        raise ValueError("batch_size: tokens or steps of every stage but the last, and neither for that, are allowed")
    return tuple(given)


class Steps:
    """Where the steps of a stream begin.

    length: places of a sample. ranks: world size. epoch: (first place, place behind it or None) of the epoch that a
    place is in: steps do not cross its end.
    """

    def __init__(
        self, stages: Sequence[BatchStage], length: int, ranks: int, epoch: Callable[[int], tuple[int, int | None]]
    ) -> None:
        self.batch_sizes = [stage.batch_size for stage in stages]
        self._sizes, self._epoch = [ranks * size for size in self.batch_sizes], epoch
        self._ends: list[int] = []
        for stage, size in zip(stages[:-1], self._sizes, strict=False):
            begin = self._ends[-1] if self._ends else 0
            self._ends.append(self._after(begin, stage, size, length))

    def _after(self, begin: int, stage: BatchStage, size: int, length: int) -> int:
        """The place with which a stage that begins at `begin` ends."""
        if stage.tokens is not None:
            return begin - (-stage.tokens // length)
        left, place = stage.steps or 0, begin
        while left:
            first, behind = self._epoch(place)
            here = left + 1 if behind is None else -(-(behind - place) // size)
            if behind is None or left < here:
                return place + left * size
            epochs = left // here if place == first and place else 1  # from the second on all are alike
            left, place = left - epochs * here, behind + (epochs - 1) * (behind - first)
        return place

    @property
    def last(self) -> int:
        """Places of a step of the last stage."""
        return self._sizes[-1]

    @property
    def ramp_ends(self) -> int:
        """The place from which on all steps have the same size."""
        return self._ends[-1] if self._ends else 0

    def stage(self, place: int) -> int:
        """The number of the stage that a place is in."""
        return bisect_right(self._ends, place)

    def at(self, place: int) -> tuple[int, int | None]:
        """Places of a step that begins here, and where its stage ends; None for the last."""
        number = self.stage(place)
        return self._sizes[number], self._ends[number] if number < len(self._ends) else None

    def count(self, place: int, stop: int) -> int:
        """Steps from here to the end of an epoch at `stop`."""
        found = 0
        while place < stop:
            size, end = self.at(place)
            steps = -(-((stop if end is None else min(end, stop)) - place) // size)
            found, place = found + steps, place + steps * size
        return found
