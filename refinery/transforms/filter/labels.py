"""What a text is about, and of which kind: the best label of classifiers with many. Nothing is dropped here.

Such classifiers sort the web by topic and by format (Wettig et al. 2025, "Organize the Web"); mixtures are then chosen
by label. Any supervised fastText model (.bin, .ftz) fits. The rule of the stage `keep` can judge by them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from refinery.transforms.core.document import Document
from refinery.transforms.core.params import Params, Positive, Share
from refinery.transforms.core.safe_text import printable
from refinery.transforms.core.stage import Note, Stage
from refinery.transforms.filter.fasttext_model import LABEL, FastTextModel
from refinery.transforms.filter.quality import column_name, load_classifier, model_lines


class LabelModelParams(Params):
    """One classifier with many labels."""

    name: Annotated[str, Field(min_length=1)]
    """the column of the label, such as `topic`; lower-case letters, digits and `_`. Its probability is `NAME_score`"""
    model: Annotated[str, Field(min_length=1)]
    """a fastText supervised model, local, `gs://` or `s3://`"""
    min_score: Share = 0.0
    """below this probability the label is empty"""
    normalise: bool = True
    """the model reads lower-case text with separated punctuation; off: the unchanged text on one line"""
    max_chars: Positive = 10_000
    """how many characters from the start of a text the classifier reads"""

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        return column_name(name)


class LabelsParams(Params):
    """Which classifiers."""

    models: Annotated[tuple[LabelModelParams, ...], Field(min_length=1)]
    """the classifiers, each with its own column"""

    @model_validator(mode="after")
    def _check_models(self) -> Self:
        names = [model.name for model in self.models]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"models: the name {twice[0]!r} given twice, every model needs its own name")
        return self


def score_column(params: LabelModelParams) -> str:
    """The column of the label's probability."""
    return f"{params.name}_score"


def judge_labels(doc: Document, models: Sequence[FastTextModel], params: LabelsParams) -> Document:
    """The document with each model's best label (without "__label__") and its probability (4 digits) in its meta.

    An empty label and 0.0 for a text that a model knows nothing about; an empty one below `min_score`. Of labels with
    the same probability the first of the model's own order. Cost: of the first max_chars alone, per model.
    """
    line = model_lines(doc.text)
    found: dict[str, str | float] = {}
    for asked, model in zip(params.models, models, strict=True):
        best = model.predict(line(asked.max_chars, asked.normalise) + "\n", 1, 0.0)
        score, label = best[0] if best else (0.0, "")
        score = round(min(1.0, max(0.0, float(score))), 4)
        found[asked.name] = printable(label.removeprefix(LABEL)) if score >= asked.min_score else ""
        found[score_column(asked)] = score
    return replace(doc, meta={**doc.meta, **found})


def load_models(params: LabelsParams) -> tuple[FastTextModel, ...]:
    """The models, once per worker. Raises ValueError, one line, for a missing or foreign file."""
    loaded = []
    for index, asked in enumerate(params.models):
        try:
            loaded.append(load_classifier(asked.model))
        except ValueError as error:
            raise ValueError(f"models[{index}].{error}") from None
    return tuple(loaded)


def model_files(params: LabelsParams) -> tuple[str, ...]:
    """The models: their content decides the result."""
    return tuple(dict.fromkeys(asked.model for asked in params.models))


def asked_notes(params: LabelsParams) -> Iterator[Note]:
    """Two columns for each model."""
    for asked in params.models:
        yield Note(asked.name, str, f"best label of the classifier {asked.name}", column=True, category=True)
        yield Note(score_column(asked), float, f"probability of the label in `{asked.name}`, 0 to 1", column=True)


LABELS = Stage(
    name="labels",
    version=1,
    summary="Record the best label of each classifier, such as a topic or a format.",
    params=LabelsParams,
    on=False,
    judge=judge_labels,
    prepare=load_models,
    files=model_files,
    libraries=("fasttext-predict",),
    asked_notes=asked_notes,
)
