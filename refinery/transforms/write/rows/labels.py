"""Labels in place of drops: what a run that annotates notes of its documents, and the fields that rows get from it."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from refinery.transforms.core.answers import Answer, answer_of
from refinery.transforms.core.document import COPIES, Document, Drop, Scalar
from refinery.transforms.core.names import LABEL_ORIGINAL as ORIGINAL
from refinery.transforms.core.names import LABEL_REASON as REASON
from refinery.transforms.core.names import ROW_CHANGED
from refinery.transforms.core.stage import Note, Stage
from refinery.transforms.write.rows.rows import Label
from refinery.transforms.write.rows.spans import SPAN_LABELS, SpanLabel

CLUSTER, CLUSTER_SIZE = "label_cluster", "label_cluster_size"  # notes that a document gets where it is written
WOULD_DROP = "would-drop"  # group of findings in the funnel


@dataclass(frozen=True, slots=True)
class LabelOf:
    """A field behind those of a row. label: its name and type. meaning: for the pages. value: what it is, from the
    notes of the row's document, or of a row without one the reason alone. has_places: whether its text names places
    (spans.py). is_category: whether its text is one of few words. of_others: whether it says something of others."""

    label: Label
    meaning: str
    value: Callable[[Mapping[str, Any]], Scalar]
    has_places: bool = False
    is_category: bool = False
    of_others: bool = False

    def named_apart(self) -> "LabelOf":
        """The same under a name that no field of the inputs has."""
        return replace(self, label=self.label.named_apart())


def _noted(meta: Mapping[str, Any], name: str, empty: Scalar) -> Scalar:
    value = meta.get(name, empty)
    return type(empty)(value) if isinstance(value, (str, int, float)) else empty


def _told(name: str, empty: Scalar, meaning: str, note: str, **kind: bool) -> LabelOf:
    """A label with what a note of documents says. kind: as of `LabelOf`."""
    return LabelOf(Label(name, empty), meaning, partial(_noted, name=note, empty=empty), **kind)


def of_note(note: Note) -> LabelOf:
    """The label that has what a stage notes."""
    empty: Scalar = note.type()
    return _told(note.name, empty, note.meaning, note.name, is_category=note.category)


def _is_kept(meta: Mapping[str, Any]) -> bool:
    return REASON not in meta


def _is_duplicate(meta: Mapping[str, Any]) -> bool:
    return ORIGINAL in meta


def _secret_types(meta: Mapping[str, Any]) -> str:
    """In the spelling of `pii_types`."""
    rules = (each.rpartition(":") for each in str(meta.get("secret_rules", "")).split(",") if each)
    return " ".join(f"{rule}={count}" for rule, _, count in rules)


OWN = {
    each.label.name: each
    for each in (
        LabelOf(Label("keep", False), "whether it would have stayed", _is_kept),
        _told("reason", "", "why it would have been dropped", REASON, is_category=True),
        LabelOf(Label("duplicate", False), "whether it is a copy of another one that stays", _is_duplicate),
        _told("duplicate_of", "", "of a copy, the own id of the one that stays, or where that is: file@offset",
              ORIGINAL, of_others=True),
        _told("copies", 0, "rows with this content, itself included; 0 for a copy", COPIES),
        _told("cluster", "", "the row that stays of a row and its copies, named as in `duplicate_of`", CLUSTER,
              of_others=True),
        _told("cluster_size", 0, "rows of this cluster, the one that stays included", CLUSTER_SIZE, of_others=True),
    )
}  # fmt: skip
SECRET_TYPES = LabelOf(Label("secret_types", ""), "credentials by rule, each with its count", _secret_types)


def known_labels(notes: Iterable[Note], stages: Iterable[str]) -> dict[str, LabelOf]:
    """The labels that `annotate` may name, by name. notes, stages: of the recipe; names of its stages."""
    noted = {note.name: note for note in notes}
    of_stages = {*stages}
    spans = (each for each in SPAN_LABELS if each.stage in of_stages)
    derived = {each.name: _told(each.name, "", each.meaning, each.note, has_places=True) for each in spans}
    if "secret_rules" in noted:
        derived[SECRET_TYPES.label.name] = SECRET_TYPES
    return {**{name: of_note(note) for name, note in noted.items()}, **derived, **OWN}


def judge_noting_change(judge: Callable[..., Any], doc: Document, *resource: Any, **params: Any) -> Any:
    """What a stage says of a document; one with another text has a note that says so."""
    answer = answer_of(judge(doc, *resource, **params))
    result = answer.result
    if isinstance(result, Document) and result.text != doc.text:
        return answer._replace(result=replace(result, meta={**result.meta, ROW_CHANGED: 1}))
    return answer


def noting_changes(stage: Stage[Any]) -> Stage[Any]:
    """The stage with a note of documents whose text it changed: their rows get the new one."""
    if stage.judge is None:
        return stage
    return replace(stage, judge=partial(judge_noting_change, stage.judge))


def judge_with_label(
    judge: Callable[..., Any],
    notes: frozenset[str],
    spans: Sequence[SpanLabel],
    doc: Document,
    *resource: Any,
    params: Any,
) -> Any:
    """What a stage says of a document, as notes: it stays, with its text. One that another stage would have dropped is
    not judged again. notes: of the stage; what a Drop has measured under these names goes along, unless a
    limit of one of them decided. spans: labels with the places that it would change."""
    if REASON in doc.meta:
        return doc
    answer = answer_of(judge(doc, *resource, params=params))
    result = answer.result
    if result is doc or not isinstance(result, Document | Drop):
        return answer
    places = {name: value for label in spans for name, value in label.noted(doc, result, params).items()}
    if isinstance(result, Document):
        as_it_was = replace(result, id=doc.id, text=doc.text, meta={**result.meta, **places})
        return answer._replace(result=as_it_was)
    told = result.measured if notes.isdisjoint(result.limits) else {}
    measured = {name: value for name, value in told.items() if name in notes and value is not None}
    kept = replace(doc, meta={**doc.meta, **measured, **places, REASON: result.reason})
    return Answer(kept, (*answer.found, f"{WOULD_DROP}/{result.reason}"), "", answer.series, answer.value)


def labelling(stage: Stage[Any], asked: Collection[str]) -> Stage[Any]:
    """The stage with labels in place of drops. asked: names of the labels that rows get."""
    if stage.judge is None:
        return stage
    names = frozenset(note.name for note in stage.notes)
    spans = tuple(each for each in SPAN_LABELS if each.stage == stage.name and each.name in asked)
    return replace(stage, judge=partial(judge_with_label, stage.judge, names, spans))
