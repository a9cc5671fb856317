"""Sequence lengths that change with the tokens delivered: short rows first, as many tokens in every step.

A stream's samples have the longest length, whatever the stage. In a stage with a length that is a part of it, each
sample is delivered as that many rows of one batch, one after another. So positions, steps, states and what is counted
are those of the longest length, and nothing is lost or repeated at a stage's border. (Warm-up of lengths: Li, Zhang
and He 2022, "The Stability-Efficiency Dilemma: Investigating Sequence Length Warmup for Training GPT Models",
NeurIPS; there batches of short rows are cut off, here they are reshaped.)
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from refinery.loader.arguments import whole


@dataclass(frozen=True)
class LengthStage:
    """Rows of `length` tokens for the next `tokens` input tokens of all ranks; None: for the rest."""

    length: int
    tokens: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", whole("length", self.length, 1))
        if self.tokens is not None:
            object.__setattr__(self, "tokens", whole("tokens", self.tokens, 1))


class LengthStages:
    """Which stage a step is of. Raises ValueError for stages that are none, for one without end that is not the last,
    a last one with an end, and for lengths that do not divide the longest."""

    def __init__(self, stages: Sequence[LengthStage]) -> None:
        if not stages or not all(isinstance(stage, LengthStage) for stage in stages):
            raise ValueError(f"sequence_length: {stages!r:.80} given, a number or a list of LengthStage is allowed")
        self.longest = max(stage.length for stage in stages)
        for stage in stages:
            if self.longest % stage.length:
                near = ", ".join(map(str, _divisors_near(self.longest, stage.length)))
                raise ValueError(
                    f"sequence_length: {stage.length} given, what divides {self.longest} is allowed: {near}"
                )
        ends = [stage.tokens for stage in stages]
        if None in ends[:-1] or ends[-1] is not None:
            raise ValueError("sequence_length: tokens of every stage but the last, and None for that, are allowed")
        self._ends = list(accumulate(end for end in ends if end is not None))
        self.lengths = [stage.length for stage in stages]
        self._parts = [self.longest // stage.length for stage in stages]

    def parts(self, tokens: int) -> int:
        """Rows that a sample of the longest length is delivered as, in a step before which so many tokens were."""
        return self._parts[bisect_right(self._ends, tokens)]


def length_stages(given: Any) -> LengthStages | None:
    """The stages of `TokenStream`'s sequence_length; None for a number, or what is to be refused as one."""
    return LengthStages(given) if isinstance(given, list | tuple) else None


def _divisors_near(number: int, wanted: int) -> list[int]:
    """Of the number's divisors the next ones below and above `wanted`, three each."""
    small = [i for i in range(1, int(number**0.5) + 1) if number % i == 0]
    all_of_them = sorted({*small, *(number // i for i in small)})
    at = bisect_right(all_of_them, wanted)
    return all_of_them[max(0, at - 3) : at + 3]
