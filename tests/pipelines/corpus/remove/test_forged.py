"""Files of a corpus, and of its work location, that somebody forged: a clear error, before they fill memory."""

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refinery.loader.errors import FormatError
from refinery.loader.format.parquet import batches as parquet_batches
from refinery.loader.format.parquet.batches import bounded_table, stored_batches, stored_table
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.corpus.remove import find
from refinery.pipelines.corpus.remove.find import FOUND_SCHEMA, read_found
from tests.pipelines.corpus.remove.conftest import Place
from tests.pipelines.corpus.remove.corpora import write_list
from tests.pipelines.inputs import run

PACKAGE = Path(find.__file__).parent
LARGE = "large"  # stands for a text of more bytes than a page may have


def forge(path: Path, column: str, value: Any) -> None:
    """The file's rows, the first with another text in a column, or all with a number, which the column is then of."""
    table = pq.read_table(path)
    place = table.column_names.index(column)
    values = [value, *table[column].to_pylist()[1:]] if isinstance(value, str) else [value] * len(table)
    path.unlink()
    field = table.schema.field(place) if isinstance(value, str) else column
    forged = table.set_column(place, field, pa.array(values))  # a large text is not copied more often than needed
    pq.write_table(forged, path, compression="zstd", use_dictionary=False, write_statistics=False)


@pytest.mark.parametrize(
    ("pattern", "column", "value", "said"),
    [
        ("train/*/*.provenance.parquet", "url", LARGE, "has a page of"),
        ("removals/*", "url", LARGE, "has a page of"),
        ("work/documents/*", "text", LARGE, "has a page of"),
        ("work/signatures/*", "id", 7, "column 'id' of type int64 found, fixed_size_binary"),
    ],
)
def test_a_takedown_refuses_them(
    pattern: str, column: str, value: Any, said: str, taken: Place, tmp_path: Path
) -> None:
    prefix = shutil.copytree(taken.prefix, tmp_path / "forged")
    files = sorted(prefix.glob(pattern))
    files = [path for path in files if pq.read_metadata(path).num_rows][:1]
    forge(files[0], column, "u" * (65 << 20) if value == LARGE else value)
    asked = write_list(tmp_path / "urls", ["https://a.example/1", "https://site25.example/25"])
    done = run("remove", prefix, "--urls", asked, "--output", tmp_path / "new", "--workers", 0, check=False)
    assert done.returncode in (1, 2) and said in done.stderr, (done.returncode, done.stderr[-2000:])
    assert files[0].name in done.stderr and not (tmp_path / "new" / "manifest.json").exists()
    assert ("--no-reinstate" in done.stderr) == pattern.startswith("work/")


def test_what_the_job_found_is_read_within_bounds(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    report = {"parts": {"found": [{"path": "found/part-1.parquet"}]}}
    (tmp_path / "found").mkdir()
    row = dict.fromkeys(FOUND_SCHEMA.names, "") | {"id": b"i" * 16, "kept_id": b"k" * 16}
    row |= {field.name: 1 for field in FOUND_SCHEMA if pa.types.is_integer(field.type)}
    table = pa.Table.from_pylist([row], schema=FOUND_SCHEMA)
    pq.write_table(table, tmp_path / "found" / "part-1.parquet")
    assert read_found(store, report).equals(table)
    pq.write_table(table.drop_columns(["kept_id"]), tmp_path / "found" / "part-1.parquet")
    with pytest.raises(FormatError, match="no column 'kept_id'"):
        read_found(store, report)
    (tmp_path / "found" / "part-1.parquet").write_bytes(b"PAR1 no Parquet at all PAR1")
    with pytest.raises(FormatError, match="no footer of Parquet"):
        read_found(store, report)


def test_a_table_takes_no_more_than_its_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that every row repeats: pages are small, the table is not."""
    monkeypatch.setattr(parquet_batches, "MAX_BATCH", 1 << 20)
    values = pa.DictionaryArray.from_arrays(pa.array(np.zeros(5000, np.int32)), pa.array(["u" * 100_000]))
    path = tmp_path / "it.parquet"
    pq.write_table(pa.table({"url": values}), path, compression="zstd", store_schema=False)
    with path.open("rb") as stream, pytest.raises(FormatError, match=r"bytes of memory, far beyond its size"):
        bounded_table(stream, "it")
    store = open_store(str(tmp_path))
    assert max(batch.nbytes for batch in stored_batches(store, "it.parquet")) < 2 << 20


@pytest.mark.parametrize("wanted", [[], [0], [9], [3, 4, 5], [0, 2, 9], list(range(10))])
def test_chosen_rows(wanted: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_batches, "BATCH_ROWS", 2)
    pq.write_table(pa.table({"a": range(10), "b": list("abcdefghij")}), tmp_path / "it", row_group_size=3)
    store, rows = open_store(str(tmp_path)), np.array(wanted, np.int64)
    found = stored_table(store, "it", ["b", "a"], rows=rows)
    assert found.to_pydict() == {"b": [*("abcdefghij"[row] for row in wanted)], "a": wanted}
    assert stored_table(store, "it").num_rows == 10


def test_there_is_one_reader() -> None:
    """Takedowns read Parquet by nothing but loader/format/parquet/batches.py."""
    other = re.compile(r"\b(read_table|ParquetFile|read_row_group|iter_batches|ParquetDataset|read_pandas)\b")
    assert [path.name for path in PACKAGE.glob("*.py") if other.search(path.read_text())] == []
