"""The documents of a text shard, as they came to the writer; and files of a corpus that are copied to another one.

What is read is compared with the manifest first, and every text with its id: a shard that was damaged or forged ends
the job.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from refinery.loader.errors import CorruptShard, FormatError
from refinery.loader.format.entries import FileEntry, ShardEntry
from refinery.loader.format.manifest import Manifest
from refinery.loader.format.parquet.batches import stored_batches
from refinery.loader.format.shard_files import differences
from refinery.loader.storage.full_disk import scratch_folder
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import CHUNK, Hasher, Store, checksums
from refinery.pipelines.published.shard_texts import shard_texts
from refinery.transforms.core.counters import work_done
from refinery.transforms.core.document import COPIES, TEXT_ID, Document, Scalar, with_text_id
from refinery.transforms.core.exchange.records import side_output_record
from refinery.transforms.core.live import LIVE
from refinery.transforms.core.stage import Writer

READ = "texts"  # what the display counts documents under
ROWS_AT_ONCE = 256  # that are counted together


@dataclass(frozen=True)
class TextFormat:
    """What all shards of a corpus have in common. schema: of the provenance files, with `text` where the texts are in
    them. noted: columns that stages fill, each with whether it holds numbers of 32 bits. counted: those of them that
    are 0 where a document has no such note. sources: of the recipe."""

    root: str
    writer: Writer
    schema: pa.Schema
    noted: Mapping[str, bool]
    counted: frozenset[str]
    sources: frozenset[str]


def text_format(root: str, manifest: Manifest, writer: Writer, counted: frozenset[str]) -> TextFormat:
    """Of the corpus with that manifest."""
    sources = frozenset(source["name"] for source in manifest.recipe["sources"])
    noted = {column.name: column.type == "float" for column in manifest.columns}
    return TextFormat(root, writer, manifest.provenance_schema, noted, counted, sources)


def dump_shard(shard: ShardEntry) -> bytes:
    """A shard as a line of a task list."""
    return orjson.dumps(asdict(shard), option=orjson.OPT_SORT_KEYS)


def load_shard(line: bytes) -> ShardEntry:
    """Inverse of `dump_shard`."""
    fields = orjson.loads(line)
    listed = {name: tuple(FileEntry(**file) for file in fields[name]) for name in ("written", "packed")}
    return ShardEntry(**{**fields, **listed, "provenance_file": FileEntry(**fields["provenance_file"])})


def read_texts(line: bytes, texts: TextFormat) -> Iterator[Document]:
    """The documents of a shard of `dump_shard`, in its order. Raises FormatError, which names the file, for anything
    that the run did not write. Memory: a batch of rows; local disk: the shard, if it is not there."""
    shard = load_shard(line)
    with checked_files(open_store(texts.root), shard.files) as store:
        columns = [name for name in texts.schema.names if name != "text"]
        batches = stored_batches(store, shard.provenance.path, columns, exactly=texts.schema)
        rows = (row for batch in batches for row in batch.to_pylist())
        for number, text in enumerate(shard_texts(store, texts.writer, shard)):
            row = next(rows, None)
            if row is None:
                raise FormatError(f"{shard.provenance.path}: {number} rows found, {shard.documents} expected")
            try:
                doc = document_of(row, text, texts)
            except (ValueError, TypeError, KeyError) as error:
                raise FormatError(f"{shard.written[0].path}: row {number}: {error}") from None
            LIVE[READ, "read"] += 1
            yield doc
            if (number + 1) % ROWS_AT_ONCE == 0:
                work_done("rows", ROWS_AT_ONCE)
        if next(rows, None) is not None:
            raise FormatError(f"{shard.provenance.path}: more rows found than the {shard.documents} expected")
    work_done("rows", shard.documents % ROWS_AT_ONCE)


def document_of(row: Mapping[str, Any], text: str, texts: TextFormat) -> Document:
    """The document as it came to the writer: what stages did not note is not in its meta. Raises ValueError where the
    text is not that of the row's id, or the source not of the recipe."""
    if row["source"] not in texts.sources:
        raise ValueError(f"source {row['source']!r:.80} found, one of the recipe expected")
    meta: dict[str, Scalar] = orjson.loads(row["meta"])
    for name, is_float in texts.noted.items():
        value = row[name]
        if value is not None and value != "" and not (value == 0 and name in texts.counted):
            meta[name] = shortest(value) if is_float else value
    meta[COPIES] = row["copies"]
    meta["copy_sources"] = ",".join(row["sources"])
    noted = meta.pop(TEXT_ID, None)
    doc = Document(row["id"], text, row["url"], row["source"], row["origin"], 0, meta)
    if (found := with_text_id(doc).get(TEXT_ID)) != noted:
        raise ValueError(
            f"its text has the id {found or doc.id.hex()}, {noted or doc.id.hex()} expected from its provenance"
        )
    return doc


def shortest(value: float) -> float:
    """The number with fewest digits that a column of 32 bits holds as `value`: what a stage had noted, if it rounds.

    >>> shortest(0.5166000127792358)
    0.5166
    """
    return float(str(np.float32(value)))


@contextmanager
def checked_files(store: Store, files: Sequence[FileEntry]) -> Iterator[Store]:
    """A store that has the files as they are listed: this one, or a temporary folder where it is elsewhere. Raises
    FormatError for one that is missing, CorruptShard for one that differs."""
    if all(store.local_path(file.path) is not None for file in files):
        for file in files:
            check_file(store, file)
        yield store
        return
    with scratch_folder(files[0].path) as scratch:
        for file in files:
            local = scratch / file.path
            local.parent.mkdir(parents=True, exist_ok=True)
            hasher = Hasher()
            with opened(store, file) as stream, local.open("wb") as copy:
                while chunk := stream.read(CHUNK):
                    hasher.update(chunk)
                    copy.write(chunk)
            refuse_other(store, file, differences(file, hasher.result()))
        yield open_store(str(scratch))


def check_file(store: Store, file: FileEntry) -> None:
    """Raise FormatError unless the file is the one that is listed."""
    with opened(store, file) as stream:
        refuse_other(store, file, differences(file, checksums(stream)))


def opened(store: Store, file: FileEntry) -> Any:
    """The file as a stream. Raises FormatError where it is missing."""
    try:
        return store.open(file.path)
    except FileNotFoundError:
        raise FormatError(f"{store.url(file.path)}: missing, {file.size} bytes expected") from None


def refuse_other(store: Store, file: FileEntry, told: str) -> None:
    """Raise CorruptShard where something is told to differ."""
    if told:
        raise CorruptShard(f"{store.url(file.path)}: {told}")


def dump_file(file: FileEntry) -> bytes:
    """A file beside the shards as a line of a task list."""
    return orjson.dumps(asdict(file), option=orjson.OPT_SORT_KEYS)


def carry_file(line: bytes, source: str, prefix: str, copied: str) -> Iterator[bytes]:
    """Compare a file of `dump_file` with the manifest; one of the folder `copied` is written to `prefix`, too, and
    reported as a record of that kind."""
    file = FileEntry(**orjson.loads(line))
    store = open_store(source)
    if not file.path.startswith(f"{copied}/"):
        check_file(store, file)
        return
    with checked_files(store, [file]) as near:
        open_store(prefix).create(file.path, near.local_path(file.path) or near.read(file.path))
    fields = {name: getattr(file, name) for name in ("path", "rows", "size", "crc32c", "sha256")}
    yield side_output_record(copied, **fields)
