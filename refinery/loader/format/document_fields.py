"""The fields of a document: one table, from which the columns of every file, the batches between jobs, exports and the
tables of the pages derive.

A field that a stage notes is none of these: its `Note` (transforms/core/stage.py) makes it a column. A new field of all
documents is a row here, and whoever fills it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import pyarrow as pa

# What has columns of documents. EXPORTS: rows of `refinery export`. SHUFFLE: facts of an encoded document on its way to
# its shard. TAKEN_OUT, CAME_BACK: removed.parquet and added.parquet of a takedown.
DOCUMENTS, VERDICTS, SHUFFLE, PROVENANCE, REMOVALS, REJECTS, DEAD_LETTERS, TAKEN_OUT, CAME_BACK, EXPORTS = FILES = (
    "documents",
    "verdicts",
    "shuffle",
    "provenance",
    "removals",
    "rejects",
    "dead_letters",
    "removed",
    "added",
    "exports",
)

ID_BYTES = 16
_ID, _TEXT, _NUMBER = pa.binary(ID_BYTES), pa.string(), pa.int64()
_TEXTS = pa.list_(pa.field("element", pa.string(), nullable=False))


@dataclass(frozen=True, slots=True)
class Field:
    """A fact about a document. files: what it is a column of -> what it means there, "" for `meaning`. What it means in
    EXPORTS stands in their cards, too."""

    name: str
    type: pa.DataType
    meaning: str
    files: Mapping[str, str]

    def meaning_in(self, file: str) -> str:
        """What it means in a file that it is a column of."""
        return self.files[file] or self.meaning


def _field(name: str, kind: pa.DataType, meaning: str, *files: str, **meanings: str) -> Field:
    return Field(name, kind, meaning, dict.fromkeys(files, "") | meanings)


_PLACED = (TAKEN_OUT, CAME_BACK)  # of documents with their place in the shards of a version
_SHOWN = (DOCUMENTS, SHUFFLE, PROVENANCE, REMOVALS, *_PLACED, EXPORTS)

# In the order of columns, but for files in _FIRST.
FIELDS = (
    _field(
        "id",
        _ID,
        "BLAKE2b-128 of the cleaned text, before lines were cut and personal data was replaced",
        *_SHOWN,
        documents="BLAKE2b-128 of the text, runs of white space counted as one space",
    ),
    _field("removed", pa.bool_(), "whether the document is left out", VERDICTS),
    _field(
        "kept_id",
        _ID,
        "id of the document kept instead; for an exact copy its own id, for a capture of the same address that of the "
        "capture kept",
        *(REMOVALS, VERDICTS),
    ),
    _field(
        "similarity",
        pa.float32(),
        "Jaccard similarity of the two, 0 to 1; 1 for exact copies, 0 for captures of one address, whose texts are not "
        "compared",
        *(REMOVALS, VERDICTS),
    ),
    _field("stage", _TEXT, "name of the stage", REJECTS, DEAD_LETTERS),
    _field(
        "reason",
        _TEXT,
        "`url-duplicate`, `exact-duplicate`, `near-duplicate-in-source` or `near-duplicate`",
        *(REMOVALS, VERDICTS),
        rejects="why the stage dropped it",
    ),
    _field("error", _TEXT, "name of the exception, or what the reader found damaged", DEAD_LETTERS),
    _field(
        "scope",
        _TEXT,
        "what was compared: `source` (documents of one source), `corpus` (all), or `reference:` and the prefix of a "
        "published corpus (`reference:withheld`: a file of this run that was dropped with its copies)",
        *(REMOVALS, VERDICTS),
    ),
    _field("text", _TEXT, "the text that was encoded or written", EXPORTS, documents="the cleaned text"),
    _field(
        "url",
        _TEXT,
        "address of the page, as far as the source has one",
        *_SHOWN,
        rejects="address, with `REDACTED` in place of users, e-mail addresses, credentials and values of parameters "
        "that carry any of them (`transforms/redaction/redact_address.py`); `refinery trace --url` looks for that "
        "form, too",
    ),
    _field("source", _TEXT, "source of the recipe", *_SHOWN, REJECTS, DEAD_LETTERS),
    _field("domain", _TEXT, "domain that the source belongs to", EXPORTS, *_PLACED),
    _field(
        "origin",
        _TEXT,
        "input file@offset of the record: bytes, or the row for Parquet",
        *(*_SHOWN, REJECTS),
        dead_letters="input file@offset of the record; `?` for an unknown offset",
        exports="input file and offset of the record",
    ),
    _field(
        "position", _NUMBER, "index of the file in the source's sorted listing × 2^40 + offset in the file", DOCUMENTS
    ),
    _field(
        "excerpt",
        _TEXT,
        "the first `rejects.excerpt_chars` characters; empty for what `read` and `extract` dropped, since there was no "
        "clean text yet, and for what `secrets` and `pii` dropped for what it says",
        REJECTS,
    ),
    _field(
        "found",
        _TEXT,
        "what the stage found, such as an item of a benchmark (such drops are always listed), or the values that "
        "decided; older corpora do not have this column",
        REJECTS,
    ),
    _field(
        "sha256",
        _TEXT,
        "hex, of the record or of what could be read of it, at most 64 KiB for archives and JSONL; never the text "
        "itself",
        DEAD_LETTERS,
    ),
    _field("size", _NUMBER, "of the record, in bytes", DEAD_LETTERS),
    _field("was", _TEXT, "`kept`, or the reason for which deduplication had removed it", TAKEN_OUT),
    _field(
        "why",
        _TEXT,
        "`requested`, `copy-of-requested`, `duplicate-of-removed`, or `duplicate-of-reinstated` (a near copy of a "
        "better document that came back: it went from the shards, and is in `removals/`)",
        TAKEN_OUT,
    ),
    _field(
        "request",
        _TEXT,
        "the line that asks for it (`urls:3`, `source:crawl`, `where`, `benchmark:gsm8k/12`; for "
        "`duplicate-of-removed` why it did not take the other's place)",
        TAKEN_OUT,
    ),
    _field("split", _TEXT, "split of its shard; empty for one that was in no shard", *_PLACED),
    _field("index", _NUMBER, "number of its shard; -1 for one that was in no shard", *_PLACED),
    _field("row", _NUMBER, "its place in the shard; -1 for one that was in no shard", *_PLACED),
    _field(
        "copies",
        pa.uint32(),
        "documents that this one stands for, itself included",
        *(VERDICTS, PROVENANCE, EXPORTS),
    ),
    _field("sources", _TEXTS, "sources that these came from", VERDICTS, PROVENANCE, EXPORTS),
    _field(
        "text_bytes",
        _NUMBER,
        "size in UTF-8 of the text that was encoded or written",
        *(SHUFFLE, PROVENANCE, *_PLACED),
        exports="size of the text in UTF-8",
    ),
    _field("token_offset", _NUMBER, "place of its first token in the shard", PROVENANCE, *_PLACED),
    _field(
        "token_count",
        _NUMBER,
        "tokens of the document in the corpus, with BOS and EOS",
        *(PROVENANCE, *_PLACED, EXPORTS),
    ),
    _field(
        "meta",
        _TEXT,
        "a JSON object with further values; `text_id`, where the text that was encoded or written is not the one that "
        "`id` is the hash of, has that text's, in hexadecimal",
        *(SHUFFLE, PROVENANCE),
        documents="JSON object: `date`, `record_id`, `language`, `language_score` and the source's `meta_fields`, as "
        "far as known",
        exports="further values, as a JSON object",
    ),
    _field("input_ids", pa.list_(pa.uint16()), "its tokens, with BOS and EOS", EXPORTS),
    _field("instead_of", _ID, "the id of the document that had stood for it", CAME_BACK),
)

_PLACE = ("split", "domain", "index", "row", "token_offset", "token_count")
# Columns that come before the others of a file, whatever the order of the table.
_FIRST: Mapping[str, tuple[str, ...]] = {
    VERDICTS: ("removed", "reason"),
    SHUFFLE: ("id", "origin"),
    REJECTS: ("stage", "reason", "source"),
    TAKEN_OUT: ("id", "url", "source", "origin", "was", "why", "request", *_PLACE),
    CAME_BACK: ("id", "url", "source", "origin", *_PLACE),
    EXPORTS: ("id", "url", "source", "domain", "origin", "copies", "sources", "text_bytes", "token_count", "meta"),
}
# Types of a file that are not those of the table: ids of variable width or in hexadecimal digits, lists as they were
# first written.
_TYPES: Mapping[str, Mapping[str, pa.DataType]] = {
    VERDICTS: {"sources": pa.list_(_TEXT)},
    SHUFFLE: {"id": pa.binary()},
    EXPORTS: {"id": _TEXT, "sources": pa.list_(_TEXT)},
}
# All columns of these may be null: they were first written so.
NULLABLE = (REJECTS, DEAD_LETTERS, SHUFFLE)
_NULL_IF_KEPT = ("kept_id", "similarity")
KEPT_FIELDS = "fields"  # column of the provenance with the fields of records that sources keep, a JSON object each


@cache
def fields_of(file: str) -> tuple[Field, ...]:
    """The fields that are columns of a file, in their order. file: one of FILES."""
    first = _FIRST.get(file, ())
    found = (field for field in FIELDS if file in field.files)
    return tuple(sorted(found, key=lambda field: [*first, field.name].index(field.name)))


def names_of(file: str) -> tuple[str, ...]:
    """The names of a file's columns, in their order."""
    return tuple(field.name for field in fields_of(file))


def columns_of(file: str) -> list[pa.Field]:
    """A file's columns with their types, in their order."""
    types = _TYPES.get(file, {})
    nullable = {VERDICTS: _NULL_IF_KEPT}.get(file, names_of(file) if file in NULLABLE else ())
    return [
        pa.field(field.name, types.get(field.name, field.type), nullable=field.name in nullable)
        for field in fields_of(file)
    ]


def schema_of(file: str) -> pa.Schema:
    """The schema of a file whose columns are all in the table."""
    return pa.schema(columns_of(file))
