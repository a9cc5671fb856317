"""What every format of exports promises, as tests that a format's author inherits."""

import math
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import orjson
import pyarrow as pa

from refinery.loader.format.provenance import Column
from refinery.pipelines.corpus.export.export_format import COMPRESSIONS, ExportFormat, FileOptions
from refinery.pipelines.corpus.export.options import all_fields
from refinery.pipelines.corpus.export.rows import row_schema
from refinery.testing.expect import expect

_COLUMNS = (Column("language", "string"), Column("quality", "float"))
SCHEMA = row_schema(_COLUMNS, all_fields(_COLUMNS), "uint16")
TEXTS = (
    "a",
    "two\nlines\r\n and\ttabs",
    "naïve 中文 😀 \u2028 \x7f",
    '"quotes", \\ and, commas',
    " spaces ",
    "x" * 70_000,
)
NUMBERS = (None, 0.0, 0.5, -1.25, 3.4e38, 1e-40)


class ExportTests:
    """Tests of one format. Give it `export`, the declaration.

    What they hold it to: rows of every type that an export has, with control characters, other scripts, nulls and long
    texts, are read back as they were written, in order, whatever the batches; the same rows give the same bytes; a file
    without rows can be written and read; a file that is cut off is an error, or rows that are missing, and never other
    rows.
    """

    export: ClassVar[ExportFormat]

    # --- what the tests are made of ---------------------------------------------------------------------------------

    def rows(self, count: int = 50, seed: int = 0) -> list[dict[str, Any]]:
        """Rows of SCHEMA as in an export: `meta` is the object."""
        some = random.Random(seed)  # noqa: S311 - nothing is secret
        found = []
        for number in range(count):
            text = TEXTS[number % len(TEXTS)] + str(number)
            ids = [some.randrange(65_500) for _ in range(1 + number % 7)]
            quality = NUMBERS[number % len(NUMBERS)]
            found.append(
                {
                    "id": some.randbytes(16).hex(),
                    "url": f"https://example.org/{number}" if number % 3 else "",
                    "source": f"source-{number % 2}",
                    "domain": "web",
                    "origin": f"crawl/a.warc.gz@{number}",
                    "language": ("en", "de", "")[number % 3],
                    "quality": None if quality is None else float(np.float32(quality)),
                    "copies": 1 + number,
                    "sources": ["source-0", "source-1"][: 1 + number % 2],
                    "text_bytes": len(text.encode()),
                    "token_count": len(ids),
                    "meta": {"date": "2024-05-01", "länge": number, "nested": [1, {"a": None}]},
                    "text": text,
                    "input_ids": ids,
                }
            )
        return found

    def batches(
        self, rows: Sequence[dict[str, Any]], size: int, fields: Sequence[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Rows in batches of so many, as `write` is given them."""
        schema = SCHEMA if not fields else pa.schema([SCHEMA.field(name) for name in fields])
        for first in range(0, len(rows), size):
            some = [{**row, "meta": orjson.dumps(row["meta"]).decode()} for row in rows[first : first + size]]
            yield pa.RecordBatch.from_pylist([{name: row[name] for name in schema.names} for row in some], schema)

    def written(
        self,
        folder: Path,
        rows: Sequence[dict[str, Any]],
        options: FileOptions = FileOptions(),  # noqa: B008 - frozen
        size: int = 16,
        fields: Sequence[str] = (),
    ) -> tuple[Path, list[dict[str, Any]]]:
        """A file of these rows, and what is read back of it."""
        path = folder / self.export.file_name("train", "web", "00000-of-00001", self.export.suffix(options))
        path.parent.mkdir(parents=True, exist_ok=True)
        schema = SCHEMA if not fields else pa.schema([SCHEMA.field(name) for name in fields])
        self.export.write(path, schema, self.batches(rows, size, fields), options)
        with path.open("rb") as stream:
            return path, [plain(row) for row in self.export.read(stream, path.name)]

    def choices(self) -> list[FileOptions]:
        """The compressions that the format may be asked for."""
        kinds = COMPRESSIONS if "compression" in self.export.flags else ("zstd",)
        return [FileOptions(compression=kind) for kind in kinds]

    # --- the tests --------------------------------------------------------------------------------------------------

    def test_rows_are_read_back_as_they_were_written(self, tmp_path: Path) -> None:
        rows = self.rows()
        for number, options in enumerate(self.choices()):
            _, found = self.written(tmp_path / str(number), rows, options)
            expect(len(found) == len(rows), f"{len(found)} rows read, {len(rows)} written")
            for place, (row, again) in enumerate(zip(rows, found, strict=True)):
                for name, value in row.items():
                    expect(name in again, f"row {place}: no {name}")
                    expect(
                        same(again[name], value), f"row {place}: {name} is {again[name]!r:.80}, {value!r:.80} written"
                    )

    def test_some_fields_alone(self, tmp_path: Path) -> None:
        rows = self.rows(5)
        for number, fields in enumerate([("text",), ("id", "input_ids"), ("url", "quality", "meta")]):
            _, found = self.written(tmp_path / str(number), rows, fields=fields)
            expect([sorted(row) for row in found] == [sorted(fields)] * 5, f"{fields}: other fields are read back")

    def test_the_same_rows_give_the_same_bytes(self, tmp_path: Path) -> None:
        rows = self.rows()
        first, _ = self.written(tmp_path / "first", rows)
        second, _ = self.written(tmp_path / "second", rows)
        expect(first.read_bytes() == second.read_bytes(), "two files of the same rows differ")

    def test_batches_decide_no_row(self, tmp_path: Path) -> None:
        rows = self.rows(33)
        found = [self.written(tmp_path / str(size), rows, size=size)[1] for size in (1, 7, 100)]
        expect(str(found[0]) == str(found[1]) == str(found[2]), "rows depend on the sizes of batches")

    def test_a_file_without_rows(self, tmp_path: Path) -> None:
        path, found = self.written(tmp_path, [])
        expect(path.exists() and found == [], "a file without rows is not read back as one")

    def test_a_file_that_is_cut_off(self, tmp_path: Path) -> None:
        rows = self.rows(20)
        path, whole = self.written(tmp_path, rows)
        data = path.read_bytes()
        for part in range(1, 12):
            path.write_bytes(data[: len(data) * part // 12])
            found = []
            try:
                with path.open("rb") as stream:
                    for row in self.export.read(stream, path.name):
                        if row.keys() != set(SCHEMA.names):  # which `refinery verify` calls a failure
                            break
                        found.append(plain(row))
            except Exception:  # noqa: BLE001, S112 - whatever the format's library raises
                continue
            expect(str(found) == str(whole[: len(found)]), f"cut at {part}/12: rows differ from those written")
            expect(len(found) < len(whole), f"cut at {part}/12: all rows are there")


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row that consists only of lists and objects."""
    found = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in row.items()}
    if isinstance(found.get("meta"), str):
        found["meta"] = orjson.loads(found["meta"])
    return found


def same(found: Any, want: Any) -> bool:
    """Whether a value is what was written. A missing number may be NaN, where a format has no null."""
    if want is None:
        return found is None or (isinstance(found, float) and math.isnan(found))
    if isinstance(want, float):
        return found is not None and bool(np.float32(found) == np.float32(want))
    return bool(found == want)
