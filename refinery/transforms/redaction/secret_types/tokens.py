"""Tokens that say themselves what they are: all grammars, and where they match in a text.

One look at a text says which grammars may match in it, by the beginnings of all of them. A token must
stand alone: XX
"""

import re
from collections.abc import Iterator
from typing import Any

import re2

from refinery.transforms.redaction.pii_types.scan import Hinted, compile_bytes
from refinery.transforms.redaction.secret_types.accounts import ACCOUNTS
from refinery.transforms.redaction.secret_types.context import HEX, entropy, is_example
from refinery.transforms.redaction.secret_types.hosting import HOSTING
from refinery.transforms.redaction.secret_types.models import MODELS
from refinery.transforms.redaction.secret_types.platforms import PLATFORMS
from refinery.transforms.redaction.secret_types.rules import (
    PUBLISHED,
    WORD,
    Found,
    Token,
    has_github_checksum,
    is_mixed,
)
from refinery.transforms.redaction.secret_types.services import SERVICES

TOKENS = (*PLATFORMS, *SERVICES, *MODELS, *HOSTING, *ACCOUNTS)
PATTERNS = {token.name: (token, compile_bytes(token.pattern)) for token in TOKENS}


SEEN = 16
COUNTED_END = re.compile(rb"(.*)\{([0-9]+)(?:,[0-9]*)?\}(?:\\b)?", re.DOTALL)


def _beginning(token: Token) -> bytes:
    """What every match of a token has in it; of a long row of letters at its end SEEN are enough.

    Counted repetitions are what makes the automaton of all of them large.
    """
    hint = token.hint or b"|".join(map(re2.escape, token.anchors))
    counted = COUNTED_END.fullmatch(hint)
    if counted and b"{" not in counted.group(1) and int(counted.group(2)) > SEEN:
        return counted.group(1) + b"{%d}" % SEEN
    return hint


BEGINNINGS = {token.name: _beginning(token) for token in TOKENS}
"""what a text must have for a token, by its name"""
ESCAPE = (
    rb"(?:\\[abfnrtv0]|\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2}|\x1b\[[0-9;]{0,12}m"
    rb"|&(?:quot|amp|lt|gt|apos);)"
)
ESCAPED = rb"(" + ESCAPE + rb")[A-Za-z0-9_.:~/-]{18}"
"""an escape before what is as long as a token: its last letter would be the token's first"""
BEFORE = re.compile(ESCAPE + rb"(?=[A-Za-z0-9_.:~/-]{18})")
# The secret that belongs to an id and stands beside it without a name: its letters, and how many.
COMPANIONS = {
    "aws-access-key": compile_bytes(rb"[^A-Za-z0-9/+=]([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)"),
    "alibaba-key": compile_bytes(rb"[^A-Za-z0-9/+=]([A-Za-z0-9]{30})(?:[^A-Za-z0-9/+=]|$)"),
    "tencent-id": compile_bytes(rb"[^A-Za-z0-9/+=]([A-Za-z0-9]{32})(?:[^A-Za-z0-9/+=]|$)"),
}
COMPANION_BYTES = 160


def tokens(data: bytes, hints: Hinted) -> Iterator[Found]:
    """Every token. Linear: one scan for each grammar whose beginning occurs.

    hints: which of BEGINNINGS do, and where ESCAPED matches; if it does, the text is also read with a space for every
    escape.
    """
    yield from _tokens(data, hints)
    text = _unescaped(data, hints)
    if text != data:
        yield from _tokens(text, hints.again(text))


def _unescaped(data: bytes, hints: Hinted) -> bytes:
    """The text with a space for every byte of an escape."""
    if hints.everywhere("escaped"):
        return BEFORE.sub(lambda match: b" " * len(match.group(0)), data)
    spans = [match.span(1) for match in hints.matches("escaped")]
    if not spans:
        return data
    spaced = bytearray(data)
    for start, end in spans:
        spaced[start:end] = b" " * (end - start)
    return bytes(spaced)


def _tokens(data: bytes, hints: Hinted) -> Iterator[Found]:
    for name in sorted(hints & BEGINNINGS.keys()) if hints else ():
        token, pattern = PATTERNS[name]
        yield from _matches(data, token, pattern)


def _matches(data: bytes, token: Token, pattern: Any) -> Iterator[Found]:
    for match in pattern.finditer(data):
        group = match.lastindex or 0
        start, end = match.span(group)
        value = data[start:end]
        if not _stands_alone(data, start, end) or value.startswith(PUBLISHED):
            continue
        if token.check and not token.check(value):
            continue
        if (token.name == "github-token" and has_github_checksum(value)) or not is_example(value):
            yield Found(start, end, token.name)
            if companion := COMPANIONS.get(token.name):
                yield from _beside(data, end, companion, token.name)


def _beside(data: bytes, end: int, pattern: Any, name: str) -> Iterator[Found]:
    """The secret behind an id: of its length, drawn at random, no hash."""
    match = pattern.search(data, end, end + COMPANION_BYTES)
    value = match.group(1) if match else b""
    if match and is_mixed(value) and not HEX.fullmatch(value) and entropy(value) >= 3.5 and not is_example(value):
        yield Found(match.start(1), match.end(1), name)


def _stands_alone(data: bytes, start: int, end: int) -> bool:
    """Whether data[start:end] is not part of a longer word, or of base64."""
    before, after = data[start - 1] if start else 32, data[end] if end < len(data) else 32
    first, last = data[start], data[end - 1]
    if data.startswith((b"...", "…".encode()), end):  # abridged
        return False
    if (before in WORD and first in WORD) or before in b"+":
        return False
    return not ((after in WORD or after in b"-") and last in WORD) and not (after in b"+/" and before not in b"/=\"'")
