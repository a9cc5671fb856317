"""Personal data of a recognisable form: e-mail addresses, telephone numbers, IP addresses. Redact it or drop the page.

A match of a pattern is only a candidate; what stands around it decides: version numbers, dates, prices, ISBNs and long
identifiers share the digits of telephone numbers and IP addresses. Patterns run on RE2 over UTF-8 bytes (linear time);
a text without '@', digits or "::" in the right places costs one scan for each kind.

Sources: RFC 5321 4.5.3.1 and RFC 1035 2.3.4 (lengths of an address), ITU-T E.164 (at most 15 digits), the North
American Numbering Plan (area codes begin with 2 to 9), IANA's special-purpose address registries (through `ipaddress`).
To redact only public IP addresses is FineWeb's rule (Penedo et al. 2024).

No `from __future__ import annotations` here: Beam reads these hints.
"""

import ipaddress
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import re2

from refinery.transforms.core.document import Document, Drop
from refinery.transforms.core.params import Params
from refinery.transforms.core.stage import Note, Reason, Stage

Kind = Literal["email", "phone", "ip"]


class Span(NamedTuple):
    """text[start:end] is personal data; character offsets."""

    start: int
    end: int
    kind: Kind


class PiiParams(Params):
    """What counts as personal data and what becomes of it."""

    action: Literal["redact", "drop"] = "redact"
    """`redact` replaces every match, `drop` refuses the document"""
    email: bool = True
    """e-mail addresses"""
    phone: bool = True
    """telephone numbers"""
    ip: bool = True
    """IP addresses"""
    private_ip: bool = False
    """also addresses of private, loopback and other ranges that IANA reserves"""
    email_replacement: str = "<EMAIL>"
    """what takes the place of an e-mail address"""
    phone_replacement: str = "<PHONE>"
    """what takes the place of a telephone number"""
    ip_replacement: str = "<IP>"
    """what takes the place of an IP address"""

    def replacement(self, kind: Kind) -> str:
        """The text that stands for a match."""
        return {"email": self.email_replacement, "phone": self.phone_replacement, "ip": self.ip_replacement}[kind]


def _compile(pattern: bytes) -> Any:
    """A pattern over bytes: what is beyond ASCII is written as the UTF-8 sequences that it is."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile(pattern, options)


LETTER = rb"[A-Za-z0-9]|[\xc3-\xd3][\x80-\xbf]"  # and Latin, Greek, Cyrillic with two bytes
ATOM = rb"(?:" + LETTER + rb"|[_%+'~&-])+"
LABEL = rb"(?:" + LETTER + rb"|-)+"
LOCAL = ATOM + rb"(?:\." + ATOM + rb")*"
DOMAIN = rb"(?:" + LABEL + rb"\.)+(?:xn--[A-Za-z0-9]{2,59}|[A-Za-z]{2,24})"
EMAIL = _compile(LOCAL + rb"@" + DOMAIN)
# "<name at example.org>" and "name (at) example.org": written against harvesters, no less personal.
SPELT_EMAIL = _compile(rb"<(" + LOCAL + rb" at " + DOMAIN + rb")>|(" + LOCAL + rb" ?[\[(]at[\])] ?" + DOMAIN + rb")")
SPELT_HINT = _compile(rb" at [^ <>]*>|[\[(]at[\])]")
# "icon@2x.png" names a file: none of these is a top-level domain.
FILE_ENDINGS = frozenset(
    (b"png", b"jpg", b"jpeg", b"gif", b"svg", b"webp", b"css", b"js", b"json", b"html", b"pdf", b"txt")
)

# Between digit groups: space, dot, slash, hyphen, brackets; no-break spaces and typographic hyphens.
GAP = rb"(?:[ ./()-]|\xc2\xa0|\xe2\x80[\x90-\x93\xaf])"
DASH = rb"(?:[ .-]|\xc2\xa0|\xe2\x80[\x90-\x93\xaf])"
EXTENSION = rb"(?: ?(?:x|ext\.?) ?[0-9]{1,6})?"
PHONE_FORMS = (
    rb"\+[1-9](?:" + GAP + rb"{0,3}[0-9]){6,15}",  # +49 (0)30 123456
    rb"00[1-9][0-9]{0,2}" + GAP + rb"(?:" + GAP + rb"{0,2}[0-9]){7,13}",  # 0049 30 123456
    rb"(?:[018]" + DASH + rb"?)?\([2-9][0-9]{2}\)" + DASH + rb"?[0-9]{3}" + DASH + rb"?[0-9]{2}" + DASH + rb"?[0-9]{2}",
    rb"\([1-9][0-9]{1,3}\) ?[0-9]{3,5}[ -][0-9]{3,4}",  # (85) 5986-8343
    rb"[2-9][0-9]{2}[.-][0-9]{3}[.-][0-9]{2}[.-][0-9]{2}",  # 532-123-45-67
    rb"(?:1" + DASH + rb")?[2-9][0-9]{2}" + DASH + rb"[0-9]{3}" + DASH + rb"[0-9]{4}",  # 212-555-0123
    rb"\(?0[1-9][0-9]{0,4}\)?(?:" + GAP + rb"{1,2}[0-9]{2,8}){1,5}",  # 030/123456, 01 23 45 67 89
)
PHONE = _compile(rb"(?:" + rb"|".join(PHONE_FORMS) + rb")" + EXTENSION)
# Any other grouping of digits is a telephone number only next to a word that says so.
CUES = (
    rb"tel|phone|ph|telephone|fax|mobile|mob|cell|cellphone|call|dial|desk|whatsapp|hotline|helpline|sms|text"
    rb"|tel\xc3\xa9fono|telefono|t\xc3\xa9l\xc3\xa9phone|t\xc3\xa9l|telefon|telefone|tlf|telefax|handy|mobil|m\xc3\xb3vil|gsm"
)
CUED = _compile(
    rb"(?i)\b(?:" + CUES + rb")\b[^0-9\n+(]{0,16}(?:(?:at|on|to|is|no|number|nr|numara)\b[^0-9\n+(]{0,8})?"
    rb"(\(?[0-9](?:" + GAP + rb"{0,2}[0-9]){6,12}" + EXTENSION + rb")"
)
NOT_A_PHONE = _compile(
    rb"(?:[0-3]?[0-9][./-][01]?[0-9][./-][12][0-9]{3}(?:[^0-9]|$)"  # 31.12.2020
    rb"|[12][0-9]{3}[./-][01]?[0-9][./-][0-3]?[0-9](?:[^0-9]|$)"  # 2020-12-31
    rb"|[12][0-9]{3} ?(?:-|\xe2\x80\x93) ?[12][0-9]{3}$"  # 1998-2003
    rb"|97[89][ -]?[0-9]" + GAP + rb"?[0-9])"  # ISBN
)
# The beginning of a bank account number, whose groups of four look like anything.
IBAN = _compile(rb"\b[A-Z]{2}[0-9]{2} ?(?:[A-Z0-9]{4} )*$")

OCTET = rb"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
IPV4 = _compile(rb"(?:" + OCTET + rb"\.){3}" + OCTET)
IPV6 = _compile(rb"(?:[0-9A-Fa-f]{0,4}:){2,7}(?:(?:[0-9]{1,3}\.){3}[0-9]{1,3}|[0-9A-Fa-f]{0,4})")
IPV6_HINT = _compile(rb"::|(?:[0-9A-Fa-f]{1,4}:){6}")
VERSION_CUE = _compile(
    rb"(?i)(?:\b(?:version|versions|ver|v|release|releases|build|firmware|revision|rev|update|patch|section|chapter|clause"
    rb"|table|figure|appendix|article|paragraph|rule|item|rfc|oid)\b\W{0,3}|\xc2\xa7 ?|[A-Za-z0-9]/|[A-Za-z][-_])$"
)
ADDRESS_CUE = _compile(
    rb"(?i)(?:\b(?:ip|ipv4|address|addr|host|hosts|server|dns|ping|from|gateway|client)\b\W{0,4}\w{0,8}\W{0,3}|//)$"
)
SMALL_OCTET = 32  # four numbers below this are rather a version or a section than an address (1 in 4,096 of these)
CONTEXT = 32  # bytes to the left that are read for a cue

WORD_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
DIGITS = frozenset(b"0123456789")


def find_pii(text: str, params: PiiParams) -> list[Span]:
    """Personal data in `text`, in order and without overlap; e-mail wins over IP, and IP over telephone.

    Raises UnicodeEncodeError for lone surrogates. Cost: linear; about 0.5 ms per MB of prose and kind.
    """
    data = text.encode()
    found: list[tuple[int, int, Kind]] = []
    if params.email:
        found += [(start, end, "email") for start, end in _emails(data)]
    if params.ip:
        found += [(start, end, "ip") for start, end in _addresses(data, params.private_ip)]
    if params.phone:
        found += [(start, end, "phone") for start, end in _phones(data)]
    if not found:
        return []
    return list(_in_characters(data, _without_overlap(found)))


def _without_overlap(found: list[tuple[int, int, Kind]]) -> list[tuple[int, int, Kind]]:
    """By priority (the order of kinds), then position; each pass keeps what touches nothing kept before."""
    kept: list[tuple[int, int, Kind]] = []
    for kind in ("email", "ip", "phone"):
        merged: list[tuple[int, int, Kind]] = []
        i = 0
        for span in sorted(span for span in found if span[2] == kind):
            while i < len(kept) and kept[i][1] <= span[0]:
                i += 1
            if (i == len(kept) or span[1] <= kept[i][0]) and (not merged or merged[-1][1] <= span[0]):
                merged.append(span)
        kept = sorted(kept + merged)
    return kept


def _in_characters(data: bytes, spans: list[tuple[int, int, Kind]]) -> Iterator[Span]:
    """Byte offsets to character offsets, one pass over the text."""
    at = characters = 0
    for start, end, kind in spans:
        first = characters + len(data[at:start].decode())
        at, characters = end, first + len(data[start:end].decode())
        yield Span(first, characters, kind)


def _emails(data: bytes) -> Iterator[tuple[int, int]]:
    if SPELT_HINT.search(data):
        for match in SPELT_EMAIL.finditer(data):
            yield match.span(1 if match.group(1) else 2)
    if b"@" not in data:
        return
    for match in EMAIL.finditer(data):
        start, end = match.span()
        local, _, domain = data[start:end].partition(b"@")
        if len(local) > 64 or len(domain) > 255 or domain.rpartition(b".")[2].lower() in FILE_ENDINGS:
            continue
        if end < len(data) and data[end] in WORD_BYTES:
            continue
        yield start + len(local) - len(local.lstrip(b"'-")), end


def _phones(data: bytes) -> Iterator[tuple[int, int]]:
    for match in PHONE.finditer(data):
        start, end = match.span()
        if not _stands_alone(data, start, end) or IBAN.search(data[max(0, start - CONTEXT) : start]):
            continue
        if _is_phone(data[start:end]):
            yield start, end
    for match in CUED.finditer(data):
        start, end = match.span(1)
        if _stands_alone(data, start, end) and not NOT_A_PHONE.match(data[start:end]):
            yield start, end


def _is_phone(match: bytes) -> bool:
    """The rules of each form that a regular expression cannot say."""
    number = _without_extension(match)
    groups = _digit_groups(number)
    digits = sum(map(len, groups))
    if NOT_A_PHONE.match(number) or any(len(group) > 4 and not group.strip(b"0") for group in groups):
        return False
    if number.startswith((b"+", b"00")):
        trunk = b"(0)" in number
        single = sum(len(group) == 1 for group in groups) - trunk
        prefix = 0 if number.startswith(b"+") else 2
        return 8 <= digits - trunk - prefix <= 15 and single <= 2
    if groups[0][:1] == b"0":
        return _is_national(number, groups, digits)
    # North American and alike: one kind of separator between the last two gaps, unless brackets say enough.
    return b"(" in number or len(groups) == 5 or number[-5:-4] == number[-9:-8] or number[-3:-2] == number[-6:-5]


def _is_national(number: bytes, groups: list[bytes], digits: int) -> bool:
    """A number that begins with the trunk prefix 0: 9 to 12 digits; five pairs; a slash only behind the area code."""
    if not 9 <= digits <= 12 or [len(group) for group in groups] == [3, 2, 4]:  # that is a US social security number
        return False
    pairs = len(groups) == 5 and all(len(group) == 2 for group in groups)
    if b"." in number and not pairs:
        return False
    if b"/" in number[len(groups[0]) + 2 :]:
        return False
    sizes = [len(group) for group in groups]
    return pairs or sizes[0] > 2 or sizes == [2, 3, 4] or (digits == 10 and len(groups) <= 3)


def _without_extension(match: bytes) -> bytes:
    for mark in (b"x", b"e"):
        match = match.partition(mark)[0]
    return match.rstrip()


def _digit_groups(number: bytes) -> list[bytes]:
    return bytes(byte if byte in DIGITS else 32 for byte in number).split()


def _stands_alone(data: bytes, start: int, end: int) -> bool:
    """Whether the number is no part of a word, a longer number, an amount of money or a URL."""
    before, after = data[max(0, start - 3) : start], data[end : end + 3]
    spaced = b" " if b" " in data[start:end] else b""  # digits behind a space belong to a number that has spaces itself
    if before:
        last = before[-1]
        if last in WORD_BYTES or last in b"$#=%&@/+~*^-" or before[-2:] == b"\xc2\xa3" or before == b"\xe2\x82\xac":
            return False
        if last in b".,:" + spaced and len(before) > 1 and before[-2] in DIGITS:
            return False
    if after:
        if after[0] in WORD_BYTES or after[0] in b"%@=":
            return False
        if after[0] in b".,:-/" + spaced and len(after) > 1 and after[1] in DIGITS:
            return False
    return True


def _addresses(data: bytes, private: bool) -> Iterator[tuple[int, int]]:
    for match in IPV4.finditer(data):
        start, end = match.span()
        if _is_ipv4(data, start, end) and (private or ipaddress.IPv4Address(data[start:end].decode()).is_global):
            yield start, end
    if not IPV6_HINT.search(data):
        return
    for match in IPV6.finditer(data):
        start, end = match.span()
        if start and (data[start - 1] in WORD_BYTES or data[start - 1] in b":."):
            continue
        if data[end : end + 1] == b":":
            continue
        if data[end : end + 1] in (b".", b":") and data[end + 1 : end + 2].isdigit():
            continue
        if end < len(data) and data[end] in WORD_BYTES:
            continue
        if _is_ipv6(data[start:end].decode(), private):
            yield start, end


def _is_ipv4(data: bytes, start: int, end: int) -> bool:
    before, after = data[max(0, start - CONTEXT) : start], data[end : end + 2]
    if before and (before[-1] in WORD_BYTES or before[-1] in b".-"):
        return False
    if after and (after[0] in WORD_BYTES or (after[0] in b".-" and len(after) > 1 and after[1] in WORD_BYTES)):
        return False
    if ADDRESS_CUE.search(before) or (after[:1] == b"/" and after[1:].isdigit()):
        return True
    if VERSION_CUE.search(before):
        return False
    return any(int(octet) >= SMALL_OCTET for octet in data[start:end].split(b"."))


def _is_ipv6(candidate: str, private: bool) -> bool:
    try:
        address = ipaddress.IPv6Address(candidate)
    except ValueError:
        return False
    if private:
        return any(char.isdigit() for char in candidate)
    if "::" in candidate:  # also C++'s scope operator between words of hexadecimal letters: ask for allocated space
        return address.is_global and address in GLOBAL_UNICAST and len(candidate.replace(":", " ").split()) > 1
    return not ((address.is_private and not address.is_reserved) or address.is_link_local or address.is_multicast)


GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")


def redact_pii(doc: Document, params: PiiParams) -> Document | Drop:
    """The document without personal data, `meta["pii"]` the number of matches; itself where there are none.

    With action drop: "pii" for a document with a match. The id stays: it names the text before redaction.
    """
    spans = find_pii(doc.text, params)
    if not spans:
        return doc
    if params.action == "drop":
        return Drop("pii")
    parts, at = [], 0
    for start, end, kind in spans:
        parts += [doc.text[at:start], params.replacement(kind)]
        at = end
    parts.append(doc.text[at:])
    return replace(doc, text="".join(parts), meta={**doc.meta, "pii": len(spans)})


PII = Stage(
    name="pii",
    version=1,
    summary="Replace personal data in every document, or drop the documents that have any.",
    params=PiiParams,
    judge=redact_pii,
    libraries=("google-re2",),
    notes=(Note("pii", int, "matches that were replaced"),),
    reasons=(Reason("pii", "personal data found, with `action: drop`", "`redact` keeps the document"),),
)
