"""Write the documents of a bundle and their signatures as row-aligned Parquet parts.

A part counts only when the bundle that wrote it is committed: its name travels as a side-output record. It is closed at
a size as well as at the end of its bundle, because some runners make one bundle of a whole partition.
"""

from dataclasses import dataclass

import orjson
import pyarrow as pa

from refinery.transforms.core.document import ID_BYTES, Document
from refinery.transforms.core.stage import Sink
from refinery.transforms.dedup.signatures import (
    SIGNATURE_SCHEME,
)

DOCUMENTS_SCHEMA = pa.schema(
    [
        pa.field("id", pa.binary(ID_BYTES), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("url", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("origin", pa.string(), nullable=False),
        pa.field("position", pa.int64(), nullable=False),
        pa.field("meta", pa.string(), nullable=False),  # JSON object
    ]
)


def documents_table(docs: list[Document]) -> pa.Table:
    """One row per document, in order."""
    return pa.table(
        {
            "id": pa.array([d.id for d in docs], pa.binary(ID_BYTES)),
            "text": pa.array([d.text for d in docs], pa.string()),
            "url": pa.array([d.url for d in docs], pa.string()),
            "source": pa.array([d.source for d in docs], pa.string()),
            "origin": pa.array([d.origin for d in docs], pa.string()),
            "position": pa.array([d.position for d in docs], pa.int64()),
            "meta": pa.array(
                [orjson.dumps(dict(d.meta), option=orjson.OPT_SORT_KEYS).decode() for d in docs], pa.string()
            ),
        },
        schema=DOCUMENTS_SCHEMA,
    )


@dataclass(frozen=True)
class SourceFacts:
    """What ranking and sharding need to know of a source: priority (lower wins) and domain (folder of its shards)."""

    priority: int
    domain: str


PARTS = Sink(
    name="documents",
    version=1,
    summary="Documents and their signatures, as row-aligned Parquet parts.",
    uses=("signature", "rank"),
    schemes=(SIGNATURE_SCHEME,),
)
