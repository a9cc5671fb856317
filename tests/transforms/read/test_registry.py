"""All formats from their declarations: names, endings, what is derived; no Beam in what a reader is made of."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from refinery.transforms.read import formats
from refinery.transforms.read.byte_source import MemberStream, open_source
from refinery.transforms.read.formats.jsonl import JSONL
from refinery.transforms.read.formats.parquet import DOCUMENTS, PARQUET
from refinery.transforms.read.lines import lines_of
from refinery.transforms.read.params import SourceParams
from refinery.transforms.read.reader import Reader
from refinery.transforms.read.registry import fielded_names, find_reader, format_of, named, readers, refuse
from refinery.transforms.read.sources import READ
from tests.import_graph import ROOT
from tests.sampling import one_commit_in_four
from tests.transforms.read_fixtures import COMPRESSORS

FOLDER = ROOT / "transforms" / "read"


def test_the_formats_that_there_are() -> None:
    assert sorted(readers()) == ["arc", "csv", "documents", "jsonl", "parquet", "text", "tsv", "warc", "wet"]
    assert sorted(fielded_names()) == ["csv", "documents", "jsonl", "parquet", "tsv"]
    assert {name for name, reader in readers().items() if reader.in_pieces} == {"parquet", "documents"}
    assert READ.libraries == ("brotli", "fastwarc", "isal", "orjson", "zstandard")  # part of every fingerprint
    assert all(reader.version == 1 for reader in readers().values())  # another one would be in fingerprints, too
    assert {path.stem for path in Path(formats.__file__).parent.glob("*.py")} - {"__init__"} == {
        reader.read.__module__.rpartition(".")[2] for reader in readers().values()
    }


def test_fields_that_readers_read_are_fields_of_sources() -> None:
    read = {name for reader in readers().values() for name in reader.fields}
    assert read <= set(SourceParams.model_fields)
    assert {"dialect", "unit", "keep_truncated", "text_field", "content"} <= read


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("a.jsonl", "jsonl"),
        ("a.JSON.GZ", "jsonl"),
        ("a.ndjson.zst", "jsonl"),
        ("a.warc.wet.gz", "wet"),
        ("a.parquet", "parquet"),
        ("a.tsv.lz4", "tsv"),
        ("a.htm", "text"),
    ],
)
def test_endings(path: str, form: str) -> None:
    assert format_of(path, "s") == form


@pytest.mark.parametrize("path", ["a.parquet.gz", "a.jsonl.bz2", "a", "jsonl", "a.warc.gz.x"])
def test_unknown_endings(path: str) -> None:
    with pytest.raises(
        ValueError, match=r"unknown ending, .*\.parquet.* \(all but \.parquet also with \.gz, \.zst, \.lz4"
    ):
        format_of(path, "s")


def test_files_that_are_taken_for_others_are_refused_whatever_the_format() -> None:
    with pytest.raises(ValueError, match=r"source s: a\.warc\.wat\.gz is WAT: it holds links"):
        refuse("a.warc.wat.gz", "s")
    refuse("my.water.log", "s")


def test_two_of_one_name_or_ending() -> None:
    with pytest.raises(ValueError, match="reader jsonl: declared twice"):
        named([JSONL, replace(JSONL, version=2)])
    with pytest.raises(ValueError, match=r"reader other: ending '\.json' given, which jsonl has"):
        named([JSONL, replace(JSONL, name="other")])
    assert list(named([JSONL, JSONL, PARQUET])) == ["jsonl", "parquet"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"name": "auto"}, "name 'auto' given"),
        ({"name": "a b"}, "name 'a b' given, lower-case letters"),
        ({"version": 0}, "version 0 given"),
        ({"endings": (".gz",)}, "ending '.gz' given, such as '.jsonl' is allowed"),
        ({"endings": ("jsonl",)}, "ending 'jsonl' given"),
        ({"endings": ".jsonl"}, "endings of type str given, a tuple is allowed"),
        ({"magic": ("WARC",)}, "bytes that are not empty are allowed"),
        ({"magic": (b"",)}, "bytes that are not empty are allowed"),
        ({"version": "1"}, "version '1' given"),
        ({"read": None}, "read None, split Split("),
        ({"split": "lines"}, "split 'lines' given, a function and a Split"),
        ({"reasons": ("empty",)}, "reasons ('empty',) given, a tuple of Reason is needed"),
        ({"options": dict}, "options <class 'dict'> given, a subclass of Params is needed"),
    ],
)
def test_impossible_declarations_are_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match="reader") as caught:
        replace(JSONL, **changes)
    assert problem in str(caught.value)


def test_a_reader_is_found_by_its_name_or_where_it_is() -> None:
    assert find_reader("documents") is DOCUMENTS
    found = find_reader(f"{JSONL.read.__module__}:JSONL")
    assert isinstance(found, Reader) and found == JSONL and found.module
    with pytest.raises(ValueError, match=r"format: 'odt' given, one of .* or module:NAME is allowed"):
        find_reader("odt")


def top_level(path: Path) -> Iterator[str]:
    """Modules that a file imports when it is imported."""
    for node in ast.parse(path.read_bytes()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)


def test_only_the_transform_that_reads_in_a_pipeline_imports_beam() -> None:
    beam = {
        path.name for path in FOLDER.rglob("*.py") if any(name.startswith("apache_beam") for name in top_level(path))
    }
    assert beam == {"read_sources.py"}
    users = [path.name for path in FOLDER.rglob("*.py") if "refinery.transforms.core.per_document" in top_level(path)]
    assert users == ["read_sources.py"]


@one_commit_in_four
def test_formats_may_be_imported_first() -> None:
    """Each in a new interpreter: there is no circle through the registry."""
    for name in ("formats.parquet", "explain", "registry", "params", "task"):
        script = f"import refinery.transforms.read.{name}"
        subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True)


@pytest.mark.parametrize("ending", COMPRESSORS)
@pytest.mark.parametrize("data", [b"", b"a", b"a\n", b"\n\na\r\n\nbc", b"x" * 200_000 + b"\n\ny" + b"z" * 70_000])
def test_lines_with_their_ends(tmp_path: Path, data: bytes, ending: str) -> None:
    path = tmp_path / f"a{ending}"
    path.write_bytes(COMPRESSORS[ending](data))
    for most in (1, 3, 1 << 20):
        with open_source(str(path)) as source:
            found = list(lines_of(MemberStream(source), most))
        assert b"".join(line for _, line in found) == data
        assert all(0 < len(line) <= most and data[at : at + len(line)] == line for at, line in found)
        if most > len(data):
            assert [line for _, line in found] == data.splitlines(keepends=True)
