"""What has the form of a credential in source code and is none: names, fields, templates, ids of types.

In the languages below a credential is a literal, so it stands in quotes; without them stands a name or an expression.
Comments, strings and documentation hold settings, where a value needs no quotes. Only what a context gave away is
judged here: a token that says itself what it is stays one.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache

from refinery.transforms.redaction.pii_types.source_places import SourcePlaces, text_spans
from refinery.transforms.redaction.secret_types.context import TAIL, WORDS, changes, judge_name, name_words
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
MARKS = re.compile(rb"-----(?:BEGIN|END)[ A-Z0-9]*-----")
GLUE = re.compile(rb"(?:\\[nrt]|[\s\"'`+,\\])+")  # what pieces of one text are put together with
BASE64 = re.compile(rb"[A-Za-z0-9/=]{8,}")
KEY_CHARACTERS = 40  # of base64, in the shortest private keys; a program that looks for keys has the marks alone
TURNS = 5  # a row drawn at random changes its kind of sign at every second place; words of code at every eighth
PORT_LIST = re.compile(rb"[0-9]{1,5}(?:,[\w.-]+:[0-9]{1,5})+")  # postgres://a:123,b:456@…
HOST_LIST = re.compile(rb"[0-9]{1,5},[\w.-]+:")  # https://a.com:123,b:c@…
DOTTED_HOST = re.compile(rb"://[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}:$")

ARGUMENT = re.compile(rb"([A-Za-z_]{2,}\w*)=[\w\"'(\[{]")  # usenetrc=False
CONSTANT = re.compile(rb"[A-Z]+[0-9]?(?:_[A-Z]+[0-9]?)*_[A-Z]+")  # KRB5_PASSWORD
LISTED_CONSTANT = re.compile(rb"[A-Z]+[0-9]?(?:_(?:[A-Z]+[0-9]?|[0-9]))+")  # ROLE_1
OWN_CONSTANT = re.compile(rb"([A-Z][A-Z0-9_]*)[\"'`]?[ \t]{0,8}[=:][ \t]{0,8}[\"'`]$")  # KEY_2 = "KEY_2"
CALL = re.compile(rb"([A-Za-z_][A-Za-z_.]*)\((.*)\)")  # Password(user=1)
ARGUMENTS = re.compile(rb"|[A-Za-z_]\w*=.*|.*[\"'`].*")
NAMES = re.compile(rb"[A-Za-z_.]+(?:,[A-Za-z_.]+)*")
FRAGMENT = re.compile(rb"[),;\]+].*")  # between two texts: ),a?b.create(
CALLED = re.compile(rb"([A-Za-z_]{3,})[(\[]")
SET_ALL = re.compile(rb"(?:[),;\]][\w.]+=[^,;]*){2,}.*")  # ,a.b=null,a.c=[]
SETS = re.compile(rb"(?i)(?:define|set\w*|put\w*|env)[ \t]*\(\s*[\"'`][\w.-]+[\"'`][ \t]*,\s*[a-z]?[\"'`]$")
EDGED = re.compile(rb"[A-Za-z]+[^A-Za-z0-9]")  # bcrypt$
TEMPLATE = re.compile(rb"[a-z_-]*\{[A-Za-z_][\w.]*\}[a-z_-]*")
TAG = b"{@"  # of Javadoc
DEFINE = re.compile(rb"#[ \t]*define[ \t]+\w+[ \t]+$")
LONG = re.compile(rb"[\w+/=~-]{16,}")  # nobody calls a variable by what is drawn at random
DRAWN = re.compile(rb"[\w+/=~-]{8,}")
ZEROS = b"A" * 12  # in base64
VOWELS = frozenset("aeiouy")
LEAST_CHANGES = 3  # of letters, capitals and digits in what is drawn with fewer characters


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
    if _is_zeros(value):
        return True
    if data[end : end + 1] == b"(" and _is_callee(value):
        return True
    if rule == "url-password":
        return _is_port_list(value, data[max(0, start - LEFT) : start])
    if rule == "private-key":
        return not _has_key(value)
    if rule not in BY_CONTEXT:
        return False
    left = data[max(0, start - LEFT) : start]
    if left[-1:] in QUOTES and left:
        return _is_no_credential(value, left)
    if TAG in value or HOST.search(left):
        return True
    if not source:
        return False
    closing = data[end : end + 2]
    if closing in (b": ", b":\n") and is_of_words(value):
        return True  # a label: "password: debug1: …" of a log
    argument = ARGUMENT.match(value)
    if argument and is_of_words(argument.group(1)) and places.is_code(start):
        return True
    if closing[:1] == b"<" or _is_drawn(value) or (DEFINE.search(left) and not is_wordy(value)):
        return False
    return places.is_code(start)


def _is_zeros(value: bytes) -> bool:
    """Whether a value is mostly one character, as zeros in base64 are: AAAA…"""
    if len(set(value)) < 3:
        return True
    return len(value) >= 16 and value.count(b"A") * 2 > len(value) and (len(set(value)) < 5 or ZEROS in value)


def _is_callee(value: bytes) -> bool:
    """Whether an identifier is made of words that can be spoken, so it is the name of a function and no token.

    >>> _is_callee(b"s.sendV2SamplesWithBackoff"), _is_callee(b"QZEGW" + b"XB7MDKDNTV")
    (True, False)
    """
    if not is_of_words(value) or not any(97 <= byte <= 122 for byte in value):
        return False
    words = [word for word in WORDS.findall(value.decode()) if not word.isdigit()]
    spoken = all(len(word) < 4 or not VOWELS.isdisjoint(word.lower()) for word in words)
    return spoken and sum(map(len, words)) >= 3 * len(words)


def _is_port_list(value: bytes, left: bytes) -> bool:
    """Whether what stands behind a host's colon is its port and more hosts. left: what stands before it."""
    if PORT_LIST.fullmatch(value):
        return True
    return HOST_LIST.match(value) is not None and DOTTED_HOST.search(left) is not None


def _has_key(armour: bytes) -> bool:
    """Whether there is base64 between the marks of a private key: in lines, or in pieces that a program joins."""
    body = MARKS.sub(b" ", armour)
    pieces = sum(len(piece) for piece in BASE64.findall(body.replace(b"+", b"/")) if _turns(piece))
    if pieces >= KEY_CHARACTERS:
        return True
    rows = BASE64.findall(GLUE.sub(b"", body))
    return any(len(row) >= KEY_CHARACTERS and _turns(row) for row in rows)


def _turns(row: bytes) -> bool:
    """Whether capitals, small letters and digits take turns as in base64, as they do not in words."""
    return changes(row) * TURNS >= len(row)


def _is_drawn(value: bytes) -> bool:
    """Whether a value without quotes is drawn at random and no identifier."""
    if is_of_words(value):
        return False
    return LONG.fullmatch(value) is not None or (DRAWN.fullmatch(value) is not None and changes(value) >= LEAST_CHANGES)


def _is_no_credential(value: bytes, left: bytes) -> bool:
    """Whether a value in quotes is a field, the name of something, or a template. left: what stands before it."""
    own = OWN_NAME.search(left)
    if own and _is_other_name(own.group(1).decode()):
        return True
    if TYPED.search(left) or HANDSHAKE.search(left):
        return True
    if _is_expression(value) or TEMPLATE.fullmatch(value):
        return True
    names_one = is_code_name(value) and judge_name(value.decode()) is not None
    if names_one and CONSTANT.fullmatch(value):
        return True  # "KRB5_PASSWORD": of the environment
    constant = OWN_CONSTANT.search(left)
    if constant and constant.group(1) == value:
        return True
    if SETS.search(left) or not LISTED.search(left):
        return False
    return EDGED.fullmatch(value) is not None or (
        is_of_words(value) and (names_one or LISTED_CONSTANT.fullmatch(value) is not None)
    )


def _is_expression(value: bytes) -> bool:
    """Whether a value in quotes is a call, or a piece of code between two texts."""
    call = CALL.fullmatch(value)
    if call and is_of_words(call.group(1)):
        if ARGUMENTS.fullmatch(call.group(2)):
            return True
        several = len(WORDS.findall(call.group(1).decode())) > 1
        return several and NAMES.fullmatch(call.group(2)) is not None
    if not FRAGMENT.fullmatch(value):
        return False
    return SET_ALL.fullmatch(value) is not None or any(is_of_words(name) for name in CALLED.findall(value))


def _is_other_name(name: str) -> bool:
    """Whether a value belongs to a name that makes no secret of it: `authorities`, not `value`."""
    words = name_words(name)
    return bool(words) and words[-1] not in TAIL and judge_name(name) is None


def stands_for_itself(text: str, start: int, end: int) -> bool:
    """Whether text[start:end], a secret that was found elsewhere, is that secret here, too, in source code: not a part
    of a longer word, and if it has the form of an identifier, in a string or a comment. One that is made of words may
    be the name of anything."""
    before, behind = text[max(0, start - 1) : start], text[end : end + 1]
    if before.isalnum() or before == "_" or behind.isalnum() or behind == "_":
        return False
    value = text[start:end].encode()
    if not is_code_name(value):
        return True
    if is_wordy(value):
        return False
    return (before in SIGNS and behind in SIGNS) or _lines_of(text).is_text(start)


class Lines:
    """Strings and comments of a text, line by line. Cost: a line is read once while questions ascend."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._bytes = text.encode("latin-1", "replace")  # one byte for each character
        self._places, self._at = SourcePlaces(self._bytes), 0
        self._start = self._end = -1
        self._spans: list[tuple[int, int]] = []

    def is_text(self, at: int) -> bool:
        """Whether text[at] is in a string or a comment; however far behind in its line, so a replacement before it
        changes nothing."""
        if at < self._at:
            self._places = SourcePlaces(self._bytes)
        self._at = at
        if self._places.is_inside(at):
            return True
        if not self._start <= at < self._end:
            self._start = self._text.rfind("\n", 0, at) + 1
            end = self._text.find("\n", at)
            self._end = len(self._text) if end < 0 else end
            self._spans = text_spans(self._bytes[self._start : self._end])
        column = at - self._start
        place = bisect_right(self._spans, (column, len(self._text) + 1)) - 1
        return place >= 0 and self._spans[place][0] <= column < self._spans[place][1]


@lru_cache(maxsize=2)
def _lines_of(text: str) -> Lines:
    return Lines(text)
