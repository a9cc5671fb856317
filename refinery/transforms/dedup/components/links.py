"""Links between documents on their way: rows of both directions, where they are sent, and what is reported of them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from refinery.transforms.core.exchange.records import side_output_record
from refinery.transforms.dedup.records.record_batch import NEIGHBOURS, KeyedBatch, Rows, ranges, scatter

# A vertex and one linked to it.
NEIGHBOUR = np.dtype([("node", "<u8"), ("neighbour", "<u8")])

# Scrambled locators are the vertices: a bijection of 64-bit numbers (the finalizer of MurmurHash3, Appleby 2011), so
# their order has nothing to do with where documents are.
_SHIFT = np.uint64(33)
_FIRST, _SECOND = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_UNDO_FIRST, _UNDO_SECOND = (np.uint64(pow(int(factor), -1, 1 << 64)) for factor in (_FIRST, _SECOND))


def scramble(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Another number for each, none for two of them."""
    values = (values ^ values >> _SHIFT) * _FIRST
    values = (values ^ values >> _SHIFT) * _SECOND
    return values ^ values >> _SHIFT


def unscramble(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """What `scramble` was given."""
    values = (values ^ values >> _SHIFT) * _UNDO_SECOND
    values = (values ^ values >> _SHIFT) * _UNDO_FIRST
    return values ^ values >> _SHIFT


def place_of(vertices: NDArray[np.uint64], partitions: int) -> NDArray[Any]:
    """The partition of each vertex, as 16-bit numbers where they fit: numpy sorts these by radix."""
    places = ranges(vertices, partitions)
    return places.astype(np.uint16) if partitions <= 1 << 16 else places


def pair(nodes: NDArray[np.uint64], neighbours: NDArray[np.uint64]) -> Rows:
    """NEIGHBOUR rows of two columns."""
    rows = np.empty(len(nodes), NEIGHBOUR)
    rows["node"], rows["neighbour"] = nodes, neighbours
    return rows


def both_ways(links: Rows, partitions: int) -> Iterator[KeyedBatch]:
    """NEIGHBOUR rows of one direction -> of both, at the partitions of their vertices."""
    rows = np.concatenate([links, pair(links["neighbour"], links["node"])])
    yield from scatter(place_of(rows["node"], partitions), NEIGHBOURS, rows)


def component_record(scope: str, method: str, **fields: int) -> bytes:
    """A "components" side-output record: rounds and largest are merged by their maximum, the rest by their sum."""
    zeros = dict.fromkeys(("rounds", "links", "documents", "components", "largest"), 0)
    return side_output_record("components", scope=scope, method=method, **{**zeros, **fields})
