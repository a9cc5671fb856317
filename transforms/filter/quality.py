"""A fastText classifier's opinion of a text: kept as a score, and below a threshold the document goes.

The kind of classifier that picks documents resembling a reference collection (GPT-3, Brown et al. 2020, appendix A;
DataComp-LM, Li et al. 2024). `refinery train-quality` trains one; any fastText model (.bin, .ftz) with a label fits.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from refinery.transforms.core.document import Document, Drop
from refinery.transforms.core.params import Params, Positive, Share
from refinery.transforms.core.stage import Note, Reason, Stage
from refinery.transforms.filter import fasttext_model
from refinery.transforms.filter.fasttext_model import FastTextModel

HIGH_QUALITY, LOW_QUALITY = "__label__hq", "__label__lq"

PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~«»‐–—‘’“”„…、。，！？：；（）「」"


class QualityParams(Params):
    """Which classifier, and how sure it has to be."""

    model: Annotated[str, Field(min_length=1)]
    """a fastText supervised model, local or `gs://`; `refinery train-quality` trains one"""
    label: Annotated[str, Field(min_length=1)] = HIGH_QUALITY
    """the label whose probability is the score"""
    threshold: Share = 0.5
    """the lowest score that is kept"""
    max_chars: Positive = 10_000
    """how much of the beginning of a text the classifier reads"""


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


def load_classifier(path: str) -> FastTextModel:
    """The model at `path`, once per process. Raises ValueError, one line, for a missing or foreign file."""
    try:
        return fasttext_model.load_model(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"model: {path!r} given, which cannot be loaded ({error})") from None


def check_quality(params: QualityParams) -> None:
    """Raises ValueError, one line, if the model is missing, foreign, or has no such label: for the launcher to call."""
    labels = sorted(load_classifier(params.model).labels)
    if params.label not in labels:
        raise ValueError(f"label: {params.label!r} given, {' or '.join(labels[:10])} is allowed for this model")


def score_quality(text: str, model: FastTextModel, params: QualityParams) -> float:
    """Probability of the label, 0 to 1; 0.0 for a text that the model knows nothing about."""
    return score_line(classifier_text(text, params.max_chars), model, params.label)


def score_line(line: str, model: FastTextModel, label: str) -> float:
    """Probability of `label` for what `classifier_text` returned."""
    for probability, found in model.predict(line + "\n", -1, 0.0):
        if found == label:
            return min(1.0, max(0.0, float(probability)))
    return 0.0


def judge_quality(doc: Document, model: FastTextModel, params: QualityParams) -> Document | Drop:
    """The document with its score (4 digits) in `meta["quality"]`, or "quality-score" for one below the threshold."""
    score = round(score_quality(doc.text, model, params), 4)
    if score < params.threshold:
        return Drop("quality-score")
    return replace(doc, meta={**doc.meta, "quality": score})


def load_model(params: QualityParams) -> FastTextModel:
    """The classifier that the parameters name, once per worker."""
    return load_classifier(params.model)


def model_files(params: QualityParams) -> tuple[str, ...]:
    """The model: its content decides the result."""
    return (params.model,)


QUALITY = Stage(
    name="quality",
    version=1,
    summary="Score every document with a fastText classifier and drop those below the threshold.",
    params=QualityParams,
    on=False,
    judge=judge_quality,
    prepare=load_model,
    check=check_quality,
    files=model_files,
    libraries=("fasttext-predict",),
    hint="refinery train-quality trains one",
    notes=(Note("quality", float, "the classifier's score, 0 to 1", column=True),),
    reasons=(
        Reason(
            "quality-score",
            "the classifier's score is below `threshold`",
            "lower it, or train with other examples",
            "Brown et al. 2020, appendix A; Li et al. 2024",
        ),
    ),
)
