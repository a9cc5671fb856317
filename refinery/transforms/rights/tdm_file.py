"""/.well-known/tdmrep.json: for which paths text and data mining is reserved.

TDM Reservation Protocol (TDMRep), W3C Community Group final report, 10 May 2024: an array of rules of `location`,
`tdm-reservation` (1: reserved) and `tdm-policy`; locations are patterns as in robots.txt. What the page says itself, in
its HTTP header and above that in its HTML, supersedes the file.

The short form, in UTF-8: sorted lines `reserved: /path` and `free: /path`; "" for a file that reserves nothing.
"""

import re
from collections.abc import Iterator
from typing import Any

from refinery.transforms.extract.page_rights.page_notes import reservation_of
from refinery.transforms.read.formats.jsonl import parse_json
from refinery.transforms.rights.path_patterns import Rule, decide, parse_pattern, pattern_text

MAX_BYTES = 500 << 10  # as of robots.txt: a file that is longer is refused, since half of it is not JSON


def short_form(body: bytes) -> str | None:
    """What a file says, in the short form above; None for what is no such file. One rule alone instead of an array of
    them is taken, and one without a location is about all."""
    if len(body) > MAX_BYTES:
        return None
    given = parse_json(body.removeprefix(b"\xef\xbb\xbf").strip())
    rules = [given] if isinstance(given, dict) else given
    if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
        return None
    lines = set(_lines(rules))
    return "".join(f"{line}\n" for line in sorted(lines)) if any(x.startswith("reserved") for x in lines) else ""


def _lines(rules: list[dict[str, Any]]) -> Iterator[str]:
    for rule in rules:
        reservation, location = reservation_of(rule.get("tdm-reservation")), rule.get("location", "/")
        if reservation is None or not isinstance(location, str):
            continue
        location = re.sub(r"^https?://[^/]*", "", location.strip())
        if pattern := pattern_text(location if location.startswith(("/", "*")) else f"/{location}"):
            yield f"{'reserved' if reservation else 'free'}: {pattern}"


def parse_reservations(text: str) -> tuple[Rule, ...]:
    """The rules in a short form."""
    return tuple(
        Rule(parse_pattern(line.partition(": ")[2]), line.startswith("free"), line) for line in text.splitlines()
    )


def reservation(rules: tuple[Rule, ...], path: str) -> str:
    """The rule that reserves `path`, "" for none. Of two as long the one that reserves decides."""
    rule = decide(rules, path, tie_allows=False)
    return rule.text if rule is not None and not rule.allows else ""
