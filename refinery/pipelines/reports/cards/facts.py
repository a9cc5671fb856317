"""What cards are made of: a corpus' manifest, and the two small files beside it that the manifest has the checksums of.

No shard is read, so a card costs the same whatever the size of the corpus, except for reading the manifest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from refinery.loader.format.manifest import RUN, Manifest
from refinery.loader.format.takedown import STAGE, STAGE_OF_TEXTS, totals_of
from refinery.loader.storage.store import Store
from refinery.pipelines.published.deduplicated import KEY as DEDUPLICATED
from refinery.pipelines.published.published import PublishedCorpus
from refinery.pipelines.published.statistics.published import (
    STATISTICS,
    Category,
    Point,
    Statistics,
    Total,
)
from refinery.pipelines.reports.cards.about import About
from refinery.pipelines.reports.run.facts import StageCounts, lane_stages, stage_counts
from refinery.transforms.core.lane import AnyStage
from refinery.transforms.write.text_stage import TEXT

NAMED = (STAGE, STAGE_OF_TEXTS, TEXT.name)  # stages that the funnel may have and no lane
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


def read_card_facts(location: str | Store, about: About) -> CardFacts:
    """The facts about the corpus at a location.

    Raises FormatError where there is no finished corpus, or a file beside the manifest is not the one that it lists.
    Cost: reads of manifest.json, _run.json and statistics.json.
    """
    corpus = PublishedCorpus(location)
    manifest = corpus.manifest
    missing: list[str] = []
    run = corpus.run if corpus.lists(RUN) else {}
    if not run:
        missing.append(f"Input files, libraries and models: there is no {RUN}.")
    statistics = corpus.statistics()
    if statistics is None:
        missing.append(f"Languages, hosts, lengths and signs of bad cleaning: there is no {STATISTICS}.")
    if corpus.is_adopted:
        missing.append(
            "The corpus was adopted from files of another tool: sources, addresses, decisions and dates of "
            "its documents were not recorded."
        )
    declared = {stage.name: stage for stage in lane_stages(manifest.lane, manifest.written.writer)}
    if unknown := [entry.name for entry in manifest.stages if entry.name not in {*declared, *NAMED}]:
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
        where=corpus.root,
        manifest=manifest,
        sha256=corpus.sha256,
        size=corpus.manifest_bytes,
        further={name: value for name, value in manifest.further.items() if name != DEDUPLICATED},
        run=run,
        statistics=statistics,
        stages=stage_counts(manifest.funnel, {}),
        declared=declared,
        about=about,
        missing=tuple(missing),
    )
