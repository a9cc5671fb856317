"""One document through every stage of a recipe, in this process: what each decided, and what its rules measured."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from refinery.pipelines.recipe.recipe import Recipe
from refinery.transforms.core.answers import Answer, answer_of
from refinery.transforms.core.document import Document, Drop, RawDocument, content_size
from refinery.transforms.core.lane import AnyStage
from refinery.transforms.core.measured_rules import Reading, named_values, readings
from refinery.transforms.core.names import PHASES
from refinery.transforms.core.prepared import Prepared, prepare_once
from refinery.transforms.dedup.cutting_pass import CuttingPass
from refinery.transforms.filter.language import LANGUAGE

NEEDS_OTHERS = "needs the other documents"


@dataclass(frozen=True)
class Decision:
    """What a stage made of the document. outcome: kept, dropped, dead, or what it needs. reason: why it was dropped, or
    the error. size: bytes that it left. notes: what it noted, found or scored. readings: of its rules with thresholds.
    limits: other parameters that the reason names. found: what rejects/ says of it; is_listed: whether that is always
    listed there.
    """

    stage: str
    outcome: str
    reason: str = ""
    advice: str = ""
    size: int = 0
    notes: Mapping[str, Any] | None = None
    readings: tuple[Reading, ...] = ()
    limits: Mapping[str, Any] | None = None
    found: str = ""
    is_listed: bool = False


@dataclass(frozen=True)
class Step:
    """A decision with what the stage was given and what it left, None where it lost the document."""

    decision: Decision
    stage: AnyStage
    before: Any
    after: Any


def try_document(recipe: Recipe, raw: RawDocument) -> Iterator[Decision]:
    """The decisions about a document, stage by stage, up to the one that loses it. A stage that splits hands its first
    document on, and says of how many. Raises OSError and ValueError where a stage's models or lists cannot be read."""
    return (step.decision for step in Trial(recipe).steps(raw))


class Trial:
    """The stages of a recipe, ready for one document after the other: what they prepare is held as long as this is.

    measure: whether the value of every rule is found, at 35 calls of its stage.
    """

    def __init__(self, recipe: Recipe, measure: bool = True) -> None:
        self.measure = measure
        self.stages = [(phase, *each) for phase in PHASES for each in recipe.active(phase)]
        self.prepared: dict[str, Prepared] = {}

    def steps(self, raw: Any, phases: Sequence[str] = PHASES) -> Iterator[Step]:
        """`try_document`, each decision with what the stage was given and what it left. Cuts of what other documents
        have, too, need these, as deduplication does. phases: only the stages of these; raw is what the first one
        takes."""
        doc: Any = raw
        for phase, stage, params in self.stages:
            if phase not in phases:
                continue
            cuts = isinstance(stage, CuttingPass)  # its judge carries out what phase 2 found
            if stage.judge is None or cuts:
                if phase == "dedup" or cuts:
                    yield Step(Decision(stage.name, NEEDS_OTHERS), stage, doc, doc)
                continue
            decision, after = self._decide(stage, params, doc)
            yield Step(decision, stage, doc, after)
            if after is None:
                return
            doc = after

    def judge(self, stage: AnyStage, doc: Document) -> Any:
        """What a stage makes of a document, by itself; the document where the recipe does not have it, None where it
        fails. Raises the same errors as `try_document`."""
        params = next((params for _, each, params in self.stages if each == stage), None)
        if params is None:
            return doc
        return self._decide(stage, params, doc)[1]

    def _decide(self, stage: AnyStage, params: Any, doc: Any) -> tuple[Decision, Any]:
        if stage.prepare and stage.name not in self.prepared:
            self.prepared[stage.name] = prepare_once(partial(stage.prepare, params))
        resource = [self.prepared[stage.name].resource] if stage.prepare else []
        judge = partial(cast(Callable[..., Any], stage.judge), doc, *resource)
        try:
            answer = answer_of(judge(params=params))
            results = list(answer.result) if stage.splits and not answer.reason else [answer.result]
        except Exception as error:  # noqa: BLE001 - as in a run, where it becomes a dead letter
            return Decision(stage.name, "dead", f"{type(error).__name__}: {error}"), None
        notes = _notes(answer, doc, results, stage)
        measured: tuple[Reading, ...] = ()
        if self.measure and not resource:
            measured = tuple(readings(stage, params, lambda other: judge(params=other)))
        if reason := answer.reason:
            declared = next((each for each in stage.reasons if each.name == reason), None)
            why = f"{reason}: {declared.meaning}" if declared else reason
            if self.measure:
                notes |= _notes_if_kept(stage, params, doc)
            limits = _limits(stage, params, reason, notes, measured)
            advice = declared.advice if declared else ""
            listing = answer.summary, answer.is_listed
            return Decision(stage.name, "dropped", why, advice, 0, notes, measured, limits, *listing), None
        return Decision(stage.name, "kept", "", "", content_size(results[0]), notes, measured), results[0]


def _limits(
    stage: AnyStage, params: Any, reason: str, notes: Mapping[str, Any], measured: tuple[Reading, ...]
) -> dict[str, Any]:
    """What the parameters are that a reason's meaning names, but for those beside which a value was measured."""
    known = {reading.rule.path for reading in measured if reading.value is not None}
    found = {
        ".".join(path): value
        for path, value in named_values(stage, params, reason).items()
        if path not in known and isinstance(value, int | float | str) and value != ""
    }
    if reason == "language-score" and stage.name == LANGUAGE.name and (code := notes.get("language")):
        found[f"threshold for {code}"] = max(params.needed(code, notes.get("language_script", "")), params.least)
    return found


def _notes_if_kept(stage: AnyStage, params: Any, doc: Any) -> dict[str, Any]:
    """What a stage that dropped the document notes of it without its threshold and its lists of what is wanted: the
    language and its score, a classifier's. Nothing where that is not what made it drop it."""
    fields = type(params).model_fields
    open_ = {"threshold": 0.0} if "threshold" in fields else {}
    open_ |= {name: {} for name, field in fields.items() if field.default == {} and isinstance(field.default, Mapping)}
    if not stage.notes or not open_ or stage.judge is None:
        return {}
    try:
        free = type(params).model_construct(**{**{name: getattr(params, name) for name in fields}, **open_})
        answer = answer_of(stage.judge(doc, *([stage.prepare(free)] if stage.prepare else []), params=free))
    except Exception:  # noqa: BLE001 - a stage may refuse what its fields allow; it is only a note
        return {}
    return _notes(answer, doc, [answer.result], stage) if isinstance(answer.result, Document) else {}


def _notes(answer: Answer, before: Any, results: list[Any], stage: AnyStage) -> dict[str, Any]:
    notes: dict[str, Any] = {}
    if answer.found:
        notes["found"] = answer.summary
    if answer.series:
        notes[f"score of {answer.series}"] = answer.value
    after = results[0]
    if isinstance(after, Drop):
        notes |= after.measured
    if isinstance(after, Document):
        old = before.meta if isinstance(before, Document | RawDocument) else {}
        notes |= {name: value for name, value in after.meta.items() if old.get(name) != value}
    if len(results) > 1:
        notes["documents made of it"] = len(results)
    if hasattr(after, "tokens") and after.tokens.dtype.itemsize > 1:  # else it is a text, in UTF-8
        notes["tokens"] = len(after.tokens)
    return notes
