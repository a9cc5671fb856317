"""The listings of a takedown: what went, and what came back."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from refinery.loader.format.takedown import (
    ADDED_SCHEMA,
    NOWHERE,
    REMOVED_SCHEMA,
    sort_rows,
    takedown_name,
    write_rows,
)
from refinery.loader.storage.full_disk import scratch_folder
from refinery.loader.storage.store import Store
from refinery.pipelines.run.publish import describe
from refinery.pipelines.takedown.rows import Row


def removed_table(gone: Iterable[Row], deleted: Iterable[Row]) -> pa.Table:
    """What went, of rows with `was`, `why` and `request`."""
    names = REMOVED_SCHEMA.names
    rows = [{name: row[name] for name in names} for row in (*gone, *deleted)]
    return sort_rows(pa.Table.from_pylist(rows, schema=REMOVED_SCHEMA))


def elsewhere(row: Row, why: str, request: str) -> Row:
    """A row of removals/ as one of what went."""
    place = {"split": "", "domain": "", "index": NOWHERE, "row": NOWHERE, "token_offset": NOWHERE}
    return {**row, **place, "was": row["reason"], "why": why, "request": request, "token_count": 0, "text_bytes": 0}


def publish_listing(store: Store, number: int, file: str, table: pa.Table) -> dict[str, Any]:
    """Write a listing of the takedown of that number; its file for the manifest."""
    name = takedown_name(number, file)
    with scratch_folder(name) as scratch:
        local = scratch / "rows.parquet"
        write_rows(local, table)
        store.create(name, local)
    return describe(store, name)


def added_table(found: Iterable[Mapping[str, Any]]) -> pa.Table:
    """What came back."""
    return sort_rows(pa.Table.from_pylist([dict(row) for row in found], schema=ADDED_SCHEMA))
