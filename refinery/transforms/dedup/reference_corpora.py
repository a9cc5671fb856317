"""Reference corpora: published corpora that a run is deduplicated against. Their documents win and get no verdicts.

Their signatures/ parts are numbered after the run's own. Only documents that reached their shards count: those whose
ids are in the provenance files.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import orjson
from numpy.typing import NDArray
from pydantic import Field

from refinery.loader.format.parquet.guarded import GuardedFile
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import size_and_crc32c
from refinery.transforms.core.document import ID_BYTES
from refinery.transforms.core.params import Params
from refinery.transforms.dedup.records.record_batch import (
    ID,
    REFERENCE,
    REFERENCE_IDS,
    KeyedBatch,
    Rows,
    part_of,
    ranges,
    scatter,
    set_id,
    set_rank,
)
from refinery.transforms.dedup.signatures import fixed_width

# The id of a document in the shards of the reference corpus with that scope.
REFERENCE_ID = np.dtype([*ID, ("scope", "u1")])
MAX_CORPORA = 250  # a scope is one byte


class ReferenceCorpusParams(Params):
    """A published corpus to deduplicate against."""

    prefix: Annotated[str, Field(min_length=1)]
    """where its manifest is"""
    work: str = ""
    """its work location, where that is not PREFIX/work; its signatures must still be there"""


@dataclass(frozen=True)
class ReferenceCorpus:
    """name: as verdicts give it. parts: (url, rows) of its signatures/ parts. provenance: (url, rows, crc32c) of its
    shards' provenance files, from the manifest.
    """

    name: str
    parts: tuple[tuple[str, int], ...]
    provenance: tuple[tuple[str, int, str], ...]


@dataclass(frozen=True)
class Parts:
    """Numbering of parts: below `own` the run's own, then `reference_parts[i]` parts of reference corpus i.

    withheld: the first of these is a set of documents that this run dropped; their copies go with them.
    """

    own: int
    reference_parts: tuple[int, ...] = ()
    withheld: bool = False

    def is_reference(self, part: int) -> bool:
        """Whether that part belongs to a reference corpus."""
        return part >= self.own

    def in_reference(self, locators: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """True where a document belongs to a reference corpus."""
        return part_of(locators) >= self.own

    def in_withheld(self, locators: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """True where a document was dropped with its copies."""
        last = self.own + self.reference_parts[0] if self.withheld else self.own
        return self.in_reference(locators) & (part_of(locators) < last)

    def set_rank(self, part: int, rows: Rows, ranks: NDArray[np.uint8]) -> None:
        """Set the ranks of a part's documents. Reference corpora come first, in the recipe's order, whatever their
        priorities.
        """
        set_rank(rows, ranks)
        if self.is_reference(part):
            rows["priority"] = self.scope_of(np.array([part << 32], np.uint64), 0)[0]
        else:
            rows["priority"] += np.uint64(REFERENCE + MAX_CORPORA)

    def scope_of(self, kept: NDArray[np.uint64], scope: int) -> NDArray[np.uint8]:
        """Scope of removals in favour of the documents `kept`: `scope` for the run's own, else that of their corpus."""
        place = part_of(kept) - self.own
        corpus = np.searchsorted(np.cumsum(self.reference_parts, dtype=np.int64), place, side="right")
        return np.where(place < 0, scope, REFERENCE + corpus).astype(np.uint8)


def number_parts(own: int, reference_corpora: tuple[ReferenceCorpus, ...], withheld: bool = False) -> Parts:
    """The run's own parts, then those of each reference corpus. withheld: the first of these has what was dropped."""
    return Parts(own, tuple(len(corpus.parts) for corpus in reference_corpora), withheld)


def listing(url: str, rows: int, crc32c: str, scope: int) -> bytes:
    """A provenance file as `reference_id_batches` takes it: as in ReferenceCorpus, and the scope of its corpus."""
    return orjson.dumps([url, rows, crc32c, scope])


def reference_id_batches(key: int, listed: bytes, partitions: int) -> Iterator[KeyedBatch]:
    """A provenance file's `listing` -> the ids in it, by range of id. 17 bytes per document; memory: one row group.

    Raises ValueError when the file is not the one that the manifest describes. Cost: the file is read twice.
    """
    url, rows, crc32c, scope = orjson.loads(listed)
    folder, _, name = url.rpartition("/")
    with open_store(folder).open(name) as stream:
        _, found_crc32c = size_and_crc32c(stream)
        if found_crc32c != crc32c:
            raise ValueError(
                f"{url}: crc32c {found_crc32c} found, {crc32c} expected from the manifest; the corpus is "
                "damaged, see refinery verify"
            )
        stream.seek(0)
        provenance = GuardedFile(stream, url)
        if provenance.metadata.num_rows != rows:
            raise ValueError(f"{url}: {provenance.metadata.num_rows} rows found, {rows} expected")
        for group in range(provenance.num_row_groups):
            ids = fixed_width(provenance.read_row_group(group, columns=["id"])["id"], ID_BYTES)
            found = np.empty(len(ids), REFERENCE_ID)
            set_id(found, ids)
            found["scope"] = scope
            yield from scatter(ranges(found["id_high"], partitions), REFERENCE_IDS, found)
