"""Packed rows: documents packed whole into rows of one length, as Parquet. The contract of producer, verify and loader.

A row is [BOS document EOS BOS document EOS … padding]. docs/format.md describes the columns; `check_rows` is the one
place that says what makes a row valid.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from refinery.loader.errors import FormatError
from refinery.loader.format.chunk_kinds import CHUNK_KINDS
from refinery.loader.format.fields import Fields
from refinery.loader.format.parquet.guarded import guarded_parquet
from refinery.loader.format.provenance import PARQUET

FOLDER = "packed"
ROW_GROUP = 1024  # rows
GROUP_TOKENS = 1 << 22  # most places of a row group: 1,024 rows of 4,096, fewer longer ones, so memory is bounded
FILE_DOCUMENTS = 50_000  # most documents (parts of split ones) of a file, but for a single row that has more
MAX_LENGTH = 1 << 20
NO_DOCUMENT = -1  # doc_ids of padding
UNKNOWN = -1  # every structure column where it is missing, and in BOS, EOS and padding

INT32 = np.dtype(np.int32)
PLACES: Mapping[str, np.dtype[Any]] = {
    "input_ids": INT32,
    "target_ids": INT32,
    "loss_mask": np.dtype(np.bool_),
    "doc_ids": INT32,
}
COUNTS = ("valid_token_count", "num_docs", "slack_tokens")
REQUIRED = (*PLACES, *COUNTS)
# One value for each token, of lanes that know them (refinery.transforms of the code lane).
STRUCTURE: Mapping[str, np.dtype[Any]] = {
    "chunk_kind": np.dtype(np.int8),
    "nesting_depth": INT32,
    "chunk_id": INT32,
    "char_start": INT32,
    "char_end": INT32,
}

PLACED = ("char_start", "char_end")
DELTAS = "DELTA_BINARY_PACKED"  # of places in a text, which differ little from one token to the next


@dataclass(frozen=True, slots=True)
class PackedFormat:
    """What every row of a corpus shares. length: places of a row. bos_id: of the token that begins every document,
    None where none does. pad_id: of places after the last token; None does not check them. structure: names of the
    structure columns that its files have, of STRUCTURE."""

    length: int
    vocab_size: int
    bos_id: int | None
    pad_id: int | None
    structure: tuple[str, ...] = ()

    @property
    def group_rows(self) -> int:
        """Rows of a row group."""
        return max(1, min(ROW_GROUP, GROUP_TOKENS // self.length))


@dataclass(frozen=True, slots=True)
class PackedRows:
    """n rows of L places: input_ids, target_ids, doc_ids int32 [n, L], loss_mask bool [n, L]; valid_token_count,
    num_docs, slack_tokens int32 [n]; structure: each of STRUCTURE that the files have, [n, L]."""

    input_ids: npt.NDArray[np.int32]
    target_ids: npt.NDArray[np.int32]
    loss_mask: npt.NDArray[np.bool_]
    doc_ids: npt.NDArray[np.int32]
    valid_token_count: npt.NDArray[np.int32]
    num_docs: npt.NDArray[np.int32]
    slack_tokens: npt.NDArray[np.int32]
    structure: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.input_ids)

    def column(self, name: str) -> npt.NDArray[Any]:
        """A structure column, or its default, UNKNOWN everywhere, where the files do not have it."""
        found = self.structure.get(name)
        return np.full(self.input_ids.shape, UNKNOWN, STRUCTURE[name]) if found is None else found


def describe_format(layout: PackedFormat) -> dict[str, Any]:
    """What the manifest says of a corpus' packed rows, beside its tokenizer; `parse_format` is the inverse."""
    return {"length": layout.length, "pad_id": layout.pad_id, "structure": list(layout.structure)}


def parse_format(entry: Fields, vocab_size: int, bos_id: int | None, masked: bool = False) -> PackedFormat:
    """The format that a manifest describes. masked: whether documents have loss masks; only such need no BOS. Raises
    FormatError."""
    if bos_id is None and not masked:
        raise FormatError(f"{entry.where}: packed rows found, a tokenizer with bos_id expected")
    length, structure = entry.count("length", MAX_LENGTH), entry.value.get("structure")
    if length < 2:
        raise FormatError(f"{entry.where}: length is {length}, 2 or more expected")
    if not isinstance(structure, list) or [name for name in STRUCTURE if name in structure] != structure:
        raise FormatError(f"{entry.where}: structure is {structure!r:.80}, some of {list(STRUCTURE)} in order expected")
    return PackedFormat(length, vocab_size, bos_id, entry.count("pad_id"), tuple(structure))


def packed_schema(layout: PackedFormat) -> pa.Schema:
    """The columns that the producer writes. Readers require REQUIRED alone."""

    def places(name: str, dtype: np.dtype[Any]) -> pa.Field:
        values = pa.field("element", pa.from_numpy_dtype(dtype), nullable=False)
        return pa.field(name, pa.list_(values, layout.length), nullable=False)

    def documents(name: str, kind: pa.DataType) -> pa.Field:
        return pa.field(name, pa.list_(pa.field("element", kind, nullable=False)), nullable=False)

    return pa.schema(
        [
            pa.field("pack_id", pa.binary(16), nullable=False),
            *(places(name, dtype) for name, dtype in PLACES.items()),
            *(pa.field(name, pa.int32(), nullable=False) for name in COUNTS),
            documents("document_ids", pa.binary(16)),
            documents("document_sources", pa.string()),
            documents("document_starts", pa.int64()),
            *(places(name, STRUCTURE[name]) for name in layout.structure),
        ]
    )


def packed_name(split: str, domain: str, shard: tuple[int, int], part: int) -> str:
    """Name of a file: the part-th of a shard (index, count).

    >>> packed_name("train", "web", (3, 16), 0)
    'packed/train/web/rows-00003-of-00016-00000.parquet'
    """
    return f"{FOLDER}/{split}/{domain}/rows-{shard[0]:05d}-of-{shard[1]:05d}-{part:05d}.parquet"


def padding_id(bos_id: int | None, eos_id: int | None) -> int:
    """The id of padding: EOS, or the first that is not BOS, so BOS can be counted in whole rows."""
    return eos_id if eos_id is not None and eos_id != bos_id else int(bos_id == 0)


class PackedWriter:
    """Writes a file of packed rows, a row group with each `write`; the same rows give the same bytes."""

    def __init__(self, path: Path, layout: PackedFormat) -> None:
        self.layout = layout
        self.schema = packed_schema(layout)
        # A value a token is all but random, or the same for thousands: dictionaries help where they are few.
        names = ["document_sources", "chunk_kind", "nesting_depth", "chunk_id"]
        self._file = pq.ParquetWriter(
            path,
            self.schema,
            **PARQUET,
            use_dictionary=[f"{name}.list.element" for name in names],
            column_encoding={f"{name}.list.element": DELTAS for name in layout.structure if name in PLACED} or None,
        )

    def write(
        self,
        rows: PackedRows,
        pack_ids: Sequence[bytes],
        documents: Mapping[str, pa.Array],
    ) -> None:
        """One row group. documents: document_ids, document_sources and document_starts, lists of [num_docs] each.

        Raises FormatError for rows that a reader would refuse: nothing else is ever published.
        """
        check_rows(rows, self.layout, "packed rows to be written")
        arrays = {"pack_id": pa.array(pack_ids, pa.binary(16)), **documents}
        for name in (*PLACES, *self.layout.structure):
            kind = self.schema.field(name).type
            values = rows.structure[name] if name in STRUCTURE else getattr(rows, name)
            arrays[name] = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1), kind.value_type), type=kind)
        arrays |= {name: pa.array(getattr(rows, name), pa.int32()) for name in COUNTS}
        columns = [arrays[name].cast(self.schema.field(name).type) for name in self.schema.names]
        self._file.write_table(pa.table(columns, schema=self.schema), row_group_size=len(rows))

    def close(self) -> None:
        """End the file."""
        self._file.close()


def read_packed(source: Path | BinaryIO, layout: PackedFormat, what: str) -> Iterator[PackedRows]:
    """The rows of a file, a row group at a time, checked. what: its name, for errors.

    Raises FormatError for missing columns before the first rows, and for rows that `check_rows` refuses.
    """
    stream = source.open("rb") if isinstance(source, Path) else source
    with guarded_parquet(stream, what) as file:
        check_columns(file.schema_arrow, layout, what)
        names = row_columns(file.schema_arrow)
        first = 0
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, columns=names, use_threads=False)
            yield parse_rows(table, layout, what, first)
            first += len(table)


def row_columns(schema: pa.Schema) -> list[str]:
    """The columns of a file that `parse_rows` takes; the others describe where its documents come from."""
    return [name for name in (*REQUIRED, *STRUCTURE) if name in schema.names]


def check_columns(schema: pa.Schema, layout: PackedFormat, what: str) -> None:
    """Raise FormatError for a required column that is missing or of another kind, by the schema alone."""
    for name in (*REQUIRED, *STRUCTURE):
        found = schema.get_all_field_indices(name)
        if len(found) > 1 or (not found and (name in REQUIRED or name in layout.structure)):
            raise FormatError(f"{what}: column {name}: {len(found)} found, one expected")
        if not found:
            continue
        kind = inner = schema.field(name).type
        if name not in COUNTS:
            if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
                raise FormatError(f"{what}: column {name}: {kind} found, a list expected")
            inner = kind.value_type
        if not pa.types.is_integer(inner) and not (name == "loss_mask" and pa.types.is_boolean(inner)):
            raise FormatError(f"{what}: column {name}: {inner} found, integers expected")


def parse_rows(table: pa.Table, layout: PackedFormat, what: str, first: int = 0) -> PackedRows:
    """The rows of a table as arrays, checked. first: number of its first row in the file, for errors.

    Structure columns that are missing take their default when asked for (`PackedRows.column`). Raises FormatError.
    """
    check_columns(table.schema, layout, what)
    arrays = {}
    for name in row_columns(table.schema):
        column = table[name].combine_chunks()
        column = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
        if name not in COUNTS:
            column = _places(column, layout.length, f"{what}: column {name}", first)
        if column.null_count:
            raise FormatError(f"{what}: column {name}: {column.null_count} nulls found, none expected")
        arrays[name] = _narrow(column, {**PLACES, **STRUCTURE}.get(name, INT32), f"{what}: column {name}")
        if name not in COUNTS:
            arrays[name] = arrays[name].reshape(-1, layout.length)
    required = {name: arrays.pop(name) for name in REQUIRED}
    rows = PackedRows(**required, structure=arrays)
    check_rows(rows, layout, what, first)
    return rows


def _places(column: pa.Array, length: int, what: str, first: int) -> pa.Array:
    """The values of lists, all of `length`."""
    if column.null_count:
        raise FormatError(f"{what}: {column.null_count} nulls found, none expected")
    sizes = pc.list_value_length(column).to_numpy(zero_copy_only=False)
    if (sizes != length).any():
        row = int(np.argmax(sizes != length))
        raise FormatError(f"{what}: row {first + row} has {sizes[row]} values, {length} expected")
    return column.flatten()


def _narrow(values: pa.Array, dtype: np.dtype[Any], what: str) -> npt.NDArray[Any]:
    """Integers of any width as the contract's type."""
    found = values.to_numpy(zero_copy_only=False)
    if found.dtype == dtype:
        return np.asarray(found)
    least, most = (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    if len(found) and not least <= int(found.min()) <= int(found.max()) <= most:
        raise FormatError(f"{what}: {found.min()} to {found.max()} found, {least} to {most} expected")
    return np.asarray(found.astype(dtype))


def check_rows(rows: PackedRows, layout: PackedFormat, what: str, first: int = 0) -> None:
    """Raise FormatError, naming the first row at fault, unless every row is valid. Vectorised: 15 passes over n x L.

    - 1 to L tokens, then padding: doc_ids -1, input_ids the format's pad_id, no loss.
    - Documents numbered from 0 without gaps, each beginning with BOS, which is nowhere else: num_docs == count(BOS).
      Where the format has no BOS, by their numbers alone.
    - Ids from 0 to below the vocabulary size, in input_ids and target_ids.
    - Loss only where the next place belongs to the same document, and target_ids is the token of that place.
    - Structure columns, where there are any: see `_check_structure`.
    """
    n, length = len(rows), layout.length

    def expect(good: npt.NDArray[np.bool_], message: str, found: npt.NDArray[Any] | None = None) -> None:
        """good: [n] or [n, L]."""
        if not good.all():
            at = np.unravel_index(int(np.argmin(good)), good.shape)
            place = f", place {at[1]}" if len(at) > 1 else ""
            value = "" if found is None else f"{found[at]} found, "
            raise FormatError(f"{what}: row {first + at[0]}{place}: {value}{message}")

    for name, array in (*((name, getattr(rows, name)) for name in PLACES), *rows.structure.items()):
        if array.shape != (n, length):
            raise FormatError(f"{what}: {name}: shape {array.shape} found, {(n, length)} expected")
    valid, count = rows.valid_token_count, rows.num_docs
    expect((valid >= 1) & (valid <= length), f"valid_token_count from 1 to {length} expected", valid)
    expect(rows.slack_tokens == length - valid, f"slack_tokens: {length} less valid_token_count expected",
           rows.slack_tokens)  # fmt: skip
    for name in ("input_ids", "target_ids"):
        ids = getattr(rows, name)
        expect((ids >= 0) & (ids < layout.vocab_size), f"{name}: 0 to {layout.vocab_size - 1} expected", ids)
    inside = np.arange(length) < valid[:, None]
    docs = rows.doc_ids
    expect(inside | (docs == NO_DOCUMENT), f"doc_ids: {NO_DOCUMENT} expected in padding", docs)
    expect(docs[:, 0] == 0, "doc_ids: 0 expected at a row's start", docs[:, 0])
    step = np.diff(docs, axis=1)
    expect(~inside[:, 1:] | (step >= 0), "doc_ids: they go back, the same or the next expected")
    expect(~inside[:, 1:] | (step <= 1), "doc_ids: they leave one out, the same or the next expected")
    last = docs[np.arange(n), valid - 1] + 1
    expect(count == last, "num_docs: the last of doc_ids and one more expected", count)
    same = inside[:, 1:] & (step == 0)  # the next place belongs to the same document
    bos = np.zeros(inside.shape, np.bool_)
    if layout.bos_id is not None:
        bos = (rows.input_ids == layout.bos_id) & inside
        expect(bos.sum(axis=1) == count, "num_docs: the number of BOS in the row expected", count)
        expect(bos[:, 0], "BOS expected at a row's start", rows.input_ids[:, 0])
        expect(bos[:, 1:] == (inside[:, 1:] & ~same), "BOS expected where a document begins, and nowhere else")
    if layout.pad_id is not None:
        expect(inside | (rows.input_ids == layout.pad_id), f"input_ids: {layout.pad_id} expected in padding",
               rows.input_ids)  # fmt: skip
    loss = rows.loss_mask
    expect(~loss[:, -1], "loss_mask: false expected at a row's end")
    expect(~loss[:, :-1] | same, "loss_mask: false expected at a document's end and in padding")
    expect(~loss[:, :-1] | (rows.target_ids[:, :-1] == rows.input_ids[:, 1:]), "target_ids: the next of input_ids "
           "expected where there is loss")  # fmt: skip
    _check_structure(rows, inside, bos, same, expect)


def _check_structure(
    rows: PackedRows,
    inside: npt.NDArray[np.bool_],
    bos: npt.NDArray[np.bool_],
    same: npt.NDArray[np.bool_],
    expect: Callable[..., None],
) -> None:
    """The rules of structure columns. inside, bos [n, L]: tokens, BOS; same [n, L - 1]: as in `check_rows`.

    - All columns of a place are known, or none; those of BOS and padding are not.
    - A document (a piece of one) has them from its BOS on, but for its last token, which may be EOS, or nowhere.
    - Kinds are those of CHUNK_KINDS; chunks and places never go back inside a document, kind and depth change with the
      chunk alone, and a token ends behind its start.
    """
    columns = rows.structure
    if not columns:
        return
    first, values = next(iter(columns.items()))
    known = values != UNKNOWN
    for name, values in columns.items():
        most = len(CHUNK_KINDS) - 1 if name == "chunk_kind" else np.iinfo(STRUCTURE[name]).max
        expect((values >= UNKNOWN) & (values <= most), f"{name}: {UNKNOWN} to {most} expected", values)
        expect((values != UNKNOWN) == known, f"{name}: known where {first} is, and nowhere else, expected", values)
    expect(~known | (inside & ~bos), f"{first}: {UNKNOWN} expected in BOS and in padding")
    last = np.ones_like(known)
    last[:, :-1] = ~same  # of its document
    begins = known[:, :-1] | ~known[:, 1:] | bos[:, :-1]
    ends = ~known[:, :-1] | known[:, 1:] | last[:, 1:]
    expect(~same | (begins & ends), f"{first}: known in all of a document or nowhere expected")
    both = same & known[:, 1:] & known[:, :-1]
    for name in ("chunk_id", *PLACED):
        if name in columns:
            expect(~both | (np.diff(columns[name], axis=1) >= 0), f"{name}: it goes back, the same or more expected")
    if "chunk_id" in columns:
        both &= np.diff(columns["chunk_id"], axis=1) == 0
        for name in ("chunk_kind", "nesting_depth"):
            if name in columns:
                expect(~both | (np.diff(columns[name], axis=1) == 0), f"{name}: it changes inside a chunk")
    if all(name in columns for name in PLACED):
        starts, ends = (columns[name] for name in PLACED)
        expect(starts <= ends, "char_end: char_start or more expected", ends)
