"""SourceTextParams, read_source_text: what is made one form, and that nothing else changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.code.source_text import SOURCE_TEXT, SourceTextParams, read_source_text
from refinery.transforms.core.document import Document, Drop, RawDocument, document_id

GERMAN = "// Gr\u00fc\u00dfe aus M\u00fcnchen; f\u00fcr sch\u00f6ne H\u00e4user und gro\u00dfe B\u00e4ume\n"
PARAMS = SourceTextParams()


def raw(content: str | bytes, charset: str = "", is_html: bool = False) -> RawDocument:
    return RawDocument(content, is_html, charset, "a/b@0/c.c", "s", "o@0", 7, {"path": "c.c"})


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("int a;", "int a;"),
        ("  if x:\n\t\tpass   \n\n\n\n\f\nend", "  if x:\n\t\tpass   \n\n\n\n\f\nend"),
        ("a\r\nb\rc\n", "a\nb\nc\n"),
        ("\ufeffint a;", "int a;"),
        (b"\xef\xbb\xbfint a;\r\n", "int a;\n"),
        ("// \u00e9".encode("utf-16"), "// \u00e9"),
        ((GERMAN * 3).encode("cp1252"), GERMAN * 3),
        ("// e\u0301 \u200b \ue000", "// e\u0301 \u200b \ue000"),
        ("<html><body>text</body></html>", "<html><body>text</body></html>"),
    ],
)
def test_texts(content: str | bytes, text: str) -> None:
    doc = read_source_text(raw(content, is_html=True), PARAMS)
    assert doc == Document(document_id(text), text, "a/b@0/c.c", "s", "o@0", 7, {"path": "c.c"})


def test_line_ends_may_stay() -> None:
    doc = read_source_text(raw("a\r\nb"), SourceTextParams(line_feeds=False))
    assert isinstance(doc, Document) and doc.text == "a\r\nb"


@pytest.mark.parametrize(
    ("content", "reason"),
    [("", "empty"), (" \r\n", "empty"), ("\ufeff", "empty"), ("a\0b", "binary"), (b"\x89PNG\r\n\x1a\n\0\0", "binary")],
)
def test_what_is_dropped(content: str | bytes, reason: str) -> None:
    assert read_source_text(raw(content), PARAMS) == Drop(reason)
    assert reason in {declared.name for declared in SOURCE_TEXT.reasons}


@given(st.text(st.characters(exclude_characters="\r\0", exclude_categories=["Cs"])))
def test_nothing_else_changes(text: str) -> None:
    answer = read_source_text(raw(text), PARAMS)
    if text.removeprefix("\ufeff").strip():
        assert isinstance(answer, Document) and answer.text == text.removeprefix("\ufeff")
    else:
        assert answer == Drop("empty")
