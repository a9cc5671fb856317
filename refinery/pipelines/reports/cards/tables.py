"""The tables and passages that cards share, those of exports too."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from refinery.loader.format.manifest import Manifest
from refinery.loader.format.takedown import MEANINGS
from refinery.pipelines.progress.words import human_bytes
from refinery.pipelines.reports.cards.markdown import code, escaped, fenced, table, text, to_yaml
from refinery.pipelines.reports.run.facts import StageCounts
from refinery.pipelines.reports.run.words import share
from refinery.transforms.core.lane import AnyStage

MOST_ROWS = 200  # of a table by stage and source
MOST_FILES = 10  # input files of a source that are named


def totals_line(manifest: Manifest) -> str:
    """How large it is."""
    totals = manifest.totals
    size = f", {totals['bytes']:,} bytes of text" if totals["bytes"] else ""
    return f"{totals['documents']:,} documents{size}" + (f", {totals['tokens']:,} tokens" if "tokens" in totals else "")


def made_by(manifest: Manifest) -> str:
    """By what it was made, in a sentence's words."""
    return f"Refinery {code(manifest.versions.get('refinery', ''))}".rstrip()


def source_counts(counts: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Documents, tokens and bytes of sources."""
    yield from table(
        ("source", "documents", "tokens", "bytes of text"),
        (
            (text(name), f"{each['documents']:,}", f"{each['tokens']:,}", f"{each['bytes']:,}")
            for name, each in sorted(counts.items())
        ),
    )


def funnel_table(funnel: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What became of documents, by stage and source."""
    yield from table(
        ("stage", "source", "in", "kept", "dropped", "failed"), (_funnel_row(row) for row in funnel[:MOST_ROWS])
    )
    if len(funnel) > MOST_ROWS:
        yield f"{len(funnel) - MOST_ROWS:,} rows more are in the manifest's `funnel`."
        yield ""


def _funnel_row(row: Mapping[str, Any]) -> tuple[str, ...]:
    dropped = ", ".join(f"{text(why)} {count['documents']:,}" for why, count in sorted(row["dropped"].items()))
    dead = ", ".join(f"{text(why)} {count['documents']:,}" for why, count in sorted(row["dead"].items()))
    entered, kept = row["in"]["documents"], row["kept"]["documents"]
    return text(row["stage"]), text(row["source"]), f"{entered:,}", f"{kept:,}", dropped, dead


def reasons_table(stages: Sequence[StageCounts], declared: Mapping[str, AnyStage]) -> Iterator[str]:
    """Every reason for which documents left, of all sources, with what it means."""
    rows = []
    for stage in stages:
        meanings = {reason.name: reason.meaning for reason in getattr(declared.get(stage.name), "reasons", ())}
        entered = stage.entered + stage.created
        for why, (documents, size) in stage.dropped.items():
            meaning = meanings.get(why) or MEANINGS.get(why, "")
            rows.append((text(stage.name), text(why), *_lost(documents, entered, size), inline(meaning)))
        for why, (documents, size) in stage.dead.items():
            rows.append((text(stage.name), f"failed: {text(why)}", *_lost(documents, entered, size), ""))
    if rows:
        yield from table(("stage", "reason", "documents", "of those that entered", "bytes", "meaning"), rows)
    else:
        yield from ("Nothing left.", "")


def _lost(documents: int, entered: int, size: int) -> tuple[str, str, str]:
    return f"{documents:,}", share(documents, entered), f"{size:,}"


def inline(meaning: str) -> str:
    """A sentence of a declaration, with `code` in it."""
    parts = meaning.split("`")
    return "".join(code(part) if place % 2 else escaped(part) for place, part in enumerate(parts))


def recipe_block(recipe: Mapping[str, Any]) -> Iterator[str]:
    """The recipe as YAML, which runs again as it is."""
    yield from fenced(to_yaml({name: recipe[name] for name in sorted(recipe)}), "yaml")


def without_paths(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe without where its inputs were: these are of the machine that ran it, and may be private."""
    sources = [{key: value for key, value in source.items() if key != "paths"} for source in recipe.get("sources", [])]
    return {**recipe, "sources": sources}


def inputs_table(inputs: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The files that were read: the first of each source by name, of the others number, size and one digest."""
    by_source: dict[str, list[Mapping[str, Any]]] = {}
    for entry in inputs:
        by_source.setdefault(str(entry["source"]), []).append(entry)
    rows = []
    for source, entries in by_source.items():
        for entry in entries[:MOST_FILES]:
            rows.append((text(source), code(entry["path"]), f"{entry['size']:,}", code(entry["digest"])))
        rest = len(entries) - MOST_FILES
        if rest > 0:
            rows.append((text(source), f"and {rest:,} files more", "", ""))
        total = sum(entry["size"] for entry in entries)
        rows.append((text(source), f"all {len(entries):,}", f"{total:,}", f"list: {code(list_digest(entries))}"))
    yield from table(("source", "file", "bytes", "digest"), rows)
    yield (
        "The digest of a local file is its CRC-32C (of a file above 64 MiB, that of 64 evenly spread MiB), of a remote "
        "one what its storage reports. That of a list is the SHA-256 of its entries in `_run.json`, which has all of "
        "them."
    )
    yield ""


def list_digest(entries: Iterable[Mapping[str, Any]]) -> str:
    """SHA-256 of entries as canonical JSON, a line each."""
    digest = hashlib.sha256()
    for entry in entries:
        digest.update(json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode() + b"\n")
    return digest.hexdigest()


def sizes(size: int) -> str:
    """Bytes as people read them, and exactly."""
    return f"{human_bytes(size)} ({size:,} bytes)"
