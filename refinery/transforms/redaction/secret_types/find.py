"""Where the secrets of a text are: tokens by their grammar, and values by what stands around them.

Every pattern is RE2 over UTF-8 bytes, so a text costs linear time; what stands behind a hit is read up to a limit.
"""

from collections.abc import Iterator

import refinery.transforms.redaction.secret_types.assignments as assignments
import refinery.transforms.redaction.secret_types.commands as commands
import refinery.transforms.redaction.secret_types.sentences as sentences
from refinery.transforms.redaction.pii_types.scan import Hinted, Hints, compile_bytes
from refinery.transforms.redaction.secret_types.context import EXAMPLES, is_placeholder, is_random
from refinery.transforms.redaction.secret_types.private_keys import ARMOUR_HINT, DER_HINT, armoured, bare, web_keys
from refinery.transforms.redaction.secret_types.rules import Found, Rule, decode_base64
from refinery.transforms.redaction.secret_types.tokens import BEGINNINGS, ESCAPED, TOKENS, tokens

REACH = 512  # bytes of a value that are read

CONTEXT_RULES = (
    Rule("private-key", "private keys: PEM, PGP, PuTTY, also bare or in base64 again", "RFC 7468; RFC 5958; gitleaks"),
    Rule("url-password", "passwords in addresses and connection strings", "RFC 3986 3.2.1; detect-secrets"),
    Rule("authorization", "credentials of HTTP's Authorization header", "RFC 7617, RFC 6750; gitleaks"),
    Rule("curl-user", "passwords in calls of curl", "curl's manual, --user; gitleaks"),
    Rule("command-password", "passwords in calls of programs: sshpass, mysql, docker login …", "the programs' manuals"),
    Rule("password-file", "passwords of .netrc and .pgpass", "netrc(5); PostgreSQL, The Password File"),
    Rule("password-hash", "password hashes as crypt(3) writes them", "crypt(5)"),
    Rule(
        "password",
        "values behind a name that ends in password, or a word for one in 60 languages",
        "detect-secrets; CredSweeper",
    ),
    Rule("secret", "random values behind a name that ends in secret, token, credentials, API key", "gitleaks"),
    Rule("key", "long random values behind a name that ends in key", "gitleaks"),
)
RULES = (*(Rule(token.name, token.what, token.source) for token in TOKENS), *CONTEXT_RULES)


SCHEME = rb"(?i)\b(basic|bearer|ntlm|negotiate|token|oauth)[ \t]{1,4}[\"']?([\w=~@.+/-]{8,})"
CURL_USER = compile_bytes(rb"[ \t\n](?:-u|--user|--proxy-user)[ \t=]{0,4}")
PAIR = compile_bytes(
    rb"\"[^\":\n]*:([^\"\s]{4,})\"|'[^':\n]*:([^'\s]{4,})'|(?:\"[^\"\n]*\"|'[^'\n]*'):[\"']([^\"'\s]{4,})[\"']|[^\s\"':<>]*:([^\s\"'<>]{4,})"
)
URL = compile_bytes(rb"(?i)\b[a-z][a-z0-9+.-]*://([^\s/:\"'<>`\\]*):([^\s/\"'<>`\\]+)@[\w.\[$%{-]")
CRYPT = compile_bytes(
    rb"\$(?:apr1|1)\$[A-Za-z0-9./]{1,8}\$[A-Za-z0-9./]{22}|\$2[abxy]\$[0-9]{2}\$[A-Za-z0-9./]{53}"
    rb"|\$[56]\$(?:rounds=[0-9]{1,9}\$)?[A-Za-z0-9./]{1,16}\$[A-Za-z0-9./]{43,86}|\$y\$[A-Za-z0-9./]{1,9}\$[A-Za-z0-9./]{8,86}\$[A-Za-z0-9./]{43}"
    rb"|\$argon2(?:id|i|d)\$v=[0-9]{1,3}\$[a-z0-9=,]{5,40}\$[A-Za-z0-9+/]{8,64}\$[A-Za-z0-9+/]{16,128}"
)


HINTS = Hints(
    {
        **BEGINNINGS,
        "armour": ARMOUR_HINT,
        "der": DER_HINT,
        "url": rb"://[^\s/:]*:[^\s/]*@",
        "kty": rb"\"kty\"",
        "curl": rb"curl",
        "crypt": rb"\$(?:apr1|[1256y]|2[abxy]|argon2[a-z]*)\$",
        "option": assignments.OPTION_HINT,
        "defined": assignments.DEFINED_HINT,
        "setting": assignments.SETTING_HINT,
        "spoken key": sentences.SECRET_HINT,
        "call": commands.HINT,
        "netrc": commands.NETRC_HINT,
        "pgpass": commands.PGPASS_HINT,
    },
    placed={
        "escaped": ESCAPED,
        "header": SCHEME,
        "assigned": assignments.ASSIGN,
        "password": sentences.PASSWORD,
        "secret": sentences.SECRET,
        "pair": sentences.PAIR,
        "program": commands.PROGRAM,
    },
)


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
    hints = HINTS.of(data)
    if hints.nothing:
        return
    yield from tokens(data, hints)
    if "armour" in hints:
        yield from armoured(data)
    if "der" in hints:
        yield from bare(data)
    if "url" in hints:
        yield from _urls(data)
    if "kty" in hints:
        yield from web_keys(data)
    yield from _headers(hints)
    if "curl" in hints:
        yield from _curl_users(data)
    if "crypt" in hints:
        yield from (Found(match.start(), match.end(), "password-hash") for match in CRYPT.finditer(data))
    yield from assignments.assignments(data, hints)
    yield from _by_words(data, hints)


def _by_words(data: bytes, hints: Hinted) -> Iterator[Found]:
    """What sentences, calls of programs and files of passwords give away."""
    if spoken := hints.matches("password"):
        yield from (Found(start, end, "password") for start, end in sentences.passwords(data, spoken))
    if "spoken key" in hints:
        keys = sentences.keys(data, hints.matches("secret"))
        yield from (Found(start, end, "secret") for start, end in keys)
    if pairs := hints.matches("pair"):
        yield from (Found(start, end, "password") for start, end in sentences.pairs(data, pairs))
    if "call" in hints:
        calls = commands.in_calls(data, hints.matches("program"))
        yield from (Found(start, end, "command-password") for start, end in calls)
    if "netrc" in hints:
        yield from (Found(start, end, "password-file") for start, end in commands.in_netrc(data))
    if "pgpass" in hints:
        yield from (Found(start, end, "password-file") for start, end in commands.in_pgpass(data))


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


def _headers(hints: Hinted) -> Iterator[Found]:
    for match in hints.matches("header"):
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
