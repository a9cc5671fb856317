"""Small corpora of texts, one for each writer, and what a forger makes of their shards."""

import gzip
from collections.abc import Callable, Mapping
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from refinery.loader.format.manifest import read_manifest
from refinery.loader.format.provenance import PARQUET
from refinery.loader.storage.open_store import open_store
from tests.corpus_factory import edit_manifest
from tests.pipelines.inputs import run
from tests.pipelines.small_runs import make_small_inputs
from tests.shared import shared

BOMB = 80 << 20  # bytes that some kilobytes of a file stand for
OBJECTS = 20 << 20  # empty ones in a line, of three bytes each


def text_corpus(factory: pytest.TempPathFactory, writer: str) -> Path:
    """A corpus of two splits; its folder has `in`, with recipe.yaml, and `corpus`. writer: "" for one of tokens."""

    def fill(folder: Path) -> None:
        make_small_inputs(folder / "in")
        own = ["--set", f"writer={writer}", "--set", "tokenizer=null"] if writer else []
        command = ["refine", folder / "in" / "recipe.yaml", "--workers", 0, "--output", folder / "corpus", *own]
        run(*command, "--set", "shards.validation=0.3", "--set", "columns=[]")

    return shared(factory, f"texts-{writer}", fill) / "corpus"


def first_shard(root: Path) -> Path:
    """The file with the documents of the first shard, which has several."""
    shard = next(shard for shard in read_manifest(open_store(str(root))).shards if shard.documents > 2)
    return root / shard.content.path


def with_texts(root: Path, column: Callable[[pa.Table], pa.Table]) -> None:
    """Another table in place of the first shard's."""
    path = first_shard(root)
    changed = column(pq.read_table(path))
    pq.write_table(changed, path, **{**PARQUET, "data_page_size": 1 << 30}, use_dictionary=False)
    edit_manifest(root)


def inflated(table: pa.Table) -> pa.Table:
    texts = table["text"].to_pylist()
    made = pa.array([" " * BOMB, *texts[1:]], pa.string())
    return table.set_column(0, table.schema.field(0), made)


def with_lines(root: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    """Other lines in place of the first shard's."""
    path = first_shard(root)
    data = path.read_bytes()
    if path.suffix == ".gz":
        lines = gzip.decompress(data).splitlines(keepends=True)
        path.write_bytes(gzip.compress(b"".join(change(lines)), mtime=0))
    else:
        lines = zstandard.ZstdDecompressor().decompressobj().decompress(data).splitlines(keepends=True)
        path.write_bytes(zstandard.ZstdCompressor().compress(b"".join(change(lines))))
    edit_manifest(root)


def many_objects(line: bytes) -> bytes:
    """The line with a list that is 25 times as large in memory."""
    return b'{"text":' + orjson.dumps(orjson.loads(line)["text"]) + b',"meta":[' + b"{}," * OBJECTS + b"{}]}\n"


# Name -> the forgery of a shard of Parquet, or of JSON Lines.
PARQUET_FORGERIES: Mapping[str, Callable[[Path], None]] = {
    "page": lambda root: with_texts(root, inflated),
    "type": lambda root: with_texts(root, lambda table: table.set_column(0, "text", table["text"].cast(pa.binary()))),
    "row": lambda root: with_texts(root, lambda table: table.slice(1)),
    "column": lambda root: with_texts(root, lambda table: table.drop_columns(["text"])),
}
LINE_FORGERIES: Mapping[str, Callable[[Path], None]] = {
    "line": lambda root: with_lines(root, lambda lines: [b" " * BOMB + lines[0], *lines[1:]]),
    "objects": lambda root: with_lines(root, lambda lines: [many_objects(lines[0])[:-1] + b"x\n", *lines[1:]]),
    "row": lambda root: with_lines(root, lambda lines: lines[1:]),
    "key": lambda root: with_lines(root, lambda lines: [b'{"texts": ""}\n', *lines[1:]]),
    "type": lambda root: with_lines(root, lambda lines: [b'{"text": 5}\n', *lines[1:]]),
}
