"""How surprising a text is to a language model of good text in its language; CCNet's head, middle and tail.

CCNet (Wenzek et al. 2020, section 4.2) sorts pages by the perplexity of a KenLM model of Wikipedia, per language, and
cuts at percentiles. Here the model is the project's own (ngram_model.py): KenLM maps its files into memory without
checking them, and its trainer is in no package of Python. Each document's language is what the stage `language` noted.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from refinery.transforms.core.answers import Answer
from refinery.transforms.core.document import Document, Drop
from refinery.transforms.core.params import Params
from refinery.transforms.core.stage import Note, Reason, Stage
from refinery.transforms.filter.ngram_model import NgramModel, load_model

ANY_LANGUAGE = "*"
LANGUAGE = re.compile(r"[a-z]{2,3}")  # a label of lid.176; anything else is counted with ANY_LANGUAGE
BUCKETS = ("head", "middle", "tail")

Percent = Annotated[float, Field(ge=0, le=100)]


class PerplexityParams(Params):
    """Which models, and how surprising a text may be. Percentiles are those of the texts that a model was measured
    on: a tenth of its own, or the sample that `refinery train-perplexity --sample` named."""

    models: Annotated[Mapping[str, str], Field(min_length=1)]
    """language code, or `*` for all other documents, -> a model of `refinery train-perplexity`, local,
    `gs://` or `s3://`; documents in languages without one pass"""
    head: Percent = 33.3
    """percentile up to which a text is `head`; the defaults are CCNet's thirds"""
    middle: Percent = 66.7
    """percentile up to which it is `middle`; above it is `tail`"""
    keep: tuple[Literal["head", "middle", "tail"], ...] = ("head", "middle")
    """which parts to keep"""
    lowest: Percent = 0.0
    """percentile below which a text is also dropped, because lists and boilerplate often have a very low perplexity;
    0 switches it off"""

    @model_validator(mode="after")
    def _check_percentiles(self) -> Self:
        if self.middle < self.head:
            raise ValueError(f"middle: {self.middle} given, head ({self.head}) or more is allowed")
        if not self.keep:
            raise ValueError("keep: a list of 0 values given, 1 or more are allowed")
        return self


def load_models(params: PerplexityParams) -> dict[str, NgramModel]:
    """The models, once per process; their memory is the size of their files. Raises ValueError, one line."""
    models = {}
    for language, path in params.models.items():
        try:
            models[language] = load_model(path)
        except (OSError, ValueError) as error:
            raise ValueError(f"models.{language}: {path!r} given, which cannot be loaded ({error})") from None
    return models


def bucket_of(perplexity: float, model: NgramModel, params: PerplexityParams) -> str:
    """head, middle or tail."""
    if perplexity <= model.at(params.head):
        return "head"
    return "middle" if perplexity <= model.at(params.middle) else "tail"


def judge_perplexity(
    doc: Document, models: Mapping[str, NgramModel], params: PerplexityParams
) -> Document | Drop | Answer:
    """The document with its `perplexity` and `perplexity_bucket`, or the reason against it, with the number for the
    distribution of its language. One in a language without a model passes as it is; one without words is tail, without
    a number. Linear."""
    language = str(doc.meta.get("language", ""))
    model = models.get(language, models.get(ANY_LANGUAGE))
    if model is None:
        return doc
    perplexity = model.perplexity(doc.text)
    if perplexity is None:
        kept = replace(doc, meta={**doc.meta, "perplexity_bucket": "tail"})
        return kept if "tail" in params.keep else Drop("perplexity-high")
    series = language if LANGUAGE.fullmatch(language) else ANY_LANGUAGE
    return Answer(_judge(doc, perplexity, model, params), series=series, value=perplexity)


def _judge(doc: Document, perplexity: float, model: NgramModel, params: PerplexityParams) -> Document | Drop:
    if params.lowest > 0 and perplexity < model.at(params.lowest):
        return Drop("perplexity-low")
    bucket = bucket_of(perplexity, model, params)
    if bucket not in params.keep:
        above = BUCKETS.index(bucket) > min(map(BUCKETS.index, params.keep))
        return Drop("perplexity-high" if above else "perplexity-low")
    return replace(doc, meta={**doc.meta, "perplexity": perplexity, "perplexity_bucket": bucket})


def model_files(params: PerplexityParams) -> tuple[str, ...]:
    """The models: their content decides the result."""
    return tuple(dict.fromkeys(params.models.values()))


PERPLEXITY = Stage(
    name="perplexity",
    version=1,
    summary="Drop documents to which a language model of good text assigns a high perplexity.",
    params=PerplexityParams,
    on=False,
    judge=judge_perplexity,
    prepare=load_models,
    files=model_files,
    hint="refinery train-perplexity trains one",
    notes=(
        Note("perplexity", float, "of the text to its language's model, 2 digits"),
        Note("perplexity_bucket", str, "head, middle or tail", category=True),
    ),
    reasons=(
        Reason(
            "perplexity-high",
            "the perplexity is above the percentiles that `keep` allows, or the text has no words",
            "keep `tail`, raise `middle`, or measure percentiles on a sample of the crawl",
            "Wenzek et al. 2020, section 4.2",
        ),
        Reason(
            "perplexity-low",
            "the perplexity is below the percentile `lowest`, or below those that `keep` allows",
            "lower `lowest`",
            "Wenzek et al. 2020, section 4.2",
        ),
    ),
)
