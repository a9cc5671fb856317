"""Patterns of paths as robots.txt has them: which rule of several decides about an address.

RFC 9309, sections 2.2.2 and 2.2.3: octets are compared, percent-encoded where they need it; `*` stands for any
characters, `$` at the end for the end of the address; the pattern with the most octets decides. Spawning's ai.txt and
the rules of TDMRep ("How Google interprets the robots.txt specification") read patterns in the same way.

No expression is compiled: a pattern is cut at its stars and looked for piece by piece, which is linear in the address
for every pattern. A backtracking engine takes exponential time for some.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from refinery.transforms.core.address.host import HOSTLIKE, SCHEME
from refinery.transforms.core.address.normalise import encode_octets
from refinery.transforms.core.address.page_address import page_address

MAX_PATH = 8192  # characters of an address that are looked at
MAX_PATTERN = 2083 * 8  # as of Google's parser; longer ones match nothing that a crawler would fetch

_CUT_OCTET = re.compile(r"%[0-9A-Fa-f]?\Z")


class Pattern(NamedTuple):
    """pieces: what stands between the stars. is_ended: whether the last of them must end the address. length: octets
    of the pattern, by which the most specific one decides."""

    pieces: tuple[str, ...]
    is_ended: bool
    length: int

    def matches(self, path: str) -> bool:
        """Whether a path in the spelling of `path_of` fits. Cost: one search of it for each piece."""
        first, *middle = self.pieces
        if not path.startswith(first):
            return False
        if not middle:
            return len(path) == len(first) if self.is_ended else True
        at = len(first)
        *middle, last = middle
        for piece in middle:
            at = path.find(piece, at)
            if at < 0:
                return False
            at += len(piece)
        return path.endswith(last) and len(path) - len(last) >= at if self.is_ended else path.find(last, at) >= 0


def pattern_text(given: str) -> str:
    """A pattern in the one spelling that `parse_pattern` takes; "" for one that no path fits.

    An octet that is cut, by a star or by the end, fits all that begin so, as in Google's parser: `/*%` every address
    with an encoded octet, and with a "%" that is none.

    >>> pattern_text(" /a**/%7ex$y$ "), pattern_text("/100%*/%e")
    ('/a*/~x%24y$', '/100%*/%E')
    """
    given = given.strip()
    if not given.startswith(("/", "*")) or len(given) > MAX_PATTERN or not given.isprintable():
        return ""
    body, end = (given[:-1], "$") if given.endswith("$") else (given, "")
    *open_pieces, last = re.sub(r"\*+", "*", body).split("*")
    pieces = [*map(_encode_beginning, open_pieces), encode_octets(last) if end else _encode_beginning(last)]
    return "*".join(pieces).replace("$", "%24") + end


def _encode_beginning(piece: str) -> str:
    cut = _CUT_OCTET.search(piece)
    return encode_octets(piece[: cut.start()]) + cut[0].upper() if cut else encode_octets(piece)


def parse_pattern(text: str) -> Pattern:
    """The pattern in a text that `pattern_text` made."""
    is_ended = text.endswith("$")
    return Pattern(tuple(text.removesuffix("$").split("*")), is_ended, len(text))


def path_of(url: str) -> str:
    """Path and query of an address, encoded as patterns are: "/" where it has none.

    >>> path_of("https://example.com:80/ä/*?q=$#top")
    '/%C3%A4/%2A?q=%24'
    """
    url = page_address(url)[:MAX_PATH].strip().partition("#")[0]
    scheme = SCHEME.match(url)
    if scheme and not HOSTLIKE.match(url):
        url = url[scheme.end() :].replace("\\", "/").lstrip("/")
    else:
        url = url.removeprefix("//")
    begin = re.search(r"[/?]", url)
    path = url[begin.start() :] if begin else "/"
    return encode_octets(path if path[0] == "/" else "/" + path).replace("*", "%2A").replace("$", "%24")


class Rule(NamedTuple):
    """What a pattern decides. allows: whether it lets the address through. text: the rule for people."""

    pattern: Pattern
    allows: bool
    text: str


def decide(rules: Iterable[Rule], path: str, tie_allows: bool = True) -> Rule | None:
    """The rule that decides about `path`: of those that fit it the one with the longest pattern; None for none.

    tie_allows: whether of equally long ones the one that allows wins, as RFC 9309 defines.
    """
    best: Rule | None = None
    for rule in rules:
        if best is None or rule.pattern.length >= best.pattern.length:
            longer = best is None or rule.pattern.length > best.pattern.length
            if (longer or (best is not None and rule.allows != best.allows and rule.allows == tie_allows)) and (
                rule.pattern.matches(path)
            ):
                best = rule
    return best
