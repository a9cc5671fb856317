"""How much of a text known licences cover, and what is left of it.

Known are texts and notices of licences that may be allowed, as hashes of five consecutive words (shingles); texts that
may not be allowed are not known and so not covered. `python -m tools.known_licenses` makes the data file.
"""

import re
import zlib
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from refinery.transforms.code.licences.license_expressions import identifiers, licence_class
from refinery.transforms.code.licences.license_rules import DENIED
from refinery.transforms.code.licences.license_words import plain

SHINGLE = 5  # words
DATA = Path(__file__).with_name("known_licenses.npz")
MOST_PICKED = 16  # known texts that are picked for one text; what others would cover is left
CONTAINED = 0.9  # share of a known text that has to be there before it counts
MAX_NAME = 14  # words in the place of a name
NEW_WORDS = 4  # words that a known text has to cover beyond those before it

_YEAR = re.compile(r"(?:19|20)\d\d")
_WORD = re.compile(r"[^\W_]+(?:\+(?!\w))?")
_HYPHEN = re.compile(r"([a-z])-[^\S\n]*\n[\s*/#;!-]*([a-z])")  # no two parts take the same character: linear
_BREAK = re.compile(
    r"(?<![\W_][a-z])[.!?](?=\s|$)|[:;][^\S\n]*(?=\n|$)|\n[^\w\n]*\n|\n[^\w\n]{0,40}(?=[-*•\d(]{1,8}[\s.)])"
)
_BEFORE_NAME = re.compile(
    r"\b(?:names? of(?: the)?|neither the|(?:provided|developed|contributed|written) by(?: the)?"
    r"|(?:permission|consent) (?:of|from)(?: the)?|trademarks? of(?: the)?|event (?:shall|will)(?: the)?)$"
)
_BEHIND_NAME = re.compile(
    r"(?:be|is|are) (?:held )?liable|(?:specifically )?disclaims?\b|makes? no"
    r"|(?:and|or|nor) (?:\w+ ){0,3}(?:contributors|names)\b|as is\b|all rights reserved"
    r"|not be used|nor may|shall not be used"
)
"""What stands before and behind the names that differ between copies of a licence."""
_PARTY_WORDS = """
author authors code contributor contributors file holder holders library module owner owners package program project
software work
"""
_PARTY = frozenset(_PARTY_WORDS.split())
"""Words that copies of a licence exchange for each other."""
_MULTIPLIER = 0x9E3779B97F4A7C15


class Words(NamedTuple):
    """The words of a text in small letters, where each begins, and whether a sentence begins with it."""

    words: list[str]
    places: list[int]
    begins: NDArray[np.bool_]


class Cover(NamedTuple):
    """expressions: of the known texts that were picked, the one that covers most first. covered: which words they
    cover. cut: words at which something known is left out of a
    sentence, and words that are put into one. pooled: the same of all known texts
    together, also of those that are not there as a whole."""

    expressions: tuple[str, ...]
    covered: NDArray[np.bool_]
    cut: NDArray[np.bool_]
    pooled: "Cover | None" = None


class Known(NamedTuple):
    """hashes: ascending. first, texts: which texts have each hash, as offsets and numbers. sizes: distinct hashes of
    each text. needed: how many of them have to be there. expression: of each text, its position in expressions."""

    hashes: NDArray[np.uint32]
    first: NDArray[np.int64]
    texts: NDArray[np.uint16]
    sizes: NDArray[np.int64]
    needed: NDArray[np.float64]
    expression: NDArray[np.int64]
    expressions: tuple[str, ...]


def split_words(text: str) -> Words:
    """The words of a text; those divided at the end of a line are joined, and "licence" is "license". Linear."""
    small = _HYPHEN.sub(r"\1\2", plain(text).lower()).replace("licence", "license")
    found = [(match[0], match.start()) for match in _WORD.finditer(small)]
    words, places = [word for word, _ in found], [place for _, place in found]
    begins = np.zeros(len(words), np.bool_)
    ends = [match.end() for match in _BREAK.finditer(small)]
    after = np.searchsorted(places, ends)
    begins[after[after < len(words)]] = True
    begins[:1] = True
    return Words(words, places, begins)


def shingle_hashes(words: list[str]) -> NDArray[np.uint32]:
    """The hash of every SHINGLE consecutive words."""
    if len(words) < SHINGLE:
        return np.empty(0, np.uint32)
    single = np.array([zlib.crc32(word.encode()) for word in words], np.uint64)
    count = len(words) - SHINGLE + 1
    mixed = np.zeros(count, np.uint64)
    for place in range(SHINGLE):
        mixed = (mixed ^ single[place : place + count]) * np.uint64(_MULTIPLIER)
        mixed ^= mixed >> np.uint64(29)
    return (mixed >> np.uint64(32)).astype(np.uint32)


@cache
def known() -> Known:
    """The data file, read once."""
    with np.load(DATA) as data:
        return unpack({name: data[name] for name in data.files})


def unpack(data: dict[str, NDArray[np.generic]]) -> Known:
    """What `pack` of tools/known_licenses.py made. A text that adds to a licence which is denied by itself, such as an
    exception to the GPL, has to be there as a whole."""
    names = tuple(bytes(data["expressions"]).decode().split("\n"))
    hashes = data["hashes"].astype(np.uint32)
    first = np.concatenate([[0], np.cumsum(data["counts"], dtype=np.int64)])
    texts = data["texts"].astype(np.uint16)
    expression = data["expression"].astype(np.int64)
    sizes = np.bincount(texts, minlength=len(expression))
    adds = np.array([_adds(name) for name in names], np.bool_)
    needed = np.where(adds[expression], sizes, CONTAINED * sizes)
    return Known(hashes, first, texts, sizes, needed, expression, names)


def _adds(expression: str) -> bool:
    parts = identifiers(expression)
    return len(parts) > 1 and any(licence_class(part) == DENIED for part in parts)


def cover(words: Words, data: Known | None = None) -> Cover:
    """What known texts cover of a text. Cost: the texts that have its shingles, about a millisecond for 500 words."""
    data = data or known()
    size = len(words.words)
    covered = np.zeros(size, np.bool_)
    hashes = shingle_hashes(words.words)
    place = np.minimum(np.searchsorted(data.hashes, hashes), len(data.hashes) - 1)
    hit = data.hashes[place] == hashes if len(hashes) else np.zeros(0, np.bool_)
    distinct = np.unique(place[hit])
    if not len(distinct):
        return Cover((), covered, np.zeros(size, np.bool_))
    begins, counts = data.first[distinct], data.first[distinct + 1] - data.first[distinct]
    postings = np.repeat(begins - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts) + np.arange(counts.sum())
    texts = data.texts[postings]
    found = np.bincount(texts, minlength=len(data.sizes))
    is_whole = found >= data.needed
    whole = np.flatnonzero(is_whole & (found > 0))
    of_whole = is_whole[texts]
    texts, owner = texts[of_whole], np.repeat(np.arange(len(distinct)), counts)[of_whole]
    by_text = np.argsort(texts, kind="stable")
    ends = np.searchsorted(texts[by_text], whole, "right")
    owner = owner[by_text]
    order = np.lexsort([whole, -found[whole] / data.sizes[whole], -found[whole]])
    local = np.searchsorted(distinct, place)  # of a shingle that is known, its position in distinct
    local[~hit] = len(distinct)
    used = np.zeros(len(distinct) + 1, np.bool_)
    picked: list[int] = []
    for position in order.tolist():
        own = owner[ends[position] - found[whole[position]] : ends[position]]
        if used[own].all():
            continue
        marked = used.copy()
        marked[own] = True
        spread = _spread(marked[local], size)
        if np.count_nonzero(spread) - np.count_nonzero(covered) >= NEW_WORDS:
            covered, used = spread, marked
            picked.append(whole[position])
        if len(picked) == MOST_PICKED:
            break
    matched = used[local]
    names = dict.fromkeys(data.expressions[data.expression[text]] for text in picked)
    every = _spread(hit, size)
    pooled = Cover((), every, _cuts(hit, every, words.begins) | _put_in(words, every))
    cut = _cuts(matched, covered, words.begins) | _put_in(words, covered)
    return Cover(tuple(names), covered, cut, pooled)


def _spread(shingles: NDArray[np.bool_], size: int) -> NDArray[np.bool_]:
    """The words of these shingles."""
    words = np.zeros(size, np.bool_)
    for place in range(SHINGLE):
        words[place : place + len(shingles)] |= shingles
    return words


def _cuts(matched: NDArray[np.bool_], covered: NDArray[np.bool_], begins: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Words of shingles that are not known although each of their words is covered, within one sentence."""
    count = len(matched)
    inside = np.ones(count, np.bool_)
    for place in range(SHINGLE):
        inside &= covered[place : place + count]
        if place:
            inside &= ~begins[place : place + count]
    return _spread(~matched & inside, len(covered))


def _put_in(words: Words, covered: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Words that are not covered between covered words of one sentence, and are not in the place of a name."""
    out = np.zeros(len(covered), np.bool_)
    edges = np.flatnonzero(np.diff(covered.astype(np.int8), prepend=0, append=0))
    ends = edges[1::2]  # of covered pieces; the next piece begins at the edge after it
    for begin, end in zip(ends.tolist(), edges[2::2].tolist(), strict=False):
        if not words.begins[begin : end + 1].any():
            before, behind = words.words[max(0, begin - 6) : begin], words.words[end : end + 4]
            own = words.words[begin:end]
            marked = any(word.startswith("copyright") or _YEAR.fullmatch(word) for word in [*own, *before[-3:]])
            named = _BEFORE_NAME.search(" ".join(before)) or _BEHIND_NAME.match(" ".join(behind))
            out[begin:end] = not (((marked or named) and end - begin <= MAX_NAME) or _PARTY.issuperset(own))
    return out
