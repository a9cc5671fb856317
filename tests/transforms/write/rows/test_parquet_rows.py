"""Rows of Parquet that stay: schema, types, metadata and row groups are the input's."""

import datetime
import decimal
import io
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.transforms.read.sources import LimitParams
from refinery.transforms.write.rows import parquet_rows
from refinery.transforms.write.rows.arrow_texts import take_rows, with_texts
from refinery.transforms.write.rows.copy_rows import check_labels, copy_rows
from refinery.transforms.write.rows.rows import RowError, Rows
from tests.transforms.read_fixtures import task_for
from tests.transforms.write.rows.copies import GIVEN, LABELS, copied, rows_in, stored, texts_in, written

COLUMNS: dict[str, pa.Array] = {
    "i8": pa.array([1, None, -3, 4], pa.int8()),
    "u64": pa.array([2**64 - 1, 0, None, 1], pa.uint64()),
    "f32": pa.array([float("nan"), -0.0, 1.5, None], pa.float32()),
    "f16": pa.array([1.0, None, 2.0, 3.0], pa.float16()),
    "dec": pa.array([decimal.Decimal("1.10"), None, None, decimal.Decimal("-2.00")], pa.decimal128(10, 2)),
    "text": pa.array(["one", None, "", "é\u2028"], pa.large_string()),
    "day": pa.array([datetime.date(2026, 1, 1), None, None, None], pa.date32()),
    "at": pa.array([1000, None, 3000, 4000], pa.timestamp("ns", "Europe/Berlin")),
    "span": pa.array([1, None, 3, 4], pa.duration("us")),
    "view": pa.array(["a", None, "b" * 50, ""], pa.string_view()),
    "views": pa.array([["a"], None, [], ["b", None]], pa.list_(pa.string_view())),
    "kind": pa.array(["a", "b", None, "a"]).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string())),
    "list": pa.array([[{"a": 1}], [], None, [None]], pa.list_(pa.struct([("a", pa.int32())]))),
    "pair": pa.array([[1, 2], [3, 4], [5, 6], [7, 8]], pa.list_(pa.int16(), 2)),
    "map": pa.array([[("a", 1)], None, [], []], pa.map_(pa.string(), pa.int64())),
    "meta": pa.array([{"text": "x", "n": 1}, None, {"text": None, "n": 2}, {"text": "y", "n": None}]),
    "json": pa.array(['{"a": 1e3}', None, "1", "2"], pa.json_()),
    "uuid": pa.array([uuid.UUID(int=7).bytes, None, None, None], pa.uuid()),
    "none": pa.nulls(4),
}
SCHEMA = pa.schema(
    [pa.field(name, column.type, metadata={"unit": name}) for name, column in COLUMNS.items()]
    + [pa.field("id", pa.int64(), nullable=False)],
    metadata={"huggingface": '{"info": {}}', "mine": "kept"},
)
TABLE = pa.Table.from_arrays([*COLUMNS.values(), pa.array([0, 1, 2, 3])], schema=SCHEMA)


def packed(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def opened(data: bytes) -> pq.ParquetFile:
    return pq.ParquetFile(io.BytesIO(data), arrow_extensions_enabled=True)


def rows_of(table: pa.Table) -> list[str]:
    """The rows as text: NaN is equal to itself, -0.0 is not 0.0."""
    return [repr(tuple(column[row] for column in table.columns)) for row in range(len(table))]


def same_form(a: pq.ParquetFile, b: pq.ParquetFile) -> bool:
    return bool(
        a.schema.equals(b.schema)
        and a.schema_arrow.equals(b.schema_arrow, check_metadata=True)
        and a.metadata.metadata == b.metadata.metadata
        and a.metadata.format_version == b.metadata.format_version
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"row_group_size": 2, "compression": {"i8": "ZSTD", "text": "GZIP"}, "use_dictionary": ["text"]},
        {"store_schema": False, "version": "1.0", "compression": "NONE"},
        {"use_deprecated_int96_timestamps": True, "store_decimal_as_integer": True, "write_page_index": True},
        {"use_compliant_nested_type": False, "sorting_columns": [pq.SortingColumn(19)]},
    ],
)
def test_the_form_of_the_file_stays(options: dict[str, Any], tmp_path: Path) -> None:
    task = written(tmp_path, "a.parquet", packed(TABLE, **options))
    source = opened(stored(task))
    for kept in ([0, 1, 2, 3], [1, 3], [2], []):
        data = stored(copied(task, Rows(kept)))
        copy = opened(data)
        assert same_form(copy, source)
        assert rows_of(copy.read()) == [rows_of(source.read())[at] for at in kept]
        assert copy.metadata.num_row_groups == len({at // options.get("row_group_size", 4) for at in kept})
        for group in range(copy.metadata.num_row_groups):
            for number in range(len(copy.schema)):
                new, old = copy.metadata.row_group(group).column(number), source.metadata.row_group(0).column(number)
                assert (new.compression, new.path_in_schema) == (old.compression, old.path_in_schema)
                assert new.has_column_index == old.has_column_index
            assert copy.metadata.row_group(group).sorting_columns == source.metadata.row_group(0).sorting_columns
        assert data == stored(copied(task, Rows(kept)))


def test_labels_are_typed_columns_behind(tmp_path: Path) -> None:
    for name, table in (("a.parquet", TABLE), ("b.parquet", TABLE.slice(0, 0)), ("c.parquet", TABLE)):
        task = written(tmp_path, name, packed(table, store_schema=name != "c.parquet"))
        check_labels(task, LABELS)
        rows = range(len(table))
        copy = opened(stored(copied(task, Rows(rows, columns=LABELS, labels=[(2, GIVEN)] if rows else ()))))
        added = [pa.bool_(), pa.string(), pa.int64(), pa.float64()]
        source = opened(stored(task))
        assert copy.schema_arrow.types == source.schema_arrow.types + added
        assert copy.schema_arrow.names == [*source.schema_arrow.names, *(label.name for label in LABELS)]
        assert copy.schema_arrow.metadata == source.schema_arrow.metadata
        assert (copy.metadata.metadata or {}).keys() == (source.metadata.metadata or {}).keys()
        found = copy.read().select([label.name for label in LABELS]).to_pylist()
        assert [tuple(row.values()) for row in found[1:3]] == ([(False, "", 1, 0.0), GIVEN] if rows else [])
    kept = Rows([0], columns=LABELS[:1], labels=[(0, (True,))], handed_on=[1])
    assert opened(stored(copied(task, kept))).read()["is_copy"].to_pylist() == [True, False]


def test_a_label_that_is_a_column_already_is_named(tmp_path: Path) -> None:
    task = written(tmp_path, "a.parquet", packed(TABLE.rename_columns([*TABLE.column_names[:-1], "copy_of"])))
    for refused in (lambda: check_labels(task, LABELS), lambda: copied(task, Rows([0], columns=LABELS))):
        with pytest.raises(RowError, match="the field 'copy_of' is there already"):
            refused()


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view(),
        pa.dictionary(pa.int32(), pa.string()), pa.json_(),
    ],
)  # fmt: skip
def test_a_new_text_has_the_columns_type(kind: pa.DataType, tmp_path: Path) -> None:
    old = pa.array(["1", None, "2", "3"])
    column = old.dictionary_encode() if pa.types.is_dictionary(kind) else old
    column = pa.ExtensionArray.from_storage(kind, old) if isinstance(kind, pa.BaseExtensionType) else column.cast(kind)
    table = pa.table({"a": [1, 2, 3, 4], "text": column})
    task = written(tmp_path, "a.parquet", packed(table, row_group_size=3))
    copy = copied(task, Rows([0, 1, 3], texts=[(1, "[1]"), (3, '"é"')]))
    assert opened(stored(copy)).schema_arrow.equals(opened(stored(task)).schema_arrow, check_metadata=True)
    found = opened(stored(copy)).read()["text"].to_pylist()
    assert [each.decode() if isinstance(each, bytes) else each for each in found] == ["1", "[1]", '"é"']


def test_a_text_may_be_a_field_of_a_struct(tmp_path: Path) -> None:
    task = written(tmp_path, "a.parquet", packed(TABLE), text_field="meta.text")
    copy = opened(stored(copied(task, Rows([0, 1, 2], texts=[(0, "new"), (2, "é")]))))
    assert copy.read()["meta"].to_pylist() == [{"text": "new", "n": 1}, None, {"text": "é", "n": 2}]
    with pytest.raises(RowError, match=r"a\.parquet@1: .*no field 'text' for a new text"):
        copied(task, Rows([1], texts=[(1, "x")]))
    both = pa.table({"meta": [{"text": "a"}], "meta.text": ["b"]})
    task = written(tmp_path, "b.parquet", packed(both), text_field="meta.text")
    assert opened(stored(copied(task, Rows([0], texts=[(0, "c")])))).read().to_pylist() == [
        {"meta": {"text": "a"}, "meta.text": "c"}
    ]


@pytest.mark.parametrize(
    ("field", "text", "problem"),
    [
        ("i8", "x", "type int8 holds no text"),
        ("none", "x", "type null holds no text"),
        ("text", "\ud800", "surrogates"),
        ("list.a", "x", "no field 'a'"),
        ("gone", "x", "no column holds"),
    ],
)
def test_a_text_that_a_column_cannot_have_is_an_error(field: str, text: str, problem: str, tmp_path: Path) -> None:
    task = written(tmp_path, "a.parquet", packed(TABLE), text_field=field)
    with pytest.raises(RowError, match=rf"a\.parquet@3: .*{problem}"):
        copied(task, Rows([0, 3], texts=[(3, text)]))
    assert not list((tmp_path / "out").iterdir())


def test_rows_that_are_not_there_are_an_error(tmp_path: Path) -> None:
    task = written(tmp_path, "a.parquet", packed(TABLE))
    with pytest.raises(RowError, match=r"a\.parquet@4: the file has no such row"):
        copied(task, Rows([0, 4]))
    for data in (b"", b"PAR1 nothing", stored(task)[:-20], stored(task)[:200] + stored(task)[-200:]):
        with pytest.raises(RowError, match=r"not a readable Parquet file|cannot be copied"):
            copied(written(tmp_path, "b.parquet", data), Rows([0]))


def test_a_column_that_cannot_be_read_is_named_if_rows_of_its_group_stay(tmp_path: Path) -> None:
    table = pa.table({"text": ["a", "b", "c", "d"], "pad": ["w" * 99, "x", "y", "z"]})
    whole = packed(table, row_group_size=2, compression="NONE", write_page_checksum=True)
    task = written(tmp_path, "a.parquet", whole.replace(b"w" * 99, b"w" * 98 + b"v", 1))
    with pytest.raises(RowError, match=r"a\.parquet@0: its row group cannot be copied: column 'pad'"):
        copied(task, Rows([1, 2]))
    assert texts_in(copied(task, Rows([2, 3]))) == {0: "c", 1: "d"}


def test_lists_of_one_size_stay_with_nulls_among_them_which_pyarrow_cannot_read(tmp_path: Path) -> None:
    pairs = pa.array([None, [1, 2], [3, 4], [5, 6]], pa.list_(pa.int8(), 2))
    notes = {"why": "ARROW:schema"}
    inside = pa.array([{"p": None}] * 4, pa.struct([("p", pairs.type)]))
    table = pa.table({"text": ["a", "b", "c", "d"], "pair": pairs, "in": inside})
    task = written(tmp_path, "a.parquet", packed(table.replace_schema_metadata(notes), row_group_size=2))
    copy = opened(stored(copied(task, Rows([0, 1, 3], columns=LABELS[:1], texts=[(3, "new")]))))
    assert copy.schema_arrow.types == [pa.string(), pairs.type, inside.type, pa.bool_()]
    assert copy.schema_arrow.metadata == {b"why": b"ARROW:schema"}
    assert copy.read(["text"])["text"].to_pylist() == ["a", "b", "new"]
    assert copy.read_row_group(1, ["pair"]).to_pylist() == [{"pair": [5, 6]}]
    assert same_form(opened(stored(copied(task, Rows([2, 3])))), opened(stored(task)))


def test_a_type_that_arrow_does_not_have_is_reported(tmp_path: Path) -> None:
    plain = packed(pa.table({"text": ["a", "b"], "kind": ["x", "y"]}), store_schema=False)
    string, enum = b"kind\x25\x00\x4c\x1c\x00\x00", b"kind\x25\x08\x4c\x4c\x00\x00"  # annotations in a footer
    lines = ["kind byte_array enum, in the copy as kind byte_array none"]
    for data, expected in ((plain, []), (plain.replace(string, enum), lines)):
        task = written(tmp_path, "a.parquet", data)
        out = tmp_path / "b.parquet"
        out.unlink(missing_ok=True)
        found = copy_rows(task, out, Rows([1]))
        assert [line.partition("is stored as ")[2] for line in found] == expected
        assert texts_in(task_for(out, "parquet")) == {0: "b"}


def test_pages_are_bounded_as_the_reader_bounds_them(tmp_path: Path) -> None:
    task = written(tmp_path, "a.parquet", packed(pa.table({"text": ["a", "b"], "pad": ["x" * 50_000] * 2})))
    limits = LimitParams(max_record_bytes=10, max_decompressed_bytes=10_000)
    with pytest.raises(RowError, match=r"column 'pad': a page of .* 20,000 or less are allowed"):
        copied(task, Rows([0]), limits)
    assert rows_in(copied(task, Rows([1]))) == [0]


def test_large_row_groups_become_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_rows, "GROUP_BYTES", 1000)
    monkeypatch.setattr(parquet_rows, "BATCH_ROWS", 10)
    texts = [f"text {number}" for number in range(500)]
    table = pa.table({"text": texts, "kind": pa.array([f"{at % 7}" for at in range(500)]).dictionary_encode()})
    task = written(tmp_path, "a.parquet", packed(table))
    kept = [at for at in range(500) if at % 3]
    copy = opened(stored(copied(task, Rows(kept))))
    assert copy.metadata.num_row_groups > 3
    assert copy.read().to_pylist() == [table.to_pylist()[at] for at in kept]


def test_remote_files_are_read_in_ranges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = written(tmp_path, "a.parquet", packed(TABLE, row_group_size=1))
    here = stored(copied(task, Rows([1, 3], columns=LABELS)))
    monkeypatch.setattr(parquet_rows, "is_remote", lambda path: True)
    check_labels(task, LABELS)
    assert stored(copied(task, Rows([1, 3], columns=LABELS))) == here


def test_columns_of_one_name_stay_and_the_last_holds_the_text(tmp_path: Path) -> None:
    schema = pa.schema([("text", pa.string()), ("text", pa.string())])
    task = written(
        tmp_path, "a.parquet", packed(pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], schema=schema))
    )
    copy = opened(stored(copied(task, Rows([0], texts=[(0, "c")]))))
    assert [column.to_pylist() for column in copy.read().columns] == [["a"], ["c"]]


@settings(max_examples=30)
@given(st.lists(st.none() | st.text(st.characters(codec="utf-8"), max_size=4), max_size=8), st.data())
def test_arrays_of_every_kind_are_taken_and_changed(values: list[str | None], data: st.DataObject) -> None:
    rows = [at for at in range(len(values)) if data.draw(st.booleans())]
    texts = {at: data.draw(st.text(st.characters(codec="utf-8"), max_size=3)) for at in rows}
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        array = pa.array([None, *values], kind).slice(1)
        assert take_rows(array, rows).to_pylist() == [values[at] for at in rows]
        new = with_texts(array, [], texts) if texts else array
        assert new.type == kind and new.to_pylist() == [texts.get(at, value) for at, value in enumerate(values)]
        inside = pa.StructArray.from_arrays([array, array], ["a", "b"])
        changed = with_texts(inside, ["b"], texts) if texts else inside
        assert changed.type == inside.type
        assert [each["a"] for each in changed.to_pylist()] == values
        assert [each["b"] for each in changed.to_pylist()] == new.to_pylist()
