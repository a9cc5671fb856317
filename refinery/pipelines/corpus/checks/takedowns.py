"""Checks of a corpus from which something was taken: its proofs, and that nothing that they list is left."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import Manifest, unseal
from refinery.loader.format.parquet.batches import bounded_parquet
from refinery.loader.format.removals import column_ids
from refinery.loader.format.takedown import ADDED_SCHEMA, PROOF_KIND, REMOVED_SCHEMA, REPLACED, Takedown
from refinery.loader.read.versions.listings import listed_rows, took_copies
from refinery.loader.storage.store import Store
from refinery.transforms.core.document import hash64

COUNTS = ("documents", "tokens")


def check_takedowns(
    store: Store, manifest: Manifest, damaged: set[str], counted: Mapping[str, Mapping[str, int]]
) -> Iterator[str]:
    """Failures of all proofs, and of what the listings count. damaged: files that have a failure already, and are not
    parsed. counted: listing -> documents and tokens in it."""
    if any(name in damaged for each in manifest.takedowns for name in (each.proof, each.removed, each.added)):
        return
    listed = {entry.path for entry in manifest.files}
    for each in manifest.takedowns:
        for name in (each.proof, each.removed, each.added):
            if name and name not in listed:
                yield f"{name}: not listed among the files of the manifest"
                return
    for number, takedown in enumerate(manifest.takedowns):
        newest = number == len(manifest.takedowns) - 1
        yield from check_proof(store, takedown, manifest if newest else None, units_of(manifest))
        yield from check_counts(takedown, counted)


def units_of(manifest: Manifest) -> tuple[str, ...]:
    """What the totals of the corpus count."""
    return COUNTS if manifest.has_tokens else COUNTS[:1]


def check_proof(
    store: Store, takedown: Takedown, manifest: Manifest | None, units: Iterable[str] = COUNTS
) -> Iterator[str]:
    """The proof is of this takedown, its sums hold, and nothing was left. manifest: of the version that it made, where
    that is the current one. units: of `units_of`."""
    try:
        proof = unseal(store.read(takedown.proof), takedown.proof)
        if proof["kind"] != PROOF_KIND:
            yield f"{takedown.proof}: kind {proof['kind']!r:.80} found, {PROOF_KIND!r} expected"
        if proof["fingerprint"] != takedown.fingerprint:
            yield f"{takedown.proof}: fingerprint {proof['fingerprint']!r:.80} found, {takedown.fingerprint} expected"
        if proof["previous"]["manifest_sha256"] != takedown.previous:
            yield f"{takedown.proof}: it belongs to another previous version: {takedown.previous} expected"
        before, after = proof["previous"]["totals"], proof["totals"]
        for unit in units:
            counted = proof["removed"][unit], proof["reinstated"][unit]
            stated = getattr(takedown, unit), getattr(takedown, f"added_{unit}")
            if counted != stated:
                yield f"{takedown.proof}: {counted} {unit} removed and reinstated, {stated} expected"
            if before[unit] - counted[0] + counted[1] != after[unit]:
                yield (
                    f"{takedown.proof}: {before[unit]} {unit} before, {counted[0]} removed and {counted[1]} "
                    f"reinstated do not make the {after[unit]} after"
                )
            if manifest is not None and after[unit] != manifest.totals[unit]:
                yield f"{takedown.proof}: {after[unit]} {unit} after, {manifest.totals[unit]} in the manifest"
        left = {name: count for name, count in proof["left"].items() if count}
        if left:
            yield f"{takedown.proof}: requested rows are still there: {left}"
        if manifest is not None:
            entries = {shard.content.path: shard for shard in manifest.shards}
            for each in proof["shards"]["rewritten"]:
                shard = entries.get(each["path"])
                if shard is None or shard.content.sha256 != each["after"]["sha256"]:
                    yield f"{takedown.proof}: {each['path']}: the file is not the one that the proof names"
    except FormatError as error:
        yield str(error)
    except (KeyError, TypeError, AttributeError) as error:
        yield f"{takedown.proof}: a field is missing or wrong ({type(error).__name__}: {error})"


def check_counts(takedown: Takedown, counted: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """The listings have the documents and tokens that the manifest says."""
    for path, prefix in ((takedown.removed, ""), (takedown.added, "added_")):
        found = counted[path] if path else dict.fromkeys(COUNTS, 0)
        for unit in COUNTS:
            expected = getattr(takedown, f"{prefix}{unit}")
            if found[unit] != expected:
                yield f"{path or takedown.proof}: {found[unit]} {unit} listed, {expected} expected from the manifest"


def check_left(store: Store, manifest: Manifest) -> Iterator[str]:
    """Nothing that any takedown lists is in what the last one wrote: no document that was read there (source, origin),
    and of takedowns that took all copies no document of a text that went from the shards and did not come back. (Verify
    looks through all: verify/takedown_rows.py.) Memory: about 200 bytes for each that went."""
    records, ids = set[int](), set[bytes]()
    for takedown in manifest.takedowns:
        by_id = took_copies(store, takedown)
        for row in listed_rows(store, takedown.removed, REMOVED_SCHEMA, ("id", "source", "origin", "split", "why")):
            if row["why"] == REPLACED:  # it is in removals/ now
                continue
            records.add(_record(row))
            if row["split"] and by_id:
                ids.add(row["id"])
        if takedown.added:
            for row in listed_rows(store, takedown.added, ADDED_SCHEMA, ("id", "source", "origin")):
                records.discard(_record(row))
                ids.discard(row["id"])
    if not records:
        return
    wanted = np.sort(np.array(list(ids), "S16"))
    paths = _paths(store, manifest)
    for path in paths:
        with store.open(path) as stream, bounded_parquet(stream, path, ["id", "source", "origin"]) as (_, batches):
            for batch in batches:
                found = np.ascontiguousarray(column_ids(batch.column("id"))).view("S16").reshape(-1)
                columns = (batch.column(name).to_pylist() for name in ("id", "source", "origin"))
                rows = sum(hash64(*row) in records for row in zip(*columns, strict=True))
                if len(wanted) and not rows:
                    place = np.minimum(np.searchsorted(wanted, found), len(wanted) - 1)
                    rows = int(np.count_nonzero(wanted[place] == found))
                if rows:
                    yield f"{path}: {rows} rows of what a takedown lists as removed"
                    break


def _paths(store: Store, manifest: Manifest) -> Iterable[str]:
    removals = [file.path for file in manifest.removals]
    proof = unseal(store.read(manifest.takedowns[-1].proof), manifest.takedowns[-1].proof)
    rewritten = {each["path"] for each in proof["shards"]["rewritten"]}
    return [*(s.provenance.path for s in manifest.shards if s.content.path in rewritten), *removals]


def _record(row: dict[str, Any]) -> int:
    return hash64(row["id"], row["source"], row["origin"])


def takedown_lines(manifest: Manifest, against: str) -> list[str]:
    """What was taken out, a line for each takedown."""
    lines = []
    for number, each in enumerate(manifest.takedowns, 1):
        went, came = f"{each.documents:,} documents", f"{each.added_documents:,}"
        if manifest.has_tokens:
            went, came = f"{went} with {each.tokens:,} tokens", f"{came} with {each.added_tokens:,}"
        lines.append(f"takedown {number}: {went} removed, {came} reinstated")
    return [*lines, f"compared with {against}"] if against else lines
