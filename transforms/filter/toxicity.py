"""Word lists by density: a page goes only when it is full of the listed words, not because it mentions one.

C4 removes every page that holds a single listed word, which takes texts by and about minorities with it (Dodge et al.
2021, "Documenting Large Webtext Corpora"). Here a page must have both: several hits, and many for its length.

No `from __future__ import annotations` here: Beam reads these hints.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any

import re2
from pydantic import Field

from refinery.transforms.core.document import Document, Drop
from refinery.transforms.core.params import Params, Positive
from refinery.transforms.core.resources import read_resource
from refinery.transforms.core.stage import Note, Reason, Stage
from refinery.transforms.native import scripts

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


class ToxicityParams(Params):
    """Which words, and how many are too many. An entry is a word or a phrase."""

    word_lists: tuple[str, ...] = ()
    """files, local or `gs://`, UTF-8, an entry per line, `#` begins a comment line"""
    words: tuple[str, ...] = DEFAULT_WORDS
    """entries given here, in addition"""
    max_density: Annotated[float, Field(ge=0, le=1000)] = 10.0
    """hits per 1,000 words above which a document with `min_hits` hits is dropped"""
    min_hits: Positive = 3
    """hits that a document must have to be dropped"""


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


def list_files(params: ToxicityParams) -> tuple[str, ...]:
    """Files whose content decides the result."""
    return params.word_lists


TOXICITY = Stage(
    name="toxicity",
    version=1,
    summary="Drop documents that are dense with listed words.",
    params=ToxicityParams,
    judge=judge_toxicity,
    prepare=load_lexicon,
    files=list_files,
    libraries=("google-re2",),
    notes=(Note("toxicity", float, "hits per 1,000 words"),),
    reasons=(
        Reason(
            "toxic-density",
            "at least `min_hits` listed words and more than `max_density` per 1,000",
            "raise either, or give another list",
        ),
    ),
)
