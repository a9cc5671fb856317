"""The last step of a run: tokenizer, rejects, dead letters, and then, if all counts hold, the manifest."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.format.indexed import DTYPE_CODES, dtype_for
from refinery.loader.format.manifest import (
    KIND,
    MANIFEST,
    RUN,
    SCHEMA_VERSION,
    SPLITS,
    Manifest,
    check_funnel,
    parse_manifest,
    seal,
)
from refinery.loader.format.packed import FOLDER as PACKED
from refinery.loader.format.packed import describe_format
from refinery.loader.format.removals import FOLDER as REMOVALS
from refinery.loader.format.removals import REASONS
from refinery.loader.storage.full_disk import scratch_folder
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store, checksums
from refinery.pipelines.recipe.checks import packed_rows
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.phases import Phase
from refinery.pipelines.statistics.build import build_statistics
from refinery.pipelines.statistics.published import STATISTICS, dump_statistics
from refinery.transforms.core.report import RECORD_SCHEMAS
from refinery.transforms.core.resources import read_resource
from refinery.transforms.tokenize.encode import TokenizerInfo
from refinery.transforms.tokenize.published import published_files
from refinery.transforms.write.shards import provenance_columns

ROWS_PER_FILE = 1_000_000  # rejects or dead letters in one published file


class CountsDisagree(RuntimeError):
    """Counts do not reconcile: no manifest is written."""


def publish_corpus(
    store: Store,
    phases: Sequence[Phase],
    recipe: Recipe,
    tokenizer: TokenizerInfo,
    fingerprint: str,
    funnel: list[dict[str, Any]],
    versions: Mapping[str, str],
) -> Manifest:
    """Write the manifest, last of all, and return it. Raises CountsDisagree, naming every disagreement."""
    shards, removals = phases[-1].report["shards"], phases[-1].report["removals"]
    problems = (
        check_funnel(funnel) + check_shards(funnel, shards, recipe.LANE.funnel[-1]) + check_removals(funnel, removals)
    )
    if problems:
        raise CountsDisagree("the counts do not reconcile, so no manifest is written:\n  " + "\n  ".join(problems))
    written = [file for shard in shards for file in (*shard["files"].values(), *shard.get("packed", ()))]
    ours = {file["path"] for file in (*written, *removals)}
    found = {path for folder in (*SPLITS, PACKED, REMOVALS) for path in store.list(folder)}
    if foreign := sorted(found - ours):
        raise CountsDisagree(
            f"{store.url(foreign[0])} was not written by this run; remove it and run the command again"
        )
    if lost := sorted(ours - found):
        raise CountsDisagree(
            f"{store.url(lost[0])} was written by this run and is gone; put it back, or remove shards.json and "
            "shards/report.json from the work location, and run the command again"
        )
    own = publish_tokenizer(store, recipe, tokenizer)
    files = [describe(store, RUN), *own, *removals]
    for folder, schema in RECORD_SCHEMAS.values():
        files += publish_records(store, phases, folder, schema)
    measured = build_statistics({phase.name: phase.report for phase in phases}, recipe)
    store.create(STATISTICS, dump_statistics(measured))
    files.append(describe(store, STATISTICS))
    dtype = dtype_for(tokenizer.vocab_size)
    lane = recipe.LANE
    payload = {
        "schema_version": SCHEMA_VERSION,
        "kind": KIND,
        "name": recipe.name,
        "lane": lane.name,
        "stages": [{"name": s.name, "phase": lane.phase_of(s), "version": s.version} for s in lane.stages],
        "columns": [{"name": column.name, "type": column.type} for column in provenance_columns(recipe.provenance())],
        "writer": lane.writer.name,
        "fingerprint": fingerprint,
        "dtype": dtype.name,
        "dtype_code": DTYPE_CODES[dtype],
        "tokenizer": {
            "path": own[0]["path"],
            "vocab_size": tokenizer.vocab_size,
            "bos_id": tokenizer.bos_id,
            "eos_id": tokenizer.eos_id,
        },
        "shards": shards,
        "files": sorted(files, key=lambda f: f["path"]),
        "totals": {
            "documents": sum(s["documents"] for s in shards),
            "tokens": sum(s["tokens"] for s in shards),
            "bytes": sum(row["kept"]["bytes"] for row in funnel if row["stage"] == lane.funnel[-1]),
        },
        "funnel": funnel,
        "recipe": recipe.deciding(),
        "versions": dict(versions),
    }
    if layout := packed_rows(recipe, tokenizer):
        payload["packed"] = describe_format(layout)
    data = seal(payload)
    manifest = parse_manifest(data)  # what readers will accept, before it counts
    store.create(MANIFEST, data)
    return manifest


def check_shards(funnel: Sequence[Mapping[str, Any]], shards: Sequence[Mapping[str, Any]], last: str) -> list[str]:
    """What the last stage kept must be what was written."""
    encoded = sum(row["kept"]["documents"] for row in funnel if row["stage"] == last)
    written = sum(shard["documents"] for shard in shards)
    return [] if encoded == written else [f"{last}: {encoded} documents were kept, {written} are in the shards"]


def check_removals(funnel: Sequence[Mapping[str, Any]], removals: Sequence[Mapping[str, Any]]) -> list[str]:
    """What deduplication dropped must be what is listed as removed."""
    dropped = sum(row["dropped"].get(reason, {"documents": 0})["documents"] for row in funnel for reason in REASONS)
    listed = sum(file["rows"] for file in removals)
    return [] if dropped == listed else [f"deduplication dropped {dropped} documents, {listed} are in {REMOVALS}/"]


def describe(store: Store, path: str) -> dict[str, Any]:
    """A published file as the manifest lists it."""
    with store.open(path) as stream:
        size, crc32c, sha256 = checksums(stream)
    return {"path": path, "size": size, "crc32c": crc32c, "sha256": sha256}


def publish_tokenizer(store: Store, recipe: Recipe, tokenizer: TokenizerInfo) -> list[dict[str, Any]]:
    """Write the exact tokenizer used to tokenizer/, as others load it; returns the files, the tokenizer first."""
    path = recipe.tokenizer.path
    files = published_files(path, read_resource(path), tokenizer.bos_id, tokenizer.eos_id)
    for name, data in files.items():
        store.create(f"tokenizer/{name}", data)
    return [describe(store, f"tokenizer/{name}") for name in files]


def publish_records(store: Store, phases: Sequence[Phase], folder: str, schema: pa.Schema) -> list[dict[str, Any]]:
    """Gather the phases' parts of rejects/ or dead_letters/ in PREFIX/folder; returns the files for the manifest.

    Up to ROWS_PER_FILE rows become one sorted file, the same for every layout of parts. Beyond that every part stays a
    file of its own, so that memory stays that of one part.
    """
    parts = [(phase.root_of(part), part) for phase in phases for part in phase.parts(folder)]
    if not parts:
        return []
    few = sum(part["rows"] for _, part in parts) <= ROWS_PER_FILE
    groups = [parts] if few else [[part] for part in parts]
    files = []
    with scratch_folder(folder) as scratch:
        for index, group in enumerate(groups):
            tables = [read_part(root, part["path"], schema) for root, part in group]
            table = pa.concat_tables(tables).sort_by([(name, "ascending") for name in schema.names])
            local = scratch / "records.parquet"
            pq.write_table(table, local, compression="zstd")
            name = f"{folder}/part-{index:05d}.parquet"
            store.create(name, local)
            files.append(describe(store, name))
    return files


def read_part(root: str, path: str, schema: pa.Schema) -> pa.Table:
    """One Parquet part of a work location."""
    with open_store(root).open(path) as stream:
        return pq.read_table(stream, schema=schema, page_checksum_verification=True)


__all__ = ["CountsDisagree", "publish_corpus"]
