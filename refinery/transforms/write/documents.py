"""Write the documents of a bundle and their signatures as row-aligned Parquet parts.

A part counts only when the bundle that wrote it is committed: its name travels as a side-output record. It is closed at
a size as well as at the end of its bundle, because some runners make one bundle of a whole partition.
"""

from dataclasses import dataclass, replace

import pyarrow as pa

from refinery.loader.format.document_fields import DOCUMENTS, schema_of
from refinery.transforms.core.document import Document, meta_json
from refinery.transforms.core.stage import Sink
from refinery.transforms.dedup.signatures import CODE_SCHEME, SIGNATURE_SCHEME

DOCUMENTS_SCHEMA = schema_of(DOCUMENTS)


def documents_table(docs: list[Document]) -> pa.Table:
    """One row per document, in order."""
    values = {name: [getattr(doc, name) for doc in docs] for name in DOCUMENTS_SCHEMA.names}
    values["meta"] = [meta_json(doc.meta).decode() for doc in docs]
    return pa.table([pa.array(values[each.name], each.type) for each in DOCUMENTS_SCHEMA], schema=DOCUMENTS_SCHEMA)


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
PARTS_OF_CODE = replace(PARTS, name="documents-of-code", schemes=(CODE_SCHEME,))
