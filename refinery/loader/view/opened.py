"""A corpus as a stream reads it: its shards, its domains and where their bytes are. A view (opened_view.py) is one."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from refinery.loader.errors import NoTokens
from refinery.loader.format.indexed import Index
from refinery.loader.format.manifest import ShardEntry
from refinery.loader.format.shard_files import load_index
from refinery.loader.format.shard_list import as_shards
from refinery.loader.order.arrays import I64
from refinery.loader.order.mix_params import MixParams, MixStage, mix_params
from refinery.loader.read.corpus import Corpus
from refinery.loader.read.remote.blocks import RemoteParams
from refinery.loader.read.remote.capacity import bytes_in_blocks, fit_cache
from refinery.loader.read.remote.remote_bytes import bytes_of
from refinery.loader.read.samples import Domain, choose_shards, domain_names, domains_of
from refinery.loader.read.token_source import TokenSource, open_token_source
from refinery.loader.read.trained_tokens import Runs, load_runs
from refinery.loader.storage.fetch import ReadCounters, Stop
from refinery.loader.storage.remote_store import RemoteStore
from refinery.loader.storage.store import Store

Weights = Mapping[str, float] | Sequence[MixStage] | MixParams


class OpenedCorpus(Corpus):
    """The corpus at `store`, for streams. tokenizer_store: what its `files` are in.

    Shards are numbered as `choose` returned them. Raises the same errors as `load_manifest`, and NoTokens for a corpus
    of texts.
    """

    is_view = False

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        if not self.manifest.has_tokens:
            raise NoTokens(store.root)
        self.tokenizer_store = store

    @property
    def is_remote(self) -> bool:
        return isinstance(self.store, RemoteStore)

    def choose(self, split: str, names: Sequence[str] | None) -> Sequence[ShardEntry]:
        """The shards of a split; only those with these .bin, if there are names. ValueError for an unknown one."""
        return choose_shards(self.manifest.shards, split, names)

    def names(self, shards: Sequence[Any]) -> list[str]:
        """The names of the domains that Domain.labels of `domains` are places of."""
        return list(domain_names(shards))

    def domains(
        self, shards: Sequence[Any], sequence_length: int, mixed: bool, subset: int | float | None = None
    ) -> list[Domain]:
        """Samples of the shards, one domain where they are not mixed; of each only the first rows of a `subset`."""
        return domains_of(shards, sequence_length, mixed, subset)

    def mixing(self, weights: Weights | None, epochs: int | None) -> MixParams | None:
        """How domains are mixed: what the caller gives, else what the view says, else None."""
        return None if weights is None else mix_params(weights, epochs)

    def path(self, number: int, entry: Any) -> str:
        """What a shard is called in counts and receipts."""
        return str(entry.bin.path)

    def place(self, number: int) -> Store:
        """The store of a shard's files."""
        return self.store

    def index_loader(self, shards: Sequence[ShardEntry], stop: Stop) -> Callable[[int], Index]:
        """Loads the index of a shard by its number. Does not refer to this object."""
        store = self.store
        return lambda number: load_index(store, shards[number], stop)

    @property
    def is_masked(self) -> bool:
        """Whether any of its shards says which tokens are trained."""
        return self.manifest.written.is_masked

    def runs_loader(self, shards: Sequence[ShardEntry], stop: Stop) -> Callable[[int], Runs | None]:
        """Loads the runs of trained tokens of a shard by its number; None where all are. Does not refer to this
        object."""
        store = self.store
        return lambda number: load_runs(store, shards[number], stop)

    def fit(
        self,
        remote: RemoteParams | None,
        shards: Sequence[ShardEntry],
        live: Callable[[], I64],
        drawn: Collection[str] | None = None,
    ) -> Any:
        """RemoteParams whose cache is large enough for what is read at a time. drawn: as of `source`."""
        size = np.dtype(self.manifest.dtype).itemsize
        return fit_cache(
            remote or RemoteParams(),
            bytes_in_blocks(as_shards(shards).sizes(drawn).tolist()),
            lambda: bytes_of(live() * [1, size, size]),
        )

    def source(
        self,
        shards: Sequence[ShardEntry],
        remote: RemoteParams | None,
        counters: ReadCounters,
        drawn: Collection[str] | None = None,
        tolerant: bool = False,
    ) -> TokenSource:
        """Where tokens come from. drawn: the domains that will be read from, None for all. tolerant: as of
        open_token_source."""
        return open_token_source(
            self.store, shards, self.manifest.dtype, corpus=self.sha256, params=remote, counters=counters, drawn=drawn,
            tolerant=tolerant,
        )  # fmt: skip

    def close(self) -> None:
        """Close what this object has opened: not `store`."""
        return
