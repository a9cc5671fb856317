"""A corpus' manifest and listings as docs/format.md describes them, read and checked with JSON and Parquet alone."""

import base64
import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq


def manifest_of(root: Path) -> dict[str, Any]:
    """The manifest of a corpus in a folder, as `read_plain`; of a view or another kind of file as it is."""
    return read_plain(lambda name: (root / name).read_bytes())


def read_plain(read: Callable[[str], bytes]) -> dict[str, Any]:
    """The fields of a manifest of either version without its seal, with `shards` and `files` as version 1 has them.

    read: the bytes of a file of the corpus. Asserts seals, checksums and counts.
    """
    data = read("manifest.json")
    payload: dict[str, Any] = json.loads(data)
    digest = payload.pop("sha256")
    canonical = json.dumps(payload, sort_keys=True, indent=1, ensure_ascii=False) + "\n"
    assert hashlib.sha256(canonical.encode()).hexdigest() == digest
    if "domains" not in payload or payload["schema_version"] != 2:
        return payload
    shards = []
    kinds = kinds_of(payload)
    for domain in payload.pop("domains"):
        own = [
            shard for listing in domain["listings"] for shard in _shards(domain, _rows(read, listing), listing, kinds)
        ]
        assert len(own) == domain["shards"]
        for name in ("documents", "tokens") if "bin" in kinds else ("documents",):
            assert sum(shard[name] for shard in own) == domain[name]
        shards += own
    payload["files"] = [_file(row) for listing in payload["files"] for row in _rows(read, listing)]
    return payload | {"shards": shards}


def kinds_of(payload: dict[str, Any]) -> list[str]:
    """The kinds of files that a shard has, packed rows aside, the one with its documents first."""
    if "shard_files" not in payload:
        return ["bin", "idx", "provenance"]
    own = [each["kind"] for each in payload["shard_files"]]
    return own if own == ["provenance"] else [*own, "provenance"]


def _rows(read: Callable[[str], bytes], listing: dict[str, Any]) -> list[dict[str, Any]]:
    data = read(listing["path"])
    assert (len(data), hashlib.sha256(data).hexdigest()) == (listing["size"], listing["sha256"])
    rows: list[dict[str, Any]] = pq.read_table(io.BytesIO(data)).to_pylist()
    assert len(rows) == listing["rows"]
    return rows


def _shards(
    domain: dict[str, Any], rows: list[dict[str, Any]], listing: dict[str, Any], kinds: list[str]
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for row in rows:
        if row["kind"] == kinds[0]:
            head = {"split": domain["split"], "domain": domain["domain"], "count": domain["count"]}
            counts = {"index": row["shard"], "documents": row.pop("documents")}
            tokens = row.pop("tokens")
            own = {"tokens": tokens} if kinds[0] == "bin" else {"kinds": kinds}
            found.append({**head, **counts, **own, "files": {}})
        assert row["shard"] == found[-1]["index"]
        if row["kind"] == "packed":
            found[-1].setdefault("packed", []).append(_file(row))
        else:
            found[-1]["files"][row["kind"]] = _file(row)
    assert len(found) == listing["shards"]
    return found


def _file(row: dict[str, Any]) -> dict[str, Any]:
    found = {"path": row["path"], "size": row["size"], "crc32c": f"{row['crc32c']:08x}", "sha256": row["sha256"].hex()}
    found |= {name: row[name] for name in ("rows", "documents", "tokens") if row.get(name) is not None}
    if row["block_crc32c"] is not None:
        found["block_crc32c"] = base64.b64encode(row["block_crc32c"]).decode()
    return found
