"""Passwords and keys that a sentence gives away: "the password for admin is X", "пароль: X", "ID/PW: admin/X".

The word is one of languages.py; between it and the value stand a colon, or up to six words and a verb. What follows a
verb is a word far more often than a password, so the value must have digits beside letters, or signs inside, and be no
term ("SHA256", "base64-encoded"). The forms are those of CredSweeper's rules for documents, in more languages.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import re2

from refinery.transforms.redaction.pii_types.scan import compile_bytes
from refinery.transforms.redaction.secret_types.context import (
    CLASSES,
    NEVER,
    PATH,
    changes,
    is_password,
    is_placeholder,
    is_random,
)
from refinery.transforms.redaction.secret_types.identifiers import is_wordy
from refinery.transforms.redaction.secret_types.languages import (
    COPULAS,
    COPULAS_UNSPACED,
    PASSWORD_WORDS,
    PASSWORD_WORDS_UNSPACED,
)


def _one_of(words: tuple[str, ...]) -> str:
    return "(?:" + "|".join(re.escape(word) for word in words) + ")"


def _forms(words: Iterable[str]) -> bytes:
    """Any of the words over bytes, where patterns know no case beyond ASCII: as it is, capitalised, in capitals."""
    forms = {form.encode() for word in words for form in (word, word.capitalize(), word.upper())}
    return b"|".join(re2.escape(form) for form in sorted(forms, key=lambda form: (-len(form), form)))


SECRET_WORDS = (
    *("secret", "token", "api key", "api-key", "access key", "access-key", "auth key", "authentication key"),
    *("secret key", "private key", "encryption key", "токен", "секрет", "ключ", "clé", "clave", "chave", "schlüssel"),
    *("chiave", "klucz", "sleutel", "nyckel", "anahtar"),
)
SECRET_WORDS_UNSPACED = ("토큰", "키", "トークン", "キー", "令牌", "密钥", "密鑰", "秘钥")
PASSWORD = rb"(?i)(?:" + _forms((*PASSWORD_WORDS, *PASSWORD_WORDS_UNSPACED)) + rb")"
SECRET = rb"(?i)(?:" + _forms((*SECRET_WORDS, *SECRET_WORDS_UNSPACED)) + rb")"
SECRET_HINT = SECRET + rb"s?\b"
PAIR = (
    rb"(?i)(?:id|user(?:[ _-]?name)?|login|account|[\x80-\xbf])\)?[ \t/,:(|&-]{1,3}"
    rb"(?:pw|pswd|pwd|pass|\xeb\xb9|\xed\x8c|\xe5\xaf\x86|\xe3\x83\x91)"
)
PASSWORDS, SECRETS, PAIRS = map(compile_bytes, (PASSWORD, SECRET, PAIR))

# What stands between the word and the value, from the end of the word on.
FILLER = r"(?:[ \t]+[^\s:=]{1,30}){0,6}?"
SIGN = r"[ \t\u3000]{0,3}(?:[:：=＝]|->|→)+>?[ \t\u3000]{0,3}(?:\r?\n[ \t]{0,8})?"
NOW = r"(?:[ \t]+(?:now|still|just|simply|always|currently|(?:(?:re)?set|changed)[ \t]+to|nun|jetzt))?"
VERB = rf"[ \t]+{_one_of(COPULAS)}{NOW}[ \t]*:?[ \t]+"
CLOSED = r"[^\W\d_]{0,3}[\"'`»”)]{0,2}"
SPACED = re.compile(rf"{CLOSED}{FILLER}(?:{SIGN}|{VERB})", re.IGNORECASE)
DIRECT = re.compile(rf"{CLOSED}[ \t]+[(]?")
UNSPACED = re.compile(rf"\w{{0,3}}?[）)」』]?[ \t]{{0,2}}(?:{_one_of(COPULAS_UNSPACED)}|[(（])[ \t:：]{{0,4}}")
SPACED_SECRET = re.compile(rf"s?[)\"'`]{{0,2}}(?:{FILLER}(?:{SIGN}|{VERB})|[ \t]+\(?|\))", re.IGNORECASE)
UNSPACED_SECRET = re.compile(r"[ \t:：は是가은는]{0,4}")
PAIR_TAIL = re.compile(
    r"(?:[\w ]{0,16}?\)?)(?:[ \t]*(?:->|[:=(/-])[ \t]*|[ \t]+(?:(?:is|are|for[ \t]+\S{1,30})[ \t]+)?)\(?"
    r"[\w.@-]{2,64}[ \t]{0,2}[:/,( \t]{1,3}[ \t]?",
    re.IGNORECASE,
)
NOT_UNSPACED = frozenset(word.encode() for word in (*PASSWORD_WORDS_UNSPACED, *SECRET_WORDS_UNSPACED))
PUBLIC_BEFORE = re.compile(
    r"(?:public|pub|csrf|xsrf|forgery|foreign|primary|sort|partition|registry)[ _-]?$", re.IGNORECASE
)
WORD_BYTES = 24  # before a word, which may make it another one
WINDOW = 240  # bytes behind a word that are looked at

TERM = re.compile(
    rb"(?i)(?:sha|md|base|utf|oauth|win|pbkdf|argon|aes|rsa|ec|ecdsa|ed|hs|rs|es|ps|ipv|http|ntlmv|wpa|wep|ssl|tls|rot|rc"
    rb"|des|crc|iso|rfc|u?int|float|sqlite|mysql|postgres\w*|python|php|java|node|oracle|windows|ubuntu|office|step|option"
    rb"|section|table|figure|chapter|line|page|version|level|phase|cisco|type)[ _-]?[0-9]+(?:[._-]?[0-9a-z]{1,8})?"
    rb"|[xkvhp][0-9.]+"
)
COMPOUND = re.compile(rb"(?:[A-Za-z]+[0-9]*|[0-9]+)(?:[-/][A-Za-z]+)+[0-9]{0,2}")
DATED = re.compile(
    rb"[0-9]{1,4}(?:[./:-][0-9]{1,4}){1,3}(?:[a-z]{0,2})|[0-9]+(?:st|nd|rd|th|px|kb|mb|gb|ms|min|am|pm|x)",
    re.IGNORECASE,
)
CODE = re.compile(rb"\w[\[({]|\$\(|::|->|[<>]")
BARE = re.compile(rb"[^\s\"'`<>\x80-\xff]+")  # 密码是abc123，: letters of another script end it
OPENING = ("“", "„", "«", "‘", "「", "『", "(", "（")
CLOSING = b".,;:)]}>"
CLOSING_SIGNS = ("&lt;", "&quot;", "&nbsp;", "”", "“", "»", "’", "」", "』", "。", "、", "，", "）", "…")
REACH = 256  # bytes of a value
LEAST = 6  # bytes of a password
LEAST_KEY = 14  # and of a secret or a key


def passwords(data: bytes, words: Iterable[Any] | None = None) -> Iterator[tuple[int, int]]:
    """Values behind a word for a password. words: the matches of PASSWORD, if they are known. Linear: the pattern is
    bounded, a value has REACH bytes at most."""
    for match in PASSWORDS.finditer(data) if words is None else words:
        unspaced = match.group(0) in NOT_UNSPACED
        at = _behind(data, match, UNSPACED if unspaced else SPACED, unspaced)
        found = _value(data, at) if at is not None else None
        if found and _is_password(data[found[0] : found[1]], found[2]):
            yield found[0], found[1]
            continue
        at = _behind(data, match, DIRECT, unspaced)
        found = _value(data, at) if at is not None else None
        if found and _is_drawn(data[found[0] : found[1]]):
            yield found[0], found[1]


def keys(data: bytes, words: Iterable[Any] | None = None) -> Iterator[tuple[int, int]]:
    """Values behind a word for a secret or a key: those alone that are clearly random. words: the matches of SECRET, if
    they are known. Linear."""
    for match in SECRETS.finditer(data) if words is None else words:
        unspaced = match.group(0) in NOT_UNSPACED
        at = _behind(data, match, UNSPACED_SECRET if unspaced else SPACED_SECRET, unspaced)
        found = _value(data, at) if at is not None else None
        if found is None:
            continue
        value = data[found[0] : found[1]]
        if len(value) < LEAST_KEY or not _has_three_kinds(value) or not is_random(value, strict=True):
            continue
        if not is_placeholder(value) and not is_wordy(value) and not PATH.search(value):
            yield found[0], found[1]


def pairs(data: bytes, words: Iterable[Any] | None = None) -> Iterator[tuple[int, int]]:
    """Passwords behind "ID/PW:" and a name. words: the matches of PAIR, if they are known. Linear."""
    for match in PAIRS.finditer(data) if words is None else words:
        at = _behind(data, match, PAIR_TAIL, unspaced=True)
        found = _value(data, at) if at is not None else None
        if found is None:
            continue
        value = data[found[0] : found[1]]
        if len(value) >= LEAST and _has_three_kinds(value) and _is_password(value, quoted=True):
            yield found[0], found[1]


def _behind(data: bytes, match: Any, tail: re.Pattern[str], unspaced: bool) -> int | None:
    """Where the value begins; None where nothing leads to it, or the word is the end of another one."""
    start, end = match.span()
    before = data[max(0, start - WORD_BYTES) : start].decode(errors="ignore")
    if not unspaced and (before[-1:].isalpha() or PUBLIC_BEFORE.search(before)):
        return None
    window = data[end : end + WINDOW].decode(errors="ignore")
    found = tail.match(window)
    return end + len(found.group(0).encode()) if found else None


def _value(data: bytes, at: int) -> tuple[int, int, bool] | None:
    """(start, end, whether in quotes) of what stands at `at`, without the signs that end a sentence."""
    for sign in OPENING:
        if data.startswith(sign.encode(), at):
            at += len(sign.encode())
            break
    if (quote := data[at : at + 1]) and quote in b"\"'`":
        end = data.find(quote, at + 1, at + REACH)
        inside = data[at + 1 : end] if end > 0 else b""
        return (at + 1, end, True) if inside and not any(byte in b" \t\n" for byte in inside) else None
    bare = BARE.match(data, at, at + REACH)
    if bare is None or bare.group(0).endswith(b"...") or CODE.search(bare.group(0)):
        return None
    start, end = bare.span()
    for sign in CLOSING_SIGNS:
        cut = data.find(sign.encode(), start, end)
        end = cut if cut >= 0 else end
    while end > start and data[end - 1] in CLOSING:
        end -= 1
    return (start, end, False) if end > start else None


def _has_three_kinds(value: bytes) -> bool:
    """Whether small letters, capitals, and digits or signs all occur."""
    kinds = set(value.translate(CLASSES))
    return {97, 65} <= kinds and len(kinds) > 2


def _is_drawn(value: bytes) -> bool:
    """Whether a value directly behind the word is one: drawn at random beyond doubt."""
    return len(value) >= 8 and _has_three_kinds(value) and changes(value) >= 3 and _is_password(value, quoted=False)


def _is_password(value: bytes, quoted: bool) -> bool:
    """Whether the value behind a sentence's word is a password, no word of the sentence."""
    if not LEAST <= len(value) < REACH or value.lower() in NEVER or is_placeholder(value):
        return False
    if TERM.fullmatch(value) or COMPOUND.fullmatch(value) or DATED.fullmatch(value) or not value.isascii():
        return False
    if PATH.search(value) or b"://" in value or (b"@" in value and b"." in value.rpartition(b"@")[2]):
        return False
    if value.startswith((b"$", b"%", b"{", b"@", b"<", b"*")) and not changes(value):
        return False
    kinds = value.translate(CLASSES)
    if quoted:
        return is_password(value, quoted=True)
    if is_wordy(value) or not (b"a" in kinds or b"A" in kinds):
        return False
    inner = any(byte in b"!@#$%^&*+=?~" for byte in value[1:-1]) and b"(" not in value
    return (b"0" in kinds and (changes(value) >= 1 or inner)) or (inner and b"=" not in value and value[-1:] != b"?")
