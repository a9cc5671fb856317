"""From the compact columns of documents to a file of packed rows: maps, borders, and the very bytes."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.format.packed import STRUCTURE, read_packed
from refinery.transforms.tokenize.chunk_notes import Chunk, text_hash, write_chunks
from refinery.transforms.tokenize.token_columns import read_columns, token_columns
from refinery.transforms.write.packing.build_rows import PackedDocuments
from refinery.transforms.write.packing.column_files import write_columns
from refinery.transforms.write.packing.write_packed import PackedParams, packed_format, packed_memory, write_packed
from tests.transforms.tokenize.test_token_spans import MADE

BOS, EOS = 300, 301
TEXTS = ("int a() { é }\n" * 4, "no chunks", "/* 😀 */ b;")
CHUNKS = ((14, "FUNC_BODY", 0), (42, "CLASS_DECL", 1), (56, "COMMENT", 0)), (), ((7, "COMMENT", 0), (10, "OTHER", 2))
LAYOUT = packed_format(PackedParams(length=24), 302, BOS, EOS, columns=True)


def encoded() -> tuple[list[bytes], list[np.ndarray[Any, Any]]]:
    """Columns and tokens of the documents."""
    columns, tokens = [], []
    for text, ends in zip(TEXTS, CHUNKS, strict=True):
        starts = [0, *(end for end, _, _ in ends)]
        note = write_chunks([Chunk(start, *end, True) for start, end in zip(starts, ends, strict=False)])
        ids = MADE.tiktoken.encode(text)
        meta = {"chunks": note, "chunks_of": text_hash(text)}
        columns.append(token_columns(text, ids, meta, MADE.tiktoken, (1, 1)) if ends else b"")
        tokens.append(np.array([BOS, *ids.tolist(), EOS], np.uint16))
    return columns, tokens


def packed(folder: Path) -> tuple[Path, list[int]]:
    columns, tokens = encoded()
    lengths = list(map(len, tokens))
    structure, borders = write_columns(columns, lengths, LAYOUT, folder)
    for name, values in structure.items():
        parts = [read_columns(each, length)[name] for each, length in zip(columns, lengths, strict=True)]
        assert values.tolist() == np.concatenate(parts).tolist() and values.dtype == STRUCTURE[name]
    assert list(borders) == [0]  # the only one that is longer than a row
    ids = pa.array([bytes([i]) * 16 for i in range(3)], pa.binary(16))
    sources = pa.array(["s"] * 3)
    documents = PackedDocuments(np.concatenate(tokens), np.array(lengths), ids, sources, structure, borders)
    ((path, _),) = write_packed(documents, np.arange(3, dtype=np.uint64), LAYOUT, folder)
    return path, list(borders[0])


def test_the_file(tmp_path: Path) -> None:
    path, borders = packed(tmp_path)
    (rows,) = read_packed(path, LAYOUT, "x")
    starts = [start for row in pq.read_table(path).to_pylist() for start in row["document_starts"]]
    assert borders[0] in starts and len(starts) > 3
    assert set(rows.structure) == set(STRUCTURE) and rows.column("chunk_kind").max() == 8
    chunks = pq.ParquetFile(path).metadata.row_group(0)
    encodings = {chunks.column(i).path_in_schema: chunks.column(i).encodings for i in range(chunks.num_columns)}
    assert "DELTA_BINARY_PACKED" in encodings["char_start.list.element"] + encodings["char_end.list.element"]


def test_golden_bytes(tmp_path: Path) -> None:
    """Other bytes are another version of the writer; a new pyarrow, whose name is in the file, may be the reason."""
    assert hashlib.sha256(packed(tmp_path)[0].read_bytes()).hexdigest()[:16] == "7dc2806665a96a61"


def test_no_documents(tmp_path: Path) -> None:
    structure, borders = write_columns([], [], LAYOUT, tmp_path)
    assert all(len(values) == 0 for values in structure.values()) and not borders


def test_memory_is_asked_for() -> None:
    plain = packed_format(PackedParams(length=24), 302, BOS, EOS)
    assert plain.structure == () and packed_memory(plain) < packed_memory(LAYOUT)
