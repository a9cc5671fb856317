"""What an export's manifest says: its files, and how much of which source."""

from collections.abc import Mapping, Sequence
from typing import Any


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
