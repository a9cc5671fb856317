"""Tables in order of all columns, from memory and from disk alike; and the same file whatever the tables' sizes."""

import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.loader.errors import FormatError
from refinery.loader.format.row_groups import write_row_groups
from refinery.transforms.core.spill import sorted_tables
from refinery.transforms.core.spill.sorted_tables import in_order, sort_rows
from tests.sampling import one_commit_in_four


def some_table(count: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    names = pa.array([None if n % 7 == 0 else f"name {n}" for n in rng.integers(0, 20, count).tolist()], pa.string())
    return pa.table({"key": rng.integers(0, 4, count), "name": names, "number": rng.random(count) < 0.5})


@one_commit_in_four
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 400), st.integers(1, 30), st.integers(1, 3000), st.integers(1, 400), st.integers(0, 10**6))
def test_equals_sorting_at_once(count, pieces, limit, window, seed):
    table = some_table(count, seed)
    bounds = np.linspace(0, count, pieces + 1).astype(int).tolist()
    parts = [table.slice(first, end - first) for first, end in pairwise(bounds)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_tables, "SORT_BYTES", limit)
        patch.setattr(sorted_tables, "WINDOW_BYTES", window)
        found = pa.concat_tables(sorted_tables.sorted_tables(iter(parts)))
    assert found.equals(sort_rows([table]))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 300), st.integers(1, 9), st.integers(0, 60), st.integers(1, 400), st.integers(0, 10**6))
def test_merging_equals_sorting(count, pieces, more, window, seed):
    table, extra = sort_rows([some_table(count, seed)]), some_table(more, seed + 1)
    bounds = np.linspace(0, count, pieces + 1).astype(int).tolist()
    parts = [table.slice(first, end - first) for first, end in pairwise(bounds)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_tables, "WINDOW_BYTES", window)
        found = list(sorted_tables.merged_tables(in_order(parts, "it"), extra))
    assert pa.concat_tables([table.slice(0, 0), *found]).equals(sort_rows([table, extra]))


@pytest.mark.parametrize("keys", [[2, 1], [1, 1, 3, 2], [1, 2, 3, 4, 0]])
def test_another_order_is_an_error(keys: list[int]) -> None:
    table = pa.table({"key": keys})
    for size in (1, 2, 10):
        with pytest.raises(FormatError, match="it: rows are not in the order of their columns"):
            list(in_order([table.slice(at, size) for at in range(0, len(keys), size)], "it"))


def test_no_file_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sorted_tables, "SORT_BYTES", 1000)
    for found in sorted_tables.sorted_tables(some_table(100, seed) for seed in range(5)):
        assert found.num_rows and not list(tmp_path.iterdir())


@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 450])
@pytest.mark.parametrize("piece", [1, 30, 250])
def test_row_groups_are_those_of_one_table(tmp_path: Path, count: int, piece: int) -> None:
    table, options = some_table(count, 3), {"compression": "zstd", "write_page_checksum": True}
    pq.write_table(table.combine_chunks(), tmp_path / "whole", row_group_size=100, **options)
    pieces = [table.slice(first, piece) for first in range(0, max(1, count), piece)]
    write_row_groups(tmp_path / "pieces", pieces, 100, **options)
    assert (tmp_path / "pieces").read_bytes() == (tmp_path / "whole").read_bytes()


def test_no_tables_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least one is needed"):
        write_row_groups(tmp_path / "none", [], 100)
