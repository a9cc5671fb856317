"""No address twice in a corpus whose recipe keeps one capture of each."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from refinery.transforms.address.normalise import address_hash
from refinery.transforms.core.document import hash64

Addresses = NDArray[np.uint64]


def row_addresses(batch: pa.RecordBatch) -> Addresses:
    """Rows of provenance -> [rows, 3]: the halves of the address' hash, 0 for none, and a hash of the record.

    Cost: about 15 microseconds a row.
    """
    urls, sources, origins = (batch.column(name).to_pylist() for name in ("url", "source", "origin"))
    halves = np.frombuffer(b"".join(map(address_hash, urls)), np.uint64).reshape(-1, 2)
    records = np.array([hash64(*record) for record in zip(sources, origins, strict=True)], np.uint64)
    return np.column_stack([halves, records])


def check_addresses(shards: Sequence[tuple[str, Addresses]]) -> Iterator[str]:
    """A failure where documents of several records have one address. shards: (path, `row_addresses`).

    Memory: 24 bytes per document, and their order.
    """
    rows = np.concatenate([np.empty((0, 3), np.uint64), *(addresses for _, addresses in shards)])
    order = np.lexsort(rows.T[::-1])
    order = order[(rows[order, 0] | rows[order, 1]) != 0]
    same = (rows[order[1:], :2] == rows[order[:-1], :2]).all(axis=1) & (rows[order[1:], 2] != rows[order[:-1], 2])
    if same.any():
        first = int(np.argmax(same))
        both = " and ".join(_place(shards, int(order[i])) for i in (first, first + 1))
        yield f"addresses: {int(same.sum())} documents have the address of another, url_dup keeps one; {both}"


def _place(shards: Sequence[tuple[str, Any]], row: int) -> str:
    for path, addresses in shards:
        if row < len(addresses):
            return f"{path} row {row}"
        row -= len(addresses)
    raise IndexError(row)
