"""The kept bytes of all input files by a job, for shards in input order: parts are read and counted by the workers.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
import orjson

from refinery.transforms.core.exchange.exchange import Exchange
from refinery.transforms.core.exchange.records import side_output_record
from refinery.transforms.core.exchange.side_outputs import add_side_output
from refinery.transforms.core.job.read_task_list import ReadTaskList
from refinery.transforms.core.job.task_list import TaskList
from refinery.transforms.write.kept_documents import parse_pair
from refinery.transforms.write.kept_sizes import KeptSizes, count_part, merge_sizes

KIND = "kept-sizes"  # of side-output records, and the report's key


def _count(line: bytes, bits: int) -> Iterator[tuple[bytes, bytes]]:
    for file, found in count_part(parse_pair(line), bits):
        head = found.shift.to_bytes(1, "little")
        yield orjson.dumps(file), head + found.stretches.tobytes() + found.sizes.tobytes()


def _load(data: bytes) -> KeptSizes:
    numbers = np.frombuffer(data, np.int64, offset=1)
    half = len(numbers) // 2
    return KeptSizes(data[0], numbers[:half], numbers[half:])


def _sum(file: bytes, counted: Iterable[bytes], grain: int) -> Iterator[bytes]:
    source, index = orjson.loads(file)
    starts, sizes = merge_sizes(map(_load, counted)).joined(grain)
    yield side_output_record(KIND, source=source, file=index, starts=starts, sizes=sizes)


class MergeSizes:
    """Collects the records of files: [source, file, starts, sizes] each, in order."""

    def __init__(self) -> None:
        self._found: list[list[Any]] = []

    def add_record(self, fields: Mapping[str, Any]) -> None:
        self._found.append([fields[name] for name in ("source", "file", "starts", "sizes")])

    def result(self) -> list[list[Any]]:
        return sorted(self._found)


@dataclass
class CountKept(beam.PTransform):
    """Count what was kept of each input file. pairs: of `write_pairs`. bits: of `stretch_bits`. grain: of
    `KeptSizes.joined`. Memory of a worker: `count_part`, and 16 bytes for each stretch of a file."""

    pairs: TaskList
    bits: int
    grain: int

    def __post_init__(self) -> None:
        super().__init__("count-kept")

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection:
        count = beam.FlatMap(partial(_count, bits=self.bits)).with_output_types(tuple[bytes, bytes])
        counted = begin | ReadTaskList(self.pairs) | "count" >> count | Exchange("by file")
        summed = counted | "sum" >> beam.FlatMapTuple(partial(_sum, grain=self.grain)).with_output_types(bytes)
        add_side_output(begin.pipeline, summed)
        return summed
