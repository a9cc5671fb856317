"""One document through every stage of a recipe, in this process: what each decided, and what its rules measured."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.tuning.measured_rules import Reading, dropped_for, readings
from refinery.transforms.core.document import Document, Finding, RawDocument, Scored
from refinery.transforms.core.lane import AnyStage
from refinery.transforms.core.per_document import content_size

NEEDS_OTHERS = "needs the other documents"


@dataclass(frozen=True)
class Decision:
    """What a stage made of the document. outcome: kept, dropped, dead, or what it needs. reason: why it was dropped, or
    the error. size: bytes that it left. notes: what it noted, found or scored. readings: of its rules with thresholds.
    """

    stage: str
    outcome: str
    reason: str = ""
    advice: str = ""
    size: int = 0
    notes: Mapping[str, Any] | None = None
    readings: tuple[Reading, ...] = ()


def try_document(recipe: Recipe, raw: RawDocument) -> Iterator[Decision]:
    """The decisions about a document, stage by stage, up to the one that loses it. A stage that splits hands its first
    document on, and says of how many. Raises OSError and ValueError where a stage's models or lists cannot be read."""
    doc: Any = raw
    for phase in ("clean", "dedup", "shards"):
        for stage, params in recipe.active(phase):
            if stage.judge is None:
                if phase == "dedup":
                    yield Decision(stage.name, NEEDS_OTHERS)
                continue
            decision, doc = _decide(stage, params, doc)
            yield decision
            if doc is None:
                return


def _decide(stage: AnyStage, params: Any, doc: Any) -> tuple[Decision, Any]:
    resource = [stage.prepare(params)] if stage.prepare else []
    judge = partial(cast(Callable[..., Any], stage.judge), doc, *resource)
    try:
        answer = judge(params=params)
        inner: Any = answer.answer if isinstance(answer, Finding | Scored) else answer
        results = list(inner) if stage.splits and not dropped_for(answer) else [inner]
    except Exception as error:  # noqa: BLE001 - as in a run, where it becomes a dead letter
        return Decision(stage.name, "dead", f"{type(error).__name__}: {error}"), None
    notes = _notes(answer, doc, results, stage)
    measured = () if resource else tuple(readings(stage, params, lambda other: judge(params=other)))
    if reason := dropped_for(answer):
        declared = next((each for each in stage.reasons if each.name == reason), None)
        why = f"{reason}: {declared.meaning}" if declared else reason
        notes |= _notes_if_kept(stage, params, doc)
        return Decision(stage.name, "dropped", why, declared.advice if declared else "", 0, notes, measured), None
    return Decision(stage.name, "kept", "", "", content_size(results[0]), notes, measured), results[0]


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
        answer: Any = stage.judge(doc, *([stage.prepare(free)] if stage.prepare else []), params=free)
        inner = answer.answer if isinstance(answer, Finding | Scored) else answer
    except Exception:  # noqa: BLE001 - a stage may refuse what its fields allow; it is only a note
        return {}
    return _notes(answer, doc, [inner], stage) if isinstance(inner, Document) else {}


def _notes(answer: Any, before: Any, results: list[Any], stage: AnyStage) -> dict[str, Any]:
    notes: dict[str, Any] = {}
    if isinstance(answer, Finding) and answer.found:
        notes["found"] = answer.summary
    if isinstance(answer, Scored):
        notes[f"score of {answer.series}"] = answer.value
    after = results[0]
    if isinstance(after, Document):
        old = before.meta if isinstance(before, Document) else {}
        notes |= {name: value for name, value in after.meta.items() if old.get(name) != value}
    if len(results) > 1:
        notes["documents made of it"] = len(results)
    if hasattr(after, "tokens"):
        notes["tokens"] = len(after.tokens)
    return notes
