"""Documents through plan, rows and Parquet, and back: every one once, whole, in its own place."""

import hashlib
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.loader.format.packed import PackedFormat, check_rows, read_packed
from refinery.transforms.write.packing import write_packed as module
from refinery.transforms.write.packing.build_rows import PackedDocuments, build_rows
from refinery.transforms.write.packing.plan_rows import plan_rows
from refinery.transforms.write.packing.write_packed import PackedParams, packed_format, write_packed

BOS, EOS, VOCABULARY = 1, 2, 1000


def make(lengths: list[int], dtype: Any = np.uint16) -> tuple[PackedDocuments, np.ndarray[Any, Any]]:
    """Documents of these lengths (at least 2) in the order of their hashes, and the hashes."""
    generator = np.random.default_rng(len(lengths))
    parts = [np.concatenate([[BOS], generator.integers(3, VOCABULARY, n - 2), [EOS]]) for n in lengths]
    hashes = [hashlib.blake2b(str(i).encode(), digest_size=16).digest() for i in range(len(lengths))]
    order = sorted(range(len(lengths)), key=lambda i: hashes[i])
    documents = PackedDocuments(
        np.concatenate([np.empty(0), *(parts[i] for i in order)]).astype(dtype),
        np.array([lengths[i] for i in order], np.int64),
        pa.array([hashes[i] for i in order], pa.binary(16)),
        pa.array([f"source-{i % 3}" for i in order], pa.string()),
    )
    return documents, np.array([int.from_bytes(hashes[i][:8], "big") for i in order], np.uint64)


def put_together(rows: list[dict[str, Any]]) -> dict[bytes, list[int]]:
    """The tokens of each document, from all its pieces; an overlap or a gap raises."""
    pieces: dict[bytes, list[tuple[int, list[int]]]] = defaultdict(list)
    for row in rows:
        ids, docs = np.array(row["input_ids"]), np.array(row["doc_ids"])
        for number, (id_, start) in enumerate(zip(row["document_ids"], row["document_starts"], strict=True)):
            tokens = ids[docs == number].tolist()
            pieces[id_].append((start, tokens[1:] if start else tokens))
    whole = {}
    for id_, parts in pieces.items():
        tokens = []
        for start, part in sorted(parts):
            assert start == len(tokens)
            tokens += part
        whole[id_] = tokens
    return whole


@given(st.lists(st.integers(2, 90), max_size=40), st.integers(2, 40), st.integers(1, 12), st.booleans())
def test_every_document_once(lengths: list[int], capacity: int, group: int, wide: bool) -> None:
    documents, orders = make(lengths, np.int32 if wide else np.uint16)
    layout = PackedFormat(capacity, VOCABULARY, BOS, EOS)
    plan = plan_rows(documents.lengths, orders, capacity)
    found, names = [], []
    for first in range(0, plan.rows, group):
        rows, pack_ids, columns = build_rows(documents, plan, layout, first, min(first + group, plan.rows))
        check_rows(rows, layout, "rows")
        assert (rows.loss_mask.sum(axis=1) == rows.valid_token_count - rows.num_docs).all()  # every token that follows
        names += pack_ids
        found += [
            {"input_ids": ids, "doc_ids": docs} | {name: column[row].as_py() for name, column in columns.items()}
            for row, (ids, docs) in enumerate(zip(rows.input_ids, rows.doc_ids, strict=True))
        ]
    stops = np.cumsum(documents.lengths).tolist()
    expected = {
        id_: documents.tokens[stop - length : stop].tolist()
        for id_, stop, length in zip(documents.ids.to_pylist(), stops, documents.lengths.tolist(), strict=True)
    }
    assert put_together(found) == expected
    assert len(set(names)) == len(names)
    sources = dict(zip(documents.ids.to_pylist(), documents.sources.to_pylist(), strict=True))
    assert all([sources[id_] for id_ in row["document_ids"]] == row["document_sources"] for row in found)


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of at most so many documents, with rows in the plan's order; the same bytes again."""
    monkeypatch.setattr(module, "FILE_DOCUMENTS", 100)
    lengths = np.random.default_rng(5).integers(2, 300, 450).tolist()
    documents, orders = make(lengths)
    layout = packed_format(PackedParams(length=128), VOCABULARY, BOS, EOS)
    found = []
    for path, counts in write_packed(documents, orders, layout, tmp_path):
        rows = pq.read_table(path).to_pylist()
        assert counts["documents"] == sum(row["num_docs"] for row in rows) <= 100
        assert counts["rows"] == len(rows)
        assert counts["tokens"] == sum(row["valid_token_count"] for row in rows)
        (block,) = read_packed(path, layout, path.name)
        assert len(block) == len(rows)
        found += rows
    assert len(list(tmp_path.iterdir())) > 5
    assert sorted(len(tokens) for tokens in put_together(found).values()) == sorted(lengths)
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert dict(first) == {
        path.name: path.read_bytes() for path, _ in write_packed(documents, orders, layout, tmp_path)
    }


def test_order_of_rows() -> None:
    """Rows of one long document and rows of many short ones come in no particular order."""
    lengths = [100] * 300 + [10] * 3000
    documents, orders = make(lengths)
    plan = plan_rows(documents.lengths, orders, 100)
    counts = np.diff(plan.bounds)
    assert sorted(set(counts.tolist())) == [1, 10]
    middle = np.mean(np.flatnonzero(counts == 1)) / len(counts)
    assert 0.4 < middle < 0.6
    assert np.abs(np.corrcoef(counts[:-1], counts[1:])[0, 1]) < 0.15


def test_pinned() -> None:
    """What this version makes of twelve documents; other rows are another version of the writer."""
    documents, orders = make([30, 17, 5, 9, 12, 40, 3, 8, 8, 21, 2, 16])
    plan = plan_rows(documents.lengths, orders, 32)
    digest = hashlib.sha256()
    layout = PackedFormat(32, VOCABULARY, BOS, EOS)
    rows, pack_ids, _ = build_rows(documents, plan, layout, 0, plan.rows)
    for name in ("input_ids", "target_ids", "loss_mask", "doc_ids", "valid_token_count"):
        digest.update(getattr(rows, name).tobytes())
    digest.update(b"".join(pack_ids))
    assert (plan.rows, digest.hexdigest()[:16]) == (6, "277a7c2491c1a290")


def test_structure() -> None:
    """Values stay with their tokens; a BOS that was put in and padding have none."""
    documents, orders = make([9, 4])
    depth = np.arange(len(documents.tokens), dtype=np.int32)
    documents = PackedDocuments(
        documents.tokens, documents.lengths, documents.ids, documents.sources, {"nesting_depth": depth}
    )
    layout = PackedFormat(6, VOCABULARY, BOS, EOS, ("nesting_depth",))
    plan = plan_rows(documents.lengths, orders, 6)
    rows, _, columns = build_rows(documents, plan, layout, 0, plan.rows)
    values = rows.structure["nesting_depth"]
    known = values >= 0
    assert sorted(values[known].tolist()) == depth.tolist()
    assert (rows.input_ids[known] == documents.tokens[values[known]]).all()
    assert known.sum(axis=1).tolist() == [
        int(valid) - sum(start > 0 for start in starts)
        for valid, starts in zip(rows.valid_token_count, columns["document_starts"].to_pylist(), strict=True)
    ]


def test_borders(tmp_path: Path) -> None:
    """A document that is too long is cut where it says it is best cut."""
    documents, orders = make([20])
    documents = replace(documents, borders={0: [7, 12]})
    layout = PackedFormat(10, VOCABULARY, BOS, EOS)
    ((path, _),) = write_packed(documents, orders, layout, tmp_path)
    starts = [start for row in pq.read_table(path).to_pylist() for start in row["document_starts"]]
    assert sorted(starts) == [0, 7, 12]


@pytest.mark.parametrize(
    ("bos", "eos", "message"), [(None, 2, "tokenizer.bos must name"), (2, 2, "must be different tokens")]
)
def test_no_bos(bos: int | None, eos: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        packed_format(PackedParams(), VOCABULARY, bos, eos)
