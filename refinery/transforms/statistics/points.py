"""Where in the funnel documents are measured: derived from a lane's stages, so no lane has to say it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from refinery.transforms.core.document import Document
from refinery.transforms.core.stage import Stage


@dataclass(frozen=True, slots=True)
class Point:
    """name: in statistics.json. phase: the one that measures it. text: whether documents are texts, not tokens.
    hosts: whether hosts of addresses are counted. artefacts: whether texts are looked through for them."""

    name: str
    phase: str
    meaning: str
    text: bool = True
    hosts: bool = False
    artefacts: bool = False


EXTRACTED = Point(
    "extracted", "clean", "documents as the first stage that makes any leaves them", hosts=True, artefacts=True
)
CLEANED = Point("cleaned", "clean", "documents that phase 1 hands on")
DEDUPLICATED = Point("deduplicated", "shards", "documents that deduplication kept")
FINAL = Point("final", "shards", "texts as they go to the encoder", artefacts=True)
PUBLISHED = Point("published", "shards", "documents in the shards, encoded", text=False, hosts=True)
POINTS = (EXTRACTED, CLEANED, DEDUPLICATED, FINAL, PUBLISHED)


def points_of(phase: str, stages: Sequence[Stage[Any]]) -> Iterator[tuple[str, Point]]:
    """(stage behind which to measure, point) for the documents between the stages of a phase; "" is before the first.

    stages: those that are on, in order. The writer measures `PUBLISHED`, since it knows what is written.
    """
    judging = [stage for stage in stages if stage.judge is not None]
    makes_documents = [stage.name for stage in judging if stage.output is Document]
    if phase == "clean" and makes_documents:
        yield makes_documents[0], EXTRACTED
        yield makes_documents[-1], CLEANED
    if phase == "shards":
        yield "", DEDUPLICATED
        yield makes_documents[-1] if makes_documents else "", FINAL
