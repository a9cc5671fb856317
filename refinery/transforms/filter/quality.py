"""Classifiers' opinions of a text: kept as scores, and by a rule for each the document stays or goes.

The kind of classifier that picks documents resembling a reference collection (GPT-3, Brown et al. 2020, appendix A;
DataComp-LM, Li et al. 2024). `refinery train-quality` trains one; any fastText model (.bin, .ftz) with a label fits.
Several may judge one text, as FineWeb-Edu's and DCLM's classifiers do in Nemotron-CC (Su et al. 2024, section 2.2).
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Annotated, ClassVar, Literal, Protocol, Self

from pydantic import Field, field_validator, model_validator

from refinery.transforms.core.document import Document, Drop, hash64
from refinery.transforms.core.params import Params, Positive, Share
from refinery.transforms.core.stage import Note, Reason, Stage
from refinery.transforms.filter import fasttext_model
from refinery.transforms.filter.fasttext_model import FastTextModel

QUALITY_COLUMN = "quality"
HIGH_QUALITY, LOW_QUALITY = "__label__hq", "__label__lq"

PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~«»‐–—‘’“”„…、。，！？：；（）「」"
MARK = re.compile(f"([{re.escape(PUNCTUATION)}])")


SCALE = 10_000  # scores are noted, and judged, with 4 digits

Text = Annotated[str, Field(min_length=1)]
Rule = Literal["threshold", "pareto", "note"]


class ParetoDraw(Protocol):
    """What a draw by GPT-3's rule depends on, beside the document and its score."""

    @property
    def name(self) -> str: ...
    @property
    def alpha(self) -> int: ...
    @property
    def seed(self) -> int: ...


class ClassifierParams(Params):
    """One classifier, and what its score decides."""

    LATER: ClassVar[tuple[str, ...]] = ("normalise", "bins")

    name: Text = "quality"
    """name of the score and of its column: lower-case letters, digits and `_`"""
    model: Text
    """a fastText supervised model, local, `gs://` or `s3://`; `refinery train-quality` trains one"""
    label: Text = HIGH_QUALITY
    """the label whose probability is the score"""
    normalise: bool = True
    """the model reads lower-case text with separated punctuation, as `refinery train-quality` trains it; off: the
    unchanged text on one line, as other models expect"""
    bins: tuple[Share, ...] = ()
    """ascending scores; the column `NAME_bin` counts how many of them the score reaches; empty: no such column"""
    rule: Rule = "threshold"
    """`threshold`: keep scores from `threshold` on; `pareto`: keep at random, more likely with a higher score; `note`:
    the score is only recorded"""
    threshold: Share = 0.5
    """the lowest score that `threshold` keeps"""
    alpha: Annotated[int, Field(ge=1, le=100)] = 9
    """shape of the Pareto distribution: a score of 0 is kept with the chance 2^-alpha; 9 is GPT-3's"""
    seed: int = 1
    """seed of the draws of `pareto`"""
    max_chars: Positive = 10_000
    """how many characters from the start of a text the classifier reads"""

    def idle(self) -> Iterator[tuple[str, str]]:
        """What other rules read."""
        if self.rule != "threshold":
            yield "threshold", f"the rule is {self.rule}"
        if self.rule != "pareto":
            yield from ((name, f"the rule is {self.rule}") for name in ("alpha", "seed"))

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        return column_name(name)

    @field_validator("bins")
    @classmethod
    def _check_bins(cls, bins: tuple[float, ...]) -> tuple[float, ...]:
        if any(second <= first for first, second in pairwise(bins)):
            raise ValueError(f"bins: {', '.join(map(str, bins))} given, rising scores are allowed")
        return bins


class QualityParams(ClassifierParams):
    """One classifier, described here, or several in `classifiers`; and how their verdicts make one."""

    model: str = ""
    """a fastText supervised model, local, `gs://` or `s3://`; `refinery train-quality` trains one; required without
    `classifiers`"""
    classifiers: tuple[ClassifierParams, ...] = ()
    """several classifiers instead of one, each with the keys above and its own column; the score of the first is
    also the column `quality`"""
    keep: Literal["all", "any"] = "all"
    """whether the rules of all classifiers must keep a document, or one is enough"""

    @model_validator(mode="after")
    def _check_classifiers(self) -> Self:
        if not self.classifiers:
            if not self.model:
                raise ValueError("model: '' (empty text) given, text that is not empty is allowed")
            return self
        # name, model, label, … describe one classifier: beside a list they would say nothing.
        beside = [key for key in ClassifierParams.model_fields if key != "model"]
        given = [key for key in beside if getattr(self, key) != ClassifierParams.model_fields[key].default]
        if self.model or given:
            key = "model" if self.model else given[0]
            raise ValueError(f"{key}: given beside classifiers; one of the two is allowed")
        names = [classifier.name for classifier in self.classifiers]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"classifiers: the name {twice[0]!r} given twice, every classifier needs its own name")
        if QUALITY_COLUMN in names[1:]:
            raise ValueError(f"classifiers: {QUALITY_COLUMN!r} given, the column of the first classifier's score")
        return self

    @property
    def chosen(self) -> Sequence[ClassifierParams]:
        """The classifiers, in order: those of the list, or the one that is described here."""
        return self.classifiers or (self,)


def classifier_text(text: str, max_chars: int) -> str:
    """What the classifier reads of a text, in training and in prediction: one line, lower case, punctuation apart.

    Follows fastText's tutorial on supervised learning. Since underscores, brackets and slashes stand alone, no text can
    forge a label ("__label__…") or an end of line ("</s>"). Lone surrogates become "?". Linear, about 40 MB/s.
    """
    line = text[:max_chars].lower().replace("\0", " ")
    line = " ".join(" ".join(MARK.split(line)).split())
    return line if line.isascii() else line.encode("utf-8", "replace").decode()


def column_name(name: str) -> str:
    """`name`, if a column may be called so. Raises ValueError."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name):
        raise ValueError(f"name: {name[:60]!a} given, up to 40 small letters, digits and _ are allowed")
    return name


def plain_line(text: str, max_chars: int) -> str:
    """The text's beginning on one line, otherwise as it is; the words "</s>", which would end the line, are not."""
    line = " ".join(text[:max_chars].replace("\0", " ").replace("</s>", " ").split())
    return line if line.isascii() else line.encode("utf-8", "replace").decode()


def model_lines(text: str) -> Callable[[int, bool], str]:
    """What models read of a text: (max_chars, normalise) -> a line, each made once."""

    @cache
    def line(max_chars: int, normalise: bool) -> str:
        return classifier_text(text, max_chars) if normalise else plain_line(text, max_chars)

    return line


def load_classifier(path: str) -> FastTextModel:
    """The model at `path`, once per process. Raises ValueError, one line, for a missing or foreign file."""
    try:
        return fasttext_model.load_model(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"model: {path!r} given, which cannot be loaded ({error})") from None


def check_quality(params: QualityParams) -> None:
    """Raises ValueError, one line, if a model is missing, foreign, or has no such label: for the launcher to call."""
    for index, classifier in enumerate(params.chosen):
        where = f"classifiers[{index}]." if params.classifiers else ""
        try:
            labels = sorted(load_classifier(classifier.model).labels)
        except ValueError as error:
            raise ValueError(f"{where}{error}") from None
        if classifier.label not in labels:
            known = " or ".join(labels[:10])
            raise ValueError(f"{where}label: {classifier.label!r} given, {known} is allowed for this model")


def score_line(line: str, model: FastTextModel, label: str) -> float:
    """Probability of `label`, 0 to 1, for a line of `model_lines`; 0.0 for one that the model knows nothing about."""
    for probability, found in model.predict(line + "\n", -1, 0.0):
        if found == label:
            return min(1.0, max(0.0, float(probability)))
    return 0.0


def pareto_keeps(document_id: bytes, points: int, params: ParetoDraw) -> bool:
    """GPT-3's rule `np.random.pareto(alpha) > 1 - score` (Brown et al. 2020, appendix A), drawn by hash.

    points: the score in units of 1 / SCALE. numpy's Pareto is Lomax's: it exceeds x with the chance (1 + x)^-alpha, so
    a uniform u below (2 - score)^-alpha keeps. Compared in integers: no rounding, so every machine decides alike. The
    draw depends on the document's id, the classifier's name and the seed alone.
    """
    draw = hash64("pareto", params.seed, params.name, document_id)
    return bool(draw * (2 * SCALE - points) ** params.alpha < SCALE**params.alpha << 64)


def verdict(document_id: bytes, points: int, params: ClassifierParams) -> str:
    """The reason against a document, "" for none. points: its score in units of 1 / SCALE."""
    if params.rule == "threshold":
        return "" if points / SCALE >= params.threshold else "quality-score"
    if params.rule == "pareto":
        return "" if pareto_keeps(document_id, points, params) else "quality-pareto"
    return ""


def judge_quality(doc: Document, models: Sequence[FastTextModel], params: QualityParams) -> Document | Drop:
    """The document with its score (4 digits) in `meta["quality"]`, and those of several by their names; or the reason
    of the first classifier in the list that refuses it, with all scores.

    With `keep: any`, one whose rule keeps it is enough; `note` has no say. models: in the order of the classifiers.
    Cost: of the first max_chars alone; classifiers that read the same share the line.
    """
    line = model_lines(doc.text)
    points: dict[str, int] = {}
    reasons: list[str] = []
    for classifier, model in zip(params.chosen, models, strict=True):
        text = line(classifier.max_chars, classifier.normalise)
        points[classifier.name] = round(score_line(text, model, classifier.label) * SCALE)
        if classifier.rule != "note":
            reasons.append(verdict(doc.id, points[classifier.name], classifier))
    scores = {name: score / SCALE for name, score in points.items()}
    against = [reason for reason in reasons if reason]
    if against and (params.keep == "all" or len(against) == len(reasons)):
        return Drop(against[0], scores, {c.name: c.threshold for c in params.chosen if c.rule == "threshold"})
    bins = {bin_column(c): bisect_right(c.bins, scores[c.name]) for c in params.chosen if c.bins}
    return replace(doc, meta={**doc.meta, QUALITY_COLUMN: next(iter(scores.values())), **scores, **bins})


def bin_column(params: ClassifierParams) -> str:
    """The column that says in which of its bins a classifier's score is."""
    return f"{params.name}_bin"


def asked_notes(params: QualityParams) -> Iterator[Note]:
    """A column for each classifier with a name of its own, and for bins."""
    for classifier in params.chosen:
        if classifier.name != QUALITY_COLUMN:
            yield Note(classifier.name, float, f"the score of the classifier {classifier.name}, 0 to 1", column=True)
        if classifier.bins:
            meaning = f"how many of {', '.join(map(str, classifier.bins))} the score {classifier.name} reaches"
            yield Note(bin_column(classifier), int, meaning, column=True)


def load_models(params: QualityParams) -> tuple[FastTextModel, ...]:
    """The classifiers that the parameters name, once per worker."""
    return tuple(load_classifier(classifier.model) for classifier in params.chosen)


def model_files(params: QualityParams) -> tuple[str, ...]:
    """The models: their content decides the result."""
    return tuple(dict.fromkeys(classifier.model for classifier in params.chosen))


QUALITY = Stage(
    name="quality",
    version=2,
    summary="Score every document with fastText classifiers and drop those that their rules refuse.",
    params=QualityParams,
    on=False,
    judge=judge_quality,
    prepare=load_models,
    check=check_quality,
    files=model_files,
    libraries=("fasttext-predict",),
    hint="refinery train-quality trains one",
    notes=(Note(QUALITY_COLUMN, float, "the (first) classifier's score, 0 to 1; others have their own", column=True),),
    asked_notes=asked_notes,
    reasons=(
        Reason(
            "quality-score",
            "a classifier's score is below `threshold`",
            "lower it, or train with other examples",
            "Brown et al. 2020, appendix A; Li et al. 2024",
        ),
        Reason(
            "quality-pareto",
            "`rule: pareto` drew against it; the probability of being kept is (2 - score)^-`alpha`",
            "lower `alpha`, or train with other examples",
            "Brown et al. 2020, appendix A",
        ),
    ),
)
