"""The contract of packed rows: what is written is read again, and everything else is refused with its row and why."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.loader.errors import FormatError
from refinery.loader.format.packed import (
    COUNTS,
    PLACES,
    REQUIRED,
    STRUCTURE,
    PackedFormat,
    PackedRows,
    PackedWriter,
    check_rows,
    packed_schema,
    padding_id,
    parse_rows,
    read_packed,
)

LAYOUT = PackedFormat(length=6, vocab_size=100, bos_id=1, pad_id=2)


def rows() -> PackedRows:
    """[BOS 7 2 BOS 8 pad], [BOS 9 10 11 12 2]."""
    return PackedRows(
        input_ids=np.array([[1, 7, 2, 1, 8, 2], [1, 9, 10, 11, 12, 2]], np.int32),
        target_ids=np.array([[7, 2, 2, 8, 2, 2], [9, 10, 11, 12, 2, 2]], np.int32),
        loss_mask=np.array([[1, 1, 0, 1, 0, 0], [1, 1, 1, 1, 1, 0]], bool),
        doc_ids=np.array([[0, 0, 0, 1, 1, -1], [0, 0, 0, 0, 0, 0]], np.int32),
        valid_token_count=np.array([5, 6], np.int32),
        num_docs=np.array([2, 1], np.int32),
        slack_tokens=np.array([1, 0], np.int32),
    )


def provenance() -> dict[str, pa.Array]:
    return {
        "document_ids": pa.array([[b"a" * 16, b"b" * 16], [b"c" * 16]], pa.list_(pa.binary(16))),
        "document_sources": pa.array([["web", "web"], ["books"]]),
        "document_starts": pa.array([[0, 0], [6]], pa.list_(pa.int64())),
    }


def write(path: Path, made: PackedRows, layout: PackedFormat = LAYOUT) -> Path:
    writer = PackedWriter(path, layout)
    writer.write(made, [b"0" * 16, b"1" * 16], provenance())
    writer.close()
    return path


def table(made: PackedRows | None = None) -> pa.Table:
    """The required columns as any other program writes them: plain lists of 64-bit integers."""
    made = made or rows()
    lists = {name: pa.array(getattr(made, name).astype(np.int64).tolist()) for name in PLACES}
    return pa.table(lists | {name: pa.array(getattr(made, name).astype(np.int64)) for name in COUNTS})


def same(found: PackedRows, made: PackedRows) -> bool:
    return all(
        np.array_equal(getattr(found, n), getattr(made, n)) and getattr(found, n).dtype == getattr(made, n).dtype
        for n in REQUIRED
    )


def test_round_trip(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.parquet", rows())
    (found,) = read_packed(path, LAYOUT, "rows.parquet")
    assert same(found, rows())
    assert pq.read_schema(path).equals(packed_schema(LAYOUT))
    assert pq.read_table(path).to_pylist()[1]["document_sources"] == ["books"]
    assert path.read_bytes() == write(tmp_path / "again.parquet", rows()).read_bytes()


def test_other_widths() -> None:
    """What other programs write is read into the contract's types."""
    assert same(parse_rows(table(), LAYOUT, "x"), rows())


def test_structure(tmp_path: Path) -> None:
    """Columns that a lane knows travel with the rows; those it does not know are -1 everywhere."""
    kinds = np.array([[-1, 3, -1, -1, 8, -1], [-1, 0, 0, 1, 2, -1]], np.int8)
    layout = replace(LAYOUT, structure=("chunk_kind",))
    path = write(tmp_path / "rows.parquet", replace(rows(), structure={"chunk_kind": kinds}), layout)
    (found,) = read_packed(path, layout, "x")
    assert found.column("chunk_kind").tolist() == kinds.tolist()
    for name in set(STRUCTURE) - {"chunk_kind"}:
        assert (found.column(name) == -1).all() and found.column(name).shape == (2, 6)
    with pytest.raises(FormatError, match="column chunk_id: 0 found, one expected"):
        list(read_packed(path, replace(LAYOUT, structure=("chunk_id",)), "x"))


def structured(**columns: list[list[int]]) -> PackedRows:
    """Rows with all structure columns; of the second document nothing is known."""
    known = {
        "chunk_kind": [[-1, 3, -1, -1, -1, -1], [-1, 0, 0, 8, 8, -1]],
        "nesting_depth": [[-1, 0, -1, -1, -1, -1], [-1, 2, 2, 0, 0, -1]],
        "chunk_id": [[-1, 0, -1, -1, -1, -1], [-1, 4, 4, 6, 6, -1]],
        "char_start": [[-1, 0, -1, -1, -1, -1], [-1, 7, 9, 9, 10, -1]],
        "char_end": [[-1, 2, -1, -1, -1, -1], [-1, 9, 10, 10, 12, -1]],
    }
    return replace(rows(), structure={n: np.array(v, STRUCTURE[n]) for n, v in {**known, **columns}.items()})


def test_all_structure_columns(tmp_path: Path) -> None:
    layout = replace(LAYOUT, structure=tuple(STRUCTURE))
    (found,) = read_packed(write(tmp_path / "rows.parquet", structured(), layout), layout, "x")
    assert all(found.column(name).tolist() == structured().structure[name].tolist() for name in STRUCTURE)
    assert all(found.column(name).dtype == STRUCTURE[name] for name in STRUCTURE)


@pytest.mark.parametrize(
    ("name", "row", "place", "value", "message"),
    [
        ("chunk_kind", 1, 1, 9, "row 1, place 1: 9 found, chunk_kind: -1 to 8 expected"),
        ("char_start", 1, 1, -2, "row 1, place 1: -2 found, char_start: -1 to 2147483647 expected"),
        ("chunk_id", 1, 2, -1, "row 1, place 2: -1 found, chunk_id: known where chunk_kind is, and nowhere else"),
        ("char_end", 0, 5, 3, "row 0, place 5: 3 found, char_end: known where chunk_kind is, and nowhere else"),
        ("*", 0, 5, 3, "row 0, place 5: chunk_kind: -1 expected in BOS and in padding"),
        ("*", 0, 3, 3, "row 0, place 3: chunk_kind: -1 expected in BOS and in padding"),
        ("*", 1, 1, -1, "row 1, place 1: chunk_kind: known in all of a document or nowhere expected"),
        ("*", 1, 3, -1, "row 1, place 2: chunk_kind: known in all of a document or nowhere expected"),
        ("chunk_id", 1, 2, 5, ""),
        ("chunk_id", 1, 3, 3, "chunk_id: it goes back, the same or more expected"),
        ("char_start", 1, 2, 6, "char_start: it goes back, the same or more expected"),
        ("char_end", 1, 4, 9, "char_end: it goes back, the same or more expected"),
        ("chunk_kind", 1, 2, 1, "chunk_kind: it changes inside a chunk"),
        ("nesting_depth", 1, 4, 1, "nesting_depth: it changes inside a chunk"),
        ("char_start", 1, 4, 13, "row 1, place 4: 12 found, char_end: char_start or more expected"),
    ],
)
def test_wrong_structure(name: str, row: int, place: int, value: int, message: str) -> None:
    made = structured()
    for column in STRUCTURE if name == "*" else (name,):
        made.structure[column][row, place] = value
    if not message:
        check_rows(made, LAYOUT, "x")
        return
    with pytest.raises(FormatError) as error:
        check_rows(made, LAYOUT, "x")
    assert message in str(error.value)


def change(name: str, place: Any, value: Any) -> PackedRows:
    made = rows()
    array = getattr(made, name).copy()
    array[place] = value
    return replace(made, **{name: array})


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (change("valid_token_count", 1, 7), "row 11: 7 found, valid_token_count from 1 to 6"),
        (change("valid_token_count", 0, 0), "row 10: 0 found, valid_token_count"),
        (change("valid_token_count", 0, 4), "row 10: 1 found, slack_tokens"),
        (change("slack_tokens", 0, 0), "row 10: 0 found, slack_tokens"),
        (change("input_ids", (0, 1), 100), "row 10, place 1: 100 found, input_ids: 0 to 99"),
        (change("input_ids", (0, 1), -1), "row 10, place 1: -1 found, input_ids"),
        (change("target_ids", (1, 1), 100), "row 11, place 1: 100 found, target_ids"),
        (change("doc_ids", (1, 3), 1), "row 11, place 3: doc_ids: they go back"),
        (change("doc_ids", (0, 4), 0), "row 10, place 3: doc_ids: they go back"),
        (change("doc_ids", (0, 4), 3), "row 10, place 3: doc_ids: they leave one out"),
        (change("doc_ids", (0, 0), 1), "row 10: 1 found, doc_ids: 0 expected at a row's start"),
        (change("doc_ids", (0, 5), 1), "row 10, place 5: 1 found, doc_ids: -1 expected in padding"),
        (change("num_docs", 1, 2), "row 11: 2 found, num_docs: the last of doc_ids"),
        (change("input_ids", (0, 1), 1), "row 10: 2 found, num_docs: the number of BOS"),
        (change("input_ids", (0, slice(2, 4)), [1, 7]), "row 10, place 1: BOS expected where a document begins"),
        (change("input_ids", (0, 5), 1), "row 10, place 5: 1 found, input_ids: 2 expected in padding"),
        (change("loss_mask", (0, 2), True), "row 10, place 2: loss_mask: false expected at a document's end"),
        (change("loss_mask", (0, 4), True), "row 10, place 4: loss_mask: false expected at a document's end"),
        (change("loss_mask", (1, 5), True), "row 11: loss_mask: false expected at a row's end"),
        (change("target_ids", (0, 0), 8), "row 10, place 0: target_ids: the next of input_ids"),
    ],
)
def test_wrong_rows(made: PackedRows, message: str) -> None:
    with pytest.raises(FormatError, match="^rows: " + message):
        check_rows(made, LAYOUT, "rows", first=10)
    with pytest.raises(FormatError):
        parse_rows(table(made), LAYOUT, "rows")


def test_loss_may_be_left_out() -> None:
    """Fewer places with loss are a choice, and their targets are free."""
    check_rows(change("loss_mask", slice(None), False), LAYOUT, "rows")
    check_rows(change("target_ids", (0, 2), 55), LAYOUT, "rows")


@pytest.mark.parametrize("name", REQUIRED)
def test_missing(name: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(table().drop_columns([name]), path)
    with pytest.raises(FormatError, match=f"^it: column {name}: 0 found, one expected"):
        next(read_packed(path, LAYOUT, "it"))


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("input_ids", pa.array([[1, 7, 2], [1] * 6]), "row 0 has 3 values, 6 expected"),
        ("input_ids", pa.array([[1] * 6, [1] * 7]), "row 1 has 7 values, 6 expected"),
        ("input_ids", pa.array([[1] * 6, None]), "1 nulls"),
        ("input_ids", pa.array([[1] * 6, [1, 2, None, 3, 4, 5]]), "1 nulls"),
        ("input_ids", pa.array([[1.0] * 6] * 2), "double found, integers expected"),
        ("input_ids", pa.array([1, 2]), "int64 found, a list expected"),
        ("input_ids", pa.array([[2**40] * 6] * 2), "-2147483648 to 2147483647 expected"),
        ("doc_ids", pa.array([["a"] * 6] * 2), "string found, integers expected"),
        ("loss_mask", pa.array([[2] * 6] * 2), "2 to 2 found, 0 to 1 expected"),
        ("num_docs", pa.array([2, None]), "1 nulls"),
        ("num_docs", pa.array([[2], [1]]), "integers expected"),
        ("valid_token_count", pa.array([2**33, 5]), "2147483647 expected"),
    ],
)
def test_wrong_columns(name: str, values: pa.Array, message: str) -> None:
    wrong = table().set_column(table().schema.get_field_index(name), name, values)
    with pytest.raises(FormatError, match=f"^it: column {name}: .*{message}"):
        parse_rows(wrong, LAYOUT, "it")


def test_column_twice() -> None:
    twice = table().append_column("doc_ids", table()["doc_ids"])
    with pytest.raises(FormatError, match="column doc_ids: 2 found, one expected"):
        parse_rows(twice, LAYOUT, "it")


def test_producer_refuses(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="packed rows to be written: row 1: 2 found, num_docs"):
        write(tmp_path / "rows.parquet", change("num_docs", 1, 2))


@given(st.data())
def test_any_change_is_seen(data: st.DataObject) -> None:
    """A changed number in doc_ids, num_docs or the other counts never passes."""
    name = data.draw(st.sampled_from(["doc_ids", *COUNTS]))
    made = rows()
    array = getattr(made, name)
    place = tuple(data.draw(st.integers(0, size - 1)) for size in array.shape)
    value = data.draw(st.integers(-(2**31), 2**31 - 1).filter(lambda number: number != array[place]))
    with pytest.raises(FormatError):
        check_rows(change(name, place, value), LAYOUT, "rows")


def test_padding() -> None:
    """EOS pads; else an id that is not BOS."""
    assert [padding_id(1, 2), padding_id(0, 2), padding_id(0, None), padding_id(1, None), padding_id(3, 3)] == [
        2, 2, 1, 0, 0,
    ]  # fmt: skip


def test_rows_of_a_group() -> None:
    """1,024 rows, but never more than 4 Mi places."""
    lengths = (512, 4096, 8192, 65_536, 1 << 20)
    assert [PackedFormat(length, 100, 1, 2).group_rows for length in lengths] == [1024, 1024, 512, 64, 4]
