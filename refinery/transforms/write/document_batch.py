"""Document batches: encoded documents on their way to a shard, many or a single one in one bytes element.

With 20,000 shards a worker has a document or two for each before its memory is full, so a batch must be cheap to make
and to read whatever it holds; an Arrow stream costs as much as a hundred rows. Layout, little-endian, compressed by
zstd as a whole:

    uint32          n, the number of documents
    FIXED x n       order, NUMBERS and the sizes of VARIABLE
    bytes           the first of VARIABLE of all documents in turn, then the second, ...

No bytes at all are a batch without documents.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from operator import attrgetter
from struct import Struct
from typing import Any

import numpy as np
import pyarrow as pa
import zstandard
from numpy.typing import NDArray

from refinery.loader.format.document_fields import SHUFFLE, columns_of, names_of
from refinery.transforms.core.document import meta_json
from refinery.transforms.tokenize.encode import EncodedDocument

FACTS = names_of(SHUFFLE)
BATCH_SCHEMA = pa.schema(
    [
        ("order", pa.uint64()),
        *columns_of(SHUFFLE),
        ("tokens", pa.large_binary()),
        ("columns", pa.large_binary()),  # of the tokens, where the writer wants them: of `token_columns`
    ]
)
NUMBERS = tuple(name for name in FACTS if pa.types.is_integer(BATCH_SCHEMA.field(name).type))
VARIABLE = tuple(name for name in BATCH_SCHEMA.names if name not in ("order", *NUMBERS))
FIXED = np.dtype([("order", "<u8"), *((name, "<i8") for name in NUMBERS), *((name, "<u4") for name in VARIABLE)])
PACKED = Struct(f"<Q{len(NUMBERS)}q{len(VARIABLE)}I")  # a FIXED row
TEXTS_OF = attrgetter(*(name for name in FACTS if name not in ("id", "meta", *NUMBERS)))
HEAD = Struct("<I")
LEVEL = 1  # of zstd: more costs more than the shuffle it saves
TABLE_BYTES = 8 << 20  # of batches that become one table, uncompressed: far below the 2^31 of a column of strings


class DocumentBatch:
    """Documents for one shard, until they are `pack`ed. size: bytes of tokens and provenance."""

    __slots__ = ("parts", "size")

    def __init__(self) -> None:
        self.parts: list[bytes] = []  # FIXED and VARIABLE of one document after the other: few objects, many documents
        self.size = 0

    def add(self, order: int, doc: EncodedDocument, columns: bytes) -> int:
        """Take in a document, `columns` being those of its tokens; by how much the size grew."""
        values = (doc.id, *map(str.encode, TEXTS_OF(doc)), meta_json(doc.meta), doc.tokens.tobytes(), columns)
        sizes = tuple(map(len, values))
        self.parts += (PACKED.pack(order, *[getattr(doc, name) for name in NUMBERS], *sizes), *values)
        size = sum(sizes) + PACKED.size
        self.size += size
        return size

    def pack(self, compressor: zstandard.ZstdCompressor) -> bytes:
        """The batch as it crosses the shuffle. compressor: of `new_compressor`."""
        if not self.parts:
            return b""
        width = 1 + len(VARIABLE)
        head = HEAD.pack(len(self.parts) // width)
        by_column = chain.from_iterable(self.parts[column::width] for column in range(width))
        return compressor.compress(b"".join([head, *by_column]))


def batch_table(documents: Iterable[tuple[int, EncodedDocument]]) -> pa.Table:
    """(order, document) of a few documents as a table of BATCH_SCHEMA."""
    rows = [
        {name: getattr(doc, name) for name in (*FACTS, "columns")}
        | {"order": order, "meta": meta_json(doc.meta), "tokens": doc.tokens.tobytes()}
        for order, doc in documents
    ]
    return pa.Table.from_pylist(rows, schema=BATCH_SCHEMA)


def new_compressor() -> zstandard.ZstdCompressor:
    """For `DocumentBatch.pack`, of one thread: making one costs more than packing a batch."""
    return zstandard.ZstdCompressor(level=LEVEL)


def read_batches(batches: Iterable[bytes]) -> Iterator[pa.Table]:
    """The documents of packed batches as tables of BATCH_SCHEMA, at least one. Raises ValueError for bytes that are not
    batch.

    A table holds many batches: columns in as many pieces as there were batches cost far more than the documents.
    Memory: twice TABLE_BYTES, or twice a batch that is larger.
    """
    decompressor = zstandard.ZstdDecompressor()
    held: list[bytes] = []
    size, tables = 0, 0
    for batch in batches:
        if not batch:
            continue
        held.append(unpacked(batch, decompressor))
        size += len(held[-1])
        if size >= TABLE_BYTES:
            yield _table(held)
            held, size, tables = [], 0, tables + 1
    if held or not tables:
        yield _table(held)


def unpacked(batch: bytes, decompressor: zstandard.ZstdDecompressor) -> bytes:
    """A batch as `DocumentBatch.pack` laid it out."""
    try:
        return decompressor.decompress(batch)
    except zstandard.ZstdError as error:
        raise ValueError(f"a batch of {len(batch)} bytes that is not a batch of documents: {error}") from error


def _table(batches: list[bytes]) -> pa.Table:
    views = [memoryview(batch) for batch in batches]
    counts = [HEAD.unpack_from(batch)[0] for batch in batches]
    begins = [HEAD.size + count * PACKED.size for count in counts]
    fixed = b"".join([view[HEAD.size : begin] for view, begin in zip(views, begins, strict=True)])
    rows = np.frombuffer(fixed, FIXED)
    firsts = np.cumsum(counts) - counts  # of each batch
    arrays: dict[str, Any] = {name: pa.array(rows[name]) for name in ("order", *NUMBERS)}
    for name in VARIABLE:
        sizes = rows[name].astype(np.int64)
        ends = (np.add.reduceat(sizes, firsts) + begins).tolist() if len(batches) else []
        data = b"".join([view[begin:end] for view, begin, end in zip(views, begins, ends, strict=True)])
        arrays[name] = _column(BATCH_SCHEMA.field(name).type, sizes, data)
        begins = ends
    return pa.table({name: arrays[name] for name in BATCH_SCHEMA.names}, schema=BATCH_SCHEMA)


def _column(kind: pa.DataType, lengths: NDArray[np.int64], data: bytes) -> pa.Array:
    """Values of these lengths, one after the other in `data`, without a copy."""
    offsets = np.zeros(len(lengths) + 1, np.int64 if pa.types.is_large_binary(kind) else np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.Array.from_buffers(kind, len(lengths), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
