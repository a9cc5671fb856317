"""What a corpus of tokens has of the texts that it is made of: funnel, stages, statistics, examples, records."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from refinery.loader.format.listed import first_of_shards
from refinery.loader.format.manifest import Manifest
from refinery.loader.format.parquet.guarded import guarded_parquet
from refinery.loader.format.takedown import STAGE, STAGE_OF_TEXTS
from refinery.pipelines.published.dropped import (
    DROPPED,
    build_dropped,
    dump_dropped,
    joined_dropped,
    read_dropped,
)
from refinery.pipelines.published.published import PublishedCorpus
from refinery.pipelines.published.statistics.build import describe_point, describe_shards, find_tally
from refinery.pipelines.published.statistics.published import STATISTICS, dump_statistics, read_statistics
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.inputs_read.published import INPUTS
from refinery.pipelines.run.phases import Phase
from refinery.pipelines.run.tokenizing.identity import PHASE
from refinery.transforms.statistics.points import PUBLISHED, Point, points_of
from refinery.transforms.write.records import FOLDERS
from refinery.transforms.write.text_stage import TEXT

Row = Mapping[str, Any]
MOST_INPUTS = 1 << 28  # bytes of inputs.json, as of _run.json


def carried_stages(manifest: Manifest, recipe: Recipe) -> list[dict[str, Any]]:
    """The stages of the corpus of tokens, as its manifest lists them."""
    known = {row["stage"] for row in carried_rows(manifest)} | {stage.name for stage in recipe.LANE.stages}
    before = [
        {"name": STAGE_OF_TEXTS if stage.name == STAGE else stage.name, "phase": stage.phase, "version": stage.version}
        for stage in manifest.stages
    ]
    behind = [{"name": stage.name, "phase": PHASE, "version": stage.version} for stage in recipe.LANE.encoding]
    return [*(stage for stage in before if stage["name"] in known), *behind]


def carried_rows(manifest: Manifest) -> list[Row]:
    """The funnel of the texts. The stage that hands texts to their writer is left out where it lost none: the encoder
    takes over from the stage before it. A takedown of texts gets another name, since the funnel goes on behind it."""
    lost = any(row["dropped"] or row["dead"] for row in manifest.funnel if row["stage"] == TEXT.name)
    return [
        {**row, "stage": STAGE_OF_TEXTS} if row["stage"] == STAGE else row
        for row in manifest.funnel
        if row["stage"] != TEXT.name or lost
    ]


def carried_records(corpus: PublishedCorpus) -> Phase:
    """rejects/ and dead_letters/ of the corpus, as the parts of a phase. Cost: a read of each footer."""
    parts: dict[str, list[dict[str, Any]]] = {}
    for folder in FOLDERS:
        for file in corpus.files(folder):
            with guarded_parquet(corpus.store.open(file.path), corpus.store.url(file.path)) as opened:
                parts.setdefault(folder, []).append(
                    {"path": file.path, "rows": opened.metadata.num_rows, "size": file.size}
                )
    return Phase("texts", "", corpus.root, {"parts": parts, "counters": [], "seconds": {}})


def carried_files(
    corpus: PublishedCorpus, recipe: Recipe, report: Mapping[str, Any], shards: pa.Table
) -> Iterator[tuple[str, bytes]]:
    """The small files of the corpus of tokens by name, as far as the texts have them: statistics, with what its shards
    hold measured again; examples of what was dropped; checksums of the inputs. report: of the job."""
    if statistics := read_statistics(corpus):
        tally = find_tally(report, PUBLISHED)
        points = {point.name: point for point in statistics.points}
        for point, after in measured_points(recipe):
            points[point.name] = describe_point(point, after, find_tally(report, point), recipe.notes())
        measured = None if tally is None else describe_shards(tally, len(first_of_shards(shards)))
        update = {"points": tuple(points.values()), "shards": measured}
        yield STATISTICS, dump_statistics(statistics.model_copy(update=update))
    if dropped := read_dropped(corpus):
        yield DROPPED, dump_dropped(joined_dropped(dropped, build_dropped({"clean": {}, "shards": report})))
    if corpus.lists(INPUTS):
        yield INPUTS, corpus.read(INPUTS, MOST_INPUTS)


def measured_points(recipe: Recipe) -> Iterator[tuple[Point, str]]:
    """The points that are measured again, each with the stage behind which it is: texts as they go to the encoder where
    a stage changes them before it, and documents in the shards."""
    encoding = [stage for stage, _ in recipe.active(PHASE) if stage in recipe.LANE.encoding]
    yield from ((point, after) for after, point in points_of(PHASE, encoding) if after)
    yield PUBLISHED, recipe.LANE.funnel[-1]


def taken_sources(rows: Sequence[Row]) -> list[str]:
    """Sources of which the texts have nothing."""
    kept = {row["source"]: row["kept"]["documents"] for row in rows}
    return [source for source, documents in kept.items() if not documents]
