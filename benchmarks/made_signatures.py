"""Generated signatures with a known share of duplicates, for the benchmarks of deduplication that need no text."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from refinery.pipelines.run.refine import DOCUMENTS_PER_PARTITION
from refinery.transforms.core.document import ID_BYTES
from refinery.transforms.dedup.near_duplicates import NearParams
from refinery.transforms.dedup.records.rank import RANK_BYTES
from refinery.transforms.dedup.signatures import SignatureParams, signature_table

SIGNATURE = SignatureParams()
PERMUTATIONS = SIGNATURE.permutations
PARAMS = NearParams(verify="signature")  # there are no texts
PART_DOCUMENTS, GROUP_DOCUMENTS = 50_000, 5_000
COPY_SIMILARITY = 0.9
SOURCE = "web"


@dataclass(frozen=True)
class Mixture:
    """Shares of the documents; the rest is similar to nothing.

    exact: of the same id and signature as another. copies: near copies of another document near by. family: near copies
    of one and the same document. bucket: documents that share their first band and nothing else.
    """

    exact: float = 0.0
    copies: float = 0.01
    family: float = 0.0
    bucket: float = 0.0


def copies_of(rows: NDArray[np.uint32], generator: np.random.Generator) -> NDArray[np.uint32]:
    """Each value of each row kept with probability COPY_SIMILARITY, else replaced."""
    fresh = generator.integers(0, 2**32, rows.shape, np.uint32)
    return np.where(generator.random(rows.shape, np.float32) < COPY_SIMILARITY, rows, fresh)


def made_signatures(count: int, mixture: Mixture, seed: Sequence[int]) -> NDArray[np.uint32]:
    """uint32 of shape (count, PERMUTATIONS): random values, with duplicates according to the mixture, in random order.

    seed[0] chooses the one document of the family and the one bucket, so they are common to all calls with it.
    """
    generator = np.random.default_rng(seed)
    fixed = np.random.default_rng(seed[0]).integers(0, 2**32, (1, PERMUTATIONS), np.uint32)
    rows = generator.integers(0, 2**32, (count, PERMUTATIONS), np.uint32)
    copies, family, bucket = (round(share * count) for share in (mixture.copies, mixture.family, mixture.bucket))
    if 2 * copies + family + bucket > count or 2 * round(mixture.exact * count) > count:
        raise ValueError(f"mixture: {mixture} given, shares of at most 1, with copies and exact twice, are allowed")
    rows[:copies] = copies_of(rows[copies : 2 * copies], generator)
    rows[2 * copies : 2 * copies + family] = copies_of(np.repeat(fixed, family, axis=0), generator)
    band = PARAMS.layout(PERMUTATIONS)[1]
    rows[2 * copies + family : 2 * copies + family + bucket, :band] = fixed[:, :band] + np.uint32(1)
    return generator.permutation(rows)


def write_signatures(folder: Path, documents: int, mixture: Mixture, size: int = 1000) -> list[tuple[str, int]]:
    """signatures/ parts with that many generated documents of `size` bytes each: (url, rows) of each part."""
    (folder / "signatures").mkdir(parents=True)
    parts = []
    for number, start in enumerate(range(0, documents, PART_DOCUMENTS)):
        count = min(PART_DOCUMENTS, documents - start)
        noise = np.random.default_rng([2, number])
        same = round(mixture.exact * count)
        signatures = made_signatures(count, mixture, [1, number])
        signatures[:same] = signatures[same : 2 * same]
        ids, ranks = noise.bytes(ID_BYTES * count), noise.bytes((RANK_BYTES - 8) * count)
        step = RANK_BYTES - 8
        table = signature_table(
            ids=[ids[i * ID_BYTES : (i + 1) * ID_BYTES] for i in (*range(same, 2 * same), *range(same, count))],
            ranks=[bytes(8) + ranks[i * step : (i + 1) * step] for i in range(count)],  # all of equal priority
            sources=[SOURCE] * count,
            domains=[SOURCE] * count,
            sizes=[size] * count,
            signatures=signatures,
        )
        path = folder / "signatures" / f"part-{number:032x}.parquet"
        pq.write_table(table, path, compression="none", row_group_size=GROUP_DOCUMENTS)
        parts.append((str(path), count))
    return parts


def partitions_of(documents: int) -> int:
    """As refinery.pipelines.run.refine chooses it."""
    return 1 << max(0, (documents // DOCUMENTS_PER_PARTITION).bit_length())
