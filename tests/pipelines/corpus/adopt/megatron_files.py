"""Files as Megatron's own tools write them (megatron/core/datasets/indexed_dataset.py, _IndexWriter), made by hand."""

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

CODES = {"uint16": 8, "int32": 4, "int64": 5, "float32": 7}


def write_pair(
    prefix: Path, documents: Sequence[Sequence[Sequence[int]]], dtype: str = "uint16", version: int = 1
) -> Path:
    """prefix.bin and prefix.idx of documents of sequences of tokens; returns the prefix."""
    prefix.parent.mkdir(parents=True, exist_ok=True)
    sequences = [sequence for document in documents for sequence in document]
    lengths = [len(sequence) for sequence in sequences]
    itemsize = np.dtype(dtype).itemsize
    pointers = [sum(lengths[:i]) * itemsize for i in range(len(lengths))]
    boundaries = [0]
    for document in documents:
        boundaries.append(boundaries[-1] + len(document))
    head = b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", version, CODES[dtype], len(sequences), len(boundaries))
    arrays = [np.array(lengths, "<i4"), np.array(pointers, "<i8"), np.array(boundaries, "<i8")]
    prefix.with_suffix(".idx").write_bytes(head + b"".join(array.tobytes() for array in arrays))
    tokens = np.array([token for sequence in sequences for token in sequence], dtype)
    prefix.with_suffix(".bin").write_bytes(tokens.tobytes())
    return prefix
