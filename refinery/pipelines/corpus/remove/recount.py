"""What statistics.json says of the documents that are left: counted again of their provenance.

Of texts it says nothing any more: they are not read. What other places of the funnel measured counts what went, too,
and is left out. The point "published" is what a run without these documents has there.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import apache_beam as beam
import orjson

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import ShardEntry, shard_name
from refinery.loader.format.parquet.batches import stored_batches
from refinery.loader.format.publish_manifest import reported_shard
from refinery.loader.format.takedown import STAGE
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.corpus.export.place import SourceCorpus
from refinery.pipelines.corpus.export.rows import CorpusFacts, corpus_facts, parse_entry, plain_entry
from refinery.pipelines.corpus.remove.place import Place
from refinery.pipelines.corpus.remove.rewrite import shuffled_meta
from refinery.pipelines.progress.work import Step, Work
from refinery.pipelines.published.statistics.build import describe_point, describe_shards, places
from refinery.pipelines.published.statistics.published import STATISTICS, Statistics, dump_statistics
from refinery.pipelines.recipe.load_recipe import recorded_recipe
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.publish import describe
from refinery.transforms.core.counters import work_done
from refinery.transforms.core.exchange.side_outputs import add_side_output
from refinery.transforms.core.job.read_task_list import ReadTaskList
from refinery.transforms.core.job.task_list import TaskList, write_task_list
from refinery.transforms.core.job.write_report import WriteReport
from refinery.transforms.statistics.measure import KIND, MergeStatistics, ShardTally
from refinery.transforms.statistics.points import PUBLISHED
from refinery.transforms.statistics.tally import Measured, Tally, measured_notes, unpack

JOB = "recount"
NUMBER = 20_000  # of the job: behind all of those that decide families


def recount_shard(line: bytes, corpus: CorpusFacts, notes: Measured) -> bytes:
    """The side-output record of the documents of a shard, as its writer measures them. Memory: a batch of its
    provenance."""
    entry = parse_entry(orjson.loads(line))
    names, tally = [column.name for column in corpus.columns], ShardTally(notes)
    path, wanted = entry.provenance.path, corpus.schema.names
    for batch in stored_batches(open_store(corpus.root), path, wanted, exactly=corpus.file_schema):
        for row in batch.to_pylist():
            own = {name: row[name] for name in names}
            tally.add(row, shuffled_meta(row["meta"], own, row["copies"], row["sources"]), row.get("token_count"))
    work_done("shards", 1)
    return tally.record(shard_name(entry.split, entry.domain, entry.index, entry.count))


@dataclass
class Recount(beam.PTransform):
    """Measure the documents of every shard of a list."""

    tasks: TaskList
    corpus: CorpusFacts
    notes: Measured

    def __post_init__(self) -> None:
        super().__init__(JOB)

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection[bytes]:
        count = partial(recount_shard, corpus=self.corpus, notes=self.notes)
        records = begin | ReadTaskList(self.tasks) | "measure" >> beam.Map(count).with_output_types(bytes)
        add_side_output(begin.pipeline, records)
        return records


def publish_statistics(
    place: Place,
    corpus: SourceCorpus,
    recipe_file: str,
    shards: Sequence[Mapping[str, Any]],
    funnel: Sequence[Mapping[str, Any]],
) -> dict[str, Any] | None:
    """Write statistics.json of the new version; its file for the manifest, None where the recipe, which says what is
    measured, cannot be read here. shards, funnel: of the new manifest."""
    recipe = _recipe(corpus, recipe_file)
    if recipe is None:
        return None
    manifest = corpus.manifest
    entries = [reported_shard(shard, manifest.written) for shard in shards]
    published = _count(place, corpus, recipe, [entry for entry in entries if entry.documents])
    dedup = {"counters": [{"stage": row["stage"]} for row in funnel if row["stage"] != STAGE]}
    points = tuple(
        describe_point(
            point,
            STAGE if point is PUBLISHED else after,
            published if point is PUBLISHED else None,
            recipe.notes(),
            manifest.has_tokens,
        )
        for point, after in places(recipe, dedup)
    )
    found = Statistics(points=points, clusters=(), shards=describe_shards(published, len(entries), manifest.has_tokens))
    place.store.create(STATISTICS, dump_statistics(found))
    return describe(place.store, STATISTICS)


def _recipe(corpus: SourceCorpus, recipe_file: str) -> Recipe | None:
    try:
        run = corpus.run
        return recorded_recipe(corpus.root, run["recipe"], recipe_file)
    except (ValueError, OSError, KeyError):  # FormatError is a ValueError
        return None


def _count(place: Place, corpus: SourceCorpus, recipe: Recipe, entries: Sequence[ShardEntry]) -> Tally:
    facts = replace(corpus_facts(corpus.root, corpus.manifest), root=place.root)
    lines = [orjson.dumps(plain_entry(entry), option=orjson.OPT_SORT_KEYS) for entry in entries]

    def build(pipeline: beam.Pipeline) -> None:
        tasks = write_task_list(place.work, JOB, lines)
        pipeline | Recount(tasks, facts, measured_notes(recipe.notes()))
        head = {"fingerprint": place.fingerprint}
        pipeline | WriteReport(place.work, f"{JOB}/report.json", head, {KIND: MergeStatistics})

    report = place.run_job(JOB, build, NUMBER, Work(JOB, steps=[Step("shards", len(lines))]))
    packed = report[KIND].get(PUBLISHED.name)
    if packed is None and lines:
        raise FormatError(f"{JOB}: its report has no count of the shards")
    return Tally() if packed is None else unpack(packed)
