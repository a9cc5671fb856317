"""The lookup index of the new version, made again from its files, because rows of rewritten files have changed.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa

from refinery.loader.format.listed import shard_totals
from refinery.pipelines.corpus.remove.place import Place
from refinery.pipelines.progress.work import Step, Work
from refinery.pipelines.run.publish import FEW_PARTS
from refinery.transforms.core.job.write_report import WriteReport
from refinery.transforms.write.lookup.tasks import files_for, folder_tasks, shard_tasks
from refinery.transforms.write.lookup.write_lookup import WriteLookup, write_lookup_tasks, write_whole_lookup
from refinery.transforms.write.records import KIND, PublishedFiles

JOB = "lookup"


def publish_lookup(
    place: Place,
    shards: pa.Table,
    files: Sequence[Mapping[str, Any]],
    rejected: int,
    funnel: Sequence[Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """Write lookup/ of the files that are there; returns its own for the manifest. shards: of `shard_table`, with files
    what the manifest will list. rejected: rows of rejects/. funnel: of the corpus, which counts its dead letters."""
    tasks = [*shard_tasks(place.root, shards), *folder_tasks(place.root, files)]
    documents, removed = shard_totals(shards)["documents"], sum(file.get("rows", 0) for file in files)
    dead = sum(count["documents"] for row in funnel for count in row["dead"].values())
    count = files_for(documents, removed, rejected, dead)
    if count == 1 and len(tasks) <= FEW_PARTS:
        return [write_whole_lookup(tasks, place.root)]

    def build(pipeline: beam.Pipeline) -> None:
        pipeline | WriteLookup(write_lookup_tasks(place.work, tasks), count, place.root)
        facts = {"fingerprint": place.fingerprint}
        pipeline | WriteReport(place.work, f"{JOB}/report.json", facts, {KIND: PublishedFiles})

    written: list[dict[str, Any]] = place.run_job(JOB, build, 2, Work(JOB, steps=[Step("files", len(tasks))]))[KIND]
    return written
