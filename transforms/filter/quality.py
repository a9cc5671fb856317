"""A fastText classifier's opinion of a text: kept as a score, and below a threshold the document goes.

The kind of classifier that picks documents resembling a reference collection (GPT-3, Brown et al. 2020, appendix A;
DataComp-LM, Li et al. 2024). `refinery train-quality` trains one; any fastText model (.bin, .ftz) with a label fits.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

import apache_beam as beam
import fasttext

from refinery.transforms.core.document import Document, Drop
from refinery.transforms.core.per_document import PerDocument, RejectParams
from refinery.transforms.core.resources import local_copy

HIGH_QUALITY, LOW_QUALITY = "__label__hq", "__label__lq"

PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~«»‐–—‘’“”„…、。，！？：；（）「」"


@dataclass(frozen=True)
class QualityParams:
    """Which classifier, and how sure it has to be.

    model: a fastText supervised model, local or gs://. label: the label whose probability is the score. threshold: the
    lowest score that is kept, 0 to 1. max_chars: how much of the beginning of a text the classifier reads.
    """

    model: str
    label: str = HIGH_QUALITY
    threshold: float = 0.5
    max_chars: int = 10_000

    def __post_init__(self) -> None:
        if not self.model:
            raise ValueError("model: '' given, a fastText model file is allowed")
        if not self.label:
            raise ValueError("label: '' given, a label of the model is allowed")
        if not 0 <= self.threshold <= 1:
            raise ValueError(f"threshold: {self.threshold} given, a number from 0 to 1 is allowed")
        if self.max_chars < 1:
            raise ValueError(f"max_chars: {self.max_chars} given, 1 or more is allowed")

    def files(self) -> tuple[str, ...]:
        """Every file that these parameters read."""
        return (self.model,)


def classifier_text(text: str, max_chars: int) -> str:
    """What the classifier reads of a text, in training and in prediction: one line, lower case, punctuation apart.

    Follows fastText's tutorial on supervised learning. Since underscores, brackets and slashes stand alone, no text can
    forge a label ("__label__…") or an end of line ("</s>"). Lone surrogates become "?". Linear, about 60 MB/s.
    """
    line = text[:max_chars].lower().replace("\0", " ")
    for mark in PUNCTUATION:
        line = line.replace(mark, f" {mark} ")
    line = " ".join(line.split())
    return line if line.isascii() else line.encode("utf-8", "replace").decode()


@lru_cache(maxsize=4)
def load_classifier(path: str) -> Any:
    """fastText's own model object, once per process. Raises ValueError, one line, for a missing or foreign file."""
    try:
        with local_copy(path) as local:
            model = fasttext.load_model(str(local))
    except (OSError, ValueError, RuntimeError) as error:
        raise ValueError(f"model: {path!r} given, which cannot be loaded ({error})") from None
    return model.f  # the wrapper's predict() raises under numpy 2


def check_quality(params: QualityParams) -> None:
    """Raises ValueError, one line, if the model is missing, foreign, or has no such label: for the launcher to call."""
    labels = sorted(label for _, label in load_classifier(params.model).predict("a\n", -1, 0.0, "strict"))
    if params.label not in labels:
        raise ValueError(f"label: {params.label!r} given, {' or '.join(labels[:10])} is allowed for this model")


def score_quality(text: str, model: Any, params: QualityParams) -> float:
    """Probability of the label, 0 to 1; 0.0 for a text that the model knows nothing about."""
    return score_line(classifier_text(text, params.max_chars), model, params.label)


def score_line(line: str, model: Any, label: str) -> float:
    """Probability of `label` for what `classifier_text` returned."""
    for probability, found in model.predict(line + "\n", -1, 0.0, "strict"):
        if found == label:
            return min(1.0, max(0.0, float(probability)))
    return 0.0


def judge_quality(doc: Document, model: Any, params: QualityParams) -> Document | Drop:
    """The document with its score (4 digits) in `meta["quality"]`, or "quality-score" for one below the threshold."""
    score = round(score_quality(doc.text, model, params), 4)
    if score < params.threshold:
        return Drop("quality-score")
    return replace(doc, meta={**doc.meta, "quality": score})


@dataclass
class FilterQuality(beam.PTransform):
    """Score every document and drop those below the threshold."""

    params: QualityParams
    rejects: RejectParams = field(default_factory=RejectParams)

    def expand(self, docs: beam.PCollection[Document]) -> beam.PCollection[Document]:
        judge = partial(judge_quality, params=self.params)
        return docs | PerDocument("quality", judge, partial(load_classifier, self.params.model), self.rejects)
