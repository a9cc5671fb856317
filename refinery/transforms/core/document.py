"""The element that travels through the funnel, and a stage's refusal of it."""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import orjson

from refinery.loader.format.document_fields import ID_BYTES as ID_BYTES  # offered from here, too
from refinery.loader.format.document_fields import KEPT_FIELDS
from refinery.transforms.native import textclean

Scalar = str | int | float
NO_META: Mapping[str, Scalar] = MappingProxyType({})
NO_LIMITS: Mapping[str, float] = MappingProxyType({})

COPIES = "copies"  # note of every document that deduplication kept: how many it stands for
FIELDS = KEPT_FIELDS  # note with the other fields of a record, as a JSON object, where its source keeps them
OFFSET_BITS = 40  # of a document's position, below the index of its file
TEXT_ID = "text_id"  # note of a document whose text was changed after it got its id: the id of the text encoded
TEXT_ID_SINCE = ("encode", 2)  # the stage that makes it, and its first version that does
TEXT_ID_ALWAYS = "encode-masked"  # the stage that has always made it


@dataclass(frozen=True, slots=True)
class RawDocument:
    """What a reader found: bytes of a page, or text of a record, before extraction.

    `content` is undecoded bytes (HTML pages, plain payloads) or str (JSONL and Parquet fields). `is_html` asks for
    main-text extraction. `charset` is the declared one, "" when none is. `origin` is "<input file>@<record offset>"
    (a byte offset for WARC and JSONL, a row number for Parquet). `position` orders records of one source: file index
    in the source's sorted listing << 40 | offset in the file. `found`: what the reader has to say of the record,
    "group/name" each; counted where it is read, and not passed on.
    """

    content: bytes | str
    is_html: bool
    charset: str
    url: str
    source: str
    origin: str
    position: int
    meta: Mapping[str, Scalar] = field(default_factory=lambda: NO_META)
    found: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Document:
    """A cleaned text and where it came from. Never mutated: use `dataclasses.replace`.

    `id` is 16 bytes (`document_id` of `text`). `meta` is flat: str keys, scalars as values.
    """

    id: bytes
    text: str
    url: str
    source: str
    origin: str
    position: int
    meta: Mapping[str, Scalar] = field(default_factory=lambda: NO_META)


@dataclass(frozen=True, slots=True)
class Drop:
    """A stage's refusal. `reason` is kebab-case and stable: manifests carry it. measured: the values that decided, by
    name, for rejects/ and `refinery try`; None where one is missing. limits: the thresholds beside which they were
    held, by the same names."""

    reason: str
    measured: Mapping[str, Scalar | None] = field(default_factory=lambda: NO_META, compare=False)
    limits: Mapping[str, float] = field(default_factory=lambda: NO_LIMITS, compare=False)

    @property
    def summary(self) -> str:
        """The values in a line: edu=0.12 language=en."""
        return " ".join(f"{name}={'null' if value is None else value}" for name, value in self.measured.items())


class FailClosed(Exception):
    """What a stage must not let through: it ends the run, where any other exception costs one document.

    The message names the document and the kind of what was found, never the value.
    """


def meta_json(meta: Mapping[str, Scalar]) -> bytes:
    """`meta` as in columns of files and batches: JSON, keys in order."""
    return orjson.dumps(dict(meta), option=orjson.OPT_SORT_KEYS)


def document_id(text: str) -> bytes:
    """16 bytes of blake2b over the NFC text with every whitespace run collapsed to one space.

    `text` must be cleaned (NFC, no lone surrogates: UnicodeEncodeError). Cost: one pass, 300 to 400 MB/s.
    """
    return textclean.text_id(text)


def with_text_id(doc: Document) -> Mapping[str, Scalar]:
    """The notes of a document; with `TEXT_ID` where its text is not that of its id: cut, redacted, part of another."""
    own_id = document_id(doc.text)
    return doc.meta if own_id == doc.id else {**doc.meta, TEXT_ID: own_id.hex()}


def part_id(doc: Document, text: str, number: int) -> bytes:
    """The id of part `number` of a document that is split, with that text.

    Before deduplication it is that of its text. Behind it the first part keeps the document's, which verdicts and
    removals name, and the others get their own from it: 16 bytes of blake2b over the id and the number.
    """
    if COPIES not in doc.meta:
        return document_id(text)
    return hashlib.blake2b(doc.id + number.to_bytes(8, "big"), digest_size=ID_BYTES).digest() if number else doc.id


def text_bytes(text: str) -> int:
    """UTF-8 size of `text`, the unit of every byte count in the funnel."""
    return textclean.utf8_size(text)


def hash64(*parts: str | bytes | int) -> int:
    """A uniform 64-bit integer from `parts`, the only source of randomness in the funnel: hash64("sample", seed, id).

    Parts are length-prefixed, so ("ab", "c") and ("a", "bc") differ. Independent of PYTHONHASHSEED and platform.
    """
    pieces: list[bytes] = []
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogatepass")
        pieces += len(data).to_bytes(4, "little"), data
    return int.from_bytes(hashlib.blake2b(b"".join(pieces), digest_size=8).digest(), "big")


def is_writable(value: str | bytes | float) -> bool:
    """Whether a value can be written: no lone surrogate, no number that JSON or 64 bits do not have."""
    if isinstance(value, str):
        try:
            return value.isascii() or bool(value.encode())
        except UnicodeEncodeError:
            return False
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, bytes) or -(1 << 63) <= value < 1 << 64


def content_bytes(doc: Any) -> bytes:
    """The bytes of a document's text or raw content."""
    content = doc.text if isinstance(doc, Document) else doc.content if isinstance(doc, RawDocument) else b""
    return content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content


def content_size(doc: Any) -> int:
    """Bytes of a document's text (UTF-8) or raw content; of an encoded document, the bytes of the text it came from."""
    if isinstance(doc, Document):
        return text_bytes(doc.text)
    if isinstance(doc, RawDocument):
        return len(doc.content) if isinstance(doc.content, bytes) else text_bytes(doc.content)
    return int(doc.text_bytes)
