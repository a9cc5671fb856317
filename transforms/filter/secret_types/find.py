"""Where the secrets of a text are: tokens by their grammar, and values by what stands around them.

Every pattern is RE2 over UTF-8 bytes, so a text costs linear time; what stands behind a hit is read up to a limit.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import re2

from refinery.transforms.filter.secret_types.context import (
    is_example,
    is_placeholder,
    is_random,
    judge_name,
    judge_value,
)
from refinery.transforms.filter.secret_types.platforms import PLATFORMS
from refinery.transforms.filter.secret_types.rules import PUBLISHED, Token, decode_base64, has_github_checksum
from refinery.transforms.filter.secret_types.services import SERVICES

TOKENS = (*PLATFORMS, *SERVICES)
WORD = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
REACH = 512  # bytes of a value that are read, and of a name
KEY_REACH = 1 << 16  # bytes of a private key: RSA with 16,384 bits takes 13,000


class Rule(NamedTuple):
    """A rule by name, for pages and switches."""

    name: str
    what: str
    source: str


class Found(NamedTuple):
    """data[start:end] is a secret of that rule; byte offsets."""

    start: int
    end: int
    rule: str


CONTEXT_RULES = (
    Rule("private-key", "private keys: PEM, PGP, PuTTY, also bare or in base64 again", "RFC 7468; RFC 5958; gitleaks"),
    Rule("url-password", "passwords in addresses and connection strings", "RFC 3986 3.2.1; detect-secrets"),
    Rule("authorization", "credentials of HTTP's Authorization header", "RFC 7617, RFC 6750; gitleaks"),
    Rule("curl-user", "passwords in calls of curl", "curl's manual, --user; gitleaks"),
    Rule("password-hash", "password hashes as crypt(3) writes them", "crypt(5)"),
    Rule("password", "values behind a name that ends in password", "detect-secrets; CredSweeper"),
    Rule("secret", "random values behind a name that ends in secret, token, credentials, API key", "gitleaks"),
    Rule("key", "long random values behind a name that ends in key", "gitleaks"),
)
RULES = (*(Rule(token.name, token.what, token.source) for token in TOKENS), *CONTEXT_RULES)


def _compile(pattern: bytes) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = 64 << 20
    return re2.compile(pattern, options)


def _hint() -> Any:
    """One pattern that matches wherever a token may be: most texts are done with it."""
    literals = {anchor for token in TOKENS if not token.hint for anchor in token.anchors}
    return _compile(
        b"|".join([*map(re2.escape, sorted(literals)), *(b"(?:" + t.hint + b")" for t in TOKENS if t.hint)])
    )


PATTERNS = tuple((token, _compile(token.pattern)) for token in TOKENS)
HINT = _hint()

NAME = rb"(?:pass|pw|ps+w|pasw|secret|token|key|cred|auth|bearer|dsn|pin_?code|srt|jwt)[\w.-]*"
# Behind a name: a closing quote or bracket, then what assigns, after a type where there is one.
ASSIGN = _compile(
    rb"(?i)" + NAME + rb"\\?[\"'`\])]{0,2}[ \t]{0,8}"
    rb"(?::[ \t]{0,2}[A-Za-z_]\w*\??[ \t]{0,2}=|=>|[:?+]*=+|!=|:|->|,|(?:[ \t][a-z]+=[\"'][\w -]*[\"'])?>)[ \t]{0,8}"
)
# Names whose value stands behind a space: options of commands, definitions, SQL.
# Names whose value stands behind a space: options of commands; SQL and definitions, where it stands in quotes;
# files of settings.
OPTION = _compile(rb"(?i)(?:^|[\s\"'`])--?[\w-]*" + NAME + rb"[ \t]{1,4}")
DEFINED = _compile(
    rb"(?i)(?:\b(?:define|global|set)[ \t]+[\w.-]*"
    + NAME
    + rb"|\bidentified\s+by|\b(?:with|user)\s+password|\blogin\s+\S+\s+password)"
    rb"[ \t(]{1,4}[\"']"
)
SETTING = _compile(rb"(?m)^[ \t]{0,8}passw(?:or)?d[ \t]{1,4}")
JWK = _compile(rb"\"(?:d|k|p|q|dp|dq|qi)\"\s{0,4}:\s{0,4}\"([A-Za-z0-9_-]{20,})\"")
SCHEME = _compile(rb"(?i)\b(basic|bearer|ntlm|negotiate|token|oauth)[ \t]{1,4}[\"']?([\w=~@.+/-]{8,})")
CURL_USER = _compile(rb"[ \t\n](?:-u|--user|--proxy-user)[ \t=]{0,4}")
PAIR = _compile(
    rb"\"[^\":\n]*:([^\"\s]{4,})\"|'[^':\n]*:([^'\s]{4,})'|(?:\"[^\"\n]*\"|'[^'\n]*'):[\"']([^\"'\s]{4,})[\"']|[^\s\"':<>]*:([^\s\"'<>]{4,})"
)
URL = _compile(rb"(?i)\b[a-z][a-z0-9+.-]*://([^\s/:\"'<>`\\]*):([^\s/\"'<>`\\]+)@[\w.\[$%{-]")
CRYPT = _compile(
    rb"\$(?:apr1|1)\$[A-Za-z0-9./]{1,8}\$[A-Za-z0-9./]{22}|\$2[abxy]\$[0-9]{2}\$[A-Za-z0-9./]{53}"
    rb"|\$[56]\$(?:rounds=[0-9]{1,9}\$)?[A-Za-z0-9./]{1,16}\$[A-Za-z0-9./]{43,86}|\$y\$[A-Za-z0-9./]{1,9}\$[A-Za-z0-9./]{8,86}\$[A-Za-z0-9./]{43}"
    rb"|\$argon2(?:id|i|d)\$v=[0-9]{1,3}\$[a-z0-9=,]{5,40}\$[A-Za-z0-9+/]{8,64}\$[A-Za-z0-9+/]{16,128}"
)
BEGIN = _compile(rb"-----BEGIN[ A-Z0-9]*PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-[23]:")
# DER of PKCS#8 and PKCS#1 keys, and "-----BEGIN", in base64: their first bytes are always the same.
DER = _compile(
    rb"MI[IG][A-Za-z0-9+/]{0,4}(?:IBADAN|AgEAMBMGByqGSM49|IBAAK[BC]|wIBAAJB|gIBAAJB|HcCAQEEI)[A-Za-z0-9+/\s\\]{40,}={0,2}"
    rb"|MHcCAQEEI[A-Za-z0-9+/\s\\]{60,}={0,2}|(?:LS0tLS1CRUdJTi|tLS0tQkVHSU4g|LS0tLUJFR0lOI)[A-Za-z0-9+/\s]{32,}={0,2}"
)
DER_HINTS = (b"IBA", b"AgEAMBMG", b"MHcCAQEEI", b"CRUdJTi", b"tLS0tQkVHSU4g", b"LS0tLUJFR0lOI")
BASE64_LINE = _compile(rb"[^\n]*[A-Za-z0-9+/=]{16}[^\n]*\n?")
UNQUOTED = _compile(rb"[^\s\"'`<>\\,;&|(){}\[\]]+")
QUOTE = _compile(rb"(?:[bBrRfFuULS@$]{0,2})(\\?)([\"'`]{1,3})")


def find(data: bytes, off: frozenset[str]) -> list[Found]:
    """All secrets in order, without overlap: matches that touch are one, named after the first."""
    found = [match for match in _candidates(data) if match.rule not in off]
    merged: list[Found] = []
    for match in sorted(found):
        if merged and match.start < merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(merged[-1].end, match.end))
        else:
            merged.append(match)
    return merged


def _candidates(data: bytes) -> Iterator[Found]:
    if HINT.search(data):
        for token, pattern in PATTERNS:
            if not token.anchors or any(anchor in data for anchor in token.anchors):
                yield from _tokens(data, token, pattern)
    yield from _private_keys(data)
    if b"://" in data:
        yield from _urls(data)
    if b'"kty"' in data:
        yield from (Found(match.start(1), match.end(1), "jwk") for match in JWK.finditer(data))
    yield from _headers(data)
    if b"curl" in data:
        yield from _curl_users(data)
    if b"$" in data:
        yield from (Found(match.start(), match.end(), "password-hash") for match in CRYPT.finditer(data))
    yield from _assignments(data)


def _tokens(data: bytes, token: Token, pattern: Any) -> Iterator[Found]:
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


def _stands_alone(data: bytes, start: int, end: int) -> bool:
    """Whether data[start:end] is no part of a longer word, or of base64."""
    before, after = data[start - 1] if start else 32, data[end] if end < len(data) else 32
    first, last = data[start], data[end - 1]
    if data.startswith((b"...", "…".encode()), end):  # abridged
        return False
    if (before in WORD and first in WORD) or before in b"+":
        return False
    return not ((after in WORD or after in b"-") and last in WORD) and not (after in b"+/" and before not in b"/=\"'")


def _private_keys(data: bytes) -> Iterator[Found]:
    if b"PRIVATE KEY" in data or b"PuTTY-User" in data:
        at = 0
        while match := BEGIN.search(data, at):
            at = match.end()
            end = data.find(b"-----END", at, at + KEY_REACH)
            begin = data.find(b"-----BEGIN", at, at + KEY_REACH)
            if end < 0 or 0 <= begin < end:
                end = _end_of_lines(data, at)
            body = data[at:end]
            if sum(byte in WORD or byte in b"+/=" for byte in body[:4096]) >= 64 and not is_placeholder(body[:256]):
                if data.startswith(b"-----END", end):
                    close = data.find(b"-----", end + 8, end + 80)
                    end = close + 5 if close >= 0 else end + 8
                yield Found(match.start(), end, "private-key")
                at = end
    if any(hint in data for hint in DER_HINTS):
        for match in DER.finditer(data):
            yield Found(match.start(), match.end(), "private-key")


def _end_of_lines(data: bytes, at: int) -> int:
    """Where the lines of base64 behind `at` end: of a key that was cut off."""
    stop = min(len(data), at + KEY_REACH)
    newline = data.find(b"\n", at, stop)
    end = stop if newline < 0 else newline + 1
    while end < stop and (line := BASE64_LINE.match(data, end, stop)):
        end = line.end()
    return end


def _urls(data: bytes) -> Iterator[Found]:
    for match in URL.finditer(data):
        start, end = match.span(2)
        password = data[start:end]
        if len(password) > REACH or password.lower() == match.group(1).lower() or password.isdigit():
            continue
        if (
            password.lower() in EXAMPLES
            or password.startswith((b"$", b"{", b"[", b"%", b"*", b":"))
            or is_placeholder(password)
        ):
            continue
        yield Found(start, end, "url-password")


def _headers(data: bytes) -> Iterator[Found]:
    for match in SCHEME.finditer(data):
        scheme, value = match.group(1).lower(), match.group(2)[:REACH]
        if is_placeholder(value):
            continue
        pair = decode_base64(value) if scheme == b"basic" else b""
        if (b":" in pair and pair.isascii()) or (len(value) >= 16 and is_random(value, strict=True)):
            yield Found(match.start(2), match.end(2), "authorization")


def _curl_users(data: bytes) -> Iterator[Found]:
    for match in CURL_USER.finditer(data):
        at = match.end()
        if b"curl" not in data[max(0, at - REACH) : at]:
            continue
        pair = PAIR.match(data, at, at + REACH)
        if pair is None:
            continue
        start, end = pair.span(pair.lastindex)
        password = data[start:end]
        if password.lower() not in EXAMPLES and not is_placeholder(password) and len(set(password)) > 2:
            yield Found(start, end, "curl-user")


EXAMPLES = frozenset(
    b"password passwd pass pwd secret token user username test changeme changeit x xx xxx yyy port"
    b" pw hostname host".split()
)


def _assignments(data: bytes) -> Iterator[Found]:
    for match in ASSIGN.finditer(data):
        yield from _assigned(data, match.start(), match.end())
    for match in OPTION.finditer(data):
        yield from _judged(data, _name_of(match.group(0)), match.end(), loose=True)
    for match in DEFINED.finditer(data):
        yield from _judged(data, _name_of(match.group(0)) or b"password", match.end() - 1)
    for match in SETTING.finditer(data):
        yield from _judged(data, b"password", match.end())


def _assigned(data: bytes, start: int, at: int) -> Iterator[Found]:
    """The value behind an operator at `at`, where the operator and what stands behind it belong together."""
    match = data[start:at]
    operator = match.rstrip(b" \t\"'`\\")
    name = _name_before(data, start) + _name_of(match)
    if operator.endswith(b",") and (data[at : at + 1] not in (b"'", b'"') or any(48 <= byte <= 57 for byte in name)):
        return
    markup = operator.endswith(b">") and not operator.endswith((b"=>", b"->"))
    yield from _judged(data, name, at, loose=markup, before=b"</" if markup else b"")


def _judged(data: bytes, name: bytes, at: int, loose: bool = False, before: bytes = b"") -> Iterator[Found]:
    """The value at `at` if it and its name say that it is secret.

    loose: it is a value even without quotes. before: what must stand behind it.
    """
    value = _value(data, at)
    if value is None:
        return
    first, end, quoted = value
    if data.startswith((b"...", "…".encode()), end) or not data.startswith(before, end):
        return
    text = name[-80:].decode("latin-1")
    kind = judge_name(text)
    if kind and judge_value(kind, data[first:end], quoted or loose):
        yield Found(first, end, kind)


def _name_before(data: bytes, start: int) -> bytes:
    """The part of an identifier that stands before `start`."""
    at = start
    while at and start - at < 64 and (data[at - 1] in WORD or data[at - 1] in b".-"):
        at -= 1
    return data[at:start]


NAME_ONLY = _compile(rb"(?i)" + NAME)


def _name_of(match: bytes) -> bytes:
    """The identifier in what ASSIGN or SPACED matched; its last 80 bytes."""
    found = NAME_ONLY.search(match)
    return found.group(0)[-80:] if found else b""


def _value(data: bytes, at: int) -> tuple[int, int, bool] | None:
    """(start, end, whether in quotes) of the value at `at`; None for none, a sentence, or a call."""
    stop = at + REACH
    if opening := QUOTE.match(data, at, stop):
        first, quote = opening.end(), opening.group(2)[-1:]
        end = data.find(quote, first, stop)
        newline = data.find(b"\n", first, stop)
        if end < 0 or (0 <= newline < end):
            return None
        if opening.group(1) and data[end - 1 : end] == b"\\":
            end -= 1
        if end - first < 4 or any(byte in b" \t" for byte in data[first:end]):
            return None
        return first, end, True
    bare = UNQUOTED.match(data, at, stop)
    if bare is None or data[bare.end() : bare.end() + 1] in (b"(", b"[", b"{"):
        return None
    first, end = bare.span()
    while end > first and data[end - 1] in b".:":
        end -= 1
    return (first, end, False) if end - first >= 4 else None
