"""The job that rewrites the affected shards: the documents that stay, and those that came back, by the writer's own
code, so a shard has the bytes that these documents would have given it in the first place.

No `from __future__ import annotations` here: Beam reads these hints.
"""

import io
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from refinery.loader.errors import FormatError
from refinery.loader.format.kept_columns import KeptColumn
from refinery.loader.format.manifest import ShardEntry, shard_name
from refinery.loader.format.packed import PackedFormat
from refinery.loader.format.parquet.batches import bounded_table
from refinery.loader.format.shard_files import load_index, read_file
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store
from refinery.pipelines.corpus.export.rows import CorpusFacts, parse_entry, plain_entry
from refinery.pipelines.corpus.export.text_job import finish, finished, record_name
from refinery.pipelines.published.shard_texts import shard_texts
from refinery.pipelines.run.errors import RefineError
from refinery.transforms.core.counters import work_done
from refinery.transforms.core.data_text.json_members import joined, raw_members, to_json
from refinery.transforms.core.document import FIELDS, meta_json
from refinery.transforms.core.exchange.records import side_output_record
from refinery.transforms.core.exchange.side_outputs import add_side_output
from refinery.transforms.core.job.read_task_list import ReadTaskList
from refinery.transforms.core.job.task_list import TaskList
from refinery.transforms.read.values.arrow_values import values_of
from refinery.transforms.tokenize.chunk_notes import CHUNKS
from refinery.transforms.tokenize.encode import EncodedDocument
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer
from refinery.transforms.tokenize.token_columns import Lost, token_columns
from refinery.transforms.write.document_batch import BATCH_SCHEMA, batch_table
from refinery.transforms.write.shards import write_shard
from refinery.transforms.write.shuffle import order_key, shard_key
from refinery.transforms.write.table_batches import deserialize_batch, serialize_batch


@dataclass(frozen=True)
class ShardPlace:
    """Where a shard is: number `index` of the `count` of its split and domain."""

    split: str
    domain: str
    index: int
    count: int

    @property
    def name(self) -> str:
        """The path of its files without endings."""
        return shard_name(self.split, self.domain, self.index, self.count)


@dataclass
class ShardChange:
    """What becomes of a shard. before: its entry, None where the corpus had none. drop: rows that go. copies: id -> how
    many documents it now stands for, and their sources. add: documents that come in."""

    place: ShardPlace
    before: ShardEntry | None
    drop: list[int] = field(default_factory=list)
    copies: dict[bytes, tuple[int, list[str]]] = field(default_factory=dict)
    add: list[EncodedDocument] = field(default_factory=list)


@dataclass(frozen=True)
class RewriteJob:
    """What a worker must know. output: the new prefix. work: where plans and records are. seed: of the order. counted:
    columns that are 0 where a document that comes in has no such note."""

    corpus: CorpusFacts
    output: str
    work: str
    fingerprint: str
    seed: int
    packed: PackedFormat | None
    counted: frozenset[str] = frozenset()


def plan_name(place: ShardPlace) -> str:
    """Where the plan of a shard is in the work location, without suffix."""
    return f"plan/{place.split}/{place.domain}/{place.index:05d}"


def save_change(store: Store, change: ShardChange, seed: int) -> bytes:
    """Publish the plan of a shard; the line of the task list that is about it."""
    plan = {
        "drop": sorted(change.drop),
        "copies": [[id_.hex(), *facts] for id_, facts in sorted(change.copies.items())],
    }
    store.create(f"{plan_name(change.place)}.json", orjson.dumps(plan, option=orjson.OPT_SORT_KEYS))
    store.create(f"{plan_name(change.place)}.batch", serialize_batch(batch_of(change.add, seed)))
    before = None if change.before is None else plain_entry(change.before)
    return orjson.dumps({"place": change.place, "before": before}, option=orjson.OPT_SORT_KEYS)


def batch_of(documents: Iterable[EncodedDocument], seed: int) -> pa.Table:
    """Documents as they cross the shuffle of a run."""
    return batch_table((order_key(seed, doc.id), doc) for doc in documents)


def rewrite_shard(line: bytes, job: RewriteJob) -> bytes:
    """Rewrite and publish a shard; its side-output record. One that is done already costs two requests.

    Raises CorruptShard and FormatError for files that are not what the manifest says. Memory: the writer's, and the
    shard's files.
    """
    task, work = orjson.loads(line), open_store(job.work)
    place = ShardPlace(**task["place"])
    record = finished(work, record_name(place.split, place.domain, place.index), job.fingerprint)
    if record is None:
        tables = [deserialize_batch(work.read(f"{plan_name(place)}.batch"))]
        if task["before"] is not None:
            plan = orjson.loads(work.read(f"{plan_name(place)}.json"))
            tables.append(staying(open_store(job.corpus.root), parse_entry(task["before"]), plan, job))
        domain = f"{place.split}/{place.domain}"
        written = write_shard(
            shard_key(domain, place.index),
            tables,
            location=job.output,
            counts={domain: place.count},
            dtype=job.corpus.dtype,
            columns=job.corpus.columns,
            packed=job.packed,
            counted=job.counted,
            writer=job.corpus.writer,
            kept=job.corpus.kept,
            keep_empty=True,  # the version before has it, and a state of that version counts its tokens
        )
        with closing(written):  # what follows are statistics, which are counted of all shards together
            record = orjson.loads(next(written))
        del record["kind"]
        finish(work, record_name(place.split, place.domain, place.index), job.fingerprint, record)
    work_done("shards", 1)
    return side_output_record("shard", **record)


def staying(store: Store, entry: ShardEntry, plan: Mapping[str, Any], job: RewriteJob) -> pa.Table:
    """The documents of a shard that stay, in the shuffle's form, BATCH_SCHEMA."""
    provenance = io.BytesIO(read_file(store, entry.provenance))
    names, schema = job.corpus.schema.names, job.corpus.file_schema
    table = bounded_table(provenance, store.url(entry.provenance.path), names, exactly=schema)
    if table.num_rows != entry.documents:
        raise FormatError(f"{store.url(entry.provenance.path)}: its rows are not those of the shard")
    keep = np.ones(entry.documents, np.bool_)
    keep[plan["drop"]] = False
    rows = np.flatnonzero(keep)
    every = (_tokens if job.corpus.writer.counts_tokens else _texts)(store, entry, rows, job)
    copies = {bytes.fromhex(id_): (count, sources) for id_, count, sources in plan["copies"]}
    kept = table.take(pa.array(rows))
    ids, metas, columns = kept["id"].to_pylist(), [], []
    own = {column.name: kept[column.name].to_pylist() for column in job.corpus.columns}
    if job.corpus.kept:
        own[FIELDS] = whole_fields(kept, job.corpus.kept)
    facts = zip(kept["meta"].to_pylist(), kept["copies"].to_pylist(), kept["sources"].to_pylist(), strict=True)
    for at, (meta, count, sources) in enumerate(facts):
        count, sources = copies.get(ids[at], (count, sources))
        full = shuffled_meta(meta, {name: values[at] for name, values in own.items()}, count, sources)
        metas.append(meta_json(full))
        columns.append(structure(full, every[at], job))
    orders = [order_key(job.seed, id_) for id_ in ids]
    made = {"order": orders, "meta": metas, "tokens": every, "columns": columns}
    arrays = [
        pa.array(made[field.name], field.type) if field.name in made else kept[field.name].cast(field.type)
        for field in BATCH_SCHEMA
    ]
    return pa.table(arrays, schema=BATCH_SCHEMA)


def _tokens(store: Store, entry: ShardEntry, rows: npt.NDArray[np.int64], job: RewriteJob) -> list[bytes]:
    """The tokens of these documents of a shard."""
    index, tokens = load_index(store, entry), read_file(store, entry.bin)
    if len(index) != entry.documents:
        raise FormatError(f"{store.url(entry.provenance.path)}: its rows are not those of the shard")
    begins, sizes = index.pointers[rows].tolist(), (index.lengths[rows] * index.dtype.itemsize).tolist()
    return [tokens[at : at + size] for at, size in zip(begins, sizes, strict=True)]


def _texts(store: Store, entry: ShardEntry, rows: npt.NDArray[np.int64], job: RewriteJob) -> list[bytes]:
    """The texts of these documents of a shard, in UTF-8."""
    wanted = set(rows.tolist())
    texts = shard_texts(store, job.corpus.writer, entry, whole=True)
    return [text.encode() for row, text in enumerate(texts) if row in wanted]


def shuffled_meta(meta: str, own: Mapping[str, Any], copies: int, sources: Sequence[str]) -> dict[str, Any]:
    """What the shuffle had of a document beside its tokens: the inverse of `transforms.write.shards.provenance_rows`,
    which takes the stages' columns out of it."""
    columns = {name: value for name, value in own.items() if value not in (None, "")}
    return {**orjson.loads(meta), **columns, "copies": copies, "copy_sources": ",".join(sources)}


def whole_fields(table: pa.Table, columns: Sequence[KeptColumn]) -> list[str]:
    """All kept fields of each document as a JSON object: the inverse of `transforms.write.kept_values`, which splits
    them into typed columns and the rest."""
    found = [raw_members(text) if text else {} for text in table[FIELDS].to_pylist()]
    for column in columns:
        values, _ = values_of(table[column.name].combine_chunks())
        for members, value in zip(found, values, strict=True):
            if value is not None:
                members[column.field], _ = to_json(value)
    return [joined(members) if members else "" for members in found]


def structure(meta: Mapping[str, Any], tokens: bytes, job: RewriteJob) -> bytes:
    """The columns of a document's tokens for packed rows: what the encoder made of its note of chunks, once more."""
    if job.packed is None or not job.packed.structure or CHUNKS not in meta:
        return b""
    tokenizer = load_tokenizer(job.corpus.tokenizer)
    if not tokenizer.lossless:
        raise RefineError(
            "packed rows with columns of tokens, and a tokenizer that does not give the text back: such a corpus "
            "cannot be rewritten; run the recipe again without these documents"
        )
    head, tail = int(job.corpus.bos_id is not None), int(job.corpus.eos_id is not None)
    every = np.frombuffer(tokens, job.corpus.dtype)
    ids = every[head : len(every) - tail]
    try:
        return token_columns(tokenizer.decode(ids), ids, meta, tokenizer, (head, tail))
    except Lost:
        return b""


@dataclass
class Rewrite(beam.PTransform):
    """Rewrite every shard of a list (of `save_change`)."""

    tasks: TaskList
    job: RewriteJob

    def __post_init__(self) -> None:
        super().__init__("rewrite")

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection[bytes]:
        write = partial(rewrite_shard, job=self.job)
        records = begin | ReadTaskList(self.tasks) | "write" >> beam.Map(write).with_output_types(bytes)
        add_side_output(begin.pipeline, records)
        return records


__all__ = ["Rewrite", "RewriteJob", "ShardChange", "ShardPlace", "batch_of", "rewrite_shard", "save_change"]
