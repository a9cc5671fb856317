"""Megatron's IndexedDataset, byte for byte: token files (.bin) and their index (.idx). One sequence is one document.

.bin is the tokens of all documents end to end, little-endian. .idx, little-endian, without padding:

    9 bytes   "MMIDIDX" and two NULs
    uint64    version, 1
    uint8     dtype code: 8 is uint16, 4 is int32; 5, int64, only in files of other tools
    uint64    n, the number of sequences
    uint64    n + 1, the number of entries in the document index
    int32     x n      sequence lengths, in tokens
    int64     x n      sequence pointers, byte offsets into .bin
    int64     x (n+1)  document index: sequences before each document, here 0, 1, ..., n

Source: Megatron-LM, megatron/core/datasets/indexed_dataset.py (_IndexWriter, _IndexReader).
"""

import struct
from array import array
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from refinery.loader.errors import FormatError

Tokens = npt.NDArray[Any]

IDX_MAGIC = b"MMIDIDX\x00\x00"
IDX_VERSION = 1
IDX_HEADER = struct.Struct("<9sQBQQ")
BUFFER = 1 << 20  # bytes of tokens that are written at once
MAX_LENGTH = 2**31 - 1
MAX_UINT16_VOCABULARY = 65_500  # Megatron's own limit for uint16 (DType.optimal_dtype)
DTYPES: dict[int, np.dtype[Any]] = {8: np.dtype("<u2"), 4: np.dtype("<i4"), 5: np.dtype("<i8")}
WRITTEN = (8, 4)  # of them, those of our own files
DTYPE_CODES = {dtype: code for code, dtype in DTYPES.items()}


def dtype_for(vocab_size: int) -> np.dtype[Any]:
    """uint16 for up to 65,500 ids, else int32 (the format has no uint32)."""
    if vocab_size < 1 or vocab_size > 2**31:
        raise ValueError(f"vocab_size: {vocab_size} given, 1 to {2**31} is allowed")
    return DTYPES[8 if vocab_size <= MAX_UINT16_VOCABULARY else 4]


class IndexedWriter:
    """Streams documents into `bin_path`; `close` writes the index (.idx) next to it.

    As a context manager it writes the index only on success. dtype: uint16 or int32. Memory: 4 bytes per document.
    """

    def __init__(self, bin_path: Path, dtype: npt.DTypeLike) -> None:
        self.dtype = np.dtype(dtype).newbyteorder("<")
        if DTYPE_CODES.get(self.dtype) not in WRITTEN:
            raise ValueError(f"dtype: {self.dtype.name} given, uint16 or int32 is allowed")
        self.bin_path = bin_path
        self.idx_path = bin_path.with_suffix(".idx")
        self._lengths = array("i")
        self._stream = bin_path.open("wb", buffering=BUFFER)

    def add(self, tokens: Tokens) -> None:
        """Append one document, [length] integers, length 0 allowed.

        Raises ValueError if it is not one-dimensional, not integer, longer than 2^31 - 1, or has a negative id or one
        too large for the dtype. Cost: copies only if `tokens` is not contiguous in the file's dtype.
        """
        if tokens.ndim != 1 or (tokens.dtype.kind not in "ui" and len(tokens)):
            raise ValueError(
                f"tokens: {tokens.dtype} of shape {tokens.shape} given, a one-dimensional array of integers is allowed"
            )
        if len(tokens) > MAX_LENGTH:
            raise ValueError(f"tokens: a document of {len(tokens)} given, up to {MAX_LENGTH} is allowed")
        if self.dtype.kind == "i" or tokens.dtype != self.dtype:
            limit = int(np.iinfo(self.dtype).max)
            if len(tokens) and (int(tokens.min()) < 0 or int(tokens.max()) > limit):
                raise ValueError(f"tokens: ids {tokens.min()} to {tokens.max()} given, 0 to {limit} is allowed")
        self._stream.write(np.ascontiguousarray(tokens, dtype=self.dtype).data)
        self._lengths.append(len(tokens))

    def close(self) -> None:
        """Finish both files. A second call does nothing."""
        if not self._stream.closed:
            self._stream.close()
            self.idx_path.write_bytes(index_bytes(np.array(self._lengths, np.int32), self.dtype))

    def __enter__(self) -> "IndexedWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self._stream.close()


@dataclass(frozen=True, slots=True, eq=False)
class Index:
    """A validated .idx. lengths: int32 [n], in tokens. pointers: int64 [n], in bytes. Both read-only."""

    dtype: np.dtype[Any]
    lengths: Tokens
    pointers: Tokens

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def tokens(self) -> int:
        """Tokens of all documents together."""
        return int(self.lengths.sum(dtype=np.int64))

    @property
    def bin_size(self) -> int:
        """The size that .bin must have, in bytes."""
        return self.tokens * self.dtype.itemsize

    @property
    def offsets(self) -> Tokens:
        """int64 [n]: position of each document's first token, counted in tokens."""
        return self.pointers // self.dtype.itemsize


def index_bytes(lengths: Tokens, dtype: np.dtype[Any]) -> bytes:
    """The .idx of documents with these lengths (int32 [n], 0 or more)."""
    ends = np.cumsum(lengths, dtype=np.int64) * dtype.itemsize
    n = len(lengths)
    return b"".join(
        [
            IDX_HEADER.pack(IDX_MAGIC, IDX_VERSION, DTYPE_CODES[dtype], n, n + 1),
            lengths.astype("<i4").tobytes(),
            np.concatenate([np.zeros(1, np.int64), ends])[:n].astype("<i8").tobytes(),
            np.arange(n + 1, dtype="<i8").tobytes(),
        ]
    )


def read_header(data: bytes, what: str) -> tuple[int, int, int]:
    """Of an .idx: code of the dtype, number of sequences, entries of the document index. Raises FormatError, which
    names `what`, for anything that is not a header."""
    if len(data) < IDX_HEADER.size:
        raise FormatError(f"{what}: {len(data)} bytes found, at least {IDX_HEADER.size} expected")
    magic, version, code, n, entries = IDX_HEADER.unpack_from(data)
    if magic != IDX_MAGIC:
        raise FormatError(f"{what}: starts with {magic!r}, {IDX_MAGIC!r} expected")
    if version != IDX_VERSION:
        raise FormatError(f"{what}: version {version} found, {IDX_VERSION} expected")
    return code, n, entries


def read_index(data: bytes, what: str = ".idx") -> Index:
    """Parse and check every byte of an .idx. The arrays are views of `data`.

    Raises FormatError, which names `what` and the first error. Cost: a pass over 20 bytes per document.
    """
    code, n, entries = read_header(data, what)
    if code not in DTYPES:
        raise FormatError(f"{what}: dtype code {code} found, 8 (uint16), 4 (int32) or 5 (int64) expected")
    if entries != n + 1:
        raise FormatError(f"{what}: {entries} entries in the document index found, {n + 1} expected for {n} sequences")
    size = IDX_HEADER.size + 4 * n + 8 * n + 8 * (n + 1)
    if len(data) != size:
        raise FormatError(f"{what}: {len(data)} bytes found, {size} expected for {n} sequences")
    dtype = DTYPES[code]
    lengths = np.frombuffer(data, "<i4", n, IDX_HEADER.size)
    pointers = np.frombuffer(data, "<i8", n, IDX_HEADER.size + 4 * n)
    documents = np.frombuffer(data, "<i8", n + 1, IDX_HEADER.size + 12 * n)
    if n and lengths.min() < 0:
        i = int(np.argmax(lengths < 0))
        raise FormatError(f"{what}: sequence {i} has length {lengths[i]}, 0 or more expected")
    expected = np.zeros(n, np.int64)
    np.cumsum(lengths[:-1], dtype=np.int64, out=expected[1:])
    expected *= dtype.itemsize
    _check_equal(what, "pointer of sequence", pointers, expected)
    _check_equal(what, "document index entry", documents, np.arange(n + 1))
    return Index(dtype, lengths, pointers)


def _check_equal(what: str, name: str, found: Tokens, expected: Tokens) -> None:
    wrong = found != expected
    if wrong.any():
        i = int(np.argmax(wrong))
        raise FormatError(f"{what}: {name} {i} is {found[i]}, {expected[i]} expected")


class IndexedReader:
    """Documents of one local shard, memory-mapped: `reader[i]` is a read-only view of document i's tokens.

    index: the shard's, if it was already read. Raises FormatError if the index is invalid or does not fit the size of
    .bin.
    """

    def __init__(self, bin_path: Path, index: Index | None = None) -> None:
        idx_path = bin_path.with_suffix(".idx")
        self.index = read_index(idx_path.read_bytes(), str(idx_path)) if index is None else index
        size = bin_path.stat().st_size
        if size != self.index.bin_size:
            raise FormatError(f"{bin_path}: {size} bytes found, {self.index.bin_size} expected from its index")
        self._offsets = self.index.offsets
        self._tokens: Tokens = np.memmap(bin_path, self.index.dtype, "r") if size else np.empty(0, self.index.dtype)

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, i: int) -> Tokens:
        if not -len(self) <= i < len(self):
            raise IndexError(f"document {i} of {len(self)}")
        start = int(self._offsets[i])
        return self._tokens[start : start + int(self.index.lengths[i])]
