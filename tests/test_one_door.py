"""A finished corpus has one door: nobody else parses its manifest or opens its files unguarded.

`refinery.loader.read.corpus.Corpus` is the door, `refinery.corpus.open` the same for views and exports. What they
open is bounded, and refused in one message wherever it is damaged.
"""

import ast
import functools
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.import_graph import PACKAGES, ROOT, module_name, source_files

MANIFESTS = {"load_manifest", "read_manifest", "parse_manifest"}
PARQUET = {"ParquetFile", "ParquetDataset", "read_table", "read_metadata", "read_schema", "read_pandas"}
INDEXES = {"read_index", "IndexedReader"}
FORMATS = ("refinery.loader.format.indexed", "refinery.loader.format.manifest")
NAMES = ("MANIFEST", "manifest.json", "manifest_name(store)")  # of the file

# Who may, and why: the format itself, the door, what is no finished corpus.
ROOMS = {
    "manifest": (
        "refinery.loader.format.",
        "refinery.loader.read.corpus",
    ),
    "manifest's bytes": (
        "refinery.loader.format.",
        "refinery.pipelines.corpus.checks.kinds",  # whose manifest it is
        "refinery.pipelines.corpus.export.export_manifest",  # of exports
        "refinery.pipelines.acquire.acquisition",  # of what was acquired
    ),
    "Parquet": (
        "refinery.loader.format.parquet.",  # the guards
        "refinery.loader.stream.packed.packed_source",  # checks pages itself, so that row groups are read by threads
        "refinery.transforms.read.",  # inputs
        "refinery.transforms.filter.benchmarks",  # inputs
        "refinery.transforms.dedup.signatures",  # parts of the run at work, as all below
        "refinery.transforms.core.job.report",
        "refinery.transforms.write.",
        "refinery.testing.writers",  # reads back what a writer of yours writes
    ),
    "index": (
        "refinery.loader.format.",
        "refinery.loader.read.corpus",
        "refinery.transforms.write.megatron",  # a writer reads back what it writes
        "refinery.pipelines.corpus.verify.shard",  # reads it to say all that is wrong with it
        "refinery.pipelines.corpus.adopt.megatron_index",  # files of other tools
    ),
}


def opened(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(what is opened, how) of a file's source."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = {alias.name for alias in node.names}
            yield from (("manifest", name) for name in names & MANIFESTS)
            yield from (("index", name) for name in names & INDEXES if node.module in FORMATS)
            if node.module == "pyarrow.parquet":
                yield from (("Parquet", name) for name in names & PARQUET)
            if node.module == "refinery.loader.format.parquet.parquet_file" and "parquet" in names:
                yield "Parquet", "parquet_file.parquet"
            if node.module == "pyarrow" and names & {"dataset", "feather"}:
                yield "Parquet", "pyarrow.dataset"
        elif isinstance(node, ast.Import):
            yield from (("Parquet", alias.name) for alias in node.names if alias.name == "pyarrow.dataset")
        elif isinstance(node, ast.Attribute):
            if node.attr in MANIFESTS:
                yield "manifest", node.attr
            if node.attr in PARQUET and ast.unparse(node.value) in ("pq", "pyarrow.parquet", "pa.parquet", "parquet"):
                yield "Parquet", node.attr
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            first = ast.unparse(node.args[0]).strip("'\"")
            if node.func.attr in ("read", "open") and first in NAMES:
                yield "manifest's bytes", f"{node.func.attr}({first})"


@functools.cache
def opened_by(path: Path) -> tuple[tuple[str, str], ...]:
    return tuple(opened(ast.parse(path.read_bytes())))


def modules() -> Sequence[tuple[str, Path]]:
    beside = [path for path in ROOT.rglob("*.py") if path.relative_to(ROOT).parts[0] not in PACKAGES]
    return [(module_name(path), path) for path in (*source_files(), *beside)]


def test_what_lies_beside_the_three_packages_is_looked_at() -> None:
    assert {"refinery.corpus", "refinery.testing.readers"} <= {name for name, _ in modules()}


def test_nobody_else_opens_the_files_of_a_finished_corpus() -> None:
    found = [
        f"{name} opens {what} by {how}: go through refinery.loader.read.corpus.Corpus"
        for name, path in modules()
        for what, how in opened_by(path)
        if not name.startswith(ROOMS[what])
    ]
    assert found == []


def test_every_room_of_the_list_is_needed() -> None:
    used = {
        (what, room)
        for name, path in modules()
        for what, _ in opened_by(path)
        for room in ROOMS[what]
        if name.startswith(room)
    }
    assert {(what, room) for what, rooms in ROOMS.items() for room in rooms} == used


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("from refinery.loader.format.manifest import read_manifest", "manifest"),
        ("manifest.load_manifest(store)", "manifest"),
        ("payload = unseal(store.read(MANIFEST), 'it')", "manifest's bytes"),
        ("data = store.read('manifest.json')", "manifest's bytes"),
        ("table = pq.read_table(path)", "Parquet"),
        ("class Mine(pyarrow.parquet.ParquetFile): ...", "Parquet"),
        ("from pyarrow.parquet import ParquetFile", "Parquet"),
        ("from refinery.loader.format.parquet.parquet_file import parquet", "Parquet"),
        ("import pyarrow.dataset", "Parquet"),
        ("from refinery.loader.format.indexed import IndexedReader", "index"),
    ],
)
def test_it_is_found(line: str, what: str) -> None:
    assert [found for found, _ in opened(ast.parse(line))] == [what]


@pytest.mark.parametrize("line", ["pq.write_table(table, path)", "corpus.manifest", "store.size(MANIFEST)"])
def test_what_opens_nothing(line: str) -> None:
    assert list(opened(ast.parse(line))) == []
