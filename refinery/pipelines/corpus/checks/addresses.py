"""The addresses of rows: none may come twice in a corpus whose recipe keeps one capture of each."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from refinery.transforms.core.address.normalise import address_hash
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
