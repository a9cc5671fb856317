"""Credentials in a text: keys, tokens, passwords, private keys. Redact them, or drop the page.

What says itself what it is (prefixes of providers: secret_types/tokens.py) and what only its context gives away
(assignments.py, sentences.py, commands.py) have patterns. One look at every byte says which of them may match, and
where (redaction/prefilter); only these run, on RE2 over UTF-8 bytes: linear time. The stage comes right after
extraction, since every later one may put an excerpt of the text into `rejects/`, and it cleans address and meta, too.

After redaction the text is searched again, and for every value that was replaced: what is left of any drops the page.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import Field, field_validator

from refinery.transforms.core.data_text.json_members import is_readable, map_texts
from refinery.transforms.core.document import FIELDS, Document, Drop, FailClosed, Scalar, document_id
from refinery.transforms.core.params import Params, Positive
from refinery.transforms.core.spans.marks import NAMES as NOTES
from refinery.transforms.core.spans.marks import edited, marks_of, replaced, shown, without_marks
from refinery.transforms.core.stage import Note, Reason, Stage
from refinery.transforms.redaction.secret_types.find import RULES, find
from refinery.transforms.redaction.secret_types.rules import Found
from refinery.transforms.redaction.secret_types.source_code import is_source, stands_for_itself, without_code

Edits = list[tuple[int, int, str]]  # what is put in place of characters start to end
NAMES = frozenset(rule.name for rule in RULES)
REPEATED = 8  # bytes from which a value that was found is replaced wherever else it stands
NONE: Mapping[str, int] = MappingProxyType({})  # of most texts, so no counter is made for each
ROUNDS = 3  # of redaction; one is enough unless a replacement gives context to what stands beside it


class Span(NamedTuple):
    """text[start:end] is a secret of that rule; character offsets."""

    start: int
    end: int
    rule: str


class SecretsParams(Params):
    """What counts as a credential and what becomes of it."""

    LATER: ClassVar[tuple[str, ...]] = ("remains", "style")

    action: Literal["redact", "drop", "note"] = "redact"
    """`redact` replaces every match; `drop` drops the document, with the rule's name as the reason; `note` only counts
    the matches and leaves the document as it is"""
    style: Literal["prose", "code"] = "prose"
    """`code`, for source files: names, expressions and fields, which have the form of a secret, stay, and a value that
    was found is replaced elsewhere only where it stands for itself"""
    replacement: Annotated[str, Field(min_length=1, max_length=64)] = "API_KEY_REDACTED"
    """replacement for a secret"""
    remains: Literal["drop", "fail"] = "drop"
    """what happens if a secret is still found after redaction: `drop` drops the document, `fail` ends the run"""
    off: tuple[str, ...] = ()
    """rules that are switched off: names of reasons of this stage"""
    max_secrets: Positive = 1000
    """a document with more secrets is dropped, whatever `action` says, as a list of credentials"""

    @field_validator("off")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := sorted(NAMES.symmetric_difference(names) - NAMES):
            raise ValueError(f"off: {unknown[0]!r} given, the name of a rule is allowed")
        return names

    @field_validator("replacement")
    @classmethod
    def _harmless(cls, text: str) -> str:
        contexts = f"password='{text}' {text}\napi_key={text}\nhttps://user:{text}@host"
        if find(contexts.encode("utf-8", "replace"), frozenset()):
            raise ValueError(f"replacement: {text!r} given, a text that no rule takes for a secret is allowed")
        return text


class TooManySecrets(Exception):
    """More than `max_secrets` in one text."""


class SecretRemains(Exception):
    """Redaction left a secret in the text."""


def file_of(doc: Document) -> str:
    """The path of a source file, for `style: code`: its note `path`, else its url."""
    return str(doc.meta.get("path") or doc.url)


def find_secrets(text: str, params: SecretsParams, path: str = "") -> list[Span]:
    """Secrets in `text`, in order and without overlap. path: of a source file, for `style: code`.

    Raises UnicodeEncodeError for lone surrogates. Cost: linear; benchmarks/found_secrets.py measures it.
    """
    data = text.encode()
    return list(_in_characters(data, _found(data, params, path)))


def _found(data: bytes, params: SecretsParams, path: str) -> list[Found]:
    found = find(data, frozenset(params.off))
    if params.style == "code" and found:
        return list(without_code(data, found, is_source(path)))
    return found


def _in_characters(data: bytes, spans: list[Found]) -> Iterator[Span]:
    """Byte offsets to character offsets, one pass over the text."""
    at = characters = 0
    for start, end, rule in spans:
        first = characters + len(data[at:start].decode())
        at, characters = end, first + len(data[start:end].decode())
        yield Span(first, characters, rule)


def redact_text(
    text: str, params: SecretsParams, values: set[bytes], path: str = "", log: list[Edits] | None = None
) -> tuple[str, Mapping[str, int]]:
    """The text without secrets, and how often each rule found one; what was found is added to `values`, and to `log`
    the edits of each round. path: as in `find_secrets`.

    Raises TooManySecrets, and SecretRemains where a secret is found after ROUNDS of redaction.
    """
    found: Mapping[str, int] = NONE
    for _ in range(ROUNDS if text else 0):
        data = text.encode()
        spans = _found(data, params, path)
        if not spans:
            return text, found
        found = Counter(found) + Counter(span.rule for span in spans)
        if sum(found.values()) > params.max_secrets:
            raise TooManySecrets
        if log is not None:
            log.append([(start, end, params.replacement) for start, end, _ in _in_characters(data, spans)])
        parts, at = [], 0
        for start, end, _rule in spans:
            values.add(data[start:end])
            parts += [data[at:start].decode(), params.replacement]
            at = end
        text = "".join([*parts, data[at:].decode()])
    if text and _found(text.encode(), params, path):
        raise SecretRemains
    return text, found


def repeated_values(values: Iterable[str]) -> list[str]:
    """The values that are looked for in the rest of a document, too. The longest comes first, since it may contain
    others."""
    return sorted(
        (value for value in values if len(value.encode()) >= REPEATED), key=lambda value: (-len(value), value)
    )


def repeated_places(text: str, value: str, params: SecretsParams) -> Iterator[int]:
    """Where a value that was found occurs in a text once more; in source code, only where it stands for itself."""
    at = text.find(value)
    while at >= 0:
        if params.style == "prose" or stands_for_itself(text, at, at + len(value)):
            yield at
        at = text.find(value, at + len(value))


def redact_inside(text: str, params: SecretsParams, values: set[bytes]) -> tuple[str, Counter[str]]:
    """As `redact_text`, of each string inside a JSON text: rules see it without escapes."""
    found: Counter[str] = Counter()

    def redact(inner: str) -> str:
        redacted, here = redact_text(inner.encode("utf-8", "ignore").decode(), params, values)
        found.update(here)
        return redacted if here else inner

    return map_texts(text, redact), found


def redact_secrets(doc: Document, params: SecretsParams) -> Document | Drop:
    """`redact_document`, of a document that may have spans: these are moved; no secret reaches over a control token.

    Raises SpanCut for a secret over the border of a span.
    """
    marks = marks_of(doc)
    if marks is None:
        return redact_document(doc, params)
    seen = replace(doc, text=shown(doc.text, marks), meta=without_marks(doc.meta))
    log: list[Edits] = []
    answer = redact_document(seen, params, log)
    if answer is seen or isinstance(answer, Drop):
        return doc if answer is seen else answer
    for edits in log:
        doc = edited(doc, edits)
    number = answer.id if answer.id == seen.id else document_id(doc.text)
    moved = {name: doc.meta[name] for name in NOTES}
    return replace(doc, id=number, url=answer.url, meta={**answer.meta, **moved})


def redact_document(doc: Document, params: SecretsParams, log: list[Edits] | None = None) -> Document | Drop:
    """The document without secrets in text, address and meta; itself where there are none.

    `meta["secrets"]` is the number of matches, `meta["secret_rules"]` the rules with theirs. A changed text has a new
    id. With action drop: the name of the first rule that matches. Drops that no action allows: "too-many-secrets",
    and "secret-remains" where a secret is still there after redaction; with `remains: fail` that raises FailClosed.
    log: gets the edits of the text, one list after the other.
    """
    if params.action == "note":
        return _counted(doc, params)
    path = file_of(doc) if params.style == "code" else ""
    values: set[bytes] = set()
    found: Counter[str] = Counter()
    fields: dict[str, str] = {}
    strings: Mapping[str, Scalar] = {"text": doc.text, "url": doc.url, **{f"meta.{k}": v for k, v in doc.meta.items()}}
    try:
        for name, value in strings.items():
            if isinstance(value, str):
                if name == f"meta.{FIELDS}":
                    value, inside = redact_inside(value, params, values)
                    found.update(inside)
                is_text = name == "text"
                fields[name], here = redact_text(
                    value, params, values, path if is_text else "", log if is_text else None
                )
                if here:
                    found.update(here)
    except TooManySecrets:
        return Drop("too-many-secrets")
    except SecretRemains:
        return _remaining(doc, params)
    if not found:
        return doc
    if params.action == "drop":
        return Drop(next(iter(found)))
    repeated = repeated_values(value.decode() for value in values)
    for name, value in fields.items():
        for secret in repeated:
            edits = [(at, at + len(secret), params.replacement) for at in repeated_places(value, secret, params)]
            if log is not None and name == "text" and edits:
                log.append(edits)
            value = replaced(value, edits)
        again = any(True for secret in repeated for _ in repeated_places(value, secret, params))
        if again or _found(value.encode(), params, path if name == "text" else ""):
            return _remaining(doc, params)
        fields[name] = value
    meta = {key: fields.get(f"meta.{key}", value) for key, value in doc.meta.items()}
    if not is_readable(str(meta.get(FIELDS, "{}"))):  # part of an escape went
        return _remaining(doc, params)
    meta |= _counts(found)
    text = fields["text"]
    number = doc.id if text == doc.text else document_id(text)
    return replace(doc, id=number, text=text, url=fields["url"], meta=meta)


def _counted(doc: Document, params: SecretsParams) -> Document | Drop:
    """The document with the notes that redaction would make; itself where there are no secrets."""
    found: Counter[str] = Counter()
    for name, value in {"text": doc.text, "url": doc.url, **doc.meta}.items():
        if isinstance(value, str):
            path = file_of(doc) if name == "text" else ""
            try:
                if name == FIELDS:
                    found.update(redact_inside(value, params, set())[1])
                else:
                    found.update(redact_text(value, params, set(), path)[1])
            except TooManySecrets:
                return Drop("too-many-secrets")
            except SecretRemains:
                found.update(span.rule for span in _found(value.encode(), params, path))
    return replace(doc, meta={**doc.meta, **_counts(found)}) if found else doc


def _counts(found: Mapping[str, int]) -> Mapping[str, Scalar]:
    rules = ",".join(f"{rule}:{count}" for rule, count in sorted(found.items()))
    return {"secrets": sum(found.values()), "secret_rules": rules}


def _remaining(doc: Document, params: SecretsParams) -> Drop:
    """The answer for a document with a secret that redaction left in it."""
    if params.remains == "fail":
        raise FailClosed(
            f"secrets: a secret is still found after redaction in the document {doc.id.hex()} ({doc.origin}); "
            "`remains: drop` refuses such documents"
        )
    return Drop("secret-remains")


SECRETS = Stage(
    name="secrets",
    version=2,
    summary="Replace or count credentials in every document, or drop the documents that have any.",
    concerns=("credentials",),
    params=SecretsParams,
    judge=redact_secrets,
    excerpts=False,
    libraries=("google-re2",),
    notes=(
        Note("secrets", int, "credentials, which are replaced unless `action` is `note`", counts=True),
        Note("secret_rules", str, "rules that found them, each with its count"),
    ),
    reasons=(
        *(
            Reason(rule.name, f"{rule.what}, with `action: drop`", f"`off: [{rule.name}]` switches it off", rule.source)
            for rule in RULES
        ),
        Reason("too-many-secrets", "more than `max_secrets`", "raise it"),
        Reason("secret-remains", "a secret is still found after redaction", "nothing: fail closed"),
    ),
)
