"""What a stream has delivered, by domain and by shard, and which documents are in a row."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from refinery.loader.arguments import whole
from refinery.loader.order.arrays import I64
from refinery.loader.packing.packing import Packing
from refinery.loader.read.versions.versions import Version
from refinery.loader.stream.assemble import BatchParams, Contents
from refinery.loader.stream.loops import LoopedBatches
from refinery.loader.stream.origins import EMPTY, Origin, RowIds, origins
from refinery.loader.view.opened import OpenedCorpus
from refinery.loader.view.past_view import PastView


def describe_contents(counts: I64) -> dict[str, float]:
    """counts: sums of Contents."""
    rows, documents, tokens, places = Contents(*counts.tolist())
    return {
        "rows": rows,
        "utilisation": tokens / places if rows else 0.0,
        "documents_per_row": documents / rows if rows else 0.0,
        "document_tokens": tokens / documents if documents else 0.0,
    }


class DeliveredBatches(LoopedBatches):
    """LoopedBatches of a corpus that can say what they were made of.

    A subclass sets what is read: the corpus, its shards (or packed files) in use, the numbers of rows, and the earlier
    version in whose order it goes on, if it does.
    """

    _opened: OpenedCorpus
    _shards: Sequence[Any]
    _ids: RowIds
    _past: Version | PastView | None
    _batch_params: BatchParams
    _packing: Packing | None

    @property
    def mix(self) -> dict[str, dict[str, float]]:
        """Samples, share of all samples and epochs delivered so far, by domain. Empty without weights."""
        return {} if self._schedule.mixture is None else self._schedule.mixture.achieved(self._position)

    @property
    def packing(self) -> dict[str, float]:
        """Of packed rows that this rank has delivered since the stream was made: `rows`, `utilisation` (share of places
        that are tokens), `documents_per_row` and `document_tokens`, on average; 0 before the first batch. Documents
        that are cut to parts count by the part.

        Where rows are packed while loading, also `cropped_doc_frac`: the share of the split's documents that are cut,
        for being longer than a row. Empty for rows that are not packed.
        """
        if not self._batch_params.is_packed:
            return {}
        found = describe_contents(self._delivered)
        return found if self._packing is None else found | {"cropped_doc_frac": self._packing.cropped_doc_frac}

    @property
    def domain_names(self) -> tuple[str, ...]:
        """The domains of the split in manifest order: domain_ids are places in it."""
        return self._ids.names

    @property
    def tokens_per_domain(self) -> dict[str, int]:
        """Input tokens of each domain delivered to all ranks since the first epoch began, by name.

        Cost: after a resume inside an epoch, once, 0.5 us for each sample of the epoch before the position.
        """
        with self._lock:
            self._count()
            counts = self._usage.all_tokens(self._schedule.order)
        found = np.zeros(len(self.domain_names), np.int64)
        for domain, tokens in counts:
            np.add.at(found, domain.labels, tokens)
        return dict(zip(self.domain_names, found.tolist(), strict=True))

    def locate(self, sample_id: int) -> list[Origin]:
        """The documents of a row, by its entry of sample_ids, with their addresses: Origin has the fields.

        Raises ValueError for a number that no row has, and what reading raises. Cost: reads an index and 65,536 rows of
        provenance for each shard that the row is of.
        """
        found = self._ids.sample(whole("sample_id", sample_id, EMPTY))
        return list(origins(self._opened, self._shards, *found, past=self._past))

    @property
    def tokens_per_shard(self) -> dict[str, int]:
        """Input tokens of each shard, by the name of its .bin, that were delivered in the current epoch to all ranks.

        After the last batch of an epoch they are those of all of it, until the next one begins. Without domains that
        were resumed inside an epoch, which are there again from the next epoch on.
        """
        with self._lock:
            self._count()
            found = self._usage.tokens()
        counts = np.zeros(len(self._shards), np.int64)
        for domain, tokens in found:
            np.add.at(counts, domain.numbers, tokens)
        known = np.unique(np.concatenate([domain.numbers for domain, _ in found] or [np.empty(0, np.int64)]))
        return {self._opened.path(number, self._shards[number]): int(counts[number]) for number in known.tolist()}
