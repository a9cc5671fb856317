"""Rows to files, one file for each shard of the corpus: JSON lines, Parquet, WebDataset's tar. The same rows make the
same bytes: no time, no user, no level of compression that is not said here.
"""

import gzip
import io
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from refinery.loader.format.provenance import PARQUET

GROUP_BYTES = 32 << 20  # of rows in one row group of Parquet, before compression
GZIP_LEVEL, ZSTD_LEVEL = 6, 3
OWN_TEXTS = ("id", "url", "origin", "meta", "text")  # columns of as many texts as rows; of others they repeat


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


def json_rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Rows as JSON-able data: `meta` is the object that it holds."""
    for row in batch.to_pylist():
        if "meta" in row:
            row["meta"] = orjson.Fragment(row["meta"])
        yield row


def write_jsonl(path: Path, batches: Iterable[pa.RecordBatch], compression: str) -> None:
    """One JSON object per line and document, keys in the order of the columns."""
    with compressed(path, compression) as stream:
        for batch in batches:
            stream.write(b"".join(orjson.dumps(row) + b"\n" for row in json_rows(batch)))


def write_parquet(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Parquet with row groups of about 32 MiB, zstd, and checksums of pages. Memory: a row group."""
    dictionaries = [f.name for f in schema if pa.types.is_string(f.type) and f.name not in OWN_TEXTS]
    with pq.ParquetWriter(path, schema, **PARQUET, use_dictionary=dictionaries) as writer:
        held: list[pa.RecordBatch] = []
        for batch in batches:
            held.append(batch)
            if sum(each.nbytes for each in held) >= GROUP_BYTES:
                writer.write_table(pa.Table.from_batches(held, schema), row_group_size=1 << 30)
                held = []
        if held:
            writer.write_table(pa.Table.from_batches(held, schema), row_group_size=1 << 30)


def write_webdataset(path: Path, batches: Iterable[pa.RecordBatch]) -> None:
    """A tar with two or three members for each document: KEY.txt is its text, KEY.input_ids.npy its tokens, KEY.json
    the rest. KEY is its number in the shard, and its id where the rows have one.
    """
    number = 0
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for batch in batches:
            tokens = batch.column("input_ids") if "input_ids" in batch.schema.names else None
            texts = batch.column("text").to_pylist() if "text" in batch.schema.names else None
            rest = batch.drop_columns([name for name in ("text", "input_ids") if name in batch.schema.names])
            for row, fields in enumerate(json_rows(rest)):
                key = "-".join([f"{number:08d}", *([fields["id"]] if "id" in fields else [])])
                if texts is not None:
                    _add(archive, f"{key}.txt", texts[row].encode())
                if tokens is not None:
                    _add(archive, f"{key}.input_ids.npy", npy_bytes(tokens[row].values.to_numpy()))
                if fields:
                    _add(archive, f"{key}.json", orjson.dumps(fields))
                number += 1


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)  # dated 1970, of user 0
    info.size = len(data)
    info.mode = 0o644
    archive.addfile(info, io.BytesIO(data))


def npy_bytes(array: Any) -> bytes:
    """An array in NumPy's own file format."""
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()
