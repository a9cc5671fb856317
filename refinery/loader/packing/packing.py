"""`TokenStream(packing="best_fit")`: from the documents' lengths to domains of rows, before a stream begins."""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from refinery.loader.arguments import MOST, flag, of_kind, whole
from refinery.loader.format.indexed import Index
from refinery.loader.order.arrays import distinct
from refinery.loader.order.subset import rows_of_domains
from refinery.loader.packing.best_fit_domain import BestFitDomain
from refinery.loader.packing.buckets import BucketDomain, LengthBuckets
from refinery.loader.packing.row_file import kept_table
from refinery.loader.packing.row_table import NOISE, RowTable, make_table
from refinery.loader.read.remote.blocks import RemoteParams
from refinery.loader.read.remote.cache import default_folder
from refinery.loader.read.samples import DocumentStarts, Domain
from refinery.loader.storage.fetch import Stop
from refinery.loader.view.opened import OpenedCorpus

BEST_FIT, BUCKETS, CONCATENATE = "best_fit", "buckets", "concatenate"
KEPT = 1 << 20  # documents from which on a table is kept on disk: packing fewer takes less than a second
AHEAD = 8  # indexes of a remote corpus that are read at once
TRIMMED = 2  # `repack` in states, where a block has no more rows than pieces; True: other blocks, and until then
_ROWS = 512  # of a block at least: 99.7 % of their places are filled

_log = logging.getLogger("refinery.loader")


@dataclass(frozen=True)
class BestFitParams:
    """How documents are packed into rows by best fit.

    block: tokens whose documents are packed together; None: 2^20, more where that is less than 512 rows. folder: where
    the table of a corpus of a million documents and more is kept between starts, on a local disk; None for `packing` in
    the cache of RemoteParams, by default in the user's cache folder. repack: True packs again in each epoch, so
    documents get other neighbours; False keeps the rows of best fit decreasing in every epoch. cut: of a corpus with
    loss masks, whether documents that are longer than a row are cut; others are always.
    """

    block: int | None = None
    folder: Path | None = None
    repack: bool = True
    cut: bool = False

    def __post_init__(self) -> None:
        if self.block is not None:
            object.__setattr__(self, "block", whole("block", self.block, 1, 2**40))
        of_kind("folder", self.folder, Path)
        flag("repack", self.repack)
        flag("cut", self.cut)


def default_block(length: int) -> int:
    """BestFitParams.block for rows of `length`, where it is left open."""
    return max(1 << 20, _ROWS * length)


class Packing:
    """Packs the domains of a stream, once; `identity` is what its states say of that. length: places of a row.

    step: rows of a step of all ranks. Raises ValueError for what cannot be packed.
    """

    def __init__(
        self,
        params: BestFitParams | LengthBuckets,
        opened: OpenedCorpus,
        length: int,
        subset: int | float | None,
        step: int = 1,
    ) -> None:
        self.buckets: LengthBuckets | None = None
        if isinstance(params, LengthBuckets):
            self.buckets, self._group, params = params, params.group or step, BestFitParams(repack=False)
            self.widths = self.buckets.up_to(length)
        if length < 2:
            raise ValueError(f"sequence_length: {length} given with packing, 2 or more is allowed")
        if length >= 1 << 24:
            raise ValueError(f"sequence_length: {length} given with packing, less than 2^24 is allowed")
        self.block = params.block or default_block(length)
        self._noise = NOISE if params.repack else 0
        self._whole = opened.is_masked and not params.cut
        self._with_empty = self._is_trimmed = False
        self._tables: list[RowTable] = []
        self._opened, self._length, self._subset, self._folder = opened, length, subset, params.folder

    @property
    def identity(self) -> dict[str, Any]:
        """What a state's `order` says of the rows, once they are made."""
        if self.buckets is not None:
            return {"packing": BUCKETS, "lengths": list(self.widths), "group": self._group, "sort": self.buckets.sort}
        found = {"packing": BEST_FIT, "pack_block": self.block}
        if not self._noise:
            return found
        return found | {"repack": TRIMMED if self._is_trimmed and not self._with_empty else True}

    @property
    def cropped_doc_frac(self) -> float:
        """The share of the documents that are cut, for being longer than a row. Cost: 1 ns for each of their parts."""
        documents, cut = np.sum([table.documents(self._length) for table in self._tables], axis=0).tolist()
        return cut / documents if documents else 0.0

    def of_state(self, state: Any) -> "Packing":
        """The packing in whose rows the state counts: this one, or one that differs in whether rows without a piece
        are counted. States were made with these until they were left out."""
        order = state.get("order") if isinstance(state, Mapping) else None
        if self.buckets is not None:
            group = order.get("group") if isinstance(order, Mapping) else None
            if self.buckets.group is not None or type(group) is not int or not 0 < group <= MOST:
                return self
            other = copy(self)
            other._group = group
            return other
        given = order.get("repack") if isinstance(order, Mapping) else None
        known = given is True or (type(given) is int and given == TRIMMED)
        if not (self._is_trimmed and known) or (given is True) == self._with_empty:
            return self
        other = copy(self)
        other._with_empty = given is True
        return other

    def of(self, split: str, remote: RemoteParams | None) -> Callable[..., list[Domain]]:
        """`__call__` for a split; it takes what is left."""
        return partial(self, split=split, remote=remote)

    def __call__(self, shards: Sequence[Any], *, mixed: bool, split: str, remote: RemoteParams | None) -> list[Domain]:
        """The split's domains with rows for samples. Cost: reads the index of every shard, unless the table is kept."""
        if self.buckets is not None and mixed:
            raise ValueError("weights: domains are mixed, a stream without weights is allowed with LengthBuckets")
        inner = self._opened.domains(shards, self._length, mixed)
        folder = self._folder or (default_folder() if remote is None else remote.folder) / "packing"
        tables: list[RowTable] = []
        for domain in inner:
            documents = sum(shards[n].documents for n in distinct(domain.numbers).tolist())
            if documents < KEPT:
                tables.append(self._make(domain, shards))
                continue
            paths = [self._opened.path(n, shards[n]) for n in domain.numbers.tolist()]
            key = [self._opened.sha256, split, domain.name, self._length, self.block, self._noise]
            key += [domain.tokens, paths]
            tables.append(kept_table(folder, repr(key), lambda domain=domain: self._make(domain, shards)))  # type: ignore[misc]
        self._tables = tables
        if self._whole and any((table.reads > self._length).any() for table in tables):
            raise ValueError(
                f"sequence_length: {self._length} given, but the corpus has loss masks and documents that are longer, "
                "which would be cut inside a turn; give longer rows, or packing=BestFitParams(cut=True)"
            )
        if self.buckets is not None:
            ((domain, table),) = zip(inner, tables, strict=True)
            most = rows_of_domains(self._subset, [len(table.starts)])[0]
            return [BucketDomain(domain, table, self.widths, self._group, self.buckets.sort, most)]
        trimmed = [table.trimmed() for table in tables]
        self._is_trimmed = any(one is not other for one, other in zip(trimmed, tables, strict=True))
        rows = rows_of_domains(self._subset, [table.rows for table in (tables if self._with_empty else trimmed)])
        found: list[Domain] = [
            BestFitDomain(*each, self._noise, self._with_empty) for each in zip(inner, tables, rows, strict=True)
        ]
        places = self._length * sum(domain.samples for domain in found)
        filled = sum(domain.tokens for domain in found) / max(places, 1)
        _log.info("packing: %d rows of %d, %.2f %% of their places filled", places // self._length, self._length,
                  100 * filled)  # fmt: skip
        return found

    def _make(self, domain: Domain, shards: Sequence[Any]) -> RowTable:
        load = self._opened.index_loader(shards, Stop())
        if not self._opened.is_remote:
            return make_table(domain, DocumentStarts(load), self._length, self.block, self._noise)
        ahead = _IndexesAhead(load, domain.numbers[np.diff(domain.starts) > 0].tolist())
        try:
            return make_table(domain, DocumentStarts(ahead), self._length, self.block, self._noise)
        finally:
            ahead.close()


class _IndexesAhead:
    """Loads indexes in the order in which they will be asked for, some ahead."""

    def __init__(self, load: Callable[[int], Index], numbers: Iterable[int]) -> None:
        self._load, self._coming = load, deque(dict.fromkeys(numbers))
        self._futures: dict[int, Future[Index]] = {}
        self._pool = ThreadPoolExecutor(AHEAD, "refinery-indexes")

    def __call__(self, number: int) -> Index:
        while self._coming and len(self._futures) < AHEAD:
            following = self._coming.popleft()
            self._futures[following] = self._pool.submit(self._load, following)
        future = self._futures.pop(number, None)
        return self._load(number) if future is None else future.result()

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


def packing_params(given: Any) -> BestFitParams | LengthBuckets | None:
    """What TokenStream's `packing` means. Raises ValueError."""
    if given is None or isinstance(given, BestFitParams | LengthBuckets):
        return given
    if given == CONCATENATE:
        return None
    if given != BEST_FIT:
        allowed = f"{BEST_FIT!r}, BestFitParams, LengthBuckets or None (also {CONCATENATE!r})"
        raise ValueError(f"packing: {given!r:.80} given, {allowed} is allowed")
    return BestFitParams()
