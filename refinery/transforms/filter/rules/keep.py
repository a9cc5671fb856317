"""The rule of a recipe: which documents to keep, judged by everything that earlier stages have recorded.

The language of rules is that of expression.py. Beside the notes a rule can name thresholds that depend on the language
(a data file), and draws: chance, by hash of the document, as GPT-3 kept some pages of low scores (Brown et al. 2020,
appendix A).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from refinery.transforms.core.document import Document, Drop, hash64, text_bytes
from refinery.transforms.core.languages.by_language import number_of, read_language_numbers
from refinery.transforms.core.params import Params, Share
from refinery.transforms.core.safe_text import printable
from refinery.transforms.core.stage import Note, Reason, Stage
from refinery.transforms.filter.quality import SCALE, column_name, pareto_keeps
from refinery.transforms.filter.rules.expression import ExpressionError, Rule, compile_rule

NOT_MET, UNKNOWN = "rule-not-met", "rule-unknown"
MAX_TEXT = 100  # characters of a measured text in rejects/

# What a rule can name beside notes, as the provenance files call it. url and origin are not told in rejects/ again.
FACTS: Mapping[str, tuple[str, Callable[[Document], Any]]] = {
    "url": ("string", lambda doc: doc.url),
    "source": ("string", lambda doc: doc.source),
    "origin": ("string", lambda doc: doc.origin),
    "text_bytes": ("integer", lambda doc: text_bytes(doc.text)),
    "sources": ("strings", lambda doc: str(doc.meta.get("copy_sources", "")).split(",")),
}
ADDRESSES = ("url", "origin")
TYPES = {str: "string", float: "float", int: "integer"}


class ThresholdParams(Params):
    """Numbers by language."""

    file: Annotated[str, Field(min_length=1)]
    """a CSV or TSV file, local, `gs://` or `s3://`: a header with `language` and names of columns, then one line per
    language"""
    column: str = ""
    """which of its columns; empty: the only one"""
    default: float | None = None
    """the number for languages that the file does not list; null: a missing value"""


class DrawParams(Params):
    """Chance, the same on every run: by hash of the document's id, the draw's name and the seed."""

    score: str = ""
    """GPT-3's rule for this score, a column from 0 to 1: true if a draw of the Pareto distribution is above 1 -
    score"""
    alpha: Annotated[int, Field(ge=1, le=100)] = 9
    """shape of that distribution: a score of 0 is drawn with the chance 2^-alpha"""
    share: Share | None = None
    """instead of a score: the share of all documents that is drawn"""
    seed: int = 1
    """another seed draws different documents"""

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        if (self.share is None) == (not self.score):
            raise ValueError("score: either a score or a share is needed, and not both")
        return self


class KeepParams(Params):
    """The rule, and what it names beside columns."""

    rule: Annotated[str, Field(min_length=1)]
    """the condition that a document must meet: [labels.md](labels.md#the-language-of-rules)"""
    thresholds: Mapping[str, ThresholdParams] = {}
    """name in the rule -> numbers by language; the document's `language` selects one"""
    draws: Mapping[str, DrawParams] = {}
    """name in the rule -> a random condition"""
    fields: Mapping[str, Literal["string", "float", "integer"]] = {}
    """name in the rule -> type, of fields of records that sources keep (`meta_fields`); a value of another type is
    missing"""

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        for name in (*self.thresholds, *self.draws):
            column_name(name)
        names = [*self.thresholds, *self.draws, *self.fields]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"thresholds: the name {twice[0]!r} given twice, among thresholds, draws and fields")
        return self


class BoundKeepParams(KeepParams):
    """With the columns of the recipe."""

    columns: Mapping[str, str]
    """name -> type, of everything that the stages note"""
    counted: tuple[str, ...] = ()
    """those that are 0 where a document has none"""

    @property
    def types(self) -> dict[str, str]:
        """Everything that the rule can name."""
        facts = {name: kind for name, (kind, _) in FACTS.items()}
        named = dict.fromkeys(self.thresholds, "float") | dict.fromkeys(self.draws, "boolean")
        return {**facts, **self.columns, **self.fields, **named}

    def compiled(self) -> Rule:
        """The rule. Raises ValueError "field: …", one line."""
        own = {**self.fields, **dict.fromkeys(self.thresholds), **dict.fromkeys(self.draws)}
        if taken := sorted(own.keys() & {*FACTS, *self.columns}):
            raise ValueError(f"rule: the name {taken[0]!r} is already the name of a column")
        for name, draw in self.draws.items():
            if draw.score and {**self.columns, **self.fields}.get(draw.score) != "float":
                raise ValueError(f"draws.{name}.score: {draw.score[:60]!r} given, a column that is a score is needed")
        try:
            return compile_rule(self.rule, self.types)
        except ExpressionError as error:
            raise ValueError(f"rule: {error}") from None


def bind_notes(params: KeepParams, notes: Iterable[Note]) -> BoundKeepParams:
    """The parameters with what the rule can name. Raises ValueError "field: …" where the rule does not go with it."""
    notes = tuple(notes)
    columns = {note.name: TYPES[note.type] for note in notes}
    counted = tuple(note.name for note in notes if note.counts)
    values = {name: getattr(params, name) for name in KeepParams.model_fields}
    bound = BoundKeepParams(**values, columns=columns, counted=counted)
    bound.compiled()
    return bound


class Draw(NamedTuple):
    """What `pareto_keeps` draws by."""

    name: str
    alpha: int
    seed: int


@dataclass(frozen=True)
class Judgement:
    """What a worker prepares. reads: name in the rule -> its value for a document."""

    rule: Rule
    reads: Mapping[str, Callable[[Document], Any]]


def prepare_rule(params: KeepParams) -> Judgement:
    """The compiled rule with its tables, once per process. Raises ValueError "field: …", one line; TypeError for
    parameters without columns."""
    if not isinstance(params, BoundKeepParams):
        raise TypeError("keep: parameters of bind_notes(params, notes) are needed, which know what stages note")
    rule = params.compiled()
    return Judgement(rule, {name: _reader(name, params) for name in rule.names})


def _reader(name: str, params: BoundKeepParams) -> Callable[[Document], Any]:
    if name in params.thresholds:
        asked = params.thresholds[name]
        try:
            numbers = read_language_numbers(asked.file, asked.column)
        except ValueError as error:
            raise ValueError(f"thresholds.{name}: {error}") from None
        return partial(_of_language, numbers, asked.default)
    if name in params.draws:
        draw = params.draws[name]
        return partial(_drawn, name, draw) if draw.share is None else partial(_sampled, name, draw.seed, draw.share)
    if name in params.fields:
        return partial(_field, name, {"string": str, "float": (float, int), "integer": int}[params.fields[name]])
    return FACTS[name][1] if name in FACTS else partial(_note, name, 0 if name in params.counted else None)


def _note(name: str, absent: int | None, doc: Document) -> Any:
    return doc.meta.get(name, absent)


def _field(name: str, kind: Any, doc: Document) -> Any:
    value = doc.meta.get(name)
    return value if isinstance(value, kind) and not isinstance(value, bool) else None


def _of_language(numbers: Mapping[str, float], default: float | None, doc: Document) -> float | None:
    found = number_of(numbers, str(doc.meta.get("language", "")), str(doc.meta.get("language_script", "")))
    return default if found is None else found


def _drawn(name: str, draw: DrawParams, doc: Document) -> bool | None:
    score = doc.meta.get(draw.score)
    if not isinstance(score, (float, int)) or score != score:
        return None
    points = round(min(1.0, max(0.0, score)) * SCALE)
    return pareto_keeps(doc.id, points, Draw(name, draw.alpha, draw.seed))


def _sampled(name: str, seed: int, share: float, doc: Document) -> bool:
    return hash64("draw", seed, name, doc.id) < share * 2**64


def judge_keep(doc: Document, judgement: Judgement, params: KeepParams) -> Document | Drop:
    """`doc` if it meets the rule; else a Drop with the values that the rule names: "rule-not-met" where they make it
    false, "rule-unknown" where missing ones leave it open. Some microseconds."""
    row = {name: read(doc) for name, read in judgement.reads.items()}
    decided = judgement.rule.decide(row)
    if decided:
        return doc
    values = {name: _told(value) for name, value in row.items() if name not in ADDRESSES}
    return Drop(UNKNOWN if decided is None else NOT_MET, values)


def _told(value: Any) -> Any:
    """A value as rejects/ has it."""
    if isinstance(value, list):
        value = ",".join(value)
    return printable(value[:MAX_TEXT]) if isinstance(value, str) else value


def threshold_files(params: KeepParams) -> tuple[str, ...]:
    """The tables: their content decides the result."""
    return tuple(dict.fromkeys(asked.file for asked in params.thresholds.values()))


KEEP = Stage(
    name="keep",
    version=1,
    summary="Keep the documents that meet the recipe's rule over their columns.",
    params=KeepParams,
    on=False,
    judge=judge_keep,
    prepare=prepare_rule,
    bind=bind_notes,
    files=threshold_files,
    libraries=("lark",),
    reasons=(
        Reason(
            NOT_MET,
            "the values of the document make `rule` false",
            "look at the values in `found` of `rejects/`, and at their distributions in the report",
            "Li et al. 2024; Su et al. 2024",
        ),
        Reason(
            UNKNOWN,
            "a value that `rule` needs is missing, and the other values do not decide the rule",
            "say in the rule what happens to such documents, as in `edu is null or edu > 0.3`",
        ),
    ),
)
