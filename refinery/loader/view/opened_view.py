"""A view as a stream reads it: its corpora opened and compared with what it names, its segments as domains."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from refinery.loader.errors import FormatError
from refinery.loader.format.block_checksums import CHECKSUM_BLOCK
from refinery.loader.format.indexed import Index
from refinery.loader.format.manifest import MANIFEST, SPLITS, Manifest, ShardEntry
from refinery.loader.format.selection import SELECTION, Selection
from refinery.loader.format.shard_files import load_index, read_file
from refinery.loader.format.shard_list import as_shards
from refinery.loader.format.view import View, read_view, resolve
from refinery.loader.order.arrays import I64
from refinery.loader.order.mix_params import MixParams, MixStage
from refinery.loader.read.corpus import Corpus
from refinery.loader.read.remote.blocks import RemoteParams
from refinery.loader.read.remote.fetch_files import fetch_files
from refinery.loader.read.samples import Domain
from refinery.loader.read.token_source import TokenSource, open_token_source
from refinery.loader.read.trained_tokens import Runs, load_runs
from refinery.loader.storage.fetch import ReadCounters, Stop
from refinery.loader.storage.locks import holding
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.remote_store import RemoteStore
from refinery.loader.storage.store import Store, size_and_crc32c
from refinery.loader.view.joined_source import JoinedSource
from refinery.loader.view.opened import OpenedCorpus, Weights
from refinery.loader.view.segments import check_segments, whole_segments
from refinery.loader.view.selected_domain import SelectedDomain

IN_MEMORY = 64 << 20  # bytes of a remote selection that are not put into a file


def open_corpora(view: View, root: str, params: RemoteParams | None = None) -> list[Corpus]:
    """The corpora of the view at `root`. Raises FormatError for one that is missing or another, or has other tokens."""
    found: list[Corpus] = []
    for link in view.corpora:
        where = resolve(link.location, root)
        store = open_store(where)
        if isinstance(store, RemoteStore) and params is not None:
            store.params = params.fetch
        try:
            corpus = Corpus(store)
        except FormatError as error:
            raise FormatError(
                f"{root}: its corpus {link.name!r} cannot be read: {error}. A view names corpora by their location; "
                "put it back, or make the view again with `refinery mix`"
            ) from None
        if corpus.sha256 != link.manifest_sha256:
            raise FormatError(
                f"{where}: its {MANIFEST} has sha256 {corpus.sha256}, {link.manifest_sha256} expected by the view "
                f"{root}; this is another corpus or version, make the view again with `refinery mix`"
            )
        found.append(corpus)
    check_same_tokens([corpus.manifest for corpus in found], [link.name for link in view.corpora])
    return found


def check_same_tokens(manifests: Sequence[Manifest], names: Sequence[str]) -> None:
    """Raise FormatError unless tokens mean the same in all corpora: dtype, tokenizer and its special ids."""
    for manifest, name in zip(manifests, names, strict=True):
        ends = not (manifest.written.is_masked or manifests[0].written.is_masked)  # a template writes what it likes
        for what, of in (("dtype", _dtype), ("tokenizer", partial(_tokenizer, ends=ends))):
            if of(manifest) != of(manifests[0]):
                raise FormatError(
                    f"corpora {names[0]!r} and {name!r} have another {what}: {of(manifests[0])} and {of(manifest)}; "
                    "`refinery retokenize` tokenizes a corpus again with another tokenizer"
                )


def _dtype(manifest: Manifest) -> str:
    return manifest.dtype


def _tokenizer(manifest: Manifest, ends: bool) -> str:
    entry = manifest.tokenizer
    file = next((file for file in manifest.files if file.path == entry.path), None)
    digest = "unknown" if file is None else file.sha256
    around = f"BOS {entry.bos_id}, EOS {entry.eos_id}, " if ends else ""
    return f"{entry.vocab_size} ids, {around}sha256 {digest}"


def load_selection(view: View, store: Store, params: RemoteParams | None) -> Selection:
    """The view's selection: memory-mapped, from a remote store through a file in the cache's folder, or in memory if it
    is small. Raises FormatError for wrong bytes."""
    entry = view.selection
    assert entry is not None  # noqa: S101 - callers ask views that have one
    path = store.local_path(SELECTION)
    if path is None and (entry.size <= IN_MEMORY or (params is not None and not params.cache_bytes)):
        return Selection(np.frombuffer(read_file(store, entry), np.uint8), store.url(SELECTION))
    if path is None:
        folder = (params or RemoteParams()).folder / "views" / entry.sha256
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / "lock"
        with path.open("w") as lock, holding(lock.fileno(), path):  # the processes of a host fetch it once
            (path,) = fetch_files(store, [entry], folder)
    return Selection(_mapped(path, entry.size, entry.crc32c), store.url(SELECTION))


def _mapped(path: Path, size: int, crc32c: str) -> npt.NDArray[np.uint8]:
    if not path.is_file():
        raise FormatError(f"{path}: missing, {size} bytes expected; copy the view again or make it again")
    found = size_and_crc32c(path)
    if found != (size, crc32c):
        raise FormatError(
            f"{path}: {found[0]} bytes, crc32c {found[1]} found, {size} bytes, crc32c {crc32c} expected; copy "
            "it again or make the view again"
        )
    return np.memmap(path, np.uint8, "r")


class OpenedView(OpenedCorpus):
    """The view at `store`. Shards are those of its corpora that a split has segments of, each once.

    Raises FormatError for a view, selection or corpus that is missing, damaged or another than the view names.
    """

    is_view = True

    def __init__(self, store: Store, remote: RemoteParams | None = None) -> None:
        view, data = read_view(store)
        sha256 = hashlib.sha256(data).hexdigest()
        self._settle(store, view, sha256, open_corpora(view, store.root, remote), remote)

    def _settle(
        self, store: Store, view: View, sha256: str, corpora: list[Corpus], remote: RemoteParams | None
    ) -> None:
        self.store, self.view, self.sha256, self.corpora = store, view, sha256, corpora
        self.tokenizer_store, first = self.corpora[0].store, self.corpora[0].manifest
        self.selection = None if self.view.selection is None else load_selection(self.view, store, remote)
        manifests = [corpus.manifest for corpus in self.corpora]
        if self.selection is None:
            self.segments = whole_segments(self.view, manifests)
        else:
            self.segments = self.selection.segments
        check_segments(self.view, manifests, self.segments, store.url(SELECTION if self.selection else MANIFEST))
        self.manifest = replace(
            first,
            name=self.view.name,
            fingerprint=self.sha256,
            shards=(),
            funnel=(),
            packed=None,
            recipe={},
            takedowns=(),
        )
        self._split = ""
        self._chosen: list[tuple[int, int]] = []  # corpus and its shard of each number

    @property
    def is_remote(self) -> bool:
        return any(isinstance(corpus.store, RemoteStore) for corpus in self.corpora)

    def choose(self, split: str, names: Sequence[str] | None) -> Sequence[ShardEntry]:
        if names is not None:
            raise ValueError(
                "shards: given with a view, None is allowed; open one of its corpora to stream some shards"
            )
        self._split = split
        mine = self.segments[self.segments["split"] == SPLITS.index(split)]
        pairs = np.unique(np.stack([mine["corpus"], mine["shard"]], axis=1).astype(np.int64), axis=0)
        self._chosen = [(corpus, shard) for corpus, shard in pairs.tolist()]
        return [entry for corpus, shards in groupby(self._chosen, itemgetter(0)) for entry in self._of(corpus, shards)]

    def _of(self, corpus: int, chosen: Iterable[tuple[int, int]]) -> Iterator[ShardEntry]:
        """Shards of a corpus, ascending: a listing at a time."""
        every = as_shards(self.corpora[corpus].manifest.shards)
        wanted = np.array([shard for _, shard in chosen], np.int64)
        for run, first in zip(every.runs, every.ends.tolist(), strict=False):
            mine = wanted[(wanted >= first) & (wanted < first + run.shards)] - first
            if len(mine):
                entries = run.entries(0, run.shards)
                yield from (entries[place] for place in mine.tolist())

    def names(self, shards: Sequence[Any]) -> list[str]:
        return [domain.name for domain in self.view.domains]

    def domains(
        self, shards: Sequence[Any], sequence_length: int, mixed: bool, subset: int | float | None = None
    ) -> list[Domain]:
        if subset is not None:
            raise ValueError(
                f"subset: {subset} given of a view, None is allowed; `tokens` in its recipe makes one smaller"
            )
        here = np.flatnonzero(self.segments["split"] == SPLITS.index(self._split))
        first, stop = (int(here[0]), int(here[-1]) + 1) if len(here) else (0, 0)
        if not mixed:
            return [self._domain("", first, stop, shards, sequence_length)]
        found = []
        for d, domain in enumerate(self.view.domains):
            its = first + np.flatnonzero(self.segments["domain"][first:stop] == d)
            begin, end = (int(its[0]), int(its[-1]) + 1) if len(its) else (first, first)
            found.append(self._domain(domain.name, begin, end, shards, sequence_length))
        return found

    def _domain(self, name: str, first: int, stop: int, shards: Sequence[ShardEntry], length: int) -> Domain:
        some = self.segments[first:stop]
        keys = some["corpus"].astype(np.int64) << 32 | some["shard"]
        known = np.array([corpus << 32 | shard for corpus, shard in self._chosen], np.int64)
        numbers: I64 = np.searchsorted(known, keys).astype(np.int64)
        labels: I64 = some["domain"].astype(np.int64)
        if self.selection is None or not some["runs"].any():
            pairs = zip(numbers.tolist(), some["tokens"].astype(np.int64).tolist(), strict=True)
            return Domain(name, pairs, length, labels.tolist())
        sizes: I64 = np.array([entry.tokens for entry in shards], np.int64)[numbers]
        fetched = CHECKSUM_BLOCK // np.dtype(self.manifest.dtype).itemsize
        return SelectedDomain(
            name, self.selection, first, stop,
            numbers=numbers, sizes=sizes, labels=labels, sequence_length=length, fetched=fetched,
        )  # fmt: skip

    def mixing(self, weights: Weights | None, epochs: int | None) -> MixParams | None:
        if weights is not None or self.view.mixing is None or self._split != SPLITS[0]:
            return super().mixing(weights, epochs)
        found = mix_params_of(self.view.mixing, self.store.url(MANIFEST))
        return found if epochs is None else replace(found, repeats=epochs)

    def path(self, number: int, entry: Any) -> str:
        return f"{self.view.corpora[self._chosen[number][0]].name}/{entry.bin.path}"

    def place(self, number: int) -> Store:
        return self.corpora[self._chosen[number][0]].store

    def index_loader(self, shards: Sequence[ShardEntry], stop: Stop) -> Callable[[int], Index]:
        stores = [self.place(number) for number in range(len(shards))]
        return lambda number: load_index(stores[number], shards[number], stop)

    @property
    def is_masked(self) -> bool:
        return any(corpus.manifest.written.is_masked for corpus in self.corpora)

    def runs_loader(self, shards: Sequence[ShardEntry], stop: Stop) -> Callable[[int], Runs | None]:
        masked = [self.corpora[corpus].manifest.written.is_masked for corpus, _ in self._chosen]
        stores = [self.place(number) for number in range(len(shards))]
        return lambda number: load_runs(stores[number], shards[number], stop) if masked[number] else None

    def source(
        self,
        shards: Sequence[ShardEntry],
        remote: RemoteParams | None,
        counters: ReadCounters,
        drawn: Collection[str] | None = None,
        tolerant: bool = False,
    ) -> TokenSource:
        """drawn: not used, for the domains are the view's, not those of its corpora."""
        members: dict[int, list[ShardEntry]] = {}
        places = []
        for (corpus, _), entry in zip(self._chosen, shards, strict=True):
            its = members.setdefault(corpus, [])
            places.append((corpus, len(its)))
            its.append(entry)
        order = {corpus: i for i, corpus in enumerate(members)}
        sources = [
            open_token_source(
                self.corpora[corpus].store, some, self.manifest.dtype,
                corpus=self._digest(corpus), params=remote, counters=counters, tolerant=tolerant,
            )
            for corpus, some in members.items()
        ]  # fmt: skip
        if len(sources) == 1:
            return sources[0]
        return JoinedSource(sources, [(order[corpus], number) for corpus, number in places])

    def _digest(self, corpus: int) -> str:
        """sha256 of the manifest of the corpus whose files are read."""
        return self.view.corpora[corpus].manifest_sha256

    def close(self) -> None:
        for corpus in self.corpora:
            corpus.store.close()


def mix_params_of(mixing: Mapping[str, Any], what: str) -> MixParams:
    """MixParams of a view's `mixing`. Raises FormatError."""
    try:
        stages = [MixStage(stage["weights"], stage.get("tokens")) for stage in mixing["stages"]]
        return MixParams(stages, **{name: value for name, value in mixing.items() if name != "stages"})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FormatError(f"{what}: mixing: {error}") from None
