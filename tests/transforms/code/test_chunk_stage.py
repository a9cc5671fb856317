"""The stage notes chunks that can be read back, or makes documents of them."""

from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.pipelines.recipe.load_recipe import parse_recipe
from refinery.transforms.code.chunk_stage import CHUNK, ChunkParams, load_counter, split_document
from refinery.transforms.code.languages import KINDS
from refinery.transforms.core.document import Document, document_id
from refinery.transforms.tokenize.chunk_notes import Chunk, read_chunks, text_hash, write_chunks
from tests.beam import make_document, run_and_collect
from tests.transforms.tokenizer_files import byte_level_spec, write

TEXT = "#include <a>\n\n" + "".join(f"int f{i}() {{\n  return {i};\n}}\n\n" for i in range(9))


@pytest.fixture
def tokenizer(tmp_path: Path) -> str:
    return str(write(tmp_path / "tokenizer.json", byte_level_spec([])))


def document(path: str = "src/a.c") -> Document:
    return make_document(TEXT, url="http://example.org/x", meta={"path": path})


def test_borders_are_noted_beside_the_file(tokenizer: str) -> None:
    params = ChunkParams(tokenizer=tokenizer, budget=64)
    [done] = split_document(document(), load_counter(params), params)
    chunks = read_chunks(str(done.meta["chunks"]))
    assert done.text == TEXT and done.meta["chunk_borders"] == "syntax" and done.meta["path"] == "src/a.c"
    assert done.meta["chunks_of"] == text_hash(TEXT) != text_hash(TEXT[:-1])
    assert chunks[-1].end == len(TEXT) and {one.kind for one in chunks} == {"FUNC_BODY"}
    assert all(one.end - one.start <= 64 for one in chunks)  # a byte is a token


def test_chunks_become_documents(tokenizer: str) -> None:
    params = ChunkParams(tokenizer=tokenizer, budget=64, emit="chunks")
    done = list(split_document(document(), load_counter(params), params))
    assert "".join(doc.text for doc in done) == TEXT and len(done) > 1
    assert all(doc.id == document_id(doc.text) and doc.origin == done[0].origin for doc in done)
    assert [doc.meta["chunk_number"] for doc in done] == list(range(len(done)))
    assert [doc.meta["chunk_start"] for doc in done] == [0, *(TEXT.index(doc.text) for doc in done[1:])]


def test_behind_deduplication_the_first_chunk_keeps_the_files_id(tokenizer: str) -> None:
    """Verdicts and removals name it; the ids of all others are different, also where their texts are not."""
    params = ChunkParams(tokenizer=tokenizer, budget=64, emit="chunks")
    text = TEXT * 2
    kept = Document(document_id(TEXT), text, "", "s", "o@0", 0, {"path": "a.py", "copies": 3})
    done = list(split_document(kept, load_counter(params), params))
    assert len({doc.id for doc in done}) == len(done) > len({doc.text for doc in done})
    assert done[0].id == kept.id


def test_without_a_grammar_it_says_braces(tokenizer: str) -> None:
    params = ChunkParams(tokenizer=tokenizer)
    [done] = split_document(document("notes.txt"), load_counter(params), params)
    assert done.meta["chunk_borders"] == "braces"


def test_as_a_transform(tokenizer: str) -> None:
    stage = CHUNK(ChunkParams(tokenizer=tokenizer, budget=64, emit="chunks"))
    [found] = run_and_collect(lambda pipeline: [pipeline | beam.Create([document()]) | stage])
    assert sorted(doc.meta["chunk_number"] for doc in found) == list(range(len(found)))


@given(st.lists(st.tuples(st.integers(1, 99), st.sampled_from(KINDS), st.integers(0, 9), st.booleans())))
def test_notes_are_read_as_they_were_written(parts: list[tuple[int, str, int, bool]]) -> None:
    chunks, start = [], 0
    for length, kind, depth, whole in parts:
        chunks.append(Chunk(start, start + length, kind, depth, whole))
        start += length
    assert read_chunks(write_chunks(tuple(chunks))) == tuple(chunks)


@pytest.mark.parametrize("note", ["x", "5:NOTHING:0", "5:OTHER:0 5:OTHER:0", "5:OTHER", "5:OTHER:-1"])
def test_other_notes_are_refused(note: str) -> None:
    with pytest.raises(ValueError):
        read_chunks(note)


def test_without_a_tokenizer_nothing_can_be_counted() -> None:
    with pytest.raises(ValueError, match="tokenizer: empty, but the path"):
        load_counter(ChunkParams())


@pytest.mark.parametrize(
    ("params", "length", "budget"),
    [
        ({}, 512, 510),
        ({}, None, 4096),
        ({"budget": 100}, 512, 100),
        ({}, 8, 64),
        ({"tokenizer": "own.json"}, 4096, 4094),
    ],
)
def test_a_recipe_says_tokenizer_and_row_once(params: dict[str, Any], length: int | None, budget: int) -> None:
    source = {"name": "s", "paths": ["x.jsonl"]}
    packed = length and {"length": length}
    recipe = parse_recipe(
        {
            "name": "n",
            "lane": "code",
            "sources": [source],
            "tokenizer": {"path": "t.json"},
            "packed": packed,
            "chunk": params,
        }
    )
    [found] = [found for stage, found in recipe.active("shards") if stage is CHUNK]
    assert found == ChunkParams(tokenizer=params.get("tokenizer", "t.json"), budget=budget)
    assert recipe.plain()["chunk"] == ChunkParams(**params).plain()
