"""Deduplication as one transform: signatures/ parts in, one packed block of verdicts per part out.

    parts -> identities -> exact copies -> band hashes -> buckets -> sketches -> links -> components -> members
          -> verified removals -> verdicts

Every arrow is a shuffle of packed blocks (transforms/packed.py). The result depends on the documents alone: not on the
runner, the bundles, the order of anything, nor on how documents fall into parts.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import apache_beam as beam

from transforms.components import label_blocks
from transforms.exact_duplicates import identity_blocks, keep_first
from transforms.near_duplicates import NearParams, band_blocks, bucket_blocks, hash_blocks, link_blocks
from transforms.packed import EXACT, NEAR, MapBlocks, header
from transforms.signatures import SignatureParams
from transforms.verdicts import STAGES, PackVerdicts, WriteVerdicts
from transforms.verify_removals import member_blocks, verify_blocks

__all__ = ["DedupParams", "Deduplicate", "WriteVerdicts"]


@dataclass(frozen=True)
class DedupParams:
    """exact: remove documents of equal text. near: remove documents that nearly equal a better one, or null."""

    exact: bool = True
    near: NearParams | None = field(default_factory=NearParams)


@dataclass
class Deduplicate(beam.PTransform):
    """Decide which documents of these signatures/ parts survive: -> (number of the part, packed verdicts).

    sources: names of all sources. parts: (url, rows) of each part in the order that numbers them. partitions: keys of
    each shuffle (bands times as many for bands); about one per 250,000 documents keeps a key's rows below 25 MB.
    Raises ValueError when the bands do not fit the signatures.
    """

    params: DedupParams
    signature: SignatureParams
    sources: Sequence[str]
    parts: Sequence[tuple[str, int]]
    partitions: int = 1

    def __post_init__(self) -> None:
        super().__init__("deduplicate")
        if self.partitions < 1:
            raise ValueError(f"partitions: {self.partitions} given, 1 or more is allowed")
        if self.params.near is not None:
            self.params.near.layout(self.signature.permutations)

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection:
        elements = [header(part, url, rows) for part, (url, rows) in enumerate(self.parts)]
        headers = pipeline | "parts" >> beam.Create(elements).with_output_types(tuple[int, bytes])
        sources = tuple(sorted(self.sources))
        decided, stages = [headers], []
        if self.params.exact:
            stages.append(EXACT)
            decided.append(headers | RemoveExact(sources, self.partitions))
        if self.params.near is not None:
            stages.append(NEAR)
            removals = tuple(decided) | RemoveNear(self.params.near, self.signature, sources, self.partitions)
            decided.append(removals)
        grouped = tuple(decided) | "by part" >> Together()  # (part, header, removals, copies)
        return grouped | PackVerdicts(sources, tuple(stages))  # (part, packed verdicts)


@dataclass
class RemoveExact(beam.PTransform):
    """Headers of parts -> removals and copies by part."""

    sources: tuple[str, ...]
    partitions: int

    def __post_init__(self) -> None:
        super().__init__(STAGES[EXACT])

    def expand(self, headers: beam.PCollection) -> beam.PCollection:
        stage = STAGES[EXACT]
        read = partial(identity_blocks, sources=self.sources, partitions=self.partitions)
        identities = headers | "to read" >> beam.GroupByKey() | MapBlocks(stage, "identities", read)  # (range, ids)
        return identities | "by id" >> beam.GroupByKey() | MapBlocks(stage, "keep-first", keep_first)


@dataclass
class RemoveNear(beam.PTransform):
    """(headers of parts, exact removals and copies by part) -> near removals and copies by part."""

    near: NearParams
    signature: SignatureParams
    sources: tuple[str, ...]
    partitions: int

    def __post_init__(self) -> None:
        super().__init__(STAGES[NEAR])

    def expand(self, decided: Any) -> beam.PCollection:
        stage, near, permutations = STAGES[NEAR], self.near, self.signature.permutations
        make_hashes = partial(hash_blocks, params=near, permutations=permutations, partitions=self.partitions)
        find_buckets = partial(bucket_blocks, partitions=self.partitions)
        make_bands = partial(band_blocks, permutations=permutations, partitions=self.partitions)
        make_links = partial(link_blocks, params=near, permutations=permutations)
        make_members = partial(
            member_blocks, sources=self.sources, permutations=permutations, partitions=self.partitions
        )
        verify = partial(verify_blocks, params=near, permutations=permutations)
        headers = decided[0]

        hashes = decided | "to hash" >> Together() | MapBlocks(stage, "hashes", make_hashes)  # ((band, range), hashes)
        shared = hashes | "by hash" >> beam.GroupByKey() | MapBlocks(stage, "buckets", find_buckets)  # (part, shared)
        wanted = (headers, shared) | "to sketch" >> Together()  # (part, header and candidates)
        bands = wanted | MapBlocks(stage, "bands", make_bands)  # ((band, range), candidates with sketches)
        links = bands | "by band" >> beam.GroupByKey() | MapBlocks(stage, "links", make_links)  # (0, links)
        labels = links | "all links" >> beam.GroupByKey() | MapBlocks(stage, "components", label_blocks)  # by part
        placed = (*decided, labels) | "to verify" >> Together()  # (part, header, copies, labels)
        members = placed | MapBlocks(stage, "members", make_members)  # (range of components, members and copies)
        return members | "by component" >> beam.GroupByKey() | MapBlocks(stage, "verify", verify)  # (part, removals, …)


class Together(beam.PTransform):
    """Several PCollections of (key, block) -> (key, all their blocks)."""

    def expand(self, blocks: Any) -> beam.PCollection:
        return blocks | beam.Flatten() | beam.GroupByKey()
