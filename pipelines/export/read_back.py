"""Documents of an exported file, for `refinery verify`: read as a user's program would, not by what wrote them."""

import gzip
import io
import json
import tarfile
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, BinaryIO

import numpy as np
import orjson
import zstandard

from refinery.loader.errors import FormatError
from refinery.loader.parquet.guarded import guarded_parquet

BATCH_ROWS = 256


def read_documents(stream: BinaryIO, name: str, fields: list[str]) -> Iterator[dict[str, Any]]:
    """The documents of a file in order, each with exactly `fields`. name: of the file, which tells its format.

    Raises FormatError for other fields, and whatever the format's library raises for a damaged file.
    """
    if name.endswith(".tar"):
        documents = _tar(stream)
    elif name.endswith(".mds"):
        documents = _mds(stream)
    elif name.endswith(".parquet"):
        documents = _parquet(stream, name)
    else:
        documents = _lines(stream, name)
    for number, document in enumerate(documents):
        if document.keys() != set(fields):
            raise FormatError(f"{name}: document {number} has the fields {sorted(document)}, {sorted(fields)} expected")
        yield document


def _lines(stream: BinaryIO, name: str) -> Iterator[dict[str, Any]]:
    if name.endswith(".gz"):
        lines: Any = gzip.GzipFile(fileobj=stream, mode="rb")
    elif name.endswith(".zst"):
        lines = io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True))
    else:
        lines = stream
    for line in lines:
        yield orjson.loads(line)


def _parquet(stream: BinaryIO, name: str) -> Iterator[dict[str, Any]]:
    with guarded_parquet(stream, name) as file:
        for batch in file.iter_batches(BATCH_ROWS, use_threads=False):
            yield from batch.to_pylist()


def _tar(stream: BinaryIO) -> Iterator[dict[str, Any]]:
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


def _mds(stream: BinaryIO) -> Iterator[dict[str, Any]]:
    data = memoryview(stream.read())
    count = int(np.frombuffer(data, "<u4", 1)[0])
    offsets = np.frombuffer(data, "<u4", count + 1, 4).tolist()
    columns = json.loads(bytes(data[4 * (count + 2) : offsets[0]]))
    names = list(zip(columns["column_names"], columns["column_encodings"], columns["column_sizes"], strict=True))
    for start, stop in pairwise(offsets):
        yield _sample(data[start:stop], names)


def _sample(data: memoryview, columns: list[tuple[str, str, int | None]]) -> dict[str, Any]:
    varying = sum(size is None for _, _, size in columns)
    sizes = iter(np.frombuffer(data, "<u4", varying).tolist())
    position, sample = 4 * varying, {}
    for name, encoding, fixed in columns:
        size = next(sizes) if fixed is None else fixed
        sample[name] = _value(encoding, bytes(data[position : position + size]))
        position += size
    return sample


def _value(encoding: str, data: bytes) -> Any:
    if encoding == "str":
        return data.decode()
    if encoding == "json":
        return orjson.loads(data)
    if encoding in ("int", "float64"):
        return np.frombuffer(data, "<i8" if encoding == "int" else "<f8")[0].item()
    width = 1 << (data[0] & 3)  # of the shape, which has one dimension
    return np.frombuffer(data, encoding.partition(":")[2], offset=1 + width)
