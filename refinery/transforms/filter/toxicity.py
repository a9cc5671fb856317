"""Abuse by density: a page goes only when it is full of listed words or of toxic sentences, not because it has some.

C4 removes every page that holds a single listed word, which takes texts by and about minorities with it (Dodge et al.
2021, "Documenting Large Webtext Corpora"). Here a page must have both: weight of hits, and much of it for its length.
Slurs weigh three times what profanity does, words that are only mentioned a tenth, and names of groups are not listed.

`transforms/filter/toxic/` holds the lists, how they are found in plain and in disguise, what is a mention, and how a
classifier is asked.
"""

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated

from pydantic import Field

import refinery.transforms.filter.toxic.words as data
from refinery.transforms.core.document import Document, Drop
from refinery.transforms.core.params import Params, Share
from refinery.transforms.core.resources import read_resource
from refinery.transforms.core.stage import Note, Reason, Stage
from refinery.transforms.filter.fasttext_model import FastTextModel
from refinery.transforms.filter.quality import load_classifier
from refinery.transforms.filter.toxic.folding import Skeletons, find_obfuscated, fold, make_skeletons
from refinery.transforms.filter.toxic.lexicon import Lexicon, built_in, find_hits, make_lexicon, split_words
from refinery.transforms.filter.toxic.mention import find_mentions
from refinery.transforms.filter.toxic_sentences import TOXIC, toxic_share
from refinery.transforms.native.heuristics import measure


class ToxicityParams(Params):
    """Which words, and how many are too many; which classifier, if any."""

    builtin: bool = True
    """the project's own lists by language: slurs weigh 3, profanity and insults 1, ruder words of ordinary prose 0.5"""
    word_lists: tuple[str, ...] = ()
    """files, local, `gs://` or `s3://`, UTF-8, a word or phrase per line, `#` begins a comment line; each weighs 1"""
    words: tuple[str, ...] = ()
    """entries given here, in addition"""
    max_density: Annotated[float, Field(ge=0, le=1000)] | None = 15.0
    """weight of hits per 1,000 words above which a document with `min_hits` is dropped; null: never"""
    min_hits: Annotated[float, Field(gt=0)] = 3.0
    """weight of hits that a document must have to be dropped"""
    quoted_weight: Share = 0.1
    """weight of a hit in quotation marks or in reported speech; 1: the same as elsewhere"""
    obfuscation: bool = True
    """also find entries in disguise: spaced or dotted letters, digits, look-alikes, full width, stretched letters"""
    model: str | None = None
    """a classifier from `refinery train-toxicity`, local, `gs://` or `s3://`"""
    threshold: Share = 0.5
    """minimum probability at which the classifier calls a sentence toxic"""
    max_toxic_share: Share = 0.3
    """share of a document's characters in toxic sentences above which it is dropped"""


@dataclass(frozen=True, slots=True)
class Tables:
    """What a worker prepares: lists by language, made when a language is first met, and the classifier."""

    params: ToxicityParams
    own: tuple[str, ...]
    model: FastTextModel | None = None
    by_language: dict[str, tuple[Lexicon, Skeletons]] = field(default_factory=dict)

    def of(self, language: str) -> tuple[Lexicon, Skeletons]:
        """Lists and skeletons for documents of a language, "" where it is not known."""
        known = language if language in LISTED or not language else "en"
        if known not in self.by_language:
            listed = built_in(known) if self.params.builtin else {}
            lexicon = make_lexicon([*listed.items(), *((entry, 1.0) for entry in self.own)])
            self.by_language[known] = lexicon, make_skeletons(lexicon)
        return self.by_language[known]


LISTED = frozenset(data.SEVERE) | frozenset(data.STRONG) | frozenset(data.MILD) | frozenset(data.ORDINARY)


@lru_cache(maxsize=8)
def load_lexicon(params: ToxicityParams) -> Tables:
    """Lists and classifier, once per process.

    Raises OSError for a missing list, UnicodeDecodeError for one that is not UTF-8, ValueError for a missing or foreign
    model.
    """
    lines = list(params.words)
    for path in params.word_lists:
        text = read_resource(path).decode("utf-8-sig")
        lines += [line for line in text.splitlines() if not line.startswith("#")]
    own = tuple(line for line in lines if split_words(line.casefold()))
    return Tables(params, own, load_classifier(params.model) if params.model else None)


def measure_toxicity(text: str, tables: Tables, language: str = "") -> tuple[float, float]:
    """Weight of the hits, and the same per 1,000 words (0.0 for a text without words).

    Cost: linear; about 50 MB/s of clean English. Raises UnicodeEncodeError for lone surrogates.
    """
    lexicon, skeletons = tables.of(language)
    folded, data = fold(text)
    hits = find_hits(folded, lexicon, data)
    if tables.params.obfuscation:
        hits = sorted([*hits, *find_obfuscated(folded, skeletons, language, hits, data)])
    if not hits:
        return 0.0, 0.0
    mentions = find_mentions(folded, hits, language)
    weights = (
        hit.weight * (tables.params.quoted_weight if mention else 1.0)
        for hit, mention in zip(hits, mentions, strict=True)
    )
    total = round(sum(weights), 4)
    return total, 1000 * total / max(1, measure(folded, (), 0, 0, 0, 0, 0).alnum_words)


def judge_toxicity(doc: Document, tables: Tables, params: ToxicityParams) -> Document | Drop:
    """The document with its density in `meta["toxicity"]` (weight per 1,000 words, 4 digits), or why it goes.

    Raises UnicodeEncodeError for lone surrogates.
    """
    hits, density = measure_toxicity(doc.text, tables, str(doc.meta.get("language", "")))
    if params.max_density is not None and hits >= params.min_hits and density > params.max_density:
        return Drop("toxic-density", {"toxicity": round(density, 4)}, {"toxicity": params.max_density})
    if tables.model is not None and toxic_share(doc.text, tables.model, params.threshold) > params.max_toxic_share:
        return Drop("toxic-score")
    return replace(doc, meta={**doc.meta, "toxicity": round(density, 4)})


def check_toxicity(params: ToxicityParams) -> None:
    """Raises OSError or ValueError, one line, for a list or model that cannot be read or lacks the label."""
    model = load_lexicon(params).model
    if model is not None and TOXIC not in model.labels:
        raise ValueError(
            f"model: {params.model!r} given, which has no label {TOXIC}; refinery train-toxicity makes one"
        )


def list_files(params: ToxicityParams) -> tuple[str, ...]:
    """Files whose content decides the result."""
    return (*params.word_lists, *([params.model] if params.model else []))


TOXICITY = Stage(
    name="toxicity",
    version=2,
    summary="Drop documents that are dense with listed words, or, with a classifier, with toxic sentences.",
    concerns=("harmful",),
    params=ToxicityParams,
    judge=judge_toxicity,
    prepare=load_lexicon,
    check=check_toxicity,
    files=list_files,
    libraries=("google-re2", "fasttext-predict"),
    notes=(Note("toxicity", float, "weight of listed words per 1,000 words"),),
    reasons=(
        Reason(
            "toxic-density",
            "listed words weigh at least `min_hits` and more than `max_density` per 1,000 words",
            "raise either, or give another list; `max_density: null` switches it off",
            "Raffel et al. 2020 (lists); Dodge et al. 2021 (why not by presence); Röttger et al. 2021 (mention)",
        ),
        Reason(
            "toxic-score",
            "more than `max_toxic_share` of the text is in sentences that the classifier scores at `threshold` or more",
            "raise either, or train with other examples; without `model` it is off",
            "Joulin et al. 2016; Soldaini et al. 2024 (Dolma: sentences scored by fastText)",
        ),
    ),
)
