"""How many rows a batch has of a file that anybody may have written: few where few bytes can stand for many."""

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refinery.loader.errors import FormatError
from refinery.loader.format.parquet import batches
from refinery.loader.format.parquet.batches import bounded_parquet, check_pages
from refinery.loader.format.parquet.pages import Pages

ROWS = 3_000
LONG = "long " * 2_000  # a page of 10 kB
SHORT = [f"value {row}" for row in range(ROWS)]

# name -> (values, how they are written, rows of the largest batch)
FILES: dict[str, tuple[list[str], dict[str, Any], int]] = {
    "each by itself": (SHORT, {"use_dictionary": False}, ROWS),
    "large, each by itself": ([LONG, *SHORT[1:]], {"use_dictionary": False}, ROWS),
    "one that all repeat": ([LONG] * ROWS, {"use_dictionary": True}, 103),
    "short ones that all repeat": (["again"] * ROWS, {"use_dictionary": True}, ROWS),
    "a dictionary that overflows": (
        [LONG, *SHORT[1:]],
        {"use_dictionary": True, "dictionary_pagesize_limit": 1000, "write_batch_size": 16},
        103,
    ),
    "beginnings of others": (
        [LONG + str(row) for row in range(ROWS)],
        {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY", "data_page_size": 1 << 30},
        103,
    ),
    "more than a little": ([LONG] * 40, {"use_dictionary": False, "data_page_size": 1}, 103),
}


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("name", FILES)
def test_rows_of_a_batch(name: str, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values, how, most = FILES[name]
    monkeypatch.setattr(batches, "MAX_BATCH", 1_040_000)
    file = io.BytesIO()
    pq.write_table(pa.table({"text": values}), file, data_page_version=version, **how)
    with bounded_parquet(file, "x.parquet") as (_, found):
        held = list(found)
    assert [value for batch in held for value in batch.column("text").to_pylist()] == values
    assert max(map(len, held)) <= most and (len(held) == 1 or most < ROWS)
    assert max(batch.nbytes for batch in held) <= 1_100_000


@pytest.mark.parametrize(
    ("pages", "rows"),
    [(Pages(9, 90, 0), 10), (Pages(9, 90, 5), 2), (Pages(200, 200, 0), 0), (Pages(9, 100, 9), 0), (Pages(), 100)],
)
def test_rows_that_surely_fit(pages: Pages, rows: int) -> None:
    assert pages.rows_within(100) == rows


def test_what_pages_hold() -> None:
    """Values by themselves are counted once; a dictionary for every row, in each column."""
    file = io.BytesIO()
    table = pa.table({"a": SHORT, "b": ["again"] * ROWS, "c": ["and again"] * ROWS})
    pq.write_table(table, file, use_dictionary=["b", "c"])
    (all_,), (plain,), (two,) = (check_pages(file, "x", columns) for columns in (None, ["a"], ["b", "c"]))
    assert plain.repeated == 0 and plain.stored >= sum(map(len, SHORT))
    assert two.stored == 0 and len("again" + "and again") <= two.repeated <= 40
    assert (all_.stored, all_.repeated) == (plain.stored, two.repeated)


def test_nulls_of_a_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """No page holds them, and each takes its width in memory."""
    monkeypatch.setattr(batches, "MAX_BATCH", 1 << 20)
    file = io.BytesIO()
    pq.write_table(pa.table({"id": pa.nulls(ROWS, pa.binary(1 << 12)), "n": pa.nulls(ROWS, pa.int64())}), file)
    assert len(file.getvalue()) < 1000
    with bounded_parquet(file, "x.parquet") as (_, found):
        assert max(batch.nbytes for batch in found) < 1_100_000
    with bounded_parquet(file, "x.parquet", ["n"]) as (_, found):
        assert len(list(found)) == 1
    monkeypatch.setattr(batches, "MAX_PAGE", 4095)
    with pytest.raises(FormatError, match="rows of 4,096 bytes, 4,095 or less expected"), bounded_parquet(file, "x"):
        pass
