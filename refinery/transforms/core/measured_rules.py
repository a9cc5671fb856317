"""The value that a rule measured in a document, found from outside: the threshold at which its answer turns.

A stage's judge is a pure function, and a reason's meaning names the parameter that is its threshold (`min_words`). So
the judge is asked again with every other rule off and the threshold moved, until the place is found where it stops
dropping the document: that is what was measured. It holds for every stage, also a user's own, without a word from it.
"""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, get_args

from pydantic.fields import FieldInfo

from refinery.transforms.core.answers import answer_of
from refinery.transforms.core.lane import AnyStage
from refinery.transforms.core.params import Params, is_optional

NAMED = re.compile(r"`(\w+)`")
LARGEST = 1 << 27  # threshold that is asked for, more than any document has of anything; the kernels allow no more
BELOW = "below `threshold`"  # in a reason's meaning: `threshold` is the smallest value allowed
STEPS = 34  # halvings: whole numbers exactly, shares to 1e-10
KEPT = 256  # thresholds of a rule whose parameters are kept: all searches begin with the same ones


@dataclass(frozen=True, slots=True)
class Rule:
    """A reason with the numeric parameter that is its threshold. path: of the parameter, from the stage's params."""

    reason: str
    path: tuple[str, ...]
    threshold: float

    @property
    def key(self) -> str:
        return ".".join(self.path)

    @property
    def is_least(self) -> bool:
        """Whether the threshold is the smallest value allowed, not the largest."""
        return not self.path[-1].startswith("max_")


@dataclass(frozen=True, slots=True)
class Reading:
    """What a rule measured; None where its answer does not depend on the threshold. drops: by this rule alone."""

    rule: Rule
    value: float | None
    drops: bool


def rules_of(stage: AnyStage, params: Params) -> Iterator[Rule]:
    """Rules that are on and have a numeric threshold `min_…` or `max_…`, or are BELOW one, in the order of the
    reasons."""
    for reason in stage.reasons:
        names = ("min_", "max_", "threshold") if BELOW in reason.meaning else ("min_", "max_")
        for path in _places(params, reason.name, reason.meaning):
            value = _value(params, path)
            if path[-1].startswith(names) and isinstance(value, int | float) and not isinstance(value, bool):
                yield Rule(reason.name, path, value)


def named_values(stage: AnyStage, params: Params, name: str) -> dict[tuple[str, ...], Any]:
    """Path -> value of the parameters that the meaning of a stage's reason names."""
    named = (reason for reason in stage.reasons if reason.name == name)
    return {path: _value(params, path) for reason in named for path in _places(params, reason.name, reason.meaning)}


def readings(stage: AnyStage, params: Params, judge: Callable[[Any], Any]) -> Iterator[Reading]:
    """What each rule that is on measured. judge: the stage's answer for given params; asked about 35 times a rule."""
    return (read_rule(rule, stage, params, judge) for rule in rules_of(stage, params))


def read_rule(rule: Rule, stage: AnyStage, params: Params, judge: Callable[[Any], Any]) -> Reading:
    """What one of them measured."""
    return read_alone(rule, Alone(_alone(stage, params, rule), rule.path), judge)


class Alone:
    """The parameters by which a rule judges alone, with any threshold."""

    def __init__(self, params: Params, path: tuple[str, ...]) -> None:
        self.params = params
        self._path = path
        self._made: dict[float, Params] = {}

    def at(self, threshold: float) -> Params:
        """Those with this threshold."""
        made = self._made.get(threshold)
        if made is None:
            made = with_value(self.params, self._path, threshold)
            if len(self._made) < KEPT:
                self._made[threshold] = made
        return made


def rules_alone(stage: AnyStage, params: Params, reason: str) -> list[tuple[Rule, Alone]]:
    """The rules of a reason, each with the parameters by which it judges alone: for `read_alone`, of many documents."""
    rules = (rule for rule in rules_of(stage, params) if rule.reason == reason)
    return [(rule, Alone(_alone(stage, params, rule), rule.path)) for rule in rules]


def read_alone(rule: Rule, alone: Alone, judge: Callable[[Any], Any], digits: int | None = None) -> Reading:
    """What a rule measured. alone: of `rules_alone`. digits: decimal places to which the caller rounds the value;
    the search ends when they are certain, for a share after about 20 questions."""
    try:
        return _read(rule, alone, judge, digits)
    except Exception:  # noqa: BLE001 - a stage may refuse a threshold that its field allows
        return Reading(rule, None, False)


def _read(rule: Rule, alone: Alone, judge: Callable[[Any], Any], digits: int | None) -> Reading:
    def drops(threshold: float) -> bool:
        return answer_of(judge(alone.at(threshold))).reason == rule.reason

    whole = isinstance(rule.threshold, int)
    low, high = threshold_range(_holder(alone.params, rule.path).model_fields[rule.path[-1]], rule.threshold)
    at_low, at_high = drops(int(low) if whole else low), drops(int(high) if whole else high)
    now = drops(rule.threshold)
    if at_low == at_high:
        nothing = not at_low and not rule.is_least and low == 0  # not even 0 is exceeded
        return Reading(rule, 0.0 if nothing else None, now)
    first, last = low, high
    for _ in range(STEPS):
        middle = math.floor((first + last) / 2) if whole else (first + last) / 2
        if drops(int(middle) if whole else middle) == at_low:
            first = middle
        else:
            last = middle
        if last - first <= 1 if whole else digits is not None and round(first, digits) == round(last, digits):
            break  # what lies between is rounded to the same
    return Reading(rule, (first if rule.is_least else last) if whole else (first + last) / 2, now)


def threshold_range(field: FieldInfo, threshold: float) -> tuple[float, float]:
    """Smallest and largest threshold to ask for: what the field allows, at most `LARGEST`, 1 for shares."""
    low, high = 0.0, 1.0 if isinstance(threshold, float) and threshold <= 1 else float(LARGEST)
    for limit in _metadata(field):
        step = 1 if isinstance(threshold, int) else 1e-12
        low = max(low, float(getattr(limit, "ge", low)), float(getattr(limit, "gt", low - step)) + step)
        high = min(high, float(getattr(limit, "le", high)), float(getattr(limit, "lt", high + step)) - step)
    return low, high


def _metadata(part: Any) -> Iterator[Any]:
    """Limits of a field, also those inside `… | None`."""
    for each in getattr(part, "metadata", ()) or getattr(part, "__metadata__", ()) or ():
        yield each
        yield from _metadata(each)
    for inner in get_args(getattr(part, "annotation", part)):
        yield from _metadata(inner)


def _alone(stage: AnyStage, params: Params, rule: Rule) -> Params:
    """The parameters with every other rule off that can be: thresholds None, `drop_…` false. What changes the text for
    later rules stays on, since these judge what it leaves."""
    alone = params
    for reason in stage.reasons:
        for path in _places(params, reason.name, reason.meaning):
            if path != rule.path:
                field = _holder(params, path).model_fields[path[-1]]
                if is_optional(field.annotation):
                    alone = with_value(alone, path, None)
                elif field.annotation is bool and path[-1].startswith("drop_"):
                    alone = with_value(alone, path, False)
    return alone


def _places(params: Params, reason: str, meaning: str) -> Iterator[tuple[str, ...]]:
    """Paths of the parameters that a reason's meaning names. Sets of rules ("gopher-…") have theirs in a section of
    that name."""
    group = reason.partition("-")[0]
    inner = getattr(params, group, None)
    holder, path = (inner, (group,)) if isinstance(inner, Params) else (params, ())
    yield from ((*path, name) for name in NAMED.findall(meaning) if name in type(holder).model_fields)


def _holder(params: Params, path: tuple[str, ...]) -> type[Params]:
    for name in path[:-1]:
        params = getattr(params, name)
    return type(params)


def _value(params: Params, path: tuple[str, ...]) -> Any:
    for name in path:
        params = getattr(params, name)
    return params


def with_value(params: Params, path: tuple[str, ...], value: Any) -> Params:
    """The parameters with another value at `path`; where a section is off, they are returned as they are. Nothing is
    left of what was computed from the old values (`cached_property`)."""
    if len(path) > 1:
        inner = getattr(params, path[0])
        return params if inner is None else with_value(params, path[:1], with_value(inner, path[1:], value))
    made, fields = params.model_copy(), type(params).model_fields
    for name in [name for name in made.__dict__ if name not in fields]:
        del made.__dict__[name]
    made.__dict__[path[0]] = value
    return made
