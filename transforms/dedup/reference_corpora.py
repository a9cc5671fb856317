"""Published corpora that a run is deduplicated against: their documents win, nothing of theirs is decided or written.

Their signatures/ parts take part with the numbers after ours ("foreign"), but only for documents that reached their
shards: those whose ids are in their provenance.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import orjson
import pyarrow.parquet as pq
from numpy.typing import NDArray

from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import size_and_crc32c
from refinery.transforms.core.document import ID_BYTES
from refinery.transforms.dedup.record_batch import (
    AGAINST,
    ID,
    PUBLISHED,
    Block,
    Rows,
    part_of,
    ranges,
    scatter,
    set_id,
    set_rank,
)
from refinery.transforms.dedup.signatures import fixed_width

# A document that reached the shards of the corpus with that scope.
PUBLICATION = np.dtype([*ID, ("scope", "u1")])
MAX_CORPORA = 250  # a scope is one byte


@dataclass(frozen=True)
class AgainstParams:
    """A published corpus to deduplicate against. prefix: where its manifest is.

    work: its work location where that is not PREFIX/work; its signatures must still be there.
    """

    prefix: str
    work: str = ""

    def __post_init__(self) -> None:
        if not self.prefix:
            raise ValueError("prefix: '' given, the prefix of a published corpus is allowed")


@dataclass(frozen=True)
class PublishedCorpus:
    """name: what verdicts call it. parts: (url, rows) of its signatures/. provenance: (url, rows, crc32c) of that of
    its shards, as the manifest has them."""

    name: str
    parts: tuple[tuple[str, int], ...]
    provenance: tuple[tuple[str, int, str], ...]


@dataclass(frozen=True)
class Parts:
    """Whose parts are whose: numbers below `own` are ours, `foreign_parts` are how many each published corpus has."""

    own: int
    foreign_parts: tuple[int, ...] = ()

    def is_foreign(self, part: int) -> bool:
        """Whether that part belongs to a published corpus."""
        return part >= self.own

    def foreign(self, references: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """True where a document belongs to a published corpus."""
        return part_of(references) >= self.own

    def set_rank(self, part: int, rows: Rows, ranks: NDArray[np.uint8]) -> None:
        """Ranks of a part's documents. Published corpora come first, in the recipe's order, not by their priorities."""
        set_rank(rows, ranks)
        if self.is_foreign(part):
            rows["priority"] = self.scope_of(np.array([part << 32], np.uint64), 0)[0]
        else:
            rows["priority"] += np.uint64(AGAINST + MAX_CORPORA)

    def scope_of(self, survivors: NDArray[np.uint64], scope: int) -> NDArray[np.uint8]:
        """Scope of removals in favour of these documents: `scope` for ours, the corpus' own for foreign ones."""
        place = part_of(survivors) - self.own
        corpus = np.searchsorted(np.cumsum(self.foreign_parts, dtype=np.int64), place, side="right")
        return np.where(place < 0, scope, AGAINST + corpus).astype(np.uint8)


def number_parts(own: int, against: tuple[PublishedCorpus, ...]) -> Parts:
    """Parts of ours, then those of each corpus."""
    return Parts(own, tuple(len(corpus.parts) for corpus in against))


def listing(url: str, rows: int, crc32c: str, scope: int) -> bytes:
    """What `published_blocks` must know of a provenance file: as in PublishedCorpus, and the scope of its corpus."""
    return orjson.dumps([url, rows, crc32c, scope])


def published_blocks(key: int, listed: bytes, partitions: int) -> Iterator[Block]:
    """A provenance file's `listing` -> the ids in it, by range of id. 17 bytes per document; memory: one row group.

    Raises ValueError when the file is not the one that the manifest describes. Cost: it is read twice.
    """
    url, rows, crc32c, scope = orjson.loads(listed)
    folder, _, name = url.rpartition("/")
    with open_store(folder).open(name) as stream:
        _, found_crc32c = size_and_crc32c(stream)
        if found_crc32c != crc32c:
            raise ValueError(
                f"{url}: crc32c {found_crc32c} found, {crc32c} expected from the manifest: the corpus is "
                "damaged, see refinery verify"
            )
        stream.seek(0)
        provenance = pq.ParquetFile(stream)
        if provenance.metadata.num_rows != rows:
            raise ValueError(f"{url}: {provenance.metadata.num_rows} rows found, {rows} expected")
        for group in range(provenance.num_row_groups):
            ids = fixed_width(provenance.read_row_group(group, columns=["id"])["id"], ID_BYTES)
            found = np.empty(len(ids), PUBLICATION)
            set_id(found, ids)
            found["scope"] = scope
            yield from scatter(ranges(found["id_high"], partitions), PUBLISHED, found)
