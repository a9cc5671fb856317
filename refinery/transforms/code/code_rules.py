"""What the heuristics for source code compare with what: parameters, marks of generated and vendored files, reasons."""

import re
from typing import Annotated

import re2
from pydantic import Field, field_validator

from refinery.transforms.code.languages import LANGUAGES
from refinery.transforms.core.params import Count, Params, Positive, Share
from refinery.transforms.core.stage import Reason

ENDINGS = tuple(sorted({ending for one in LANGUAGES.values() for ending in one.endings}))

COMMENT_LINE = re.compile(r"^[ \t]*(?:#|//|/?\*|--|;|%|<!--|\"|').*", re.MULTILINE)
"""A line of a comment, in a file whose language is not known or that is not parsed."""

MINIFIED = re.compile(r"[.-]min\.[a-z]+$", re.IGNORECASE)

DATA = re2.compile(
    rb"(?:0[xX][0-9a-fA-F]+|[0-9]+)[uUlL]*[\s,{}]+|[A-Za-z0-9+/=]{60,}|(?:\\x[0-9a-fA-F]{2}|\\[0-7]{3})+"
)
"""Elements of tables of numbers, words that occur only in encoded data, and escaped bytes."""


class CodeHeuristicsParams(Params):
    """Which source files are kept. null switches a rule off."""

    endings: tuple[str, ...] | None = ENDINGS
    """endings of file names to keep, in lower case"""
    drop_vendored: bool = True
    """drop files in folders for third-party code (vendor/, third_party/, node_modules/, …)"""
    drop_generated: bool = True
    """drop files that a program wrote: by their names, by marks in comments among the first 3,000 bytes, or by the form
    of their type"""
    min_bytes: Count | None = 100
    """minimum size of a file in UTF-8"""
    max_bytes: Positive | None = 1_000_000
    """maximum size of a file in UTF-8"""
    max_bad_characters: Share | None = 0.001
    """share of characters that are U+FFFD or control characters: a wrong encoding, or a binary file"""
    max_line_chars: Positive | None = 1000
    """maximum length of a line in characters"""
    max_mean_line_chars: Annotated[float, Field(gt=0)] | None = 110
    """maximum mean length of lines that are not blank; minified files have more"""
    min_unique_lines: Share | None = 0.3
    """share of different lines among those that are not blank; a file with no more than this is dropped. Lines of up
    to eight letters and digits are not compared, unless there are no others"""
    max_comments: Share | None = 0.8
    """share of comments that explain no code among characters, by the syntax tree; a file with this much or more is
    dropped. Licences at the head are left out. Comments at the head, and right before or behind code, explain it, up to
    ten times its size"""
    max_data: Share | None = 0.8
    """share of characters that are elements of tables, base64 or escaped bytes"""
    max_entropy: Annotated[float, Field(ge=0, le=7)] | None = 5.9
    """bits per ASCII byte: real code has 2.6 to 5.8, base64 6.0, ascii85 6.4"""

    @field_validator("endings")
    @classmethod
    def _small_letters(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for ending in value or ():
            if not ending.startswith(".") or ending != ending.lower():
                raise ValueError(f"endings: {ending!r} given, an ending such as .c is allowed")
        return value


_STARCODER = "StarCoder (Li et al. 2023, section 3)"

REASONS = (
    Reason("code-ending", "the ending of its name is not in `endings`", "add it to `endings`"),
    Reason("code-vendored", "its path says that it is somebody else's code", "switch `drop_vendored` off", "linguist"),
    Reason(
        "code-generated",
        "its name, a comment at its head or its form says that a program wrote it",
        "drop_generated: false",
        "linguist",
    ),
    Reason("code-too-small", "fewer than `min_bytes`", "lower `min_bytes`"),
    Reason("code-too-large", "more than `max_bytes`", "raise `max_bytes`", _STARCODER),
    Reason("code-bad-characters", "more than `max_bad_characters` could not be decoded", "raise `max_bad_characters`"),
    Reason("code-long-line", "a line of more than `max_line_chars`", "raise `max_line_chars`", _STARCODER),
    Reason(
        "code-minified", "named .min, or lines of more than `max_mean_line_chars` on average", "raise it", "linguist"
    ),
    Reason("code-repeated-lines", "no more than `min_unique_lines` of the lines differ", "lower `min_unique_lines`"),
    Reason("code-comments", "`max_comments` or more is comments that explain no code", "raise it", _STARCODER),
    Reason("code-encoded-data", "more than `max_data` of it is tables or encoded bytes", "raise `max_data`"),
    Reason("code-high-entropy", "more than `max_entropy` bits per byte", "raise `max_entropy`"),
)
