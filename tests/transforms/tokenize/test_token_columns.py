"""Columns of tokens: what a plain reading of the rules gives, exactly, or nothing and the reason."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.loader.format.chunk_kinds import CHUNK_KINDS
from refinery.loader.format.packed import STRUCTURE
from refinery.transforms.core.answers import Answer
from refinery.transforms.core.document import Document
from refinery.transforms.tokenize.chunk_notes import Chunk, text_hash, write_chunks
from refinery.transforms.tokenize.encode import EncodedDocument, TokenizerParams, encode_document, load_encoder
from refinery.transforms.tokenize.encoded_coder import EncodedDocumentCoder
from refinery.transforms.tokenize.token_columns import Lost, chunk_borders, read_columns, token_columns
from tests.beam import make_document
from tests.transforms.tokenize.test_token_spans import MADE, pairs, texts
from tests.transforms.tokenizer_files import END, all_pairs, byte_level_spec, write

NAMES = ("byte_level", "characters", "pieces", "unigram", "normalizing_pieces")


@st.composite
def noted(draw: st.DrawFn) -> tuple[str, list[Chunk]]:
    """A text, cut at random."""
    text = draw(texts.filter(bool))
    ends = sorted({*draw(st.lists(st.integers(1, len(text)), max_size=6)), len(text)})
    kinds, depths = st.sampled_from(CHUNK_KINDS), st.integers(0, 100_000)
    return text, [
        Chunk(start, end, draw(kinds), draw(depths), draw(st.booleans()))
        for start, end in zip([0, *ends], ends, strict=False)
    ]


def notes(text: str, chunks: list[Chunk]) -> dict[str, Any]:
    return {"chunks": write_chunks(chunks), "chunks_of": text_hash(text)}


@pytest.mark.parametrize("name", NAMES)
@given(made=noted(), head=st.integers(0, 1), tail=st.integers(0, 1))
def test_columns(name: str, made: tuple[str, list[Chunk]], head: int, tail: int) -> None:
    """Every token has its characters, and the chunk that its first character is in; BOS and EOS have none."""
    text, chunks = made
    tokenizer = getattr(MADE, name)
    ids = tokenizer.encode(text)
    spans = pairs(tokenizer.spans(text, ids)) if len(ids) else None
    if spans is None:
        with pytest.raises(Lost, match="no-columns-not-aligned"):
            token_columns(text, ids, notes(text, chunks), tokenizer, (head, tail))
        return
    columns = token_columns(text, ids, notes(text, chunks), tokenizer, (head, tail))
    owners = [min(sum(one.end <= start for one in chunks), len(chunks) - 1) for start, _ in spans]
    expected = {
        "chunk_kind": [CHUNK_KINDS.index(chunks[owner].kind) for owner in owners],
        "nesting_depth": [chunks[owner].depth for owner in owners],
        "chunk_id": owners,
        "char_start": [start for start, _ in spans],
        "char_end": [end for _, end in spans],
    }
    found = read_columns(columns, head + len(ids) + tail)
    assert {n: c.tolist() for n, c in found.items()} == {n: [-1] * head + c + [-1] * tail for n, c in expected.items()}
    assert {n: c.dtype for n, c in found.items()} == dict(STRUCTURE)
    borders = chunk_borders(columns)
    assert borders == [head + i for i in range(1, len(ids)) if owners[i] != owners[i - 1]]


def test_wide_values() -> None:
    """Tokens of more characters than a byte counts, and characters between them that no token has."""
    text = "a" * 70_000 + " " * 40_000 + "b"

    class Wide:
        def spans(self, text: str, ids: Any) -> Any:
            from refinery.transforms.tokenize.token_spans import Spans

            return Spans(np.array([0, 110_000], np.int32), np.array([70_000, 110_001], np.int32))

    made: Any = Wide()
    chunks = [Chunk(0, 110_000, "OTHER", 0, True), Chunk(110_000, 110_001, "COMMENT", 1, True)]
    found = read_columns(token_columns(text, np.array([5, 6]), notes(text, chunks), made, (1, 0)), 3)
    assert found["char_start"].tolist() == [-1, 0, 110_000] and found["char_end"].tolist() == [-1, 70_000, 110_001]
    assert found["chunk_id"].tolist() == [-1, 0, 1]


def test_more_chunks_than_tokens() -> None:
    """A chunk for every character: those that no token begins in are left out."""
    text = "ab é\n" * 2000
    ids = MADE.tiktoken.encode(text)
    chunks = [Chunk(i, i + 1, CHUNK_KINDS[i % 9], i % 5, True) for i in range(len(text))]
    columns = token_columns(text, ids, notes(text, chunks), MADE.tiktoken, (0, 0))
    found = read_columns(columns, len(ids))
    assert found["chunk_id"].tolist() == found["char_start"].tolist() and len(ids) < len(text)
    assert chunk_borders(columns) == list(range(1, len(ids)))


def test_columns_of_another_document_are_refused() -> None:
    text = "ab cd"
    ids = MADE.byte_level.encode(text)
    columns = token_columns(text, ids, notes(text, [Chunk(0, 5, "OTHER", 0, True)]), MADE.byte_level, (1, 1))
    assert all((column == -1).all() for column in read_columns(b"", 4).values())
    for wrong in (len(ids) + 1, len(ids) + 3, 0):
        with pytest.raises(ValueError, match="columns of"):
            read_columns(columns, wrong)


@pytest.fixture(scope="module")
def params(tmp_path_factory: pytest.TempPathFactory) -> TokenizerParams:
    spec = byte_level_spec(all_pairs("abcde rst"), normalizer={"type": "NFC"})
    return TokenizerParams(path=write(tmp_path_factory.mktemp("t") / "tokenizer.json", spec), bos=END, eos=None)


def encoded(doc: Document, params: TokenizerParams) -> Any:
    return encode_document(doc, load_encoder(params), params)


GOOD = "5:FUNC_BODY:1* 9:OTHER:0"


@pytest.mark.parametrize(
    ("text", "meta", "lost"),
    [
        ("the cat s", {"chunks": GOOD}, ""),
        ("the cat t", {"chunks": GOOD}, "text-changed"),
        ("the cat", {"chunks": GOOD}, "text-changed"),
        ("the cat s", {"chunks": GOOD, "chunks_of": None}, "text-changed"),
        ("the cat s", {"chunks": "5:FUNC_BODY:1*"}, "unreadable-note"),
        ("the cat s", {"chunks": "5:FUNC_BODY:1* 10:OTHER:0"}, "unreadable-note"),
        ("the cat s", {"chunks": ""}, "unreadable-note"),
        ("the cat s", {"chunks": 7}, "unreadable-note"),
        ("the cat s", {"chunks": "9:OTHER:" + "9" * 30}, "unreadable-note"),
        ("the cat s", {"chunks": "9:OTHER:" + "9" * 5000}, "unreadable-note"),
        ("the cae\u0301", {"chunks": "8:OTHER:0", "chunks_of": text_hash("the cae\u0301")}, "not-aligned"),
    ],
)
def test_columns_are_right_or_lost(params: TokenizerParams, text: str, meta: dict[str, Any], lost: str) -> None:
    """A document never dies of its note: it has the same tokens, and a finding that is counted."""
    doc = make_document(text, meta={"chunks_of": text_hash("the cat s"), **meta})
    plain = encoded(make_document(text), params)
    found = encoded(doc, params)
    if lost:
        assert isinstance(found, Answer) and found.found == (f"no-columns-{lost}/chunks",)
        found = found.result
        assert found.columns == b""
    else:
        assert found.columns and found.tokens[0] == 0
    assert isinstance(found, EncodedDocument) and found.tokens.tolist() == plain.tokens.tolist()
    assert plain.columns == b""


def test_the_coder_keeps_them(params: TokenizerParams) -> None:
    text = "the cat s"
    coder = EncodedDocumentCoder()
    for meta in ({}, {"chunks": GOOD, "chunks_of": text_hash(text)}):
        doc = encoded(make_document(text, meta=meta), params)
        again = coder.decode(coder.encode(doc))
        assert again.columns == doc.columns and again.tokens.tolist() == doc.tokens.tolist()
        assert (again.id, again.meta) == (doc.id, doc.meta)
