"""Parquet, and a folder of Parquet with a card, as `datasets.load_dataset` reads it."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.format.manifest import check_domain
from refinery.loader.format.parquet.guarded import guarded_parquet
from refinery.loader.format.provenance import PARQUET as SETTINGS
from refinery.pipelines.corpus.export.card import write_card
from refinery.pipelines.corpus.export.export_format import ExportFormat, FileOptions, Written

GROUP_BYTES = 32 << 20  # of rows in one row group, before compression
OWN_TEXTS = ("id", "url", "origin", "meta", "text")  # columns of as many texts as rows; of others they repeat
BATCH_ROWS = 256


def write_parquet(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch], options: FileOptions) -> None:
    """Parquet with row groups of about 32 MiB, zstd, and checksums of pages. Memory: a row group."""
    dictionaries = [f.name for f in schema if pa.types.is_string(f.type) and f.name not in OWN_TEXTS]
    with pq.ParquetWriter(path, schema, **SETTINGS, use_dictionary=dictionaries) as writer:
        held: list[pa.RecordBatch] = []
        for batch in batches:
            held.append(batch)
            if sum(each.nbytes for each in held) >= GROUP_BYTES:
                writer.write_table(pa.Table.from_batches(held, schema), row_group_size=1 << 30)
                held = []
        if held:
            writer.write_table(pa.Table.from_batches(held, schema), row_group_size=1 << 30)


def read_parquet(stream: BinaryIO, name: str) -> Iterator[dict[str, Any]]:
    """The rows of a file."""
    with guarded_parquet(stream, name) as file:
        for batch in file.iter_batches(BATCH_ROWS, use_threads=False):
            yield from batch.to_pylist()


def data_file(split: str, domain: str, number: str, ending: str) -> str:
    """Where the hub looks: a folder for each configuration, which is a domain.

    >>> data_file("train", "web", "00000-of-00016", ".parquet")
    'data/web/train-00000-of-00016.parquet'
    """
    return f"data/{check_domain(domain)}/{split}-{number}{ending}"


def card(written: Written) -> Iterator[tuple[str, bytes]]:
    """README.md, which tells the library the configurations and people what the data is."""
    yield "README.md", write_card(written.corpus, written.fields, written.sources)


PARQUET = ExportFormat(
    name="parquet",
    version=1,
    summary="Parquet, a file for each shard",
    ending=".parquet",
    write=write_parquet,
    read=read_parquet,
    libraries=("pyarrow",),
    hidden=True,
)
HUGGINGFACE = ExportFormat(
    name="huggingface",
    version=1,
    summary="Parquet and a card, for `datasets.load_dataset`",
    ending=".parquet",
    write=write_parquet,
    read=read_parquet,
    file_name=data_file,
    beside=card,
    libraries=("pyarrow",),
)
