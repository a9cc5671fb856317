"""An .idx as Megatron's own tools write it: any token type, and several sequences to a document.

Our readers take what our writer makes (refinery.loader.format.indexed), one sequence a document, and int64 beside it. A
document of several sequences (Megatron's --split-sentences) is the same tokens in .bin, so it only needs another .idx.
"""

from dataclasses import dataclass

import numpy as np

from refinery.loader.errors import FormatError
from refinery.loader.format.indexed import (
    DTYPES,
    IDX_HEADER,
    IDX_MAGIC,
    IDX_VERSION,
    MAX_LENGTH,
    Index,
    index_bytes,
    read_header,
)
from refinery.loader.format.indexed import read_index as read_our_index

# Megatron-LM, megatron/core/datasets/indexed_dataset.py, DType.
TYPE_NAMES = {1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float64", 7: "float32", 8: "uint16"}
OLDER = b"TNTIDX"  # magic of the formats "lazy" and "cached" of fairseq, which Megatron once wrote


@dataclass(frozen=True)
class FoundIndex:
    """index: of documents. joined: the .idx that describes them, where they had several sequences; else b""."""

    index: Index
    sequences: int
    joined: bytes


def read_megatron_index(data: bytes, what: str) -> FoundIndex:
    """Check every byte of an .idx. Raises FormatError, which names `what` and the first error.

    Cost: a pass over 20 bytes a sequence, in memory.
    """
    if data.startswith(OLDER):
        raise FormatError(f'{what}: starts with {OLDER!r}: an older format; Megatron\'s "mmap" is expected')
    code, n, entries = read_header(data, what)
    if code not in DTYPES:
        name = TYPE_NAMES.get(code, "an unknown type")
        raise FormatError(f"{what}: dtype code {code} ({name}) found, 8 (uint16), 4 (int32) or 5 (int64) expected")
    size = IDX_HEADER.size + 12 * n + 8 * entries
    if len(data) == size + n and n:
        raise FormatError(f"{what}: it ends with modes of sequences, so it is multimodal data; only text is allowed")
    if len(data) != size:
        raise FormatError(f"{what}: {len(data)} bytes found, {size} expected for {n} sequences, {entries} boundaries")
    boundaries = np.frombuffer(data, "<i8", entries, IDX_HEADER.size + 12 * n)
    if entries == n + 1 and np.array_equal(boundaries, np.arange(n + 1)):
        return FoundIndex(read_our_index(data, what), n, b"")
    if not entries or boundaries[0] != 0 or boundaries[-1] != n:
        ends = f"{boundaries[0]} to {boundaries[-1]}" if entries else "nothing"
        raise FormatError(f"{what}: document index of {ends} found, 0 to {n} expected")
    if (wrong := np.diff(boundaries) < 0).any():
        i = int(np.argmax(wrong))
        raise FormatError(f"{what}: document index entry {i + 1} is {boundaries[i + 1]}, after {boundaries[i]}")
    # The sequences by our own reader's rules: it is given the same arrays with one document for each.
    head = IDX_HEADER.pack(IDX_MAGIC, IDX_VERSION, code, n, n + 1)
    arrays = data[IDX_HEADER.size : IDX_HEADER.size + 12 * n]
    sequences = read_our_index(head + arrays + np.arange(n + 1, dtype="<i8").tobytes(), what)
    places = np.concatenate([[0], np.cumsum(sequences.lengths, dtype=np.int64)])
    lengths = np.diff(places[boundaries])
    if len(lengths) and int(lengths.max()) > MAX_LENGTH:
        i = int(np.argmax(lengths))
        raise FormatError(f"{what}: document {i} has {lengths[i]} tokens, {MAX_LENGTH} at most expected")
    joined = index_bytes(lengths.astype(np.int32), DTYPES[code])
    return FoundIndex(read_our_index(joined, what), n, joined)
