"""The arrays of packed rows: tokens copied to their places, and every other column computed from where they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from refinery.loader.format.packed import COUNTS, NO_DOCUMENT, PLACES, STRUCTURE, UNKNOWN, PackedFormat, PackedRows
from refinery.transforms.write.packing.plan_rows import RowPlan


@dataclass(frozen=True)
class PackedDocuments:
    """Documents in the corpus' order. tokens: of all, one behind the other, each with its BOS; an array or a memory
    map. lengths: int64 [documents]. ids: binary(16), sources: string [documents]. structure: by name, one value for
    each token. borders: document -> where it is best cut if it is longer than a row, see split_documents. trained: one
    bool for each token; None where all are."""

    tokens: npt.NDArray[Any]
    lengths: npt.NDArray[np.int64]
    ids: pa.Array
    sources: pa.Array
    structure: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    borders: Mapping[int, Sequence[int]] = field(default_factory=dict)
    trained: npt.NDArray[np.bool_] | None = None


def build_rows(
    documents: PackedDocuments, plan: RowPlan, layout: PackedFormat, first: int, last: int
) -> tuple[PackedRows, list[bytes], dict[str, pa.Array]]:
    """Rows [first, last) of the plan: their arrays, their pack_ids, and the columns that say what they are made of.

    pack_id: 16 bytes of blake2b over id and start (int64, little-endian) of each piece in its order. Cost: some passes
    over the rows' places, a microsecond for each piece; 40 bytes a place.
    """
    length, pieces = layout.length, plan.pieces
    low, high = int(plan.bounds[first]), int(plan.bounds[last])
    bounds = plan.bounds[first : last + 1] - low
    content = plan.content[low:high]
    counts = np.diff(bounds)  # pieces of each row
    sizes = pieces.lengths[content]
    behind = np.cumsum(sizes)
    before = behind - sizes  # places taken by the pieces before, in this row and all before it
    taken = np.add.reduceat(sizes, bounds[:-1])  # of each row
    shift = np.arange(last - first) * length - before[bounds[:-1]]  # from `before` to a place in the block
    places = before + np.repeat(shift, counts)

    block = {name: np.full((last - first, length), layout.pad_id, dtype) for name, dtype in PLACES.items()}
    block["doc_ids"][:] = NO_DOCUMENT
    used = np.repeat(places - before, sizes) + np.arange(int(behind[-1]))
    block["doc_ids"].reshape(-1)[used] = np.repeat(np.arange(len(content)) - np.repeat(bounds[:-1], counts), sizes)
    sources = {"input_ids": documents.tokens, **documents.structure}
    trained = np.zeros((last - first, length), np.bool_) if documents.trained is not None else None
    structure = {name: np.full((last - first, length), UNKNOWN, STRUCTURE[name]) for name in documents.structure}
    owners, starts, stops = (array[content] for array in pieces)
    offsets = (np.cumsum(documents.lengths) - documents.lengths)[owners]
    if layout.bos_id is not None:
        block["input_ids"].reshape(-1)[places[starts > 0]] = layout.bos_id
    ranges = np.stack([places + (starts > 0), places + sizes, offsets + starts, offsets + stops], axis=1).tolist()
    for name, values in sources.items():
        flat = (block[name] if name in block else structure[name]).reshape(-1)
        for to, to_end, start, stop in ranges:
            flat[to:to_end] = values[start:stop]
    if trained is not None and documents.trained is not None:
        for to, to_end, start, stop in ranges:
            trained.reshape(-1)[to:to_end] = documents.trained[start:stop]
    docs = block["doc_ids"]
    block["loss_mask"][:] = False
    np.logical_and(docs[:, 1:] == docs[:, :-1], docs[:, 1:] >= 0, out=block["loss_mask"][:, :-1])
    if trained is not None:
        block["loss_mask"][:, :-1] &= trained[:, 1:]
    np.copyto(block["target_ids"][:, :-1], block["input_ids"][:, 1:], where=block["loss_mask"][:, :-1])
    numbers = (taken, counts, length - taken)
    arrays = block | {name: column.astype(np.int32) for name, column in zip(COUNTS, numbers, strict=True)}

    ids = documents.ids.take(pa.array(owners))
    lists = pa.array(bounds, pa.int32())
    columns = {
        "document_ids": pa.ListArray.from_arrays(lists, ids),
        "document_sources": pa.ListArray.from_arrays(lists, documents.sources.take(pa.array(owners))),
        "document_starts": pa.ListArray.from_arrays(lists, pa.array(starts)),
    }
    marks = [id_ + start.to_bytes(8, "little") for id_, start in zip(ids.to_pylist(), starts.tolist(), strict=True)]
    edges = bounds.tolist()
    names = [blake2b(b"".join(marks[a:b]), digest_size=16).digest() for a, b in pairwise(edges)]
    return PackedRows(**arrays, structure=structure), names, columns
