"""MosaicML's MDS, which its library `streaming` reads: a file for each shard of the corpus, and index.json beside them.

A file is the number of samples, the offset of each (both little-endian 32 bits), the columns as JSON, and the samples.
A sample is the sizes of its columns of variable size, and then all its values, in order of the columns' names.
"""

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO

import numpy as np
import orjson
import pyarrow as pa

from refinery.pipelines.corpus.export.export_format import ExportFormat, FileOptions, Written
from refinery.pipelines.corpus.export.json_rows import json_rows

VERSION = 2
MOST_BYTES = 2**32 - 1  # offsets have 32 bits
INT, FLOAT, TEXT, JSON = "int", "float64", "str", "json"  # names of encodings
SIZES = {INT: 8, FLOAT: 8}  # of those that have one


def encodings(schema: pa.Schema) -> dict[str, str]:
    """Column -> its encoding, in order of names. Tokens are an array; what is nested, or may be missing, is JSON."""
    found = {}
    for field in schema:
        if field.name == "input_ids":
            found[field.name] = f"ndarray:{field.type.value_type}"
        elif pa.types.is_string(field.type) and field.name != "meta":
            found[field.name] = TEXT
        elif pa.types.is_integer(field.type) and not field.nullable:
            found[field.name] = INT
        elif pa.types.is_floating(field.type):
            found[field.name] = FLOAT
        else:
            found[field.name] = JSON
    return dict(sorted(found.items()))


def encode_value(encoding: str, value: Any) -> bytes:
    """A value as its column holds it. A missing number is NaN. Raises ValueError for an array without elements."""
    if encoding == TEXT:
        return str(value).encode()
    if encoding == INT:
        return np.int64(value).tobytes()
    if encoding == FLOAT:
        return np.float64(np.nan if value is None else value).tobytes()
    if encoding == JSON:
        return orjson.dumps(value)
    array = np.asarray(value, np.dtype(encoding.partition(":")[2]))
    width = next(code for code in range(4) if len(array) < 1 << (8 << code))  # of the shape: 1, 2, 4 or 8 bytes
    if not len(array):
        raise ValueError("input_ids: a document without tokens, which MDS cannot hold")
    return bytes([1 << 2 | width]) + len(array).to_bytes(1 << width, "little") + array.tobytes()


def columns_of(schema: pa.Schema, size_limit: int | None = None) -> dict[str, Any]:
    """What a file and index.json say of the columns."""
    known = encodings(schema)
    return {
        "column_encodings": list(known.values()),
        "column_names": list(known),
        "column_sizes": [SIZES.get(encoding) for encoding in known.values()],
        "compression": None,
        "format": "mds",
        "hashes": [],
        "size_limit": size_limit,
        "version": VERSION,
    }


def write_mds(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch], options: FileOptions) -> None:
    """Write the rows. Raises ValueError for a file of more than 4 GiB. Disk: the samples twice."""
    config = json.dumps(columns_of(schema), sort_keys=True).encode()
    known = encodings(schema)
    sizes: list[int] = []
    with TemporaryFile() as body, path.open("wb") as out:
        for batch in batches:
            for row in json_rows(batch):
                values = [encode_value(encoding, row[name]) for name, encoding in known.items()]
                varying = [len(v) for v, encoding in zip(values, known.values(), strict=True) if encoding not in SIZES]
                sizes.append(body.write(b"".join([np.array(varying, "<u4").tobytes(), *values])))
        start = 4 * (len(sizes) + 2) + len(config)
        offsets = start + np.cumsum([0, *sizes], dtype=np.int64)
        if offsets[-1] > MOST_BYTES:
            raise ValueError(
                f"mds: {offsets[-1]} bytes in one shard, {MOST_BYTES} at most are possible; refine the corpus with "
                "smaller `shards.target_bytes`, or export fewer --fields"
            )
        out.write(np.uint32(len(sizes)).tobytes() + offsets.astype("<u4").tobytes() + config)
        body.seek(0)
        shutil.copyfileobj(body, out, 1 << 20)


def index_bytes(schema: pa.Schema, shards: Sequence[Mapping[str, Any]]) -> bytes:
    """index.json of a folder. shards: {"name", "size", "documents"} of its files, in order."""
    entries = [
        columns_of(schema)
        | {
            "raw_data": {"basename": shard["name"], "bytes": shard["size"], "hashes": {}},
            "samples": shard["documents"],
            "zip_data": None,
        }
        for shard in shards
    ]
    return json.dumps({"shards": entries, "version": VERSION}, sort_keys=True).encode()


def indexes(written: Written) -> Iterator[tuple[str, bytes]]:
    """index.json of each folder."""
    folders: dict[str, list[dict[str, Any]]] = {}
    for shard in written.shards:
        folder, _, name = shard["file"]["path"].rpartition("/")
        entry = {"name": name, "size": shard["file"]["size"], "documents": shard["documents"]}
        folders.setdefault(folder, []).append(entry)
    for folder, entries in sorted(folders.items()):
        yield f"{folder}/index.json", index_bytes(written.schema, entries)


def read_mds(stream: BinaryIO, name: str) -> Iterator[dict[str, Any]]:
    """The samples of a file. Memory: the file."""
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


MDS = ExportFormat(
    name="mds",
    version=1,
    summary="MosaicML's MDS, for the library `streaming`",
    ending=".mds",
    write=write_mds,
    read=read_mds,
    beside=indexes,
    libraries=("numpy", "orjson"),
)
