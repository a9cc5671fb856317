"""Rows as data that formats of objects write."""

from collections.abc import Iterator
from typing import Any

import orjson
import pyarrow as pa


def json_rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Rows as JSON-able data: `meta` is the object that it holds."""
    for row in batch.to_pylist():
        if "meta" in row:
            row["meta"] = orjson.Fragment(row["meta"])
        yield row
