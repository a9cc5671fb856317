"""What a job tells about itself: every side-output record of its pipeline, merged into one sealed report.

Dead letters and sampled rejects go to Parquet parts; counters and part names are summed in the graph, so they
count exactly the committed bundles on every runner.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.format.document_fields import DEAD_LETTERS, REJECTS, schema_of
from refinery.loader.format.manifest import seal
from refinery.loader.storage.full_disk import scratch_folder
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import size_and_crc32c
from refinery.transforms.core.exchange.records import side_output_record
from refinery.transforms.core.exchange.tally import KIND as EXCHANGE
from refinery.transforms.core.exchange.tally import Balance

DEAD_SCHEMA, REJECT_SCHEMA = schema_of(DEAD_LETTERS), schema_of(REJECTS)
RECORD_SCHEMAS = {"dead": (DEAD_LETTERS, DEAD_SCHEMA), "reject": (REJECTS, REJECT_SCHEMA)}
ROWS_PER_PART = 100_000
ROWS_PER_BATCH = 4_096  # that wait as Python objects; as columns they take a tenth of that
SPREAD = 4  # keys of the exchange that brings rows of RECORD_SCHEMAS to those who write them
OTHERS = 0  # the key of all other records


def write_part(location: str, folder: str, name: str, table: pa.Table) -> bytes:
    """Publish `table` as LOCATION/folder/name.parquet and return the side-output record that makes it count."""
    path = f"{folder}/{name}.parquet"
    with scratch_folder(path) as scratch:
        local = scratch / "part.parquet"
        pq.write_table(table, local, compression="zstd", store_schema=False, write_page_checksum=True)
        return publish_part(location, path, local, table.num_rows)


def publish_part(location: str, path: str, local: Path, rows: int) -> bytes:
    """Publish a finished Parquet file at LOCATION/path exclusively; the returned side-output record makes it count."""
    size, crc32c = size_and_crc32c(local)
    groups = pq.read_metadata(local).num_row_groups
    open_store(location).create(path, local)
    folder = path.split("/")[0]
    return side_output_record("part", folder=folder, path=path, rows=rows, groups=groups, size=size, crc32c=crc32c)


class Merger(Protocol):
    """Adds up the records of a kind as they come, where the sum is much smaller than they are together."""

    def add_record(self, fields: Mapping[str, Any]) -> None:
        """Add a record."""

    def result(self) -> Any:
        """The sum, as plain data; the same in whatever order the records came."""


Mergers = Mapping[str, Callable[[], Merger]]  # kind -> what makes a new one
NO_MERGERS: Mergers = MappingProxyType({})


def merge_records(records: Iterable[bytes], mergers: Mergers = NO_MERGERS) -> dict[str, Any]:
    """Sum side-output records into a report: {"counters": [...], "seconds": {...}, "parts": {folder: [...]}, ...}.

    mergers: of further kinds, each a key of the report. The result does not depend on the order of `records`. Cost:
    memory for one entry per (stage, source, reason) and per part. Raises ExchangeError where an exchange did not
    deliver what was sent into it.
    """
    others = {kind: make() for kind, make in mergers.items()}
    few: list[bytes] = []
    for record in records:
        fields = orjson.loads(record)
        if fields["kind"] in others:
            others[fields["kind"]].add_record(fields)
        else:
            few.append(record)
    counters: dict[tuple[str, str, str, str], list[int]] = defaultdict(lambda: [0, 0])
    seconds: dict[str, float] = defaultdict(float)
    kept: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    parts: dict[str, list[dict[str, Any]]] = defaultdict(list)
    shards: list[dict[str, Any]] = []
    removals: list[dict[str, Any]] = []
    components: list[dict[str, Any]] = []
    balance = Balance()
    for record in sorted(few):
        fields = orjson.loads(record)
        kind = fields.pop("kind")
        if kind == "counter":
            entry = counters[fields["stage"], fields["source"], fields["outcome"], fields["reason"]]
            entry[0] += fields["documents"]
            entry[1] += fields["bytes"]
        elif kind == "seconds":
            seconds[fields["stage"]] += fields["seconds"]
        elif kind == "kept":
            kept[fields["domain"]][0] += fields["documents"]
            kept[fields["domain"]][1] += fields["bytes"]
        elif kind == "part":
            parts[fields.pop("folder")].append(fields)
        elif kind == "shard":
            shards.append(fields)
        elif kind == "removals":
            removals.append(fields)
        elif kind == "components":
            components.append(fields)
        elif kind == EXCHANGE:
            balance.add(fields)
        elif kind != "job":
            raise ValueError(f"unknown side-output record {kind!r}")
    return {
        "counters": [
            {"stage": s, "source": o, "outcome": w, "reason": r, "documents": d, "bytes": b}
            for (s, o, w, r), (d, b) in sorted(counters.items())
        ],
        "seconds": {stage: round(value, 3) for stage, value in sorted(seconds.items())},
        "kept": {domain: {"documents": documents, "bytes": size} for domain, (documents, size) in sorted(kept.items())},
        "parts": {folder: sorted(entries, key=lambda e: e["path"]) for folder, entries in sorted(parts.items())},
        "shards": sorted(shards, key=lambda s: (s["split"], s["domain"], s["index"])),
        "removals": sorted(removals, key=lambda r: r["path"]),
        "components": merge_components(components),
        "exchanges": balance.balanced(),
        **{kind: merger.result() for kind, merger in sorted(others.items())},
    }


def merge_components(records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One entry per (scope, method): the maximum of rounds and largest, the sum of links, documents and components."""
    merged: dict[tuple[str, str], dict[str, Any]] = {}
    for record in records:
        key = record["scope"], record["method"]
        known = merged.get(key)
        merged[key] = (
            dict(record)
            if known is None
            else {
                **known,
                **{name: known[name] + record[name] for name in ("links", "documents", "components")},
                **{name: max(known[name], record[name]) for name in ("rounds", "largest")},
            }
        )
    return [merged[key] for key in sorted(merged)]


Check = Callable[[Mapping[str, Any]], None]


def no_check(report: Mapping[str, Any]) -> None:
    """Accepts every report."""


def write_report(
    report: Mapping[str, Any], location: str, name: str, facts: Mapping[str, Any], check: Check = no_check
) -> None:
    """Publish the sealed report of a job, of `merge_records`. A second bundle with the same records writes the same
    bytes. Raises what `check` raises, before anything is written."""
    check(report)
    open_store(location).create(name, seal({**facts, **report}))
