"""What another threshold would change: the documents of a sample, judged by the recipe with one number moved.

The sample: kept documents, and those that rejects/ lists for this very rule. Each record is read at its origin once and
held; a moved threshold costs the stages for every one of them. What deduplication and targets decide stays as it was.
"""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from refinery.pipelines.corpus.browse.reading.deadline import Deadline
from refinery.pipelines.corpus.browse.reading.looked_at import LookedAt, Opened
from refinery.pipelines.corpus.browse.reading.samples import SEED, rejected_sample
from refinery.pipelines.corpus.browse.reading.withheld import WITHDRAWN
from refinery.pipelines.corpus.replay.replay import NoReplay
from refinery.pipelines.corpus.replay.try_document import Step, Trial
from refinery.pipelines.corpus.show.draw import draw_kept
from refinery.pipelines.corpus.trace.answers import Doc
from refinery.transforms.core.document import RawDocument
from refinery.transforms.core.lane import AnyStage
from refinery.transforms.core.measured_rules import Rule, read_rule, rules_of, threshold_range, with_value

SECONDS = 8.0  # that a sample, or judging it, may take
MOST_BYTES = 64 << 20  # of the records of a sample, which are held
LISTED = 25  # documents of each kind that a page lists
LOST = ("dropped", "dead")


@dataclass(frozen=True)
class RuleAt:
    """A rule with the stage and the parameters that it belongs to. least, most: thresholds that may be asked for."""

    stage: AnyStage
    params: Any
    rule: Rule
    least: float
    most: float


@dataclass(frozen=True)
class Flip:
    """A document that a moved threshold decides otherwise. value: that the rule measured. then: what loses it then, or
    "kept"."""

    doc: Doc
    value: float | None
    then: str


@dataclass(frozen=True)
class WhatIf:
    """What the threshold `to` would change. kept, dropped: documents of each half of the sample that could be judged.
    listed: drops of this rule in the files of rejects/ that were read. now_dropped, now_kept: those that flip. still:
    dropped ones that pass this rule, and are lost to another one."""

    at: RuleAt
    to: float
    kept: int
    dropped: int
    listed: int
    now_dropped: Sequence[Flip]
    now_kept: Sequence[Flip]
    still: Sequence[Flip]
    unread: int
    complete: bool


@dataclass(frozen=True)
class _Held:
    """A record of the sample. was: "kept", or what lost it."""

    doc: Doc
    record: RawDocument
    was: str


def rules(opened: Opened) -> list[RuleAt]:
    """The rules of the run whose thresholds may be moved. Raises ValueError where its recipe cannot be used."""
    recorded = opened.texts.run
    if recorded.problem:
        raise ValueError(recorded.problem)
    found = []
    for _, stage, params in recorded.replayer.trial.stages:
        if not stage.judge or params is None:
            continue
        without_effect = {key for key, _ in params.idle()}
        for rule in rules_of(stage, params):
            if rule.key in without_effect:
                continue
            holder = params
            for name in rule.path[:-1]:
                holder = getattr(holder, name)
            low, high = threshold_range(type(holder).model_fields[rule.path[-1]], rule.threshold)
            found.append(RuleAt(stage, params, rule, low, high))
    return found


def find_rule(opened: Opened, stage: str, reason: str, key: str) -> RuleAt:
    """The rule of that stage, reason and parameter. Raises ValueError."""
    for each in rules(opened):
        if (each.stage.name, each.rule.reason, each.rule.key) == (stage, reason, key):
            return each
    raise ValueError(f"{stage:.80} {key:.80}: no rule of the run whose threshold can be moved")


def what_if(run: LookedAt, opened: Opened, at: RuleAt, to: float, number: int) -> WhatIf:
    """The sample of `number` kept documents and as many dropped ones, judged with the threshold `to`. Raises Busy, and
    ValueError for a threshold that is not allowed."""
    if not at.least <= to <= at.most:
        raise ValueError(f"{at.rule.key}: {to:g} given, {at.least:g} to {at.most:g} is allowed")
    value = round(to) if isinstance(at.rule.threshold, int) else to
    with run.judging():
        key = "sample", at.stage.name, at.rule.reason, number
        if key not in opened.memory:
            for other in [each for each in opened.memory if each[0] == "sample"]:
                del opened.memory[other]  # one sample of records is held at a time
            opened.memory[key] = _sample(opened, at, number)
        held, listed, unread = opened.memory[key]
        return _judged(opened, at, value, held, listed, unread)


def _judged(opened: Opened, at: RuleAt, to: float, held: Sequence[_Held], listed: int, unread: int) -> WhatIf:
    trial = moved(opened.texts.run.replayer.trial, at, to)
    flips: dict[str, list[Flip]] = {"dropped": [], "kept": [], "still": []}
    deadline, counts = Deadline(SECONDS), {"kept": 0, "dropped": 0}
    for each in held:
        if deadline.has_passed:
            break
        counts["kept" if each.was == "kept" else "dropped"] += 1
        steps = list(trial.steps(each.record))
        then = outcome(steps)
        if then == each.was:
            continue
        kind = "dropped" if each.was == "kept" else "kept" if then == "kept" else "still"
        measured = _measured(at, steps, trial) if len(flips[kind]) < LISTED else None
        shown = Doc() if then.startswith(f"{WITHDRAWN}:") else each.doc
        flips[kind].append(Flip(shown, measured, then))
    done = sum(counts.values()) == len(held)
    found = flips["dropped"], flips["kept"], flips["still"]
    return WhatIf(at, to, counts["kept"], counts["dropped"], listed, *found, unread, done)


def moved(trial: Trial, at: RuleAt, to: float) -> Trial:
    """The stages with another threshold. What the others prepared (models, lists) is shared; the rule's own stage
    prepares again, since what it prepares may depend on the threshold."""
    other = copy(trial)
    if to != at.rule.threshold:
        other.prepared = {name: held for name, held in trial.prepared.items() if name != at.stage.name}
    params = with_value(at.params, at.rule.path, to)
    other.stages = [(phase, s, params if s.name == at.stage.name else p) for phase, s, p in trial.stages]
    other.measure = False
    return other


def outcome(steps: Sequence[Step]) -> str:
    """ "kept", or "stage: reason" of what lost it."""
    last = steps[-1].decision
    return f"{last.stage}: {last.reason.partition(':')[0]}" if last.outcome in LOST else "kept"


def _measured(at: RuleAt, steps: Sequence[Step], trial: Trial) -> float | None:
    """What the rule measured, where the document came as far as its stage. trial: holds what the stage prepared."""
    step = next((step for step in steps if step.stage.name == at.stage.name), None)
    if step is None:
        return None
    resource = [trial.prepared[at.stage.name].resource] if at.stage.prepare else []
    judge = partial(cast(Callable[..., Any], at.stage.judge), step.before, *resource)
    return read_rule(at.rule, at.stage, at.params, lambda params: judge(params=params)).value


def _sample(opened: Opened, at: RuleAt, number: int) -> tuple[list[_Held], int, int]:
    """Records that the run as it was decides as it did, how many drops of the rule rejects/ lists, and how many records
    could not be read."""
    rejected, listed = rejected_sample(opened.corpus, at.stage.name, at.rule.reason, number)
    docs = [each.doc for each in rejected]
    kept, deadline = [], Deadline(SECONDS / 2)
    for each in draw_kept(opened.corpus, number, SEED):
        kept.append(each.doc)
        if deadline.has_passed:
            break
    replayer = opened.texts.run.replayer
    plain = moved(replayer.trial, at, at.rule.threshold)
    held: list[_Held] = []
    unread = size = 0
    for half in (kept, docs):
        deadline = Deadline(SECONDS / 2)
        for doc in half:
            if deadline.has_passed or size > MOST_BYTES:
                unread += 1
                continue
            try:
                record, _ = replayer.record(doc.origin, doc.source)
            except (NoReplay, OSError, ValueError):
                record = None
            if not isinstance(record, RawDocument):
                unread += 1
                continue
            size += len(record.content)
            held.append(_Held(doc, record, outcome(list(plain.steps(record)))))
    return held, listed, unread
