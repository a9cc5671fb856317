"""Write one shard: its writer's files and .provenance.parquet, sorted by the global order, published exclusively."""

from collections import deque
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, astuple, dataclass, field, replace
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from refinery.loader.format.block_checksums import block_checksums
from refinery.loader.format.kept_columns import KeptColumn
from refinery.loader.format.listing import BLOCKED
from refinery.loader.format.manifest import Column, shard_name, write_provenance
from refinery.loader.format.packed import PackedFormat
from refinery.loader.format.written import MASKED
from refinery.loader.storage.full_disk import scratch_folder
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store, checksums
from refinery.transforms.core.counters import work_done
from refinery.transforms.core.document import FIELDS, ID_BYTES, meta_json
from refinery.transforms.core.exchange.records import side_output_record
from refinery.transforms.core.job.task_list import TaskList
from refinery.transforms.core.stage import Note, ShardContent, Writer
from refinery.transforms.statistics.measure import ShardTally
from refinery.transforms.statistics.tally import NO_NOTES, Measured
from refinery.transforms.write.kept_values import KeptValues
from refinery.transforms.write.megatron import MEGATRON
from refinery.transforms.write.packing.build_rows import PackedDocuments
from refinery.transforms.write.packing.column_files import write_columns, write_trained
from refinery.transforms.write.packing.write_packed import publish_packed
from refinery.transforms.write.shard_documents import BATCH_ROWS, META, SPOOLED, ShardDocuments, sort_on_disk
from refinery.transforms.write.shuffle import ShardParams, parse_shard_key

# Memory per byte of text that became the shard, of documents of 1 kB: what is known of a document takes some 500 bytes,
# twice while documents are sorted; tokens and their columns wait on disk.
SHARD_MEMORY = 1


def provenance_rows(
    table: pa.Table,
    lengths: Sequence[int] | None,
    columns: Sequence[Column],
    counted: Container[str] = (),
    tally: ShardTally | None = None,
    kept: Sequence[KeptColumn] = (),
    metas: Callable[[], Iterator[bytes | str]] | None = None,
) -> Iterator[dict[str, Any]]:
    """Row i describes document i of the shard: where it came from, its scores, and where its tokens are. table: the
    facts of `ShardDocuments`. lengths: tokens of each, None of texts. counted: columns that are 0 where a document has
    no such note. tally: measures them as they pass. kept: columns for fields of records. metas: `meta` of each, where
    the table does not have it."""
    missing = {c.name: "" if c.type == "string" else 0 if c.name in counted else None for c in columns}
    values = KeptValues(kept)
    spans = repeat({}) if lengths is None else spans_of(lengths)
    known = table.drop_columns([name for name in ("order", *SPOOLED) if name in table.column_names])
    spooled = iter(()) if metas is None else metas()
    for batch in known.to_batches(max_chunksize=BATCH_ROWS):
        for fields in batch.to_pylist():
            meta = orjson.loads(fields.pop(META) if META in fields else next(spooled))
            span = next(spans)
            if tally is not None:
                tally.add(fields, meta, span.get("token_count"))
            # A text may be a field of a record, which may be a number there.
            own = {name: meta.pop(name, value) for name, value in missing.items()}
            own |= {name: str(own[name]) for name, value in missing.items() if value == ""}
            typed: dict[str, Any] = {}
            if kept:
                typed, own[FIELDS] = values.split(own[FIELDS])
            yield {
                **fields,
                **own,
                "copies": meta.pop("copies"),
                "sources": meta.pop("copy_sources").split(","),
                **span,
                "meta": meta_json(meta).decode(),
                **typed,
            }


def kept_texts(documents: ShardDocuments) -> Iterator[str]:
    """All fields that the source of each document keeps, as a JSON object, or ""."""
    return (str(orjson.loads(meta).get(FIELDS, "")) for meta in documents.metas())


def spans_of(lengths: Iterable[int]) -> Iterator[dict[str, int]]:
    """Where the tokens of each document are in its shard."""
    offset = 0
    for length in lengths:
        yield {"token_offset": offset, "token_count": length}
        offset += length


def write_shard(
    key: bytes,
    tables: Iterable[pa.Table],
    location: str,
    counts: Mapping[str, int],
    dtype: str,
    columns: Sequence[Column] = (),
    packed: PackedFormat | None = None,
    notes: Measured = NO_NOTES,
    counted: Container[str] = (),
    keep_empty: bool = False,
    writer: Writer = MEGATRON,
    kept: Sequence[KeptColumn] = (),
) -> Generator[bytes, None, None]:
    """Sort, write and publish one shard; yields its "shard" side-output record (documents, tokens, files with
    checksums), and the statistics of its documents.

    tables: its documents, in any order. dtype: "uint16" or "int32", the tokens' type in the tables and in .bin; "" of
    texts. packed: also write its documents as packed rows. notes: of documents that are measured. counted: as of
    `provenance_rows`.

    A shard without documents is neither written nor reported, since Megatron cannot map an empty file: few documents
    leave some parts of the order empty, and targets may. keep_empty: it is all the same. Tokens wait on local disk.
    Memory: SHARD_MEMORY for a byte of text, and `packed_memory` for packed rows.
    """
    split, domain, index = parse_shard_key(key)
    count = counts[f"{split}/{domain}"]
    documents = sort_on_disk(tables, [META] if any(column.name == FIELDS for column in columns) else ())
    with closing(documents):
        work_done("shards", 1)
        if len(documents) or keep_empty:
            place = Place(split, domain, index, count)
            store, rows = open_store(location), (columns, counted, kept)
            yield from _publish_shard(documents, place, store, writer, dtype, *rows, packed, notes)


@dataclass(frozen=True)
class Place:
    """Which shard it is."""

    split: str
    domain: str
    index: int
    count: int


def _publish_shard(
    documents: ShardDocuments,
    place: Place,
    store: Store,
    writer: Writer,
    dtype: str,
    columns: Sequence[Column],
    counted: Container[str],
    kept: Sequence[KeptColumn],
    packed: PackedFormat | None,
    notes: Measured,
) -> Iterator[bytes]:
    table, tally = documents.facts, ShardTally(notes)
    name = shard_name(*astuple(place))
    lengths = (documents.sizes("tokens") // np.dtype(dtype).itemsize).tolist() if writer.counts_tokens else None
    rows = partial(provenance_rows, table, lengths, columns, counted, kept=kept, metas=documents.metas)
    endings = dict(writer.endings)
    contents, texts = partial(documents.values, "tokens"), partial(kept_texts, documents)
    content = ShardContent(rows, contents, dtype, columns, kept, texts)
    files: dict[str, dict[str, Any]] = {}
    with scratch_folder(name) as scratch:
        local = {kind: scratch / f"shard{ending}" for kind, ending in endings.items()}
        if writer.has_text_column:
            measured = rows(tally=tally)
            writer.write(local, replace(content, rows=partial(next, iter([measured]), rows())))
            deque(measured, 0)  # what the writer left
        else:
            writer.write({kind: local[kind] for kind in writer.files}, content)
            write_provenance(local["provenance"], rows(tally=tally), columns, writer.counts_tokens, kept)
        for kind, path in local.items():
            size, crc32c, sha256 = checksums(path)
            store.create(f"{name}{endings[kind]}", path)
            files[kind] = {"path": f"{name}{endings[kind]}", "size": size, "crc32c": crc32c, "sha256": sha256}
            if kind in BLOCKED:
                files[kind]["block_crc32c"] = block_checksums(path)
        more: dict[str, Any] = {} if lengths is None else {"tokens": sum(lengths)}
        if writer.kinds != MEGATRON.kinds:
            more["kinds"] = writer.kinds
        if packed and lengths is not None:
            orders = table["order"].to_numpy()
            whole = documents_of(documents, local["bin"], dtype, lengths, packed)
            if writer.name == MASKED:
                whole = replace(whole, trained=write_trained(documents.metas(), lengths, scratch))
            more["packed"] = list(publish_packed(store, astuple(place), whole, orders, packed))
    yield side_output_record("shard", **asdict(place), documents=len(documents), files=files, **more)
    yield tally.record(name)


def documents_of(
    shard: ShardDocuments, path: Path, dtype: str, lengths: Sequence[int], layout: PackedFormat
) -> PackedDocuments:
    """A shard's documents for packing; their tokens stay in the .bin at `path`, and what the layout has of columns is
    written to files beside it."""
    tokens = np.memmap(path, dtype, "r") if sum(lengths) else np.empty(0, dtype)
    ids, sources = (shard.facts[name].combine_chunks() for name in ("id", "source"))
    documents = PackedDocuments(tokens, np.array(lengths, np.int64), ids.cast(pa.binary(ID_BYTES)), sources)
    if not layout.structure:
        return documents
    structure, borders = write_columns(shard.values("columns"), lengths, layout, path.parent)
    return replace(documents, structure=structure, borders=borders)


TYPES = {str: "string", float: "float", int: "integer"}


def provenance_columns(notes: Iterable[Note]) -> tuple[Column, ...]:
    """Columns of the provenance files for the notes that are columns, and for fields of records."""
    return tuple(Column(note.name, TYPES[note.type]) for note in notes)


@dataclass(frozen=True)
class ShardsJob:
    """What a writer must know of a run. params: the recipe's `shards`. counts: shards of each "split/domain"
    (`shard_counts`). domains: source -> domain. dtype: of the tokens, "" of texts. columns: of the provenance. prefix:
    where to.
    targets: source -> most tokens, of those that have a target. packed: of packed rows, where there are to be any.
    notes: of documents that are measured. counted: notes that are 0 where a document has none. writer: the lane's.
    borders: of `write_borders`, where documents stay in input order. kept: columns for fields of records."""

    params: ShardParams
    counts: Mapping[str, int]
    domains: Mapping[str, str]
    dtype: str
    columns: Sequence[Column]
    prefix: str
    targets: Mapping[str, int] = field(default_factory=dict)
    packed: PackedFormat | None = None
    notes: Measured = NO_NOTES
    counted: frozenset[str] = frozenset()
    writer: Writer = MEGATRON
    borders: TaskList | None = None
    kept: Sequence[KeptColumn] = ()
