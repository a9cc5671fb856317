"""Where rows come from: their domain and number, and for a number its shards, documents and addresses."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from refinery.loader.format.manifest import ShardEntry
from refinery.loader.format.parquet.guarded import listed_parquet
from refinery.loader.format.shard_files import load_index
from refinery.loader.order.arrays import I64, Batch
from refinery.loader.read.samples import Domain
from refinery.loader.storage.store import Store
from refinery.loader.stream.assemble import PreparedBatch
from refinery.loader.view.opened import OpenedCorpus

EMPTY = -1  # of a row without a sample


@dataclass(frozen=True, slots=True)
class Origin:
    """A document, or the part of one, that is in a row.

    start, stop: its tokens in the row, without the last label. shard: path of the .bin, of a view behind the corpus'
    name; domain: that of the shard. document: its number there, and
    its row in the provenance file. first: the token of the document at which the part begins. id, url, source, origin:
    as in the provenance file; "" in a corpus that was adopted.
    """

    start: int
    stop: int
    domain: str
    shard: str
    document: int
    first: int
    id: str = ""
    url: str = ""
    source: str = ""
    origin: str = ""


class RowIds:
    """Numbers of rows. A sample's number counts those of all domains of the stream, in manifest order, and where its
    epochs have other rows those of the epochs before.

    names: those of the corpus' domains, of which Domain.labels are places. domain_ids, sample_ids: which arrays
    are added to batches.
    """

    def __init__(self, domains: Sequence[Domain], names: Iterable[str], domain_ids: bool, sample_ids: bool) -> None:
        self.names = tuple(names)
        self._domains, self._asked = list(domains), (domain_ids, sample_ids)
        self._first: I64 = np.cumsum([0, *(domain.samples for domain in domains)])
        self._sizes = np.maximum(np.diff(self._first), 1)

    @property
    def finish(self) -> Callable[[PreparedBatch], PreparedBatch] | None:
        """`with_ids`, None if nothing was asked for."""
        return self.with_ids if any(self._asked) else None

    def with_ids(self, prepared: PreparedBatch) -> PreparedBatch:
        """The batch with domain_ids int32 [B] and sample_ids int64 [B], as asked; EMPTY in empty rows.

        A row that crosses from one domain into the next, as without weights it can, has the domain of its first token.
        Rows that are parts of one sample have its number. Cost: 10 us.
        """
        if prepared.batch is None:
            return prepared
        rows = prepared.plan.mine[prepared.step]
        samples, which = prepared.plan.samples[rows], prepared.plan.domains[rows]
        samples[rows < 0] = EMPTY
        more: Batch = {}
        if self._asked[0]:
            found = np.full(len(rows), EMPTY, np.int32)
            for d, domain in enumerate(self._domains):
                mine = (which == d) & (samples >= 0)
                if mine.any():
                    found[mine] = domain.labels[domain.first_shards(samples[mine])]
            more["domain_ids"] = found
        if self._asked[1]:
            more["sample_ids"] = np.where(samples < 0, EMPTY, self._number(samples, which))
        parts = len(prepared.batch["input_ids"]) // len(rows)
        more = {name: np.repeat(values, parts) for name, values in more.items()} if parts > 1 else more
        return prepared._replace(batch=prepared.batch | more)

    def _number(self, samples: I64, which: I64) -> I64:
        """Numbers of samples of these domains: those of all domains of one epoch come before those of the next."""
        epochs = samples // self._sizes[which]
        found: I64 = samples + self._first[which] + epochs * (self._first[-1] - self._sizes[which])
        return found

    def sample(self, number: int) -> tuple[Domain, int]:
        """The domain and sample of a number. Raises ValueError for one that no row has."""
        most = int(self._first[-1]) * max(_groups(domain) for domain in self._domains)
        epoch, inside = divmod(number, max(int(self._first[-1]), 1))
        d = int(np.searchsorted(self._first[1:-1], inside, "right"))
        domain, sample = self._domains[d], inside - int(self._first[d]) + epoch * int(self._sizes[d])
        if not 0 <= number < most or not domain.has(sample):
            raise ValueError(f"sample: {number} given, 0 to {most - 1} is allowed (empty rows have {EMPTY})")
        return domain, sample


def _groups(domain: Domain) -> int:
    """How many times as many samples as an epoch has have a number: those of all periods, and of another first one."""
    return domain.periods + (-(-domain.first // domain.samples) if domain.first_of(0) else 0)


def origins(
    opened: OpenedCorpus, shards: Sequence[ShardEntry], domain: Domain, sample: int, past: Any = None
) -> Iterator[Origin]:
    """The documents of a sample in order. Reads the index of each of its shards, and the row groups of its provenance.

    past: of an earlier version of the corpus, whose documents these are; one that went since has no address. Raises
    FormatError for damaged files. Cost: an index and 65,536 rows of provenance, for each shard.
    """
    first = sample * domain.length
    place = 0
    for number, begin, stop in domain.ranges(first, first + domain.length):
        entry, store = shards[number], opened.place(number)
        offsets = (past.index(number) if past else load_index(store, entry)).offsets
        some = range(int(np.searchsorted(offsets, begin, "right")) - 1, int(np.searchsorted(offsets, stop)))
        if past:
            known = list(_moved(store, entry, (past.document(number, row) for row in some)))
        else:
            known = provenance(store, entry, some)
        for document, more in zip(some, known, strict=True):
            start = int(offsets[document])
            end = int(offsets[document + 1]) if document + 1 < len(offsets) else entry.tokens
            a, b = max(start, begin), min(end, stop)
            if a < b:
                at = place + a - begin
                yield Origin(at, at + b - a, entry.domain, opened.path(number, entry), document, a - start, **more)
        place += stop - begin


def _moved(store: Store, entry: ShardEntry, rows: Iterable[int]) -> Iterator[dict[str, str]]:
    """`_provenance` of documents by their rows now; nothing is known of one that is there no more: its row is below
    0."""
    for row in rows:
        yield from provenance(store, entry, range(row, row + 1)) if row >= 0 else [{}]


def provenance(store: Store, entry: ShardEntry, documents: range) -> list[dict[str, str]]:
    """What Origin says of these documents, for each."""
    if entry.provenance_file is None or not documents:
        return [{} for _ in documents]
    columns = ["id", "url", "source", "origin"]
    rows: list[dict[str, Any]] = []
    path = entry.provenance_file.path
    with listed_parquet(store, path) as file:
        begin = 0
        for group in range(file.num_row_groups):
            end = begin + file.metadata.row_group(group).num_rows
            a, b = max(documents.start, begin), min(documents.stop, end)
            if a < b:
                rows += file.read_row_group(group, columns=columns).slice(a - begin, b - a).to_pylist()
            begin = end
    return [{**row, "id": row["id"].hex()} for row in rows]
