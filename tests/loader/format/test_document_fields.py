"""The table of a document's fields: whoever carries or writes a document has the fields that it says."""

from dataclasses import fields

import pytest

from refinery.loader.format import document_fields
from refinery.loader.format.document_fields import (
    DEAD_LETTERS,
    DOCUMENTS,
    EXPORTS,
    FIELDS,
    FILES,
    PROVENANCE,
    REJECTS,
    SHUFFLE,
    Field,
    fields_of,
    names_of,
    schema_of,
)
from refinery.loader.format.provenance import Column, provenance_schema
from refinery.pipelines.corpus.export.options import all_fields
from refinery.pipelines.corpus.export.rows import row_schema
from refinery.transforms.core.document import Document
from refinery.transforms.core.lost_rows import dead_row, reject_row
from refinery.transforms.core.rejects import RejectParams
from refinery.transforms.tokenize.encode import EncodedDocument
from tools.pages import columns

QUALITY = (Column("quality", "float"),)


def test_the_table_names_each_field_once_and_files_that_there_are() -> None:
    names = [field.name for field in FIELDS]
    assert len(set(names)) == len(names)
    assert {file for field in FIELDS for file in field.files} == set(FILES)
    assert all(field.meaning_in(file) for file in FILES for field in fields_of(file))


def test_documents_have_the_fields_of_the_table() -> None:
    assert [each.name for each in fields(Document)] == list(names_of(DOCUMENTS))
    assert {each.name for each in fields(EncodedDocument)} == {*names_of(SHUFFLE), "tokens", "columns", "position"}


def test_rows_of_lost_documents_have_the_fields_of_the_table() -> None:
    params = RejectParams(excerpt_chars=3)
    row = reject_row("url", "blocked-host", "s", "https://u:p@a.example/", "f@0", "texts", "", params)
    assert tuple(row) == names_of(REJECTS) and row["excerpt"] == "tex" and "u:p" not in row["url"]
    assert tuple(dead_row("read", "BadGzip", "s", "f@0", b"x", 1)) == names_of(DEAD_LETTERS)


def test_a_row_of_the_table_is_a_column_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Field("site", FIELDS[0].type, "of which site it is", dict.fromkeys((DOCUMENTS, PROVENANCE, EXPORTS), ""))
    monkeypatch.setattr(document_fields, "FIELDS", (*FIELDS, site))
    fields_of.cache_clear()
    try:
        for schema in (
            schema_of(DOCUMENTS),
            provenance_schema(QUALITY),
            row_schema(QUALITY, all_fields(QUALITY), "int32"),
        ):
            assert schema.field("site").type == site.type
        for file in site.files:
            assert "| `site` | 16 bytes | of which site it is |" in columns(file)
        assert "site" not in names_of(REJECTS)
    finally:
        fields_of.cache_clear()
