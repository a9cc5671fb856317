"""WebDataset: tar files with the members of each document side by side."""

import io
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import orjson
import pyarrow as pa

from refinery.pipelines.corpus.export.export_format import ExportFormat, FileOptions
from refinery.pipelines.corpus.export.json_rows import json_rows


def write_webdataset(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch], options: FileOptions) -> None:
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


def read_webdataset(stream: BinaryIO, name: str) -> Iterator[dict[str, Any]]:
    """The documents of a tar, their members joined."""
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        key, document = "", dict[str, Any]()
        for member in archive:
            found, _, kind = member.name.partition(".")
            if found != key:
                if key:
                    yield document
                key, document = found, {}
            content = archive.extractfile(member)
            data = content.read() if content else b""
            if kind == "txt":
                document["text"] = data.decode()
            elif kind == "json":
                document |= orjson.loads(data)
            else:
                document[kind.removesuffix(".npy")] = np.load(io.BytesIO(data), allow_pickle=False)
        if key:
            yield document


WEBDATASET = ExportFormat(
    name="webdataset",
    version=1,
    summary="tar files for the library `webdataset`",
    ending=".tar",
    write=write_webdataset,
    read=read_webdataset,
    libraries=("numpy", "orjson"),
)
