"""What was taken out of a corpus after it was made: its versions in order, and a row for every document that went.

docs/format.md describes the files, docs/takedown.md what makes them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.format.document_fields import CAME_BACK, TAKEN_OUT, schema_of
from refinery.loader.format.fields import Fields
from refinery.loader.format.parquet.batches import Batches, bounded_parquet
from refinery.loader.format.provenance import PARQUET, ROW_GROUP

FOLDER = "takedowns"
STAGE = "takedown"  # the last stage of the funnel of a corpus from which something was taken
STAGE_OF_TEXTS = "takedown-of-texts"  # the same of the texts that a corpus of tokens was made of: before the encoder
PROOF_KIND = "refinery-takedown"
# Why a document went: it was asked for; it has the text of one that was, or stood for one; it was a duplicate whose
# survivor went, and did not take its place; it is a duplicate of a better document that came back, and is in removals/.
REQUESTED, COPY, UNREPRESENTED, REPLACED = WHY = (
    "requested",
    "copy-of-requested",
    "duplicate-of-removed",
    "duplicate-of-reinstated",
)
MEANINGS = {
    REQUESTED: "it was asked for, after the corpus was made",
    COPY: "it has the text of a document that was asked for, or stood for it",
    UNREPRESENTED: "the document that had stood for it went, and it did not take its place",
    REPLACED: "a better document came back, and it is a near copy of that",
}
KEPT = "kept"  # `was` of a document of the shards; of others the reason for which deduplication had removed it
NOWHERE = -1  # split "", index, row and token_offset of a document that was in no shard
NO_TOKENS = {"token_offset": 0, "token_count": 0}  # of a document of a corpus of texts

# A document that went, placed as in the version before, and a duplicate that came back, placed as in the new version.
REMOVED_SCHEMA, ADDED_SCHEMA = schema_of(TAKEN_OUT), schema_of(CAME_BACK)
ORDER = ("split", "domain", "index", "row", "id", "source", "origin", "url", "was")  # of the rows of both


@dataclass(frozen=True, slots=True)
class Takedown:
    """A step from one version of a corpus to the next. previous: sha256 of the manifest before. fingerprint: of what
    was asked. proof, removed, added: paths below the prefix, added "" where nothing came back. The counts are of the
    shards' documents."""

    previous: str
    fingerprint: str
    proof: str
    removed: str
    added: str
    documents: int
    tokens: int
    added_documents: int
    added_tokens: int


def takedown_name(number: int, file: str) -> str:
    """Path of a file of the takedown with that number, from 1.

    >>> takedown_name(1, "removed.parquet")
    'takedowns/00001/removed.parquet'
    """
    return f"{FOLDER}/{number:05d}/{file}"


def parse_takedowns(top: Fields) -> tuple[Takedown, ...]:
    """The takedowns that a manifest lists, the oldest first. Raises FormatError for a field that is wrong."""
    if "takedowns" not in top.value:
        return ()
    return tuple(
        Takedown(
            previous=each.checksum("previous", 64),
            fingerprint=each.checksum("fingerprint", 64),
            proof=each.path("proof"),
            removed=each.path("removed"),
            added=each.path("added") if each.text("added") else "",
            documents=each.count("documents"),
            tokens=each.count("tokens"),
            added_documents=each.count("added_documents"),
            added_tokens=each.count("added_tokens"),
        )
        for each in top.list("takedowns")
    )


def describe_takedown(takedown: Takedown) -> dict[str, Any]:
    """The entry of a manifest that `parse_takedowns` reads."""
    return {name: getattr(takedown, name) for name in Takedown.__slots__}


def sort_rows(table: pa.Table) -> pa.Table:
    """Rows of either schema in the order of their file."""
    return table.sort_by([(name, "ascending") for name in ORDER if name in table.column_names])


def write_rows(path: Path, table: pa.Table) -> None:
    """Write rows of either schema, sorted already, as Parquet: the same rows make the same bytes."""
    repeated = [name for name in ("source", "was", "why", "split", "domain") if name in table.column_names]
    pq.write_table(table.combine_chunks(), path, row_group_size=ROW_GROUP, use_dictionary=repeated, **PARQUET)


def read_rows(stream: Any, schema: pa.Schema, what: str, columns: Sequence[str] | None = None) -> Batches:
    """The rows of a listing, of which these columns (all), in batches of bounded size: whoever wrote it, a page cannot
    stand for more. Raises FormatError, naming `what`, for a file of another schema, and as `bounded_parquet`."""
    with bounded_parquet(stream, what, columns, exactly=schema) as (_, batches):
        yield from batches


def totals_of(takedowns: Iterable[Takedown]) -> Mapping[str, int]:
    """Documents and tokens that went and came back, over all of them."""
    found = {"documents": 0, "tokens": 0, "added_documents": 0, "added_tokens": 0}
    for each in takedowns:
        for name in found:
            found[name] += getattr(each, name)
    return found
