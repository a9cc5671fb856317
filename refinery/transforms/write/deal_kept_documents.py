"""The documents that deduplication kept as a PTransform: parts are dealt out to the workers by row group.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import apache_beam as beam

from refinery.transforms.core.document import Document
from refinery.transforms.core.exchange.exchange import Deal
from refinery.transforms.core.job.read_task_list import ReadTaskList
from refinery.transforms.core.job.task_list import TaskList
from refinery.transforms.dedup.cutting_pass import Cuts
from refinery.transforms.write.kept_documents import parse_pair, read_kept_documents


def list_groups(line: bytes) -> Iterator[bytes]:
    """A pair's line -> one for each of its row groups: number of the group, space, the pair's line."""
    for group in range(parse_pair(line).groups):
        yield b"%d %b" % (group, line)


def read_group(line: bytes, cuts: Sequence[Cuts], labels: bool = False) -> Iterator[Document]:
    """The kept documents of a line of `list_groups`, with what is to be cut; all of them where they get labels."""
    group, _, pair = line.partition(b" ")
    return read_kept_documents(parse_pair(pair), int(group), cuts, labels)


@dataclass
class ReadKeptDocuments(beam.PTransform):
    """Read the kept documents of every part, spread over the workers by row group, so a few parts still keep many
    workers busy. pairs: of `write_pairs`; workers list the row groups, of which 100 TB of crawl has millions.
    cuts: what passes that are on cut, noted in each document. labels: also those that were not kept, with notes that
    say so.
    """

    pairs: TaskList
    cuts: tuple[Cuts, ...]
    labels: bool = False

    def __post_init__(self) -> None:
        super().__init__("kept-documents")

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection[Document]:
        lines = begin | ReadTaskList(self.pairs) | "groups" >> beam.FlatMap(list_groups).with_output_types(bytes)
        read = beam.FlatMap(read_group, cuts=self.cuts, labels=self.labels).with_output_types(Document)
        return lines | Deal("deal groups") | "read" >> read
