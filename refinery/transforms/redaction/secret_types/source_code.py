"""What has the form of a credential in source code and is none: names, fields, templates, ids of types.

In the languages below a credential is a literal, so it stands in quotes; without them stands a name or an expression.
Comments, strings and documentation hold settings, where a value needs no quotes. Only what a context gave away is
judged here: a token that says itself what it is stays one.
"""

import re
from collections.abc import Iterable, Iterator

from refinery.transforms.redaction.pii_types.source_places import SourcePlaces
from refinery.transforms.redaction.secret_types.context import TAIL, judge_name, name_words
from refinery.transforms.redaction.secret_types.identifiers import is_code_name, is_of_words, is_wordy
from refinery.transforms.redaction.secret_types.rules import Found

_ENDINGS = """
c h cc cpp cxx c++ hh hpp hxx h++ inc inl ipp tcc ixx cu cuh m mm py pyi pyw pyx java js mjs cjs jsx ts mts cts tsx
go rs kt kts cs swift scala dart php rb lua ex exs erl hs ml fs vb pas groovy jl v sv d nim zig
"""
ENDINGS = tuple(f".{ending}" for ending in _ENDINGS.split())
"""of files in languages whose texts stand in quotes; not those of settings, shells and markup"""
BY_CONTEXT = frozenset(("password", "secret", "key"))
LEFT = 160  # bytes before a value that are looked at
QUOTES = b"\"'`"
SIGNS = ('"', "'", "`")

# A name with its sign, glued to the quote: authorities='…', json:"…", name="…"
OWN_NAME = re.compile(rb"([A-Za-z_][\w.-]*)[=:]\\?[\"'`]$")
LISTED = re.compile(rb"[\"'`][ \t]*,\s*[a-zA-Z]?[\"'`]$")  # ("password", "…
TYPED = re.compile(rb"::\w+\\?[\"'`]\s*:\s*\\?[\"'`]$")  # "AWS::IAM::AccessKey": "…
HANDSHAKE = re.compile(rb"(?i)sec[-_]websocket[-_](?:key|accept)[\"'`]?\W{1,4}[a-z]?[\"'`]?$")  # RFC 6455 1.3: a nonce
HOST = re.compile(rb"@[\w.-]+:$")  # user@host:450
BODY = re.compile(rb"[A-Za-z0-9+/]{40}")  # of an armoured key; a program that looks for keys has the marks alone
PORT_LIST = re.compile(rb"[0-9]{1,5},")  # postgres://a:123,b:456@…

ARGUMENT = re.compile(rb"[A-Za-z_]\w*=[\w\"'(\[{]")  # usenetrc=False
CONSTANT = re.compile(rb"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
CALL = re.compile(rb"[A-Za-z_][\w.]*\(.*\)|[),;\]+].*[A-Za-z_]\w*[(\[].*")  # Password(user=1); ),a?b.c(
EDGED = re.compile(rb"[A-Za-z]+[^A-Za-z0-9]")  # bcrypt$
TEMPLATE = re.compile(rb"[a-z_-]*\{[A-Za-z_][\w.]*\}[a-z_-]*")
TAG = b"{@"  # of Javadoc
DRAWN = re.compile(rb"[\w+/=~-]{16,}")  # nobody calls a variable by what is drawn at random


def is_source(path: str) -> bool:
    """Whether a file's name says that it is in a language whose texts stand in quotes."""
    return path.lower().endswith(ENDINGS)


def without_code(data: bytes, found: Iterable[Found], source: bool) -> Iterator[Found]:
    """Those of `found`, in ascending order, that are not code. source: the answer of `is_source`. Linear."""
    places = SourcePlaces(data)
    for match in found:
        if not _is_code(data, match, places, source):
            yield match


def _is_code(data: bytes, match: Found, places: SourcePlaces, source: bool) -> bool:
    start, end, rule = match
    value = data[start:end]
    if len(set(value)) < 3 or value.count(b"A") * 2 > len(value):
        return True  # AAAA…: zeros in base64
    if data[end : end + 1] == b"(" and is_code_name(value):
        return True  # a call
    if rule == "url-password":
        return PORT_LIST.match(value) is not None
    if rule == "private-key":
        return BODY.search(value) is None
    if rule not in BY_CONTEXT:
        return False
    left = data[max(0, start - LEFT) : start]
    if left[-1:] in QUOTES and left:
        return _is_no_credential(value, left)
    if ARGUMENT.match(value) or TAG in value or HOST.search(left):
        return True
    closing = data[end : end + 2]
    if closing in (b": ", b":\n"):
        return True  # a label: "password: debug1: …" of a log
    if not source or closing[:1] == b"<" or (DRAWN.fullmatch(value) and not is_of_words(value)):
        return False
    return places.is_code(start)


def _is_no_credential(value: bytes, left: bytes) -> bool:
    """Whether a value in quotes is a field, the name of something, or a template. left: what stands before it."""
    own = OWN_NAME.search(left)
    if own and _is_other_name(own.group(1).decode()):
        return True
    if TYPED.search(left) or HANDSHAKE.search(left):
        return True
    if CALL.fullmatch(value) or TEMPLATE.fullmatch(value):
        return True
    names_one = is_code_name(value) and judge_name(value.decode()) is not None
    if names_one and CONSTANT.fullmatch(value):
        return True  # "KRB5_PASSWORD": of the environment
    if not LISTED.search(left):
        return False
    return EDGED.fullmatch(value) is not None or (
        is_of_words(value) and (names_one or CONSTANT.fullmatch(value) is not None)
    )


def _is_other_name(name: str) -> bool:
    """Whether a value belongs to a name that makes no secret of it: `authorities`, not `value`."""
    words = name_words(name)
    return bool(words) and words[-1] not in TAIL and judge_name(name) is None


def stands_for_itself(text: str, start: int, end: int) -> bool:
    """Whether text[start:end], a secret that was found elsewhere, is that secret here, too, in source code: not a part
    of a longer word, and if it has the form of an identifier, in quotes. One that is made of words may be the name of
    anything."""
    before, behind = text[max(0, start - 1) : start], text[end : end + 1]
    value = text[start:end].encode()
    if is_code_name(value):
        return before in SIGNS and behind in SIGNS and not is_wordy(value)
    return not (before.isalnum() or before == "_" or behind.isalnum() or behind == "_")
