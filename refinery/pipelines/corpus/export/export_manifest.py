"""What an export's manifest says: its files, and how much of which source."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import MANIFEST, MAX_MANIFEST, check_version, unseal
from refinery.loader.storage.store import Store
from refinery.pipelines.corpus.export.export_format import KIND

# Where formats whose libraries read every file of a folder have the manifest: names that begin with "_" are skipped by
# pyarrow, Spark, DuckDB's globs and others.
HIDDEN = f"_{MANIFEST}"


def manifest_name(store: Store) -> str:
    """Where the manifest of an export is, or would be."""
    return HIDDEN if store.size(HIDDEN) is not None else MANIFEST


def is_export(data: bytes) -> bool:
    """Whether a manifest's bytes are those of an export; without a check of anything else."""
    return f'\n "kind": "{KIND}"'.encode() in data


def holds_export(store: Store) -> bool:
    """Whether an export is published at `store`, sound or not. Cost: a read of manifest.json."""
    try:
        return is_export(store.read(manifest_name(store), 0, MAX_MANIFEST))
    except (FileNotFoundError, NotADirectoryError):
        return False


def read_export(store: Store) -> tuple[dict[str, Any], str]:
    """The manifest of the export at `store`, and its SHA-256. Raises FormatError where it is missing, damaged or of
    something else."""
    where = store.url(MANIFEST)
    try:
        name = manifest_name(store)
        where = store.url(name)
        data = store.read(name, 0, MAX_MANIFEST + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise FormatError(f"{store.root}: {MANIFEST} is missing, so the export is not finished") from None
    if len(data) > MAX_MANIFEST:
        raise FormatError(f"{where}: more than {MAX_MANIFEST} bytes found, {MAX_MANIFEST} at most expected")
    payload = unseal(data, where)
    if payload.get("kind") != KIND:
        raise FormatError(f"{where}: kind {payload.get('kind')!r:.80} found, {KIND!r} expected")
    check_version(payload, where)
    return payload, hashlib.sha256(data).hexdigest()


def sum_sources(counts: Sequence[Mapping[str, Mapping[str, int]]]) -> dict[str, dict[str, int]]:
    """Source -> documents, tokens and bytes, summed."""
    total: dict[str, dict[str, int]] = {}
    for each in counts:
        for source, values in each.items():
            entry = total.setdefault(source, dict.fromkeys(values, 0))
            for key, value in values.items():
                entry[key] += value
    return dict(sorted(total.items()))


def file_entries(manifest: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What an export's manifest says of each of its files."""
    parts = [part for name in ("shards", "leftover", "provenance") for part in manifest.get(name, [])]
    return [*manifest["files"], *(part["file"] for part in parts)]


def listed_files(manifest: Mapping[str, Any]) -> list[str]:
    """Paths of these files."""
    return [str(entry["path"]) for entry in file_entries(manifest)]
