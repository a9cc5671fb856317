"""Parts as phase 1 writes them, for passes that cut passages, and the steps of such a pass without Beam."""

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from refinery.transforms.core.document import Document
from refinery.transforms.dedup.cut_lines import hash_lines
from refinery.transforms.dedup.records.rank import RankParams, rank_key
from refinery.transforms.dedup.records.record_batch import BATCH_BYTES, REMOVAL, REMOVALS, Batch, form_batches, scatter
from refinery.transforms.dedup.signatures import SignatureParams, compute_signatures, signature_table
from refinery.transforms.dedup.substring_hashes import hash_anchors
from refinery.transforms.write.documents import documents_table

SIGNATURE = SignatureParams(permutations=4)
SOURCES = ("books", "web")
Layout = Sequence[Sequence[Document]]


def write_parts(folder: Path, layout: Layout, group: int = 3) -> list[tuple[str, int]]:
    """signatures/ parts with lines and anchors, in small row groups, and the documents/ parts beside them."""
    parts = []
    for name in ("documents", "signatures"):
        (folder / name).mkdir(parents=True)
    for number, docs in enumerate(layout):
        texts = [doc.text for doc in docs]
        table = signature_table(
            ids=[doc.id for doc in docs],
            ranks=[rank_key(doc, 0, RankParams()) for doc in docs],
            sources=[doc.source for doc in docs],
            domains=[doc.source for doc in docs],
            sizes=[len(text.encode()) for text in texts],
            signatures=compute_signatures(texts, SIGNATURE),
            more={"lines": hash_lines(texts), "anchors": hash_anchors(texts)},
        )
        url = f"{folder}/signatures/part-{number}.parquet"
        pq.write_table(table, url, row_group_size=group, write_page_checksum=True)
        documents = f"{folder}/documents/part-{number}.parquet"
        pq.write_table(documents_table(list(docs)), documents, row_group_size=group, write_page_checksum=True)
        parts.append((url, len(docs)))
    return parts


def removal_batches(layout: Layout, removed: set[str]) -> list[Batch]:
    """REMOVAL rows of these origins, by part."""
    places = [
        part << 32 | row for part, docs in enumerate(layout) for row, doc in enumerate(docs) if doc.origin in removed
    ]
    rows = np.zeros(len(places), REMOVAL)
    rows["locator"] = places
    return list(form_batches(scatter((rows["locator"] >> np.uint64(32)).astype(np.int64), REMOVALS, rows)))


def shuffle(batches: Iterable[Batch], rng: random.Random) -> dict[int, list[bytes]]:
    """What a GroupByKey may make of them: any order."""
    grouped: dict[int, list[bytes]] = defaultdict(list)
    mixed = list(batches)
    rng.shuffle(mixed)
    for key, batch in mixed:
        assert len(batch) <= BATCH_BYTES
        grouped[key].append(batch)
    return grouped


def deal(docs: Sequence[Document], parts: int, seed: int) -> list[list[Document]]:
    """Documents in any order over so many parts, some of which may be empty."""
    rng = random.Random(seed)
    mixed = list(docs)
    rng.shuffle(mixed)
    layout: list[list[Document]] = [[] for _ in range(parts)]
    for doc in mixed:
        layout[rng.randrange(parts)].append(doc)
    return layout
