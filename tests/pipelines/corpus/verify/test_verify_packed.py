"""Packed rows whose every checksum holds, sealed anew after a lie: verify says what they contradict."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.loader.format.indexed import index_bytes, read_index
from refinery.pipelines.corpus.verify.packed_rows import DocumentDigests, token_digests
from refinery.pipelines.corpus.verify.verify import verify
from tests.corpus_factory import build_corpus, edit_manifest
from tests.packed_factory import add_packed_rows, rewrite_packed
from tests.sampling import sampled

WEB0, WEB1 = (f"packed/train/web/rows-0000{i}-of-00003-00000.parquet" for i in range(2))
CODE = "packed/train/code/rows-00000-of-00001-00000.parquet"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return add_packed_rows(build_corpus(tmp_path / "corpus"), 40)


def check(root: Path) -> list[str]:
    return verify(str(root), decode=False).failures


def test_good(root: Path) -> None:
    assert check(root) == []


def column(name: str, edit: Callable[[list[Any]], Any]) -> Callable[[pa.Table], pa.Table]:
    """Changes a column's values in place."""

    def change(table: pa.Table) -> pa.Table:
        values = table[name].to_pylist()
        edit(values)
        place = table.schema.get_field_index(name)
        return table.set_column(place, table.schema.field(name), pa.array(values, table.schema.field(name).type))

    return change


def swap_tokens(table: pa.Table) -> pa.Table:
    """Two tokens of a document change places, in both columns: each row alone is right."""

    def inputs(rows: list[list[int]]) -> None:
        rows[0][3], rows[0][4] = rows[0][4], rows[0][3]

    def targets(rows: list[list[int]]) -> None:
        rows[0][2], rows[0][3] = rows[0][3], rows[0][2]

    return column("target_ids", targets)(column("input_ids", inputs)(table))


def first(values: list[Any], value: Any) -> None:
    values[0] = value


@pytest.mark.parametrize(
    ("path", "edit", "message"),
    sampled(
        "lies about packed rows",
        [
            (WEB0, swap_tokens, "train/web/shard-00000-of-00003.bin: 1 documents have other contents in packed rows"),
            (CODE, column("num_docs", lambda v: first(v, 2)), "row 0: 2 found, num_docs"),
            (
                CODE,
                column("valid_token_count", lambda v: first(v, 41)),
                "row 0: 41 found, valid_token_count from 1 to 40",
            ),
            (CODE, column("pack_id", lambda v: first(v, b"x" * 16)), "pack_id: not the hash of the row's documents"),
            (CODE, column("document_sources", lambda v: first(v, ["crawl"])), "'crawl' found, a source of the domain"),
            (CODE, column("document_starts", lambda v: first(v, [-1])), "document_starts: 0 or more expected"),
            (
                CODE,
                column("document_starts", lambda v: first(v, [])),
                "document_starts: not one value for each document",
            ),
            (CODE, column("document_ids", lambda v: v[0].append(b"x" * 16)), "document_ids: not one value for each"),
            (WEB1, lambda table: table.slice(1), "26 rows found, 27 expected from the manifest"),
            (WEB0, lambda table: table.slice(1), "row group 0 has 0 rows, 1024 expected"),
            (WEB0, lambda table: table.drop_columns(["doc_ids"]), "its columns are not those of the format"),
            (WEB1, lambda table: pa.concat_tables([table.slice(1), table.slice(0, 1)]), ""),
        ],
        4,
    ),
)
def test_lies(root: Path, path: str, edit: Callable[[pa.Table], pa.Table], message: str) -> None:
    rewrite_packed(root, path, edit)
    failures = check(root)
    if message:
        assert message in failures[0], failures
    else:
        assert failures == []  # no order of rows is part of the format


def test_row_groups(root: Path) -> None:
    rewrite_packed(root, WEB1, lambda table: table, row_group_size=1)
    assert re.search("row group 0 has 1 rows, 1024 expected", check(root)[0])


def without(root: Path) -> None:
    def edit(payload: dict[str, Any]) -> None:
        for shard in payload["shards"]:
            shard["packed"] = []

    edit_manifest(root, edit)


def count(name: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        edit_manifest(root, lambda payload: payload["shards"][0]["packed"][0].update({name: 99}))

    return change


@pytest.mark.parametrize(
    ("change", "messages"),
    sampled(
        "packed rows in the manifest",
        [
            (without, ["no packed rows found for 3 documents", f"{WEB0}: not in manifest.json"]),
            (
                lambda root: edit_manifest(root, lambda m: m.pop("packed")),
                ["the manifest has no length of packed rows"],
            ),
            (lambda root: edit_manifest(root, lambda m: m["packed"].update(pad_id=9)), ["pad_id of the manifest is 9"]),
            (lambda root: edit_manifest(root, lambda m: m["packed"].update(length=41)), ["its columns are not those"]),
            (lambda root: edit_manifest(root, lambda m: m["packed"].update(length=1)), ["length is 1, 2 or more"]),
            (lambda root: edit_manifest(root, lambda m: m["tokenizer"].update(bos_id=None)), ["with bos_id expected"]),
            (lambda root: edit_manifest(root, lambda m: m["packed"].update(structure=5)), ["structure is 5, some of"]),
            (
                lambda root: edit_manifest(root, lambda m: m["packed"].update(structure=["x"])),
                ["structure is ['x'], some of"],
            ),
            (count("rows"), ["1 rows found, 99 expected from the manifest"]),
            (count("documents"), ["documents found, 99 expected from the manifest"]),
            (count("tokens"), ["tokens found, 99 expected from the manifest"]),
            (lambda root: (root / WEB0).unlink(), [f"{WEB0}: missing"]),
            (lambda root: (root / WEB0).write_bytes(b"PAR1"), [f"{WEB0}: size 4 found"]),
            (
                lambda root: (root / "packed/more.parquet").write_bytes(b"x"),
                ["packed/more.parquet: not in manifest.json"],
            ),
        ],
        5,
    ),
)
def test_manifest(root: Path, change: Callable[[Path], Any], messages: list[str]) -> None:
    change(root)
    failures = "\n".join(check(root))
    for message in messages:
        assert message in failures


@given(st.lists(st.integers(1, 20), max_size=12), st.integers(1, 30))
def test_digests(lengths: list[int], chunk: int) -> None:
    """Sums do not depend on how .bin is read, nor on the cuts of a document; they do on every place."""
    tokens = np.random.default_rng(sum(lengths)).integers(0, 60_000, sum(lengths)).astype(np.uint16)
    digests = DocumentDigests(read_index(index_bytes(np.array(lengths, np.int32), np.dtype("<u2")), "x"))
    for start in range(0, len(tokens), chunk):
        digests.watch(tokens[start : start + chunk].tobytes())
    stops = np.cumsum(np.array(lengths, np.int64))
    parts = [tokens[stop - n : stop] for stop, n in zip(stops.tolist(), lengths, strict=True)]
    assert digests.sums.tolist() == [int(token_digests(p, np.arange(len(p))).sum(dtype=np.uint64)) for p in parts]
    for part, found in zip(parts, digests.sums, strict=True):
        if len(set(part.tolist())) > 1:
            assert token_digests(np.roll(part, 1), np.arange(len(part))).sum(dtype=np.uint64) != found
