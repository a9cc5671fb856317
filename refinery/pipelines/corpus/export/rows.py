"""The documents of one shard of a corpus with their text, in the order of the shard.

A text is what the shard's tokens decode to, where the tokenizer loses nothing, or else what phase 3 makes of the work
files (recompute.py). Either way it is encoded again, and a text whose tokens are not exactly those of the shard ends
the export: what is exported is the text that was encoded, document by document.
"""

import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from refinery.loader.errors import FormatError
from refinery.loader.format.document_fields import EXPORTS, columns_of
from refinery.loader.format.kept_columns import KeptColumn
from refinery.loader.format.manifest import Column, FileEntry, Manifest, ShardEntry, provenance_schema
from refinery.loader.format.parquet.guarded import GuardedFile
from refinery.loader.format.provenance import stage_columns
from refinery.loader.format.shard_files import load_index, read_file
from refinery.loader.format.written import MASKED
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.corpus.export.options import all_fields
from refinery.pipelines.recipe.writers import find_writer
from refinery.transforms.core.document import text_bytes
from refinery.transforms.core.stage import Writer
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer
from refinery.transforms.tokenize.stretches import Stretches, load_stretches
from refinery.transforms.tokenize.tokenizer import Tokenizer

BATCH_ROWS = 256


class TextOf(Protocol):
    """Where the texts of a shard come from."""

    def text(self, id_: bytes, source: str, origin: str, ids: npt.NDArray[Any]) -> str:
        """The text of the next document of the shard. ids: its tokens without BOS and EOS."""
        ...

    def finish(self) -> None:
        """Called after the last document. Raises TextDiffers if there are more texts."""
        ...


class TextDiffers(RuntimeError):
    """A document's text does not encode to the tokens of the corpus."""


@dataclass(frozen=True)
class CorpusFacts:
    """What a worker must know of a corpus beside a shard's entry. root: its location. writer: what wrote its shards.
    tokenizer: path of its file; of a corpus of texts dtype and tokenizer are "". kept: columns for fields."""

    root: str
    columns: tuple[Column, ...]
    writer: Writer
    dtype: str = ""
    tokenizer: str = ""
    bos_id: int | None = None
    eos_id: int | None = None
    kept: tuple[KeptColumn, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        """The columns of its documents beside their texts."""
        return provenance_schema(self.columns, self.writer.counts_tokens, kept=self.kept)

    @property
    def file_schema(self) -> pa.Schema:
        """The columns of its provenance files."""
        return provenance_schema(self.columns, self.writer.counts_tokens, self.writer.has_text_column, self.kept)


def corpus_facts(root: str, manifest: Manifest) -> CorpusFacts:
    """The facts of the corpus at `root`. Raises FormatError for one of texts whose writer is not known here."""
    writer = find_writer(manifest)
    if not manifest.has_tokens:
        return CorpusFacts(root, manifest.columns, writer, kept=manifest.kept)
    own = manifest.tokenizer
    path = open_store(root).url(own.path)
    return CorpusFacts(root, manifest.columns, writer, manifest.dtype, path, own.bos_id, own.eos_id)


PLACED = ("split", "domain", "index", "count", "documents", "token_count")
CHECKED = ("path", "size", "crc32c", "sha256", "block_crc32c")


def plain_entry(entry: ShardEntry) -> dict[str, Any]:
    """A shard's entry as JSON-able data; `parse_entry` is its inverse."""
    every = *entry.written, entry.provenance  # refused where there is none
    files = [{name: getattr(file, name) for name in CHECKED} for file in every]
    return {name: getattr(entry, name) for name in PLACED} | {"files": files}


def parse_entry(plain: Mapping[str, Any]) -> ShardEntry:
    """The entry of `plain_entry`."""
    *written, provenance = (FileEntry(**file) for file in plain["files"])
    placed = {name: plain[name] for name in PLACED}
    return ShardEntry(**placed, written=tuple(written), provenance_file=provenance)


def row_schema(columns: Sequence[Column], fields: Collection[str], dtype: str) -> pa.Schema:
    """Columns of an export: `fields` of `all_fields`. Ids are in hexadecimal digits, input_ids
    of the smallest type that holds the vocabulary."""
    own = {column.name: column for column in columns_of(EXPORTS)}
    own["input_ids"] = pa.field("input_ids", pa.list_(pa.from_numpy_dtype(np.dtype(dtype))), nullable=False)
    own |= {column.name: column for column in stage_columns(columns)}
    return pa.schema([own[name] for name in all_fields(columns) if name in fields])


@dataclass
class Decoded:
    """The text of a document from its tokens, for tokenizers that lose nothing."""

    tokenizer: Tokenizer

    def text(self, id_: bytes, source: str, origin: str, ids: npt.NDArray[Any]) -> str:
        return self.tokenizer.decode(ids)

    def finish(self) -> None:
        return


def _text_of(
    ids: npt.NDArray[Any], id_: bytes, source: str, origin: str, text_of: TextOf, tokenizer: Tokenizer | Stretches
) -> tuple[str, npt.NDArray[Any]]:
    """The text of a document, and the ids that it encodes to: of one with loss masks with its control tokens."""
    if isinstance(tokenizer, Stretches):
        text, controls = tokenizer.decode(ids)
        return text, tokenizer.encode(text, controls)[0]
    text = text_of.text(id_, source, origin, ids)
    return text, tokenizer.encode(text)


def read_rows(
    corpus: CorpusFacts, entry: ShardEntry, fields: Collection[str], text_of: TextOf | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a shard, some hundred at a time, in the shard's order; columns as in `row_schema`.

    Every file is compared with its checksum, and every text is encoded again. text_of: where texts come from (None:
    from the tokens). Raises TextDiffers, FormatError and CorruptShard. Memory: the shard's files and a batch of texts.
    """
    store = open_store(corpus.root)
    index = load_index(store, entry)
    tokens = np.frombuffer(read_file(store, entry.bin), index.dtype)
    table = GuardedFile(io.BytesIO(read_file(store, entry.provenance)), store.url(entry.provenance.path))
    if not table.schema_arrow.equals(provenance_schema(corpus.columns)) or table.metadata.num_rows != len(index):
        raise FormatError(f"{store.url(entry.provenance.path)}: its rows are not those of the shard")
    is_masked = corpus.writer.name == MASKED
    tokenizer = load_stretches(corpus.tokenizer) if is_masked else load_tokenizer(corpus.tokenizer)
    text_of = text_of or Decoded(tokenizer.first if isinstance(tokenizer, Stretches) else tokenizer)
    schema = row_schema(corpus.columns, fields, corpus.dtype)
    head, tail = corpus.bos_id is not None, corpus.eos_id is not None
    row = 0
    for batch in table.iter_batches(BATCH_ROWS):
        ids = batch.column("id").to_pylist()
        names = zip(ids, batch.column("source").to_pylist(), batch.column("origin").to_pylist(), strict=True)
        sizes = batch.column("text_bytes").to_pylist()
        texts, every = [], []
        for (id_, source, origin), size in zip(names, sizes, strict=True):
            start = int(index.offsets[row])
            every.append(tokens[start : start + int(index.lengths[row])])
            inner = every[-1][head : len(every[-1]) - tail]
            text, again = _text_of(inner, id_, source, origin, text_of, tokenizer)
            if text_bytes(text) != size or not np.array_equal(again, inner):
                raise TextDiffers(
                    f"{store.url(entry.bin.path)}: document {row} ({id_.hex()}): its text does not encode to its "
                    "tokens; run `refinery verify` to see whether the corpus is damaged"
                )
            texts.append(text)
            row += 1
        yield _batch(batch, schema, entry.domain, texts, every)
    text_of.finish()


def _batch(
    batch: pa.RecordBatch, schema: pa.Schema, domain: str, texts: list[str], ids: list[npt.NDArray[Any]]
) -> pa.RecordBatch:
    columns = []
    for name, kind in zip(schema.names, schema.types, strict=True):
        if name == "text":
            column = pa.array(texts, kind)
        elif name == "domain":
            column = pa.array([domain] * len(texts), kind)
        elif name == "id":
            column = pa.array([id_.hex() for id_ in batch.column("id").to_pylist()], kind)
        elif name == "input_ids":
            ends = np.cumsum([0, *map(len, ids)]).astype(np.int32)
            column = pa.ListArray.from_arrays(ends, pa.array(np.concatenate(ids), kind.value_type))
        else:
            column = batch.column(name).cast(kind)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)
