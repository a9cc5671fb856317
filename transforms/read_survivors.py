"""Read documents/ parts beside their row-aligned verdicts, and yield the documents that deduplication kept.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import apache_beam as beam
import orjson
import pyarrow.parquet as pq

import transforms.coders  # noqa: F401 - registers the coder of Document
from loader.storage import open_store
from transforms.document import Document

BATCH_ROWS = 256


@dataclass(frozen=True)
class PartPair:
    """Where a part's documents and verdicts are: two stores' roots and the paths inside them. verdicts "" = keep all."""

    documents_root: str
    documents: str
    verdicts_root: str
    verdicts: str


def read_survivors(pair: PartPair) -> Iterator[Document]:
    """The kept documents of one part, in row order; meta gains "copies" (int) and "copy_sources" ("a,b").

    Raises ValueError when the two files disagree on the number of rows. Memory: one batch of rows.
    """
    with open_store(pair.documents_root).open(pair.documents) as stream:
        documents = pq.ParquetFile(stream)
        rows = documents.metadata.num_rows
        if pair.verdicts:
            with open_store(pair.verdicts_root).open(pair.verdicts) as verdict_stream:
                verdicts = pq.read_table(verdict_stream, columns=["removed", "copies", "sources"])
            if verdicts.num_rows != rows:
                raise ValueError(f"{pair.verdicts}: {verdicts.num_rows} verdicts for {rows} documents")
            removed = verdicts["removed"].to_numpy()
            copies = verdicts["copies"].to_numpy()
            sources = verdicts["sources"].to_pylist()
        row = -1
        for batch in documents.iter_batches(batch_size=BATCH_ROWS):
            columns = [
                batch.column(name).to_pylist() for name in ("id", "text", "url", "source", "origin", "position", "meta")
            ]
            for id_, text, url, source, origin, position, meta_json in zip(*columns, strict=True):
                row += 1
                if pair.verdicts and removed[row]:
                    continue
                meta = orjson.loads(meta_json)
                meta["copies"] = int(copies[row]) if pair.verdicts else 1
                meta["copy_sources"] = ",".join(sources[row]) if pair.verdicts else source
                yield Document(id_, text, url, source, origin, position, meta)


def _read(encoded: bytes) -> Iterator[Document]:
    return read_survivors(PartPair(**orjson.loads(encoded)))


@dataclass
class ReadSurvivors(beam.PTransform):
    """Read the survivors of every part; parts are spread over the workers."""

    pairs: list[PartPair]

    def __post_init__(self) -> None:
        super().__init__("survivors")

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection[Document]:
        elements = [
            orjson.dumps(
                {"documents_root": p.documents_root, "documents": p.documents}
                | {"verdicts_root": p.verdicts_root, "verdicts": p.verdicts}
            )
            for p in self.pairs
        ]
        return (
            pipeline
            | "parts" >> beam.Create(elements, reshuffle=True)  # JSON bytes
            | "read" >> beam.FlatMap(_read).with_output_types(Document)
        )
