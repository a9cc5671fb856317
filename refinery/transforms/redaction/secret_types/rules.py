"""The grammars of credentials that say themselves what they are: prefixes, alphabets and lengths, by provider.

Prefixes are matched as providers publish them; lengths and alphabets are facts that well-kept scanners collect:
gitleaks (MIT; config/gitleaks.toml), detect-secrets (Apache-2.0; detect_secrets/plugins), CredSweeper (MIT;
credsweeper/rules/config.yaml), TruffleHog (AGPL-3.0; pkg/detectors). Patterns are RE2 over UTF-8 bytes; group 1, where
there is one, is what is secret.
"""

import base64
import binascii
import json
import re
import zlib
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

WORD = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
ALNUM = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


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


class Token(NamedTuple):
    """A kind of credential. name: stable, also the reason and the switch. what: for the pages. source: who says so.

    pattern: RE2 over bytes. anchors: literals of which every match has one; none where no literal is rare.
    hint: what every match begins with or has in it, where the anchors alone are too common to look for in every text.
    check: what a regular expression cannot say; takes the secret's bytes.
    """

    name: str
    what: str
    source: str
    pattern: bytes
    anchors: tuple[bytes, ...] = ()
    check: Callable[[bytes], bool] | None = None
    hint: bytes = b""


def decode_base64(data: bytes) -> bytes:
    """Standard or URL-safe base64 with or without padding; b"" for anything else."""
    body = data.rstrip(b"=").replace(b"-", b"+").replace(b"_", b"/")
    try:
        return base64.b64decode(body + b"=" * (-len(body) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""


def is_jwt(token: bytes) -> bool:
    """Whether the first part is JSON's beginning of an object with a member (RFC 7515 3.1: the header)."""
    header = decode_base64(token[:4096].partition(b".")[0])
    try:
        return isinstance(json.loads(header), dict)
    except (ValueError, RecursionError):
        return header.startswith((b'{"alg"', b'{"typ"'))


JWK_MEMBER = re.compile(rb"\"[dk]\"\s*:\s*\"[A-Za-z0-9_-]{16}")


def is_jwk(token: bytes) -> bool:
    """Whether base64 holds a private or a symmetric JSON Web Key (RFC 7517 4.1, RFC 7518 6: its member d or k)."""
    return bool(JWK_MEMBER.search(decode_base64(token.rstrip(b"=")[: 1 << 14])))


def is_base36_mixed(token: bytes) -> bool:
    """Letters and digits both occur: no word in capitals, no number."""
    body = token[3:]
    return any(48 <= byte <= 57 for byte in body) and any(byte > 57 for byte in body)


def has_digit(token: bytes) -> bool:
    """Whether there is a digit: no member of an object in code."""
    return any(48 <= byte <= 57 for byte in token)


TURN_SHARE = 5  # a row drawn at random changes its kind of sign at every second place; a name of words at every eighth


def is_mixed(token: bytes) -> bool:
    """Whether letters and digits take turns as in what is drawn at random: no word, no name of something."""
    kinds = [0 if 48 <= byte <= 57 else 1 if byte > 96 else 2 for byte in token if chr(byte).isalnum()]
    turns = sum(a != b and (a, b) != (2, 1) for a, b in pairwise(kinds))
    return 0 in kinds and turns * TURN_SHARE >= len(kinds)


def is_old_vault(token: bytes) -> bool:
    """Whether what follows `s.` is drawn at random, no method of an object."""
    return not token.startswith(b"s.") or is_mixed(token[2:])


def has_both_cases(token: bytes) -> bool:
    """Whether capitals and small letters occur beside the prefix."""
    body = token.rpartition(b"_")[2]
    return any(65 <= byte <= 90 for byte in body) and any(97 <= byte <= 122 for byte in body)


def has_six_digits(token: bytes) -> bool:
    """Whether there are as many digits as in an id: no words of an address."""
    return sum(48 <= byte <= 57 for byte in token) >= 6


def has_github_checksum(token: bytes) -> bool:
    """Whether the last six characters are the CRC-32 of the others in base 62.

    Source: GitHub's "Behind GitHub's new authentication token formats" (2021). Tokens that fail are other text.
    """
    value, digits = zlib.crc32(token[4:-6]), bytearray()
    for _ in range(6):
        value, digit = divmod(value, 62)
        digits.append(ALNUM[digit])
    return bytes(reversed(digits)) == token[-6:]


def is_discord(token: bytes) -> bool:
    """Whether the last part mixes cases and digits, as an HMAC in base64 does."""
    tail = token.rpartition(b".")[2]
    return any(65 <= b <= 90 for b in tail) and any(97 <= b <= 122 for b in tail)


def token(
    name: str,
    what: str,
    source: str,
    pattern: bytes,
    anchors: str = "",
    check: Callable[[bytes], bool] | None = None,
    hint: bytes = b"",
) -> Token:
    """A Token whose anchors stand in one string, separated by spaces."""
    return Token(name, what, source, pattern, tuple(anchors.encode().split()), check, hint)


GITLEAKS, DETECT, CREDSWEEPER, TRUFFLEHOG = "gitleaks", "detect-secrets", "CredSweeper", "TruffleHog"
ISSUER = "the issuer's own form"
# What many grammars are made of: a UUID, letters of identifiers, of tokens, of base64.
HEX_UUID = rb"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
W = rb"[A-Za-z0-9_-]"
A = rb"[A-Za-z0-9]"
H = rb"[0-9a-f]"
B64 = rb"[A-Za-z0-9+/]"

# Keys that Google and others publish in the documentation and examples of their kits; listed by gitleaks. Beginnings.
PUBLISHED = (
    b"AIzaSyAnLA7", b"AIzaSyCkEhV", b"AIzaSyDMASc", b"AIzaSyD3asb", b"AIzayDNSXIb", b"AIzaSyAdOS2", b"AIzaSyASWm6",
    b"AIzaSyANUvH", b"AIzaSyA5_iV", b"AIzaSyA4Urc", b"AIzaSyDSb51", b"AIzaSyBF2Rr", b"AIzaSyBcE-O", b"AIzaSyB8qGx",
    b"AIzaSyA8vmA", b"AIzaSyabcde",
)  # fmt: skip
