"""A GuardedFile gives what pyarrow gives, a row group or a batch at a time, and refuses what would take too much."""

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.loader.errors import FormatError
from refinery.loader.format.parquet import batches
from refinery.loader.format.parquet.guarded import GuardedFile, guarded_parquet
from refinery.loader.format.parquet.pages import MAX_ITEMS

TEXTS = st.lists(st.one_of(st.none(), st.text(max_size=20)), max_size=60)


@given(TEXTS, st.integers(1, 20), st.integers(1, 30), st.booleans())
def test_as_pyarrow_gives_it(values: list[str | None], group_rows: int, most: int, dictionary: bool) -> None:
    file = io.BytesIO()
    table = pa.table({"text": pa.array(values, pa.string()), "n": range(len(values)), "list": [[n] for n in values]})
    pq.write_table(table, file, row_group_size=group_rows, use_dictionary=dictionary)
    plain, guarded = pq.ParquetFile(file), GuardedFile(file, "x")
    assert guarded.read().equals(table) and guarded.schema_arrow == plain.schema_arrow
    assert guarded.read(["n", "text"]).equals(table.select(["n", "text"]))
    for group in range(plain.num_row_groups):
        assert guarded.read_row_group(group, columns=["text"]).equals(plain.read_row_group(group, columns=["text"]))
    groups = list(range(0, plain.num_row_groups, 2))
    assert guarded.read_row_groups(groups).num_rows == plain.read_row_groups(groups).num_rows if groups else True
    found = list(guarded.iter_batches(most, columns=["n"]))
    assert [n for batch in found for n in batch["n"].to_pylist()] == list(range(len(values)))
    assert all(len(batch) <= most for batch in found)


def test_a_value_that_all_rows_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of few bytes, gigabytes in memory: read in small batches, refused as a whole."""
    monkeypatch.setattr(batches, "MAX_BATCH", 1 << 20)
    file = io.BytesIO()
    pq.write_table(pa.table({"text": ["long " * 2_000] * 30_000, "n": range(30_000)}), file)
    guarded = GuardedFile(file, "a/b.parquet")
    assert max(batch.nbytes for batch in guarded.iter_batches(columns=["text"])) < 2 << 20
    assert guarded.read_row_group(0, columns=["n"]).num_rows == 30_000
    for read in (guarded.read, lambda: guarded.read_row_group(0), lambda: guarded.read_row_groups([0])):
        with pytest.raises(FormatError, match=r"a/b\.parquet: its rows take more than [\d,]+ bytes of memory"):
            read()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: b"", "no footer of Parquet"),
        (lambda data: data[:-8] + b"\xff\xff\xff\x7fPAR1", "no footer of Parquet"),
        (lambda data: data[:40] + bytes(len(data) - 540) + data[-500:], "x: "),
        (lambda data: bytes(len(data) - 500) + data[-500:], "x: "),
    ],
)
def test_damage(damage: Any, message: str) -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({"text": [f"text of number {n}" for n in range(500)]}), file, write_page_checksum=True)
    with pytest.raises(FormatError, match=message):
        GuardedFile(io.BytesIO(damage(file.getvalue())), "x").read()


def test_columns_that_are_not_there(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["a"]}), path)
    with guarded_parquet(path.open("rb"), "x") as file:
        for read in (
            file.read,
            lambda columns: file.read_row_group(0, columns),
            lambda c: next(file.iter_batches(9, [0], c)),
        ):
            with pytest.raises(FormatError, match=r"x: no column 'id', \['text'\] found"):
                read(["id"])


def test_a_footer_whose_lists_would_take_far_more_than_it(tmp_path: Path) -> None:
    """Its size says nothing: a name in the path of a column is a byte in the file, and 32 in memory."""
    names = MAX_ITEMS // 2
    path = b"\x39\xf8" + bytes([names & 127 | 128, names >> 7 & 127 | 128, names >> 14]) + bytes(names)
    column = b"\x3c" + path + b"\x46\x02\x26\x08\0\0"
    for columns, said in ((1, "x: "), (3, "x: not a readable Parquet file: a damaged footer")):
        footer = b"\x49\x1c\x19" + bytes([columns << 4 | 12]) + column * columns + b"\0\0"
        with pytest.raises(FormatError, match=said) as caught:
            GuardedFile(io.BytesIO(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"), "x")
        assert ("a damaged footer" in str(caught.value)) == (columns == 3)


def test_other_columns_than_expected() -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({"id": [1], "text": ["a"]}), file)
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("text", pa.string())])
    said = r"x: its columns are not those of the format: \['id: int64'\] found, \['id: int64, no null'\] expected"
    with pytest.raises(FormatError, match=said):
        GuardedFile(file, "x", schema)
    with pytest.raises(FormatError, match=said):
        batches.bounded_table(file, "x", exactly=schema)
    assert GuardedFile(file, "x", pq.read_schema(file)).read().num_rows == 1
    with pytest.raises(FormatError, match=r"\['id', 'text'\] found, \['text', 'id'\] expected"):
        GuardedFile(file, "x", pa.schema(list(pq.read_schema(file))[::-1]))
