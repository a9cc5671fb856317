"""The job that looks through a corpus for what is asked to go: shards by their provenance, removals, texts.

No `from __future__ import annotations` here: Beam reads these hints.
"""

import io
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import apache_beam as beam
import numpy as np
import orjson
import pyarrow as pa

from refinery.loader.format.manifest import FileEntry, Manifest, ShardEntry
from refinery.loader.format.parquet.batches import stored_batches, stored_table
from refinery.loader.format.removals import ID_BYTES, REMOVALS_SCHEMA
from refinery.loader.format.shard_files import load_index, read_file
from refinery.loader.format.takedown import KEPT, NO_TOKENS, NOWHERE, REMOVED_SCHEMA, REQUESTED
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store
from refinery.pipelines.corpus.export.rows import CorpusFacts, parse_entry, plain_entry
from refinery.pipelines.corpus.remove.request import BENCHMARK, KEY, LISTS, Keys, Request, where_rule
from refinery.pipelines.published.shard_texts import shard_texts
from refinery.transforms.core.answers import answer_of
from refinery.transforms.core.counters import work_done
from refinery.transforms.core.document import Document
from refinery.transforms.core.exchange.side_outputs import add_side_output
from refinery.transforms.core.job.read_task_list import ReadTaskList
from refinery.transforms.core.job.report import write_part
from refinery.transforms.core.job.task_list import TaskList
from refinery.transforms.filter.decontaminate import DecontaminateParams, judge_contamination, load_benchmarks
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer

FOUND = "found"  # folder of the job's parts
EXCERPT = 300  # characters around the first n-gram of a benchmark's item
# A document that is asked for: as in the proof's listing, and what stood for it.
FOUND_SCHEMA = pa.schema(
    [
        *(column.with_nullable(True) for column in REMOVED_SCHEMA),
        ("matched", pa.string()),
        ("kept_id", pa.binary(ID_BYTES)),
    ]
)
IN_SHARD = ["id", "url", "source", "origin", "text_bytes", "token_offset", "token_count"]
IN_REMOVALS = ["id", "kept_id", "reason", "url", "source", "origin"]


@dataclass(frozen=True)
class FindJob:
    """What a worker must know. corpus: where it is. work: where the request is, and the parts go. decontaminate: what
    of benchmarks no text may hold, or None."""

    corpus: CorpusFacts
    work: str
    decontaminate: DecontaminateParams | None = None


def save_request(store: Store, request: Request) -> None:
    """Publish what workers match by, in the work location."""
    where = request.where.text if request.where else ""
    head = {"licences": request.licences, "sources": request.sources, "where": where, "lists": {}}
    for name, keys in request.lists.items():
        head["lists"][name] = {"sha256": keys.sha256, "count": keys.count}  # type: ignore[index]
        out = io.BytesIO()
        np.save(out, np.frombuffer(keys.keys.tobytes(), np.uint8))
        np.save(out, keys.lines)
        store.create(f"request/{name}.npy", out.getvalue())
    store.create("request/request.json", orjson.dumps(head, option=orjson.OPT_SORT_KEYS))


@lru_cache(maxsize=1)
def load_request(work: str, schema: pa.Schema) -> Request:
    """What `save_request` has published, kept for this process. schema: of the documents of the corpus."""
    store = open_store(work)
    head = orjson.loads(store.read("request/request.json"))
    lists = {}
    for name in LISTS:
        if name in head["lists"]:
            data = io.BytesIO(store.read(f"request/{name}.npy"))
            keys = np.frombuffer(np.load(data, allow_pickle=False).tobytes(), KEY)
            lists[name] = Keys(keys, np.load(data, allow_pickle=False), **head["lists"][name])
    where = where_rule(head["where"], schema) if head["where"] else None
    return Request(lists, tuple(head["licences"]), tuple(head["sources"]), where)


def find_tasks(manifest: Manifest, removals: bool) -> list[bytes]:
    """A line for each shard, and for each removals file where these are looked through, too."""
    shards = [{"shard": plain_entry(entry)} for entry in manifest.shards]
    files = [{"removals": vars_of(file)} for file in manifest.removals] if removals else []
    return [orjson.dumps(each, option=orjson.OPT_SORT_KEYS) for each in (*shards, *files)]


def vars_of(file: FileEntry) -> dict[str, Any]:
    """A file's entry as plain data."""
    return {name: getattr(file, name) for name in ("path", "size", "crc32c", "sha256", "rows")}


def find_in(line: bytes, job: FindJob) -> Iterator[bytes]:
    """The side-output record of the part with what is asked for in a shard or a removals file, none where that is
    nothing. Memory: a batch of rows and what is found; for benchmarks the shard's tokens, too."""
    task = orjson.loads(line)
    store, request = open_store(job.corpus.root), load_request(job.work, job.corpus.schema)
    if "shard" in task:
        entry = parse_entry(task["shard"])
        found = list(in_shard(store, entry, request, job))
    else:
        found = list(in_removals(store, FileEntry(**task["removals"]), request))
    work_done("files", 1)
    if found:
        table = pa.Table.from_pylist(found, schema=FOUND_SCHEMA)
        yield write_part(job.work, FOUND, f"part-{uuid.uuid4().hex}", table)


def in_shard(store: Store, entry: ShardEntry, request: Request, job: FindJob) -> Iterator[dict[str, Any]]:
    """Rows of FOUND_SCHEMA: the shard's documents that are asked for, by the request or by their texts."""
    texts = contaminated(store, entry, job) if job.decontaminate else {}
    place = {"split": entry.split, "domain": entry.domain, "index": entry.index}
    row, no_tokens = 0, {} if job.corpus.writer.counts_tokens else NO_TOKENS
    names = [name for name in job.corpus.schema.names if name in {*IN_SHARD, *request.columns}]
    for batch in stored_batches(store, entry.provenance.path, names, exactly=job.corpus.file_schema):
        columns = {name: batch.column(name).to_pylist() for name in batch.schema.names}
        for at, asked in enumerate(request.match(columns)):
            items, matched = texts.get(row + at, ("", ""))
            if asked or items:
                known = no_tokens | {name: columns[name][at] for name in IN_SHARD if name in columns}
                why = {"was": KEPT, "why": REQUESTED, "request": asked or items, "matched": matched}
                yield {**known, **place, **why, "row": row + at, "kept_id": known["id"]}
        row += len(batch)


def in_removals(store: Store, entry: FileEntry, request: Request) -> Iterator[dict[str, Any]]:
    """Rows of FOUND_SCHEMA: what deduplication had removed, and is asked for."""
    nowhere = {"split": "", "domain": "", "index": NOWHERE, "row": NOWHERE, "token_offset": NOWHERE, "matched": ""}
    for batch in stored_batches(store, entry.path, IN_REMOVALS, exactly=REMOVALS_SCHEMA):
        columns = {name: batch.column(name).to_pylist() for name in batch.schema.names}
        for at, asked in enumerate(request.match(columns)):
            if asked:
                known = {name: columns[name][at] for name in IN_REMOVALS if name != "reason"}
                more = {"was": columns["reason"][at], "why": REQUESTED, "request": asked}
                yield {**known, **more, **nowhere, "token_count": 0, "text_bytes": 0}


def contaminated(store: Store, entry: ShardEntry, job: FindJob) -> dict[int, tuple[str, str]]:
    """Row -> (items of benchmarks, the text around the first) of the shard's documents that hold any: what the judge of
    the stage decontaminate says of the text, or of what its tokens give."""
    params = job.decontaminate
    if params is None:
        return {}
    contents = load_benchmarks(params)
    found: dict[int, tuple[str, str]] = {}
    for row, text in enumerate(texts_of(store, entry, job.corpus)):
        answer = answer_of(judge_contamination(Document(b"", text, "", "", "", 0), contents, params))
        if answer.found:
            spans, _ = contents.index.scan(text)
            begin, end = (int(spans[:, 0].min()), int(spans[:, 1].max())) if len(spans) else (0, 0)
            first = max(0, begin - EXCERPT // 4)
            shown = text[first : min(max(end, first), first + EXCERPT)]
            found[row] = " ".join(f"{BENCHMARK}:{name}" for name in answer.found), shown
    return found


def texts_of(store: Store, entry: ShardEntry, corpus: CorpusFacts) -> Iterator[str]:
    """The texts of a shard, or what its tokens give. Memory: its files."""
    if not corpus.writer.counts_tokens:
        yield from shard_texts(store, corpus.writer, entry, whole=True)
        return
    tokenizer, index = load_tokenizer(corpus.tokenizer), load_index(store, entry)
    tokens = np.frombuffer(read_file(store, entry.bin), index.dtype)
    head, tail = corpus.bos_id is not None, corpus.eos_id is not None
    for start, length in zip(index.offsets.tolist(), index.lengths.tolist(), strict=True):
        yield tokenizer.decode(tokens[start + head : start + length - tail])


@dataclass
class Find(beam.PTransform):
    """Look through every file of a list (of `find_tasks`)."""

    tasks: TaskList
    job: FindJob

    def __post_init__(self) -> None:
        super().__init__("find")

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection[bytes]:
        find = partial(find_in, job=self.job)
        records = begin | ReadTaskList(self.tasks) | "look" >> beam.FlatMap(find).with_output_types(bytes)
        add_side_output(begin.pipeline, records)
        return records


def read_found(store: Store, report: Mapping[str, Any]) -> pa.Table:
    """All that a job has found, by place and then by id, whatever parts it is in."""
    tables = [FOUND_SCHEMA.empty_table()]
    for part in report["parts"].get(FOUND, []):
        tables.append(stored_table(store, part["path"], FOUND_SCHEMA.names, FOUND_SCHEMA))
    order = ("split", "domain", "index", "row", "id", "source", "origin", "url")
    return pa.concat_tables(tables).sort_by([(name, "ascending") for name in order])
