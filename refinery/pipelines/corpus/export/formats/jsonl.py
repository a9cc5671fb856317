"""JSON lines: one object a document."""

import gzip
import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import orjson
import pyarrow as pa
import zstandard

from refinery.pipelines.corpus.export.export_format import FLAGS, ExportFormat, FileOptions
from refinery.pipelines.corpus.export.json_rows import json_rows

GZIP_LEVEL, ZSTD_LEVEL = 6, 3


@contextmanager
def compressed(path: Path, compression: str) -> Iterator[BinaryIO]:
    """A stream into a file. compression: "none", "gzip" or "zstd"; files of either may be concatenated."""
    with path.open("wb") as raw:
        if compression == "gzip":  # dated 1970, without the file's name
            with gzip.GzipFile("", "wb", GZIP_LEVEL, raw, mtime=0) as stream:
                yield stream  # type: ignore[misc]
        elif compression == "zstd":
            compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL, write_checksum=True)
            with compressor.stream_writer(raw, closefd=False) as stream:
                yield stream
        else:
            yield raw


def write_jsonl(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch], options: FileOptions) -> None:
    """One JSON object per line and document, keys in the order of the columns."""
    with compressed(path, options.compression) as stream:
        for batch in batches:
            stream.write(b"".join(orjson.dumps(row) + b"\n" for row in json_rows(batch)))


def read_jsonl(stream: BinaryIO, name: str) -> Iterator[dict[str, Any]]:
    """The rows of a file. name: tells how it is compressed."""
    lines: Any = stream
    if name.endswith(".gz"):
        lines = gzip.GzipFile(fileobj=stream, mode="rb")
    elif name.endswith(".zst"):
        lines = io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True))
    for line in lines:
        yield orjson.loads(line)


JSONL = ExportFormat(
    name="jsonl",
    version=1,
    summary="one JSON object a line",
    ending=".jsonl",
    write=write_jsonl,
    read=read_jsonl,
    flags=FLAGS,
    libraries=("orjson", "zstandard"),
)
