"""What cards are made of: a corpus' manifest, and the two small files beside it that the manifest has the checksums of.

No shard is read, so a card costs the same whatever the size of the corpus, but for the manifest itself.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import RUN, FileEntry, Manifest, load_manifest, unseal
from refinery.loader.format.provenance import ADOPTED
from refinery.loader.format.shard_files import read_file
from refinery.loader.format.takedown import STAGE, totals_of
from refinery.loader.storage.store import Store
from refinery.pipelines.cards.about import About
from refinery.pipelines.report.facts import StageCounts, lane_stages, stage_counts
from refinery.pipelines.statistics.published import (
    MAX_BYTES,
    STATISTICS,
    Category,
    Point,
    Statistics,
    Total,
    parse_statistics,
)
from refinery.transforms.core.lane import AnyStage

MAX_RUN = 1 << 28  # bytes of _run.json: 130 for each input file
# Keys of a manifest that this version knows; cards show all others as they are.
KNOWN = {field.name for field in fields(Manifest)} | {"schema_version", "kind", "writer", "domains"}
NOTHING = Total(documents=0, bytes=0, tokens=None)
PUBLISHED = "published"  # the point of statistics.json behind the encoder


@dataclass(frozen=True)
class CardFacts:
    """A corpus as its small files describe it.

    where: as it was asked for. sha256: of manifest.json. size: its bytes. further: sections of the manifest that this
    version does not know, such as where the corpus was derived from. run: of _run.json, {} without one. stages: the
    funnel summed over sources. declared: name of a stage -> its declaration, where that is known. missing: what is not
    known, and why, a sentence each.
    """

    where: str
    manifest: Manifest
    sha256: str
    size: int
    further: Mapping[str, Any]
    run: Mapping[str, Any]
    statistics: Statistics | None
    stages: Sequence[StageCounts]
    declared: Mapping[str, AnyStage]
    about: About
    missing: Sequence[str]

    @property
    def sources(self) -> list[Mapping[str, Any]]:
        """The sources of the recipe that are on, in its order."""
        listed = self.manifest.recipe.get("sources") or ()
        return [source for source in listed if isinstance(source, Mapping) and source.get("enabled", True)]

    @property
    def inputs(self) -> list[Mapping[str, Any]]:
        """What the run read: source, path, size, digest."""
        return [entry for entry in self.run.get("inputs") or () if isinstance(entry, Mapping)]

    @property
    def published(self) -> Point | None:
        """What was measured of the documents in the shards; None if nothing was."""
        return self.statistics.point(PUBLISHED) if self.statistics else None

    def category(self, name: str) -> Category | None:
        """Documents of the corpus by a note of a stage; None where it was not counted."""
        point = self.published
        return next((each for each in point.categories if each.name == name), None) if point else None

    @property
    def splits(self) -> dict[str, list[str]]:
        """Split -> its domains, both in the manifest's order."""
        found: dict[str, list[str]] = {}
        for shard in self.manifest.shards:
            if shard.domain not in found.setdefault(shard.split, []):
                found[shard.split].append(shard.domain)
        return found


def read_card_facts(store: Store, about: About) -> CardFacts:
    """The facts about the corpus at `store`.

    Raises FormatError where there is no finished corpus, or a file beside the manifest is not the one that it lists.
    Cost: reads of manifest.json, _run.json and statistics.json.
    """
    manifest, data = load_manifest(store)
    payload = unseal(data, store.root)
    listed = {file.path: file for file in manifest.files}
    missing: list[str] = []
    run = _run(store, listed.get(RUN), missing)
    statistics = _statistics(store, listed.get(STATISTICS), missing)
    if manifest.lane == ADOPTED:
        missing.append(
            "The corpus was adopted from files of another tool: nobody recorded sources, addresses, decisions or "
            "dates of its documents."
        )
    declared = {stage.name: stage for stage in lane_stages(manifest.lane)}
    if unknown := [entry.name for entry in manifest.stages if entry.name not in declared and entry.name != STAGE]:
        missing.append(
            f"What these stages of the recipe's own do: {', '.join(unknown)}. Code that a corpus names is not loaded."
        )
    if manifest.takedowns:
        went = totals_of(manifest.takedowns)
        missing.append(
            f"What texts were like before {went['documents']:,} documents were taken out ({len(manifest.takedowns)} "
            "takedowns, by Refinery): languages, hosts and lengths are counted of the documents that are left."
        )
    return CardFacts(
        where=store.root,
        manifest=manifest,
        sha256=hashlib.sha256(data).hexdigest(),
        size=len(data),
        further={name: value for name, value in payload.items() if name not in KNOWN},
        run=run,
        statistics=statistics,
        stages=stage_counts(manifest.funnel, {}),
        declared=declared,
        about=about,
        missing=tuple(missing),
    )


def _run(store: Store, entry: FileEntry | None, missing: list[str]) -> Mapping[str, Any]:
    if entry is None:
        missing.append(f"Input files, libraries and models: there is no {RUN}.")
        return {}
    if entry.size > MAX_RUN:
        raise FormatError(f"{store.url(RUN)}: {entry.size} bytes listed, {MAX_RUN} at most expected")
    return unseal(_read(store, entry), store.url(RUN))


def _statistics(store: Store, entry: FileEntry | None, missing: list[str]) -> Statistics | None:
    if entry is None:
        missing.append(f"Languages, hosts, lengths and signs of bad cleaning: there is no {STATISTICS}.")
        return None
    if entry.size > MAX_BYTES:
        raise FormatError(f"{store.url(STATISTICS)}: {entry.size} bytes listed, {MAX_BYTES} at most expected")
    return parse_statistics(_read(store, entry), store.url(STATISTICS))


def _read(store: Store, entry: FileEntry) -> bytes:
    """A file that the manifest lists. Raises FormatError for another one."""
    data = read_file(store, entry)
    if hashlib.sha256(data).hexdigest() != entry.sha256:
        raise FormatError(f"{store.url(entry.path)}: another SHA-256 than the manifest has; refinery verify says more")
    return data
