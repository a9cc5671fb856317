"""Where sources with a target are cut, as a PTransform, and the writing of what is left.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import orjson
from apache_beam.transforms.window import GlobalWindows

from refinery.transforms.core.exchange.exchange import Exchange
from refinery.transforms.core.exchange.job_input import to_all
from refinery.transforms.tokenize.encode import EncodedDocument
from refinery.transforms.write.targets import SLICES, first_cut, slice_of


class _SumSlices(beam.DoFn):
    """(source, tokens of each slice as bytes of int64), once a bundle, of the sources with a target."""

    def __init__(self, targets: Mapping[str, int]) -> None:
        self.targets = dict(targets)

    def start_bundle(self) -> None:
        self.sums: dict[str, npt.NDArray[np.int64]] = {}

    def process(self, doc: EncodedDocument) -> Iterable[tuple[str, bytes]]:
        if doc.source in self.targets:
            sums = self.sums.get(doc.source)
            if sums is None:
                sums = self.sums[doc.source] = np.zeros(SLICES, np.int64)
            sums[slice_of(doc.id)] += len(doc.tokens)
        return ()

    def finish_bundle(self) -> Iterator[Any]:
        for source, sums in sorted(self.sums.items()):
            yield GlobalWindows.windowed_value_at_end_of_window((source, sums.tobytes()))


def add_sums(many: Iterable[bytes]) -> npt.NDArray[np.int64]:
    """The sum of arrays, given as bytes of int64."""
    total = np.zeros(SLICES, np.int64)
    for sums in many:
        total += np.frombuffer(sums, np.int64)
    return total


def _cut(source: str, sums: Iterable[bytes], targets: Mapping[str, int]) -> bytes:
    return orjson.dumps([source, first_cut(add_sums(sums), targets[source])])


def _load(cut: bytes) -> tuple[str, int]:
    source, first = orjson.loads(cut)
    return source, first


@dataclass
class FindCuts(beam.PTransform):
    """EncodedDocument -> (source, number of slices that it keeps), for every source with a target and documents."""

    targets: Mapping[str, int]

    def __post_init__(self) -> None:
        super().__init__("find-cuts")

    def expand(self, docs: beam.PCollection) -> beam.PCollection[tuple[str, int]]:
        targets = dict(self.targets)
        cuts = (
            docs
            | "sum" >> beam.ParDo(_SumSlices(targets)).with_output_types(tuple[str, bytes])
            | Exchange("by source")
            | "cut" >> beam.MapTuple(partial(_cut, targets=targets)).with_output_types(bytes)
        )
        return to_all(cuts) | "load" >> beam.Map(_load).with_output_types(tuple[str, int])
