"""Entries of the lookup index: hashes, files, bytes."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.core.spill.sorted_tables import sort_rows
from refinery.transforms.write.lookup import entries
from refinery.transforms.write.lookup.entries import (
    LISTED,
    SCHEMA,
    hash_column,
    hash_rows,
    key_hash,
    listed_files,
    lookup_files,
    write_entries,
)
from refinery.transforms.write.lookup.tasks import LookupTask, dump_task, entry_table, load_task, read_task
from refinery.transforms.write.records import FOLDERS, record_files

ENTRIES = st.tuples(
    st.integers(0, 2**64 - 1) | st.integers(0, 3), st.sampled_from(["removals", "train/web"]), st.integers(0, 2**31 - 1)
)


def table_of(rows: list[tuple[int, str, int]]) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table([pa.array(each, kind) for each, kind in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA)


def test_hashes_are_what_the_format_says() -> None:
    assert key_hash("url", "https://example.org/") == 0x9B78830CFA186FCC
    assert key_hash("origin", "https://example.org/") != key_hash("url", "https://example.org/")
    texts = ["https://example.org/", "", "ü", "a" * 300]
    assert hash_column("url", pa.array(texts)).tolist() == [key_hash("url", text) for text in texts if text]
    rows = pa.table({"id": ["x"], "url": ["u"], "origin": ["o"]})
    assert hash_rows(rows).tolist() == [key_hash("url", "u"), key_hash("origin", "o")]
    assert hash_rows(rows.drop_columns("url")).tolist() == [key_hash("origin", "o")]


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1), st.integers(1, 5000))
def test_files_hold_equal_ranges(hashes: list[int], count: int) -> None:
    ordered = np.sort(np.array([*hashes, 0, 2**64 - 1], np.uint64))
    files = lookup_files(ordered, count)
    assert files[0] == 0 and files[-1] == count - 1 and (np.diff(files) >= 0).all()
    assert files.tolist() == [(int(each) >> 32) * count >> 32 for each in ordered]


@given(st.lists(ENTRIES, min_size=1, max_size=30), st.integers(1, 30))
def test_a_file_has_each_entry_once_and_the_same_bytes_however_it_comes(
    rows: list[tuple[int, str, int]], step: int
) -> None:
    table = sort_rows([table_of(rows + rows[:step])])
    with TemporaryDirectory() as folder:
        once, divided = Path(folder, "once"), Path(folder, "divided")
        write_entries(once, [sort_rows([table_of(list(set(rows)))])])
        write_entries(divided, [table.slice(at, step) for at in range(0, table.num_rows, step)])
        assert divided.read_bytes() == once.read_bytes()
        found = pq.read_table(once)
    assert found.schema.equals(SCHEMA)
    assert [tuple(row.values()) for row in found.to_pylist()] == sorted(set(rows))


def test_row_groups_are_found_by_the_hashes_alone(tmp_path: Path) -> None:
    hashes = np.arange(3 * entries.ROW_GROUP, dtype=np.uint64) << np.uint64(45)
    write_entries(tmp_path / "file", [entry_table(hashes, "train/web", 7)])
    facts = pq.read_metadata(tmp_path / "file")
    groups = [facts.row_group(number) for number in range(facts.num_row_groups)]
    assert [group.column(0).statistics.min for group in groups] == hashes[:: entries.ROW_GROUP].tolist()
    assert {group.column(1).statistics for group in groups} == {None}


def test_what_is_listed_is_what_has_such_rows() -> None:
    assert ("removals", *reversed(FOLDERS)) == LISTED and "url" not in FOLDERS["dead_letters"].names
    paths = ["rejects/part-00001.parquet", "rejects/part-00000.parquet", "removals/part-00000-of-00001.parquet", "x"]
    assert dict(listed_files(paths)) == {("rejects", 1): paths[0], ("rejects", 0): paths[1], ("removals", 0): paths[2]}


def test_rows_of_a_part_go_to_the_files_that_will_have_them(tmp_path: Path) -> None:
    origins = [f"in/a@{number}" for number in range(50)]
    pq.write_table(pa.table({"url": [f"u{n}" for n in range(50)], "origin": origins}), tmp_path / "part")
    task = LookupTask(str(tmp_path), "part", "rejects", -1, 3)
    assert load_task(dump_task(task)) == task
    found = {(row["hash"], row["file"]) for table in read_task(task) for row in table.to_pylist()}
    files = record_files(origins, 3).tolist()
    assert len(set(files)) == 3
    assert found == {
        (key_hash(key, value), file)
        for n, (origin, file) in enumerate(zip(origins, files, strict=True))
        for key, value in (("url", f"u{n}"), ("origin", origin))
    }
