"""Word lists by density: a page goes only when it is full of the listed words, not because it mentions one.

C4 removes every page that holds a single listed word, which takes texts by and about minorities with it (Dodge et al.
2021, "Documenting Large Webtext Corpora"). Here a page must have both: several hits, and many for its length.

No `from __future__ import annotations` here: Beam reads these hints.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

import apache_beam as beam
import re2

from transforms.document import Document, Drop
from transforms.native import scripts
from transforms.per_document import PerDocument, RejectParams
from transforms.resources import read_resource

# A small list of explicit English words, so that the stage works without a file; serious use names its own lists.
DEFAULT_WORDS = (
    "asshole",
    "blowjob",
    "bullshit",
    "cumshot",
    "cunt",
    "fuck",
    "fucked",
    "fucker",
    "fucking",
    "gangbang",
    "milf",
    "motherfucker",
    "porn",
    "porno",
    "shit",
    "slut",
    "sluts",
    "whore",
    "whores",
)

# Scripts written without spaces (Thai, Khmer, Han, kana and others): each of their characters is a word of its own.
UNSPACED = "".join(f"{chr(first)}-{chr(last)}" for first, last in scripts.unspaced())
HINT_MEMORY = 64 << 20
END = ""  # never a word


@dataclass(frozen=True)
class ToxicityParams:
    """Which words, and how many are too many.

    word_lists: files, local or gs://, UTF-8, an entry per line, "#" begins a comment line. words: entries given here,
    in addition. An entry is a word or a phrase. A document is dropped when it has at least min_hits hits and more than
    max_density hits per 1,000 words.
    """

    word_lists: tuple[str, ...] = ()
    words: tuple[str, ...] = DEFAULT_WORDS
    max_density: float = 10.0
    min_hits: int = 3

    def __post_init__(self) -> None:
        if not 0 <= self.max_density <= 1000:
            raise ValueError(f"max_density: {self.max_density} given, 0 to 1000 hits per 1,000 words is allowed")
        if self.min_hits < 1:
            raise ValueError(f"min_hits: {self.min_hits} given, 1 or more is allowed")

    def files(self) -> tuple[str, ...]:
        """Every file that these parameters read."""
        return self.word_lists


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The entries as a tree of words: each node leads from a word to the next node; END marks where an entry ends.

    hint: a pattern that matches, in the case-folded UTF-8 of a text, wherever the first word of an entry may stand;
    most texts are done with it. None if there are too many entries for one.
    """

    tree: dict[str, Any]
    hint: Any


def _marks() -> str:
    """Combining marks of the basic plane as a regular expression's ranges: part of a word, though `\\w` lacks most."""
    ranges: list[list[int]] = []
    for point in range(0x300, 0x10000):
        if unicodedata.category(chr(point)).startswith("M"):
            if ranges and ranges[-1][1] == point - 1:
                ranges[-1][1] = point
            else:
                ranges.append([point, point])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


WORD = re.compile(f"[{UNSPACED}]|(?:[^\\W{UNSPACED}]|(?![{UNSPACED}])[{_marks()}])+")


def split_words(text: str) -> list[str]:
    """Words of a case-folded text; punctuation and spaces are left out. Linear, about 20 MB/s."""
    return WORD.findall(text)


@lru_cache(maxsize=8)
def load_lexicon(params: ToxicityParams) -> Lexicon:
    """The entries of all lists, once per process. Raises OSError for a missing file, UnicodeDecodeError for another."""
    lines = list(params.words)
    for path in params.word_lists:
        text = read_resource(path).decode("utf-8-sig")
        lines += [line for line in text.splitlines() if not line.startswith("#")]
    tree: dict[str, Any] = {}
    for line in lines:
        node = tree
        for word in split_words(line.casefold()):
            node = node.setdefault(word, {})
        if node is not tree:
            node[END] = {}
    return Lexicon(tree, _hint(sorted(tree)))


def _hint(heads: Iterable[str]) -> Any:
    """A linear-time pattern that misses no entry: ASCII heads between ASCII boundaries, others as bare substrings."""
    bounded = [head.encode() for head in heads if head.isascii()]
    bare = [re2.escape(head.encode()) for head in heads if not head.isascii()]
    options = re2.Options()
    options.max_mem = HINT_MEMORY
    options.log_errors = False
    options.encoding = re2.Options.Encoding.LATIN1
    whole = rb"(?:^|[^a-z0-9_])(?:" + b"|".join(bounded) + rb")(?:$|[^a-z0-9_])"
    try:
        return re2.compile(b"|".join([*([whole] if bounded else []), *bare]) or rb"[^\x00-\xff]", options)
    except re2.error:
        return None


def count_hits(words: Sequence[str], lexicon: Lexicon) -> int:
    """Positions in `words` where an entry begins. Cost: a lookup per word, and at a hit one per word of the entry."""
    hits = 0
    for i, word in enumerate(words):
        node = lexicon.tree.get(word)
        while node is not None:
            if END in node:
                hits += 1
                break
            i += 1
            node = node.get(words[i]) if i < len(words) else None
    return hits


def measure_toxicity(text: str, lexicon: Lexicon) -> tuple[int, float]:
    """Hits, and hits per 1,000 words (0.0 for a text without words)."""
    folded = text.casefold()
    if lexicon.hint is not None and not lexicon.hint.search(folded.encode()):
        return 0, 0.0
    words = split_words(folded)
    hits = count_hits(words, lexicon)
    return hits, 1000 * hits / len(words) if hits else 0.0


def judge_toxicity(doc: Document, lexicon: Lexicon, params: ToxicityParams) -> Document | Drop:
    """The document with its density in `meta["toxicity"]` (hits per 1,000 words, 4 digits), or "toxic-density".

    Raises UnicodeEncodeError for lone surrogates.
    """
    hits, density = measure_toxicity(doc.text, lexicon)
    if hits >= params.min_hits and density > params.max_density:
        return Drop("toxic-density")
    return replace(doc, meta={**doc.meta, "toxicity": round(density, 4)})


@dataclass
class FilterToxicity(beam.PTransform):
    """Drop documents that are dense with listed words."""

    params: ToxicityParams = field(default_factory=ToxicityParams)
    rejects: RejectParams = field(default_factory=RejectParams)

    def expand(self, docs: beam.PCollection[Document]) -> beam.PCollection[Document]:
        judge = partial(judge_toxicity, params=self.params)
        return docs | PerDocument("toxicity", judge, partial(load_lexicon, self.params), self.rejects)
