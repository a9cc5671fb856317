"""MosaicML's MDS, which its library `streaming` reads: a file for each shard of the corpus, and index.json beside them.

A file is the number of samples, the offset of each (both little-endian 32 bits), the columns as JSON, and the samples.
A sample is the sizes of its columns of variable size, and then all its values, in order of the columns' names.
"""

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from refinery.pipelines.export.write_files import json_rows

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


def write_mds(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
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
                f"mds: {offsets[-1]} bytes in one shard, {MOST_BYTES} at most can be; refine the corpus with smaller "
                "`shards.target_bytes`, or export fewer --fields"
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
