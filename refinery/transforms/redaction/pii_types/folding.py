"""Digits and signs of other scripts, read as those of ASCII: `０９０－１２３４`, `٠٥٠`, `९३．१८४`, `taro＠example.jp`.

Sign by sign, so a place in the folded text is the same place in the text. Sources: the Unicode Character Database
(decimal digits are the characters of category Nd with their numeric value; full-width and small forms with their
compatibility mapping), as in `unicodedata`. Between digits a few more signs are hyphens: Japanese writes the sign
of a long vowel and the horizontal bar, keyboards give the minus sign and lines of a box.
"""

import re
import sys
import unicodedata
from collections import defaultdict
from collections.abc import Mapping
from functools import cache

DASHES = "ー―−─ｰ﹣－"
SMALL = {"﹒": ".", "﹢": "+", "﹣": "-", "﹫": "@", "﹕": ":", "﹙": "(", "﹚": ")"}
SIGNS = {"\u3000": " ", "\u066b": ".", "\u066c": ",", "\u200e": " ", "\u200f": " ", "\u061c": " "}
"""the ideographic space, Arabic separators of numbers, marks of direction"""


@cache
def _digits() -> Mapping[str, str]:
    """Every decimal digit beyond ASCII, and its value. Unicode has them in rows from 0 to 9, so every tenth code
    point is in each row."""
    found: dict[str, str] = {}
    for code in range(0x80, sys.maxunicode + 1, 10):
        value = unicodedata.decimal(chr(code), None)
        if value is not None:
            found.update((chr(code - value + digit), str(digit)) for digit in range(10))
    return found


FULL_WIDTH = {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}


@cache
def _table() -> Mapping[int, str]:
    return str.maketrans({**_digits(), **FULL_WIDTH, **SMALL, **SIGNS})


DASH = re.compile(f"(?<=[0-9)])[{DASHES}](?=[0-9(])")


def _of_bytes(chars: str) -> bytes:
    """A pattern over UTF-8 for any of some characters."""
    last: defaultdict[bytes, set[int]] = defaultdict(set)
    for char in chars:
        encoded = char.encode()
        last[encoded[:-1]].add(encoded[-1])
    classes = (
        re.escape(head) + b"[" + b"".join(b"\\x%02x" % byte for byte in sorted(tails)) + b"]"
        for head, tails in sorted(last.items())
    )
    return b"(?:" + b"|".join(classes) + b")"


_SIGN = _of_bytes(DASHES + "＋（）．／")


def fold_hint() -> bytes:
    """A pattern that is in every text that folding can change anything for: a digit or an @ of another script, such
    signs beside a digit."""
    beside = rb"|[0-9)]" + _SIGN + rb"[ (]?[0-9]|" + _of_bytes("（＋") + rb"[0-9]|"
    return _of_bytes("".join(_digits())) + beside + _of_bytes("＠﹫")


def fold(text: str) -> str:
    """The text with ASCII's digits and signs; as many characters as before.

    >>> fold("電話：０９０－１２３４ー５６７８, ٠٥٠, a＠b")
    '電話:090-1234-5678, 050, a@b'
    """
    return DASH.sub("-", text.translate(_table()))
