"""The documents of a shard from its packed rows: pieces of cut ones put together again, in the corpus' order.

What was cut is proved to be whole: the pieces of a document follow each other from its first token on, and together all
documents have the SHA-256 that the manifest lists for the shard's .bin.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.errors import FormatError
from refinery.loader.format.indexed import index_bytes
from refinery.loader.format.manifest import Manifest, ShardEntry
from refinery.loader.format.packed import PackedFormat, check_columns, parse_rows
from refinery.loader.format.parquet.guarded import guarded_parquet
from refinery.loader.format.provenance import PARQUET, provenance_schema
from refinery.loader.storage.store import CHUNK, Store, checksums
from refinery.pipelines.corpus.checks.file_checks import check_file
from refinery.transforms.core.document import hash64

ORIGIN = ("document_ids", "document_sources", "document_starts")
# What packed rows and exported documents know of where a document comes from.
PROVENANCE = pa.schema([provenance_schema(()).field(name) for name in ("id", "source", "token_offset", "token_count")])


@dataclass
class _Pieces:
    """Pieces in the order of the rows: id, source, first token in the document, tokens without a BOS put in."""

    ids: list[bytes]
    sources: list[str]
    starts: list[int]
    tokens: list[int]


def write_shard(store: Store, manifest: Manifest, shard: ShardEntry, seed: int, folder: Path) -> dict[str, Path]:
    """bin, idx and provenance of a shard from its packed rows, as files in `folder`.

    Raises FormatError where a row, a piece or the whole is not what the manifest says. Memory: a row group, and 300
    bytes for each piece; disk: twice the shard.
    """
    dtype, layout = np.dtype(manifest.dtype).newbyteorder("<"), manifest.packed
    if layout is None:
        raise FormatError(f"{store.root}: no packed rows")
    pieces = _Pieces([], [], [], [])
    loose = folder / "pieces"
    with loose.open("wb") as out:
        for entry in shard.packed:
            for failure in check_file(store, entry):
                raise FormatError(failure)
            for tokens in _read(store, entry.path, layout, pieces):
                out.write(tokens.astype(dtype).tobytes())
    order = _whole_documents(pieces, seed, shard)
    paths = {
        kind: folder / f"shard{suffix}" for kind, suffix in (("bin", ".bin"), ("idx", ".idx"), ("origin", ".parquet"))
    }
    lengths = _write_in_order(loose, pieces, order, dtype, paths["bin"])
    paths["idx"].write_bytes(index_bytes(np.array(lengths, np.int32), dtype))
    heads = [piece for piece in order if pieces.starts[piece] == 0]
    table = {
        "id": [pieces.ids[piece] for piece in heads],
        "source": [pieces.sources[piece] for piece in heads],
        "token_offset": np.cumsum([0, *lengths[:-1]])[: len(lengths)].astype(np.int64),
        "token_count": np.array(lengths, np.int64),
    }
    pq.write_table(pa.table(table, schema=PROVENANCE), paths["origin"], **PARQUET)
    for kind, expected in (("bin", shard.bin), ("idx", shard.idx)):
        if (found := checksums(paths[kind]).sha256) != expected.sha256:
            raise FormatError(
                f"{store.url(expected.path)}: the documents of its packed rows have sha256 {found}, {expected.sha256} "
                "expected from the manifest; the documents cannot be put together again"
            )
    loose.unlink()
    return paths


def _read(store: Store, path: str, layout: PackedFormat, pieces: _Pieces) -> Iterator[npt.NDArray[Any]]:
    """The tokens of a file's rows, without padding and BOS that were put in; adds its pieces."""
    first = 0
    with guarded_parquet(store.open(path), store.url(path)) as file:
        check_columns(file.schema_arrow, layout, path)
        if missing := [name for name in ORIGIN if name not in file.schema_arrow.names]:
            raise FormatError(f"{path}: column {missing[0]} is missing: so the documents of these rows are unknown")
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, use_threads=False)
            rows = parse_rows(table, layout, path, first)
            counts = rows.num_docs.astype(np.int64)
            values = {}
            for name in ORIGIN:
                column = table[name].combine_chunks()
                if column.null_count or not np.array_equal(column.value_lengths().to_numpy(), counts):
                    raise FormatError(f"{path}: {name}: not one value for each document")
                values[name] = column.flatten()
            inside = rows.doc_ids >= 0
            starting = np.diff(rows.doc_ids, axis=1, prepend=-1) > 0
            flat = rows.input_ids[inside]
            heads = np.flatnonzero((starting & inside)[inside])
            starts = values["document_starts"].to_numpy()
            put_in = starts > 0  # BOS before a piece that does not begin its document
            pieces.ids += values["document_ids"].to_pylist()
            pieces.sources += values["document_sources"].to_pylist()
            pieces.starts += starts.tolist()
            pieces.tokens += (np.diff(heads, append=len(flat)) - put_in).tolist()
            keep = np.ones(len(flat), np.bool_)
            keep[heads[put_in]] = False
            yield flat[keep]
            first += len(rows)


def _whole_documents(pieces: _Pieces, seed: int, shard: ShardEntry) -> list[int]:
    """Numbers of the pieces in the order of the shard. Raises FormatError for a document that is not whole."""
    seen: Counter[tuple[bytes, str, int]] = Counter()
    keys = []
    orders = {id_: hash64("order", seed, id_) for id_ in set(pieces.ids)}
    for number, (id_, source, start) in enumerate(zip(pieces.ids, pieces.sources, pieces.starts, strict=True)):
        copy = seen[id_, source, start]  # copies that a recipe keeps have one id
        seen[id_, source, start] += 1
        keys.append((orders[id_], id_, source.encode(), copy, start, number))
    keys.sort()
    before: tuple[Any, ...] = ()
    end = 0
    for *document, start, number in keys:
        if tuple(document) != before:
            before, end = tuple(document), 0
        if start != end:
            raise FormatError(
                f"packed rows of {shard.bin.path}: document {pieces.ids[number].hex()}: a piece from token {start} on "
                f"found, one from {end} on expected: a document that was cut is incomplete"
            )
        end = start + pieces.tokens[number]
    return [key[-1] for key in keys]


def _write_in_order(loose: Path, pieces: _Pieces, order: list[int], dtype: np.dtype[Any], path: Path) -> list[int]:
    """The .bin of pieces in this order; returns the documents' lengths."""
    places = np.cumsum([0, *pieces.tokens])
    lengths: list[int] = []
    size = places[-1]
    tokens = np.memmap(loose, dtype, "r") if size else np.empty(0, dtype)
    held, waiting = 0, []
    with path.open("wb") as out:
        for piece in order:
            count = pieces.tokens[piece]
            if pieces.starts[piece] == 0:
                lengths.append(count)
            else:
                lengths[-1] += count
            waiting.append(tokens[places[piece] : places[piece] + count])
            held += count
            if held * dtype.itemsize >= CHUNK:
                out.write(np.concatenate(waiting).tobytes())
                held, waiting = 0, []
        if waiting:
            out.write(np.concatenate(waiting).tobytes())
    return lengths
