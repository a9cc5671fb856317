"""Listed words as a tree and a pattern, by language, and where a text has them.

The pattern finds candidates in UTF-8 (RE2, linear, about 1 GB/s where nothing is found); only there is the text split
into words.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import re2

import refinery.transforms.filter.toxic.words as data
from refinery.transforms.native import scripts
from refinery.transforms.redaction.pii_types.lazy_pattern import LazyPattern

# Scripts written without spaces (Thai, Khmer, Han, kana and others): each of their characters is a word of its own.
UNSPACED = "".join(f"{chr(first)}-{chr(last)}" for first, last in scripts.unspaced())
HINT_MEMORY = 64 << 20
LONGEST_WORD = 100  # characters; of a longer one this many are compared
END = ""  # never a word
WEIGHTS = ((data.SEVERE, 3.0), (data.STRONG, 1.0), (data.MILD, 0.5), (data.HARMLESS, 0.0))


class Hit(NamedTuple):
    """text[start:end] is an entry of this weight."""

    start: int
    end: int
    weight: float


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Entries with their weights.

    entries: words of an entry -> weight. tree: each node leads from a word to the next node; END holds the weight of an
    entry that ends there. hint: a pattern that matches, in the case-folded UTF-8 of a text, wherever an entry begins.
    """

    entries: Mapping[tuple[str, ...], float]
    tree: dict[str, Any]
    hint: Any


@cache
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


WORD: Any = LazyPattern(lambda: re.compile(f"[{UNSPACED}]|(?:[^\\W{UNSPACED}]|(?![{UNSPACED}])[{_marks()}])+"))
ASCII_WORD = re.compile(rb"[a-z0-9_]+")
ONE_UNSPACED = re.compile(f"[{UNSPACED}]")


def split_words(text: str) -> list[str]:
    """Words of a case-folded text; punctuation and spaces are left out. Linear, about 20 MB/s."""
    words: list[str] = WORD.findall(text)
    return words


def inflected(listed: str, language: str) -> Iterator[str]:
    """The forms of a list in the notation of words.py."""
    rules = data.ENDINGS[""] | data.ENDINGS.get(language, {})
    for entry in listed.split():
        stem, _, rule = entry.replace("_", " ").partition("/")
        for ending in rules[rule].split() if rule else ("-",):
            yield stem + ending.removeprefix("-")


@cache
def own_entries(language: str) -> dict[str, float]:
    """Form -> weight, of the project's own lists of one language."""
    found: dict[str, float] = {}
    for lists, weight in WEIGHTS:
        for form in inflected(lists.get(language, ""), language):
            found.setdefault(form, weight)
    return found


@cache
def built_in(language: str) -> dict[str, float]:
    """Form -> weight of what counts in a document of a language, "" for one of which it is not known.

    A language's own list, and the English one without what is ordinary there. Unknown: all lists, without what is
    ordinary in other languages.
    """
    english = own_entries("en")
    if language:
        ordinary = data.ORDINARY.get(language, "").split()
        return {form: weight for form, weight in english.items() if form not in ordinary} | own_entries(language)
    ambiguous = set(data.OWN_LANGUAGE_ONLY.replace("_", " ").split())
    others = {name for lists, _ in WEIGHTS for name in lists} - {"en"}
    found: dict[str, float] = {}
    for name in sorted(others):
        found |= {form: weight for form, weight in own_entries(name).items() if form not in ambiguous}
    return found | english


def make_lexicon(listed: Iterable[tuple[str, float]]) -> Lexicon:
    """A lexicon of entries, each a word or a phrase in any spelling, with weights; of equal ones the last counts."""
    entries: dict[tuple[str, ...], float] = {}
    for entry, weight in listed:
        if words := tuple(split_words(entry.casefold())):
            entries[words] = weight
    tree: dict[str, Any] = {}
    for words, weight in entries.items():
        node = tree
        for word in words:
            node = node.setdefault(word[:LONGEST_WORD], {})
        node[END] = weight
    return Lexicon(entries, tree, _hint(entries))


def _head(words: tuple[str, ...]) -> str:
    """What a text must have where an entry begins: its first word, or all characters written without spaces."""
    head = words[0]
    for word in words[1:] if ONE_UNSPACED.fullmatch(words[0]) else ():
        if not ONE_UNSPACED.fullmatch(word):
            break
        head += word
    return head[:LONGEST_WORD]


def _hint(entries: Iterable[tuple[str, ...]]) -> Any:
    """A pattern that misses no entry: ASCII heads between ASCII boundaries, with the second word of what is a phrase
    throughout ("to" begins one, and is in every sentence); others as bare substrings.

    Where there are more heads than RE2 takes, every word may begin an entry.
    """
    known = list(entries)
    heads = sorted({_head(words) for words in known})
    alone = {words[0][:LONGEST_WORD] for words in known if len(words) == 1}
    phrases = sorted(
        {
            (_head(words), words[1][:LONGEST_WORD])
            for words in known
            if len(words) > 1 and _head(words).isascii() and _head(words) not in alone
        }
    )
    bounded = b"|".join(head.encode() for head in sorted(alone) if head.isascii())
    bare = [re2.escape(head.encode()) for head in heads if not head.isascii()]
    options = re2.Options()
    options.max_mem = HINT_MEMORY
    options.log_errors = False
    options.encoding = re2.Options.Encoding.LATIN1
    whole = [rb"\b(?:" + bounded + rb")\b"] if bounded else []
    if phrases:
        pairs = (first.encode() + rb"\b[^a-z0-9_]*" + re2.escape(second.encode()) for first, second in phrases)
        whole.append(rb"\b(?:" + b"|".join(pairs) + rb")")
    try:
        return re2.compile(b"|".join([*whole, *bare]) or rb"[^\x00-\xff]", options)
    except re2.error:
        return re2.compile(rb"\b[a-z0-9_]+|[\x80-\xff]+", options)


def find_hits(text: str, lexicon: Lexicon, data: bytes | None = None) -> list[Hit]:
    """Entries in a case-folded text, in order and without overlap: at each place the longest. data: its UTF-8.

    Cost: linear in the text; per candidate the words of the longest entry. Raises UnicodeEncodeError for lone
    surrogates.
    """
    data = text.encode() if data is None else data
    found: list[Hit] = []
    end = 0
    for start in char_starts(text, data, _candidates(data, lexicon.hint)):
        if start >= end and _begins_word(text, start):
            hit = _entry_at(text, start, lexicon)
            if hit is not None:
                end = hit.end
                found.append(hit)
    return [hit for hit in found if hit.weight > 0]


def _candidates(data: bytes, hint: Any) -> Iterator[Any]:
    """Matches of the hint; after a phrase the search goes on behind its first word, where another entry may begin."""
    at = 0
    while match := hint.search(data, at):
        yield match
        word = ASCII_WORD.match(data, match.start())
        at = word.end() if word else match.end()


def char_starts(text: str, data: bytes, matches: Iterable[Any]) -> Iterator[int]:
    """Where matches in `data`, the UTF-8 of `text`, begin in `text`. Linear over all of them."""
    at = chars = 0
    for match in matches:
        start = match.start()
        chars += start - at if len(data) == len(text) else len(data[at:start].decode(errors="ignore"))
        at = start
        yield chars


def _begins_word(text: str, at: int) -> bool:
    """Whether no word runs across this place."""
    pair = WORD.match(text[at - 1 : at + 1]) if at else None
    return pair is None or pair.end() == 1


def _entry_at(text: str, start: int, lexicon: Lexicon) -> Hit | None:
    """The longest entry that begins here. Characters written without spaces must follow each other at once."""
    node, hit, at = lexicon.tree, None, start
    while word := WORD.match(text, at, at + LONGEST_WORD):
        node = node.get(word[0], {})
        if not node:
            break
        if END in node and not (word.end() < len(text) and word.end() - at == LONGEST_WORD):
            hit = Hit(start, word.end(), node[END])
        at = word.end()
        if not ONE_UNSPACED.fullmatch(word[0]):
            gap = GAP.match(text, at)
            at = gap.end() if gap else at
    return hit


GAP: Any = LazyPattern(lambda: re.compile(f"[^\\w{_marks()}]{{0,8}}"))  # between two words of a phrase
