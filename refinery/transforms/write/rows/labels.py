"""Labels in place of drops: what a run that annotates notes of its documents, and the fields that rows get from it."""

from collections.abc import Callable, Iterable, Mapping
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

WOULD_DROP = "would-drop"  # group of findings in the funnel


@dataclass(frozen=True, slots=True)
class LabelOf:
    """A field behind those of a row. label: its name and type. meaning: for the pages. value: what it is, from the
    notes of the row's document, or of a row without one the reason alone."""

    label: Label
    meaning: str
    value: Callable[[Mapping[str, Any]], Scalar]

    def named_apart(self) -> "LabelOf":
        """The same under a name that no field of the inputs has."""
        return replace(self, label=self.label.named_apart())


def _noted(meta: Mapping[str, Any], name: str, empty: Scalar) -> Scalar:
    value = meta.get(name, empty)
    return type(empty)(value) if isinstance(value, (str, int, float)) else empty


def of_note(note: Note) -> LabelOf:
    """The label that has what a stage notes."""
    empty: Scalar = note.type()
    return LabelOf(Label(note.name, empty), note.meaning, partial(_noted, name=note.name, empty=empty))


def _is_kept(meta: Mapping[str, Any]) -> bool:
    return REASON not in meta


def _is_duplicate(meta: Mapping[str, Any]) -> bool:
    return ORIGINAL in meta


OWN = {
    each.label.name: each
    for each in (
        LabelOf(Label("keep", False), "whether it would have stayed", _is_kept),
        LabelOf(Label("reason", ""), "why it would have been dropped", partial(_noted, name=REASON, empty="")),
        LabelOf(Label("duplicate", False), "whether it is a copy of another one that stays", _is_duplicate),
        LabelOf(
            Label("duplicate_of", ""),
            "of a copy, the own id of the one that stays, or where that is: file@offset",
            partial(_noted, name=ORIGINAL, empty=""),
        ),
        LabelOf(Label("copies", 0), "rows with this content, itself included; 0 for a copy",
                partial(_noted, name=COPIES, empty=0)),
    )
}  # fmt: skip


def label_names(notes: Iterable[Note]) -> list[str]:
    """The names that `annotate` may have."""
    return [*OWN, *(note.name for note in notes if note.name not in OWN)]


def find_label(name: str, notes: Iterable[Note]) -> LabelOf:
    """The label of a name. notes: of the recipe. Raises KeyError."""
    if name in OWN:
        return OWN[name]
    return of_note(next((note for note in notes if note.name == name), None) or _missing(name))


def _missing(name: str) -> Note:
    raise KeyError(name)


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
    judge: Callable[..., Any], notes: frozenset[str], doc: Document, *resource: Any, **params: Any
) -> Any:
    """What a stage says of a document, as notes: it stays, with its text. One that another stage would have dropped is
    not judged again. notes: of the stage; what a Drop has measured under these names goes along, unless a
    limit of one of them decided."""
    if REASON in doc.meta:
        return doc
    answer = answer_of(judge(doc, *resource, **params))
    if isinstance(answer.result, Drop):
        reason = answer.result.reason
        told = answer.result.measured if notes.isdisjoint(answer.result.limits) else {}
        measured = {name: value for name, value in told.items() if name in notes and value is not None}
        kept = replace(doc, meta={**doc.meta, **measured, REASON: reason})
        return Answer(kept, (*answer.found, f"{WOULD_DROP}/{reason}"), "", answer.series, answer.value)
    if isinstance(answer.result, Document) and answer.result.text != doc.text:
        return answer._replace(result=replace(answer.result, text=doc.text))
    return answer


def labelling(stage: Stage[Any]) -> Stage[Any]:
    """The stage with labels in place of drops."""
    if stage.judge is None:
        return stage
    names = frozenset(note.name for note in stage.notes)
    return replace(stage, judge=partial(judge_with_label, stage.judge, names))
