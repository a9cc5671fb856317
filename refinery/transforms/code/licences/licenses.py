"""The licence of a source file: its SPDX tag, else what its comments say, else the nearest licence file above it.

Why a matcher of our own: scancode-toolkit, the reference of the trade, compares with 40,000 rules and takes seconds a
file; a corpus has millions, and what is asked here is whether a file may be used, not which of 2,000 licences it has.
Its texts are known here by hashes (license_cover.py). Terms that nobody knows are never allowed: neither those of a
licence file, nor those that a file states for itself, whatever licence its repository has.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from refinery.transforms.code.licences.license_comments import BETWEEN, head_comments
from refinery.transforms.code.licences.license_cover import Known, cover, split_words
from refinery.transforms.code.licences.license_expressions import identifiers, join, licence_class, stem
from refinery.transforms.code.licences.license_notices import (
    HEAD,
    LICENCE_HINT,
    MAX_DECLARED,
    UNKNOWN,
    declared,
    notice,
)
from refinery.transforms.code.licences.license_remainder import is_free_of_terms, says_nothing, without_short_terms
from refinery.transforms.code.licences.license_rules import (
    DENIED,
    FORBIDDEN,
    KERNEL,
    KERNEL_NOTE,
    NEAR_FORBIDDEN,
    NOT_FOR_SALE,
    TITLE_CHARS,
    TITLES,
    USES,
)
from refinery.transforms.code.licences.license_words import named, normalised, plain, versioned

FILE = 80_000  # characters of a licence file, white space collapsed; a longer one is not known

_TAG = re.compile(r"SPDX-License-Identifier:[ \t]*([^\r\n]{1,1000})", re.IGNORECASE)
_TAG_NAMES = ("SPDX-License-Identifier:", "spdx-license-identifier:")
_ONLY_MARKS = re.compile(r"[^\w\n\"'`]{0,40}(?:(?:rem|dnl|c)[ \t]+)?", re.IGNORECASE)  # of a comment, on the tag's line
_TAG_END = re.compile(r"\*/|-->|\"|'|;|\*\)|#\}|$")
_DECLARED = re.compile(
    r"^[ \t]*(?:__licen[sc]e__[ \t]*(?::[ \t]*\w+[ \t]*)?=|MODULE_LICENSE[ \t]*\()[ \t]*[\"']"
    rf"([^\"'\n]{{1,{MAX_DECLARED + 1}}})",
    re.MULTILINE,
)


_SPACES = re.compile(r"[^\S\n]+")
_BLANK_LINES = re.compile(r"\n\s*\n")


class Licence(NamedTuple):
    """expression: SPDX, "" for unknown. found: "tag", "header", "file", or "" for nowhere."""

    expression: str
    found: str


def licence_of(text: str, nearest: str = "") -> Licence:
    """The licence of a source file. nearest: the expression of the nearest licence file, "" for none.

    A file that has a tag and says something else has to keep to both. Cost: about 0.2 ms, 3 ms for a header that is
    new; linear in the first HEAD characters, and a search for tags and declarations behind them.
    """
    comments = head_comments(text[:HEAD])
    tag = _tags(comments, text)
    said = _said(text, _TAG.sub("", comments))
    if tag:
        known = {stem(name) for name in identifiers(tag)}
        more = said == UNKNOWN or (
            licence_class(said) == DENIED != licence_class(tag) and not known.intersection(map(stem, identifiers(said)))
        )
        return Licence(join("AND", [tag, said or UNKNOWN]) if said and more else tag, "tag")
    if said == UNKNOWN:
        return Licence("", "header")
    if said:
        return Licence(said, "header")
    return Licence(nearest, "file") if nearest else Licence("", "")


def _tags(comments: str, text: str) -> str:
    """The expression of a file's SPDX tags: several hold together."""
    values = [match[1] for match in _TAG.finditer(comments)]
    for name in _TAG_NAMES:
        place = text.find(name)
        while place >= 0:
            begin = text.rfind("\n", 0, place) + 1
            if place - begin < 50 and _ONLY_MARKS.fullmatch(text, begin, place) and (match := _TAG.match(text, place)):
                values.append(match[1])
            place = text.find(name, place + 1)
    found = dict.fromkeys(map(_tag_value, values))
    found.pop("", None)
    return " AND ".join(f"({one})" if len(found) > 1 else one for one in found)


def _tag_value(rest: str) -> str:
    end = _TAG_END.search(rest)
    return " ".join(rest[: end.start() if end else None].split())


def _said(text: str, comments: str) -> str:
    """What a file's declarations and comments say: an expression, UNKNOWN, or ""."""
    may = "icense__" in text or "icence__" in text or "MODULE_LICENSE" in text
    declarations = [declared(match[1]) for match in _DECLARED.finditer(text)] if may else []
    found = [identify(comments), *declarations]
    return UNKNOWN if UNKNOWN in found else join("AND", filter(None, found))


def identify(comments: str) -> str:
    """The expression of the licences that comments state; UNKNOWN for terms that are not known, "" for none.

    Several hold together (AND), unless there are words of choice (OR) in the same comment. Comments that code divides
    are read one by one.
    """
    comments = plain(comments[:HEAD])
    if _forbids(comments.lower()):
        return UNKNOWN
    found = [_identified(block.strip()) for block in comments.split(BETWEEN) if LICENCE_HINT.search(block.lower())]
    return UNKNOWN if UNKNOWN in found else join("AND", filter(None, found))


def _forbids(small: str) -> bool:
    """Whether comments in another language than English forbid some use."""
    near = (small[max(0, m.start() - NEAR_FORBIDDEN) : m.end() + NEAR_FORBIDDEN] for m in FORBIDDEN.finditer(small))
    return any(map(USES.search, near)) or NOT_FOR_SALE.search(small) is not None


@lru_cache(maxsize=512)  # files of a repository have the same header
def _identified(comments: str) -> str:
    return notice(comments)


def identify_file(text: str, data: Known | None = None) -> str:
    """The expression of a licence file, UNKNOWN for one that is not known as a whole, "" for one without any terms.

    data: what is known, in place of the data file.
    """
    if len(text) > FILE:
        text = _BLANK_LINES.sub("\n\n", _SPACES.sub(" ", text)).strip()
    text = plain(text)
    if len(text) > FILE:
        return UNKNOWN
    words = split_words(text)
    found = cover(words, data)
    tag = _tags(text, "")
    expression = join("AND", found.expressions)
    if expression and is_free_of_terms(words, found):
        return expression
    small = normalised(text)
    title = small[:TITLE_CHARS]
    titled = [(match.start(), name) for name, pattern in TITLES if (match := pattern.search(title))]
    name = versioned(min(titled)[1], small, 0) if titled else named(small)
    allowed = licence_class(name) != DENIED and (not expression or licence_class(expression) != DENIED)
    if allowed and found.pooled and is_free_of_terms(words, without_short_terms(words, found)):
        return name  # parts of known texts, and a name
    if KERNEL_NOTE in text.lower() and (titled or licence_class(tag) == KERNEL):
        return "GPL-2.0-only WITH Linux-syscall-note"
    if tag and not expression and is_bare(text):
        return tag
    if licence_class(name) == DENIED and name:
        return name  # denied, and by name
    return UNKNOWN if LICENCE_HINT.search(text.lower()) or not says_nothing(words) else ""


SHORT = 30  # words that may be no more than a copyright


def is_bare(text: str) -> bool:
    """Whether a text is no more than its tag and who has the copyright."""
    rest = _TAG.sub(" ", text)
    return len(rest) <= 10 * SHORT and not notice(rest)
