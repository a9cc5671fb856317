"""Deduplication of documents with their texts, so that similarities can be verified exactly; the first survives."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from refinery.transforms.core.document import Document, text_bytes
from refinery.transforms.dedup.components.find import Method
from refinery.transforms.dedup.deduplicate import Deduplicate, DedupParams, WriteVerdicts, list_parts
from refinery.transforms.dedup.records.rank import RankParams, rank_key
from refinery.transforms.dedup.signatures import compute_signatures, signature_table
from refinery.transforms.dedup.stages import URL_DUPLICATES
from refinery.transforms.write.documents import documents_table
from tests.beam import run_and_collect
from tests.transforms.dedup_oracle import DOMAINS, PRIORITIES, SIGNATURE, SOURCES

Sign = Callable[[Sequence[Document]], NDArray[np.uint32]]


def sign_texts(docs: Sequence[Document]) -> NDArray[np.uint32]:
    return compute_signatures([doc.text for doc in docs], SIGNATURE)


def rank_of(doc: Document) -> bytes:
    """Smaller for a smaller position, among sources of one priority."""
    return rank_key(doc, PRIORITIES[doc.source], RankParams(prefer="first"))


def write_parts(folder: Path, layout: Sequence[Sequence[Document]], sign: Sign, group: int) -> list[tuple[str, int]]:
    """documents/ and signatures/ parts with row groups of `group` rows; (url, rows) of the latter."""
    parts = []
    for name in ("documents", "signatures"):
        (folder / name).mkdir(parents=True)
    for number, docs in enumerate(layout):
        table = signature_table(
            ids=[doc.id for doc in docs],
            ranks=[rank_of(doc) for doc in docs],
            sources=[doc.source for doc in docs],
            domains=[DOMAINS[doc.source] for doc in docs],
            sizes=[text_bytes(doc.text) for doc in docs],
            signatures=sign(docs),
            more=URL_DUPLICATES.hashed.made(docs, SIGNATURE),
        )
        pq.write_table(table, folder / f"signatures/{number}.parquet", compression="none", row_group_size=group)
        pq.write_table(documents_table(list(docs)), folder / f"documents/{number}.parquet", row_group_size=group)
        parts.append((f"{folder}/signatures/{number}.parquet", len(docs)))
    return parts


def decide(
    folder: Path,
    docs: Sequence[Document],
    params: DedupParams,
    method: Method = "forest",
    parts: int = 4,
    partitions: int = 3,
    sign: Sign = sign_texts,
    group: int = 50,
) -> dict[str, dict]:
    """Origin -> row of its verdict; the documents are dealt to parts at random."""
    rng = random.Random(parts)
    layout: list[list[Document]] = [[] for _ in range(parts)]
    for doc in rng.sample(list(docs), len(docs)):
        layout[rng.randrange(parts)].append(doc)
    written = write_parts(folder, layout, sign, group)
    lists = list_parts(str(folder), written)

    def build(pipeline):
        decided = pipeline | Deduplicate(params, SIGNATURE, SOURCES, lists, partitions, components=method)
        return [decided | WriteVerdicts(str(folder), SOURCES)]

    run_and_collect(build)
    verdicts = {}
    for (url, _), dealt in zip(written, layout, strict=True):
        rows = pq.read_table(url.replace("signatures", "verdicts"), partitioning=None).to_pylist()
        verdicts |= {doc.origin: row for doc, row in zip(dealt, rows, strict=True)}
    return verdicts
