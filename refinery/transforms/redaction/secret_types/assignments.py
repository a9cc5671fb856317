"""Values behind a name and what assigns: `password = "…"`, `--token …`, `<secret>…</secret>`, SQL's IDENTIFIED BY."""

from collections.abc import Iterator

from refinery.transforms.redaction.pii_types.scan import Hinted, compile_bytes
from refinery.transforms.redaction.secret_types.context import judge_name, judge_value
from refinery.transforms.redaction.secret_types.identifiers import is_code_name, is_in_code, is_wordy
from refinery.transforms.redaction.secret_types.rules import WORD, Found

REACH = 512  # bytes of a value that are read, and of a name
NAME = (
    rb"(?:pass|pw|ps+w|pasw|secret|token|key|cred|auth|bearer|dsn|pin_?code|srt|jwt|salt"
    rb"|kennwort|contrase|clave|senha|mdp|parola|haslo|heslo|geslo|jelszo|sifre|wachtwoord|losenord|adgangskode|kodeord"
    rb"|salasana|parool|lozinka|zaporka|sandi|api)[\w.-]*"
)
# Behind a name: a closing quote or bracket, then what assigns, after a type where there is one.
ASSIGN = (
    rb"(?i)" + NAME + rb"\\?[\"'`\])]{0,2}(?:&quot;)?[ \t]{0,8}"
    rb"(?::[ \t]{0,2}[A-Za-z_]\w*\??[ \t]{0,2}=|=>|[:?+]*=+|!=|:|->|,|(?:[ \t][a-z]+=[\"'][\w -]*[\"'])?>)[ \t]{0,8}"
)
# Names whose value stands behind a space: options of commands; SQL and definitions, where it stands in quotes;
# files of settings.
OPTION_HINT = rb"(?i)(?:^|[\s\"'`])-[\w-]*" + NAME + rb"[ \t]"
OPTION = compile_bytes(rb"(?i)(?:^|[\s\"'`])--?[\w-]*" + NAME + rb"[ \t]{1,4}")
DEFINED_HINT = (
    rb"(?i)\b(?:define|global|set)[ \t]+[\w.-]*"
    + NAME
    + rb"[ \t(=]|\bidentified\s+(?:by|with)\b|\bpassword[ \t]*[(=]?[ \t]*['\"]"
)
DEFINED = compile_bytes(
    rb"(?i)(?:\b(?:define|global|set)[ \t]+[\w.-]*"
    + NAME
    + rb"|\bidentified\s+(?:with\s+\S{1,40}\s+)?(?:by|as)|\b(?:with|user)\s+(?:encrypted\s+)?password"
    rb"|\blogin\s+(?:\S+\s+)?password|\b(?:encrypted|role\s+\S{1,64})\s+password)[ \t(=]{1,4}"
)
SETTING_HINT = rb"(?m)^[ \t]*passw(?:or)?d[ \t]"
SETTING = compile_bytes(rb"(?m)^[ \t]{0,8}passw(?:or)?d[ \t]{1,4}")
UNQUOTED = compile_bytes(rb"[^\s\"'`<>\\,;&|(){}\[\]]+")
ENTITIES = (b"&quot;", b"&apos;", b"&#39;", b"&#34;", b"&#x27;", b"&#x22;")
QUOTE = compile_bytes(rb"(?:[bBrRfFuULS@$]{0,2})(\\?)([\"'`]{1,3})")


def assignments(data: bytes, hints: Hinted) -> Iterator[Found]:
    """Values that their names make secret; hints: where ASSIGN matches, and which of the rarer forms the text has.
    Linear."""
    for match in hints.matches("assigned"):
        yield from _assigned(data, match.start(), match.end())
    if "option" in hints:
        for match in OPTION.finditer(data):
            yield from _judged(data, _name_of(match.group(0)), match.end(), loose=True)
    if "defined" in hints:
        for match in DEFINED.finditer(data):
            is_sql = b"define" not in match.group(0).lower()
            opening = data[match.end() : match.end() + 1]
            if opening in (b"'", b'"') or (is_sql and opening.isalnum()):
                yield from _judged(data, _name_of(match.group(0)) or b"password", match.end())
    if "setting" in hints:
        for match in SETTING.finditer(data):
            yield from _judged(data, b"password", match.end())


def _assigned(data: bytes, start: int, at: int) -> Iterator[Found]:
    """The value behind an operator at `at`, where the operator and what stands behind it belong together."""
    match = data[start:at]
    operator = match.rstrip(b" \t\"'`\\")
    if operator.endswith(b",") and data[at : at + 1] not in (b"'", b'"'):
        return
    prefix, own = _name_before(data, start), _name_of(match)
    name = prefix + own
    if operator.endswith(b",") and any(48 <= byte <= 57 for byte in name):
        return
    markup = operator.endswith(b">") and not operator.endswith((b"=>", b"->"))
    yield from _judged(data, name, at, loose=markup, before=b"</" if markup else b"", name_end=start + len(own))


def _judged(
    data: bytes, name: bytes, at: int, loose: bool = False, before: bytes = b"", name_end: int = -1
) -> Iterator[Found]:
    """The value at `at` if it and its name say that it is secret.

    loose: it is a value even without quotes. before: what must stand behind it. name_end: where the name ends in front
    of an operator; a value without quotes may then be a name itself.
    """
    kind = judge_name(name[-80:].decode("latin-1"))
    value = _value(data, at) if kind else None
    if kind is None or value is None:
        return
    first, end, quoted = value
    if data.startswith((b"...", "…".encode()), end) or not data.startswith(before, end):
        return
    if not judge_value(kind, data[first:end], quoted or loose):
        return
    text = data[first:end]
    if quoted and kind != "password" and is_wordy(text):
        return
    if not quoted and not loose and name_end >= 0 and is_code_name(text):
        operator = data[name_end:at]
        shell = operator == b"=" and name.isupper()  # DB_PASSWORD=admin123: of the environment
        if (is_wordy(text) and not shell) or is_in_code(data, name_end, operator, first, end):
            return
    yield Found(first, end, kind)


def _name_before(data: bytes, start: int) -> bytes:
    """The part of an identifier that stands before `start`."""
    at = start
    while at and start - at < 64 and (data[at - 1] in WORD or data[at - 1] in b".-"):
        at -= 1
    return data[at:start]


NAME_ONLY = compile_bytes(rb"(?i)" + NAME)


def _name_of(match: bytes) -> bytes:
    """The identifier in what a pattern matched."""
    found = NAME_ONLY.search(match)
    return found.group(0) if found else b""


def _value(data: bytes, at: int) -> tuple[int, int, bool] | None:
    """(start, end, whether in quotes) of the value at `at`; None for none, a sentence, or a call."""
    stop = at + REACH
    if entity := next((entity for entity in ENTITIES if data.startswith(entity, at)), b""):
        first = at + len(entity)
        end = data.find(entity, first, stop)
        return (first, end, True) if end - first >= 4 and b" " not in data[first:end] else None
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
