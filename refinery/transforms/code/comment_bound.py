"""How much of a source file its comments can be, at most: told from their signs, without a syntax tree.

Most files are so far from all comments that nobody needs to parse them to know it. Signs in strings count, too, so the
bound is often too high, and then the tree decides. It is never too low: whatever a grammar takes for a comment begins
with one of the signs and ends where it is said here, or before.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import re2

from refinery.transforms.code.comments import SPACE
from refinery.transforms.code.languages import LANGUAGES


def comment_bound(data: bytes, language: str) -> float:
    """An upper bound for the share of comments among the bytes that are not white space; 1 for a language whose signs
    are not known. Linear."""
    if language not in LANGUAGES or not LANGUAGES[language].line_comment:
        return 1.0
    parts = [*_line_comments(language).findall(data), *_block_comments(data, LANGUAGES[language].block_comment)]
    most = sum(len(part.translate(None, SPACE)) for part in parts)
    return most / max(1, len(data.translate(None, SPACE)))


@cache
def _line_comments(language: str) -> Any:
    """From a sign to the end of the line; a backslash there brings in the next one."""
    return re2.compile(re2.escape(LANGUAGES[language].line_comment).encode() + rb"(?:[^\n]*\\\r?\n)*[^\n]*")


def _block_comments(data: bytes, signs: str) -> Iterator[bytes]:
    """signs: "", "/* */", or "/* /* */ */" where they nest: then all from the first sign on."""
    if not signs:
        return
    opening, *inner, closing = (sign.encode() for sign in signs.split())
    start = data.find(opening)
    if inner and start >= 0:
        yield data[start:]
        return
    while start >= 0:
        end = data.find(closing, start + len(opening))
        if end < 0:
            yield data[start:]
            return
        yield data[start : end + len(closing)]
        start = data.find(opening, end - 1)  # in "/*/" both signs share their star
