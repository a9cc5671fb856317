"""Write the documents of a bundle and their signatures as row-aligned Parquet parts.

No `from __future__ import annotations` here: Beam reads these hints.
"""

import time
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq

from refinery.loader.storage.full_disk import naming_scratch
from refinery.transforms.core.document import Document, text_bytes
from refinery.transforms.core.exchange.records import SIDE_OUTPUT, side_output_record
from refinery.transforms.core.exchange.side_outputs import add_side_output, in_global_window, with_side_output
from refinery.transforms.core.job.report import publish_part
from refinery.transforms.dedup.cutting_pass import Hashed
from refinery.transforms.dedup.records.rank import RankParams, rank_key
from refinery.transforms.dedup.signatures import SignatureParams, compute_signatures, signature_table
from refinery.transforms.write.documents import SourceFacts, documents_table

BATCH_BYTES = 8 << 20  # of text buffered before a row group is written
PART_BYTES = 256 << 20  # of text in one part
SIGNATURES, WITHHELD = "signatures", "withheld"  # folders of signatures: of documents, and of what only its copies need


class _Part:
    """The two open files of one part."""

    def __init__(self) -> None:
        self.scratch = TemporaryDirectory(prefix="refinery-part-")
        self.name = f"part-{uuid.uuid4().hex}"
        self.paths = {folder: Path(self.scratch.name) / folder for folder in ("documents", SIGNATURES, WITHHELD)}
        self.writers: dict[str, pq.ParquetWriter] = {}
        self.rows = 0
        self.bytes = 0

    def write(self, folder: str, table: pa.Table, compression: str, **options: Any) -> None:
        with naming_scratch(self.scratch.name, f"{folder}/{self.name}.parquet"):
            if folder not in self.writers:
                self.writers[folder] = pq.ParquetWriter(
                    self.paths[folder], table.schema, compression=compression, write_page_checksum=True, **options
                )
            self.writers[folder].write_table(table)

    def close(self, location: str) -> Iterator[bytes]:
        for folder, writer in self.writers.items():
            with naming_scratch(self.scratch.name, f"{folder}/{self.name}.parquet"):
                writer.close()
            yield publish_part(location, f"{folder}/{self.name}.parquet", self.paths[folder], self.rows)
        self.scratch.cleanup()


class _WriteParts(beam.DoFn):
    def __init__(
        self,
        location: str,
        signature: SignatureParams,
        rank: RankParams,
        sources: Mapping[str, SourceFacts],
        part_bytes: int,
        hashed: tuple[Hashed, ...],
        withheld: bool,
    ) -> None:
        self.withheld = withheld
        self.location = location
        self.signature = signature
        self.rank = rank
        self.sources = dict(sources)
        self.part_bytes = part_bytes
        self.hashed = hashed

    def start_bundle(self) -> None:
        self.part: _Part | None = None
        self.docs: list[Document] = []
        self.sizes: list[int] = []
        self.held = 0
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def process(self, doc: Document) -> Iterable[Any]:
        size = text_bytes(doc.text)
        self.docs.append(doc)
        self.sizes.append(size)
        # URLs and meta are buffered, too: a record may have far more of these than text.
        self.held += size + len(doc.url) + sum(len(v) for v in doc.meta.values() if isinstance(v, str))
        if self.held >= BATCH_BYTES:
            self._write_batch()
            if self.part and self.part.bytes >= self.part_bytes:
                return [beam.pvalue.TaggedOutput(SIDE_OUTPUT, record) for record in self._close_part()]
        return ()

    def finish_bundle(self) -> Iterator[Any]:
        if self.docs:
            self._write_batch()
        for record in self._close_part():
            yield in_global_window(record)
        for stage, seconds in self.seconds.items():
            yield in_global_window(side_output_record("seconds", stage=stage, seconds=seconds))

    def _write_batch(self) -> None:
        docs, sizes = self.docs, self.sizes
        start = time.perf_counter()
        values = compute_signatures([doc.text for doc in docs], self.signature)
        more = {name: made for each in self.hashed for name, made in each.made(docs, self.signature).items()}
        self.seconds["signatures"] += time.perf_counter() - start
        self.part = part = self.part or _Part()
        start = time.perf_counter()
        if not self.withheld:
            part.write("documents", documents_table(docs), "zstd", compression_level=1, use_dictionary=["source"])
        facts = [self.sources[doc.source] for doc in docs]
        signatures = signature_table(
            ids=[doc.id for doc in docs],
            ranks=[rank_key(doc, fact.priority, self.rank) for doc, fact in zip(docs, facts, strict=True)],
            sources=[doc.source for doc in docs],
            domains=[fact.domain for fact in facts],
            sizes=sizes,
            signatures=values,
            more=more,
        )
        folder = WITHHELD if self.withheld else SIGNATURES
        part.write(folder, signatures, "none", use_dictionary=["source", "domain"])
        part.rows += len(docs)
        part.bytes += self.held
        self.seconds["write-documents"] += time.perf_counter() - start
        self.docs, self.sizes, self.held = [], [], 0

    def _close_part(self) -> list[bytes]:
        part, self.part = self.part, None
        return list(part.close(self.location)) if part else []


@dataclass
class WriteDocuments(beam.PTransform):
    """Write documents/part-*.parquet and signatures/part-*.parquet under `location`, row-aligned, same part names.

    hashed: further columns of the signatures, which stages of phase 2 need. withheld: write only signatures, to
    withheld/part-*.parquet.
    Memory: about 3 × BATCH_BYTES per worker, whatever the corpus' size.
    """

    location: str
    signature: SignatureParams
    rank: RankParams
    sources: Mapping[str, SourceFacts]
    part_bytes: int = PART_BYTES
    hashed: tuple[Hashed, ...] = ()
    withheld: bool = False

    def __post_init__(self) -> None:
        super().__init__("write-withheld" if self.withheld else "write-documents")

    def expand(self, docs: beam.PCollection[Document]) -> beam.PCollection:
        dofn = _WriteParts(
            self.location, self.signature, self.rank, self.sources, self.part_bytes, self.hashed, self.withheld
        )
        outputs = with_side_output(docs, "parts", beam.ParDo(dofn), main="none")
        add_side_output(docs.pipeline, outputs[SIDE_OUTPUT])
        return outputs["none"]
