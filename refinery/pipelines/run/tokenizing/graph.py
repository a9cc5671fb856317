"""The job of `refinery tokenize`: text shards through the lane's encoder to shards of tokens.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import apache_beam as beam

import refinery.transforms.core.coders  # noqa: F401 - registers the coder of Document, so no runner pickles one
from refinery.pipelines.recipe.graphs import MERGERS, apply_stages
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.tokenizing.read_texts import TextFormat, carry_file, read_texts
from refinery.transforms.core.document import Document
from refinery.transforms.core.exchange.side_outputs import add_side_output
from refinery.transforms.core.job.read_task_list import ReadTaskList
from refinery.transforms.core.job.report import Check
from refinery.transforms.core.job.task_list import TaskList
from refinery.transforms.core.job.write_report import WriteReport
from refinery.transforms.write.shard_reports import KIND as SHARDS
from refinery.transforms.write.shard_reports import MergeShards
from refinery.transforms.write.shards import ShardsJob
from refinery.transforms.write.write_shards import write_corpus


@dataclass
class ReadTexts(beam.PTransform):
    """The documents of text shards, a task each. shards: lines of `dump_shard`."""

    shards: TaskList
    texts: TextFormat

    def __post_init__(self) -> None:
        super().__init__("read-texts")

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection[Document]:
        read = beam.FlatMap(read_texts, texts=self.texts).with_output_types(Document)
        return begin | ReadTaskList(self.shards) | "read" >> read


@dataclass
class CarryFiles(beam.PTransform):
    """Compare files of a corpus with its manifest, a task each, and copy those of the folder `copied` to a prefix."""

    files: TaskList
    source: str
    prefix: str
    copied: str

    def __post_init__(self) -> None:
        super().__init__("carry-files")

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection[bytes]:
        carry = beam.FlatMap(carry_file, source=self.source, prefix=self.prefix, copied=self.copied)
        carried = begin | ReadTaskList(self.files) | "carry" >> carry.with_output_types(bytes)
        add_side_output(begin.pipeline, carried)
        return carried


def tokenize(
    pipeline: beam.Pipeline,
    recipe: Recipe,
    read: ReadTexts,
    carry: CarryFiles,
    job: ShardsJob,
    work: str,
    report: str,
    facts: Any,
    check: Check,
    digests: Mapping[str, str],
) -> None:
    """Text shards -> the shards of tokens of one run with this recipe, under the job's prefix."""
    docs = pipeline | read  # Document
    encoded = apply_stages(docs, recipe, "shards", True, digests, recipe.LANE.encoding)  # EncodedDocument
    write_corpus(encoded, job)
    pipeline | carry
    pipeline | WriteReport(work, report, facts, {**MERGERS, SHARDS: MergeShards}, check)
