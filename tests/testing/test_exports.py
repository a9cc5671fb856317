"""Every format of exports keeps what `refinery.testing.ExportTests` asks, and formats that do not are found."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pytest

from refinery.pipelines.corpus.export.export_format import ExportFormat, FileOptions
from refinery.pipelines.corpus.export.registry import export_formats
from refinery.testing import ExportTests
from refinery.testing.exports import SCHEMA


@pytest.fixture(params=list(export_formats()))
def _format(request: pytest.FixtureRequest) -> None:
    TestOurs.export = export_formats()[request.param]


@pytest.mark.usefixtures("_format")
class TestOurs(ExportTests):
    export = export_formats()["jsonl"]


JSONL = export_formats()["jsonl"]


def without_the_last(stream: BinaryIO, name: str) -> Iterator[dict[str, Any]]:
    yield from list(JSONL.read(stream, name))[:-1]


def dated(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch], options: FileOptions) -> None:
    JSONL.write(path, schema, batches, FileOptions("none"))
    with path.open("ab") as file:
        file.write(b"\n" * (1 + dated.calls))  # type: ignore[attr-defined]
    dated.calls += 1  # type: ignore[attr-defined]


dated.calls = 0  # type: ignore[attr-defined]


def lenient(stream: BinaryIO, name: str) -> Iterator[dict[str, Any]]:
    """Reads what is cut off as a row."""
    try:
        yield from JSONL.read(stream, name)
    except ValueError:
        yield dict.fromkeys(SCHEMA.names)


def lines(stream: BinaryIO, name: str) -> Iterator[dict[str, Any]]:
    yield from JSONL.read((line for line in stream if line.strip()), name)  # type: ignore[arg-type]


BROKEN: dict[str, tuple[ExportFormat, str, str]] = {
    "a row too few": (
        replace(JSONL, read=without_the_last),
        "test_rows_are_read_back_as_they_were_written",
        "49 rows read, 50 written",
    ),
    "other bytes": (
        replace(JSONL, write=dated, read=lines, flags=()),
        "test_the_same_rows_give_the_same_bytes",
        "two files of the same rows differ",
    ),
    "a row made of what is cut off": (
        replace(JSONL, read=lenient, flags=()),
        "test_a_file_that_is_cut_off",
        "cut at",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_formats_are_found(name: str, tmp_path: Path) -> None:
    export, test, message = BROKEN[name]
    broken = type("Broken", (ExportTests,), {"export": export})()
    with pytest.raises(AssertionError, match=message):
        getattr(broken, test)(tmp_path)
