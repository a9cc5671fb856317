"""`refinery status`: where an export stands, by source. Reads only small files, and writes nothing."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from refinery.loader.format.manifest import RUN, unseal
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store
from refinery.pipelines.corpus.export.checkpoint import Checkpoint, read_checkpoint
from refinery.pipelines.corpus.export.export_format import RUN_KIND
from refinery.pipelines.corpus.export.export_manifest import manifest_name, read_export, sum_sources
from refinery.pipelines.corpus.export.options import WORK
from refinery.transforms.core.wording import many


@dataclass(frozen=True)
class ExportStatus:
    """state: "complete", "running" (started, and not finished) or "growing" (complete, and another corpus is being
    added). done, planned: shards or parts of the order that this step has written, and has to write. sources: counts
    of what is finished. leftover: tokens of each split that wait for the next corpus. step: what is being done.
    """

    location: str
    format: str
    state: str
    corpora: tuple[str, ...] = ()
    shards: int = 0
    sources: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    leftover: Mapping[str, int] = field(default_factory=dict)
    done: int = 0
    planned: int | None = None
    step: str = ""


def export_status(location: str) -> ExportStatus:
    """The status of the export at a local folder, gs:// or s3:// prefix. Raises ValueError where there is none, and
    FormatError (a ValueError, too) for damaged records.
    """
    store = open_store(location)
    if store.size(RUN) is None:
        raise ValueError(f"{location}: not an export; for a corpus, run `refinery inspect`")
    run = unseal(store.read(RUN), store.url(RUN))
    if run.get("kind") != RUN_KIND:
        raise ValueError(f"{location}: this is a corpus, not an export; run `refinery inspect`")
    manifest = read_export(store)[0] if store.size(manifest_name(store)) is not None else None
    records = list(_records(store))
    checkpoint = read_checkpoint(store)
    working = manifest is None or (checkpoint is not None and checkpoint.state != "complete")
    finished = manifest["sources"] if manifest else {}
    return ExportStatus(
        location=location,
        format=run["options"]["format"],
        state="complete" if not working else "growing" if manifest else "running",
        corpora=_corpora(manifest, run),
        shards=manifest["totals"]["shards"] if manifest else 0,
        sources=sum_sources([finished, *(record["sources"] for record in records if working)]),
        leftover=manifest.get("leftover_tokens", {}) if manifest else {},
        done=len(records) if working else 0,
        planned=_planned(checkpoint),
        step=_step(checkpoint) if working else "",
    )


def _records(store: Store) -> Iterator[Mapping[str, Any]]:
    """What the workers noted as done."""
    for name in store.list(f"{WORK}/done"):
        yield unseal(store.read(name), store.url(name))["record"]


def _corpora(manifest: Mapping[str, Any] | None, run: Mapping[str, Any]) -> tuple[str, ...]:
    if manifest and "corpora" in manifest:
        return tuple(corpus["name"] for corpus in manifest["corpora"])
    return (run["corpus"]["name"],) if "corpus" in run else ()


def _planned(checkpoint: Checkpoint | None) -> int | None:
    return None if checkpoint is None else sum(split.regions for split in checkpoint.splits)


def _step(checkpoint: Checkpoint | None) -> str:
    if checkpoint is None:
        return "writing"
    return f"{checkpoint.state} corpus {checkpoint.sequence + 1}, {checkpoint.corpus['name']}"


def text_lines(status: ExportStatus) -> Iterator[str]:
    """For the terminal."""
    names = ", ".join(status.corpora) or "nothing yet"
    yield f"{status.location}: {status.format}, {status.state}; {many(status.shards, 'shard')} of {names}"
    if status.state != "complete":
        of = f" of {status.planned:,}" if status.planned is not None else ""
        yield f"{status.step}: {status.done:,}{of} parts done; the same `refinery export` command continues"
    for source, counts in status.sources.items():
        documents, tokens, size = (counts[name] for name in ("documents", "tokens", "bytes"))
        yield f"  {source}: {many(documents, 'document')}, {many(tokens, 'token')}, {many(size, 'byte')} of text"
    for split, tokens in status.leftover.items():
        yield f"  left over for the next corpus, {split}: {many(tokens, 'token')}"


def json_line(status: ExportStatus) -> str:
    """One JSON object, keys sorted."""
    return json.dumps({name: getattr(status, name) for name in status.__dataclass_fields__}, sort_keys=True)
