"""A view of one or several corpora, behind the same methods: its documents are theirs, as often as it delivers them."""

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import SPLITS, ShardEntry
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store
from refinery.loader.view.opened_view import OpenedView
from refinery.pipelines.published.published import Found, Place, PublishedCorpus
from refinery.pipelines.published.scan import Say, silent
from refinery.pipelines.published.shard_tokens import shard_path

Numbers = npt.NDArray[np.int64]


class CorpusView:
    """The view at a location, opened with the corpora that it names.

    Raises FormatError for a view, a selection or a corpus that is missing, damaged or another than the view names.
    """

    kind = "view"

    def __init__(self, location: str | Store, say: Say = silent) -> None:
        self.store = open_store(location) if isinstance(location, str) else location
        self._opened = OpenedView(self.store)
        self.view, self.sha256 = self._opened.view, self._opened.sha256
        self._say = say

    @property
    def root(self) -> str:
        """Where it is."""
        return self.store.root

    @property
    def name(self) -> str:
        """The view's name."""
        return self.view.name

    @cached_property
    def corpora(self) -> list[PublishedCorpus]:
        """The corpora that it names, in its order."""
        return [PublishedCorpus(corpus.store, self._say) for corpus in self._opened.corpora]

    def documents(
        self, columns: Sequence[str] | None = None, where: str = "", split: str = "", domain: str = ""
    ) -> Iterator[pa.RecordBatch]:
        """As `PublishedCorpus.documents`: the documents that the view delivers in an epoch, each as often as it does.
        `domain` is the view's; `shard` begins with the corpus' name."""
        segments, names = self._opened.segments, [each.name for each in self.view.domains]
        if domain and domain not in names:
            raise ValueError(f"domain: {domain!r:.80} given, one of {', '.join(names):.300} is allowed")
        for number, segment in enumerate(segments):
            its = SPLITS[int(segment["split"])], names[int(segment["domain"])]
            if split not in ("", its[0]) or domain not in ("", its[1]):
                continue
            corpus = self.corpora[int(segment["corpus"])]
            entry = corpus.manifest.shards[int(segment["shard"])]
            rows = None if not segment["runs"] else self._rows(number, corpus, entry)
            shard = f"{self.view.corpora[int(segment['corpus'])].name}/{shard_path(entry)}"
            for batch, _ in corpus.rows(entry, columns, where, rows, (*its, shard)):
                yield batch

    def _rows(self, segment: int, corpus: PublishedCorpus, entry: ShardEntry) -> Numbers:
        """The documents of a segment by their numbers in the shard. Raises FormatError for runs that are none of
        documents."""
        selection = self._opened.selection
        if selection is None:
            raise FormatError(f"{self.root}: a segment has runs but no selection; it is damaged or forged")
        offsets = np.append(corpus.index_of(entry).offsets, entry.tokens)
        found: list[Numbers] = []
        for starts, lengths in selection.runs_of(segment):
            first, last = (np.searchsorted(offsets, each, "left") for each in (starts, starts + lengths))
            if (offsets[np.minimum(first, len(offsets) - 1)] != starts).any() or (
                offsets[np.minimum(last, len(offsets) - 1)] != starts + lengths
            ).any():
                raise FormatError(f"{self.root}: runs of {entry.bin.path} that do not end where documents do")
            found += [np.arange(begin, end) for begin, end in zip(first.tolist(), last.tolist(), strict=True)]
        rows = np.concatenate(found) if found else np.empty(0, np.int64)
        return rows[np.diff(offsets)[rows] > 0]  # documents without tokens belong to no run

    def find(self, url: str | None = None, origin: str | None = None, id: str | bytes | None = None) -> list[Found]:
        """As `PublishedCorpus.find`, of the corpora's documents that the view delivers. Cost: that of each corpus, and
        the segments of the shards where something is found."""
        return [
            found
            for number, corpus in enumerate(self.corpora)
            for found in corpus.find(url, origin, id)
            if self._delivers(number, corpus, found.place)
        ]

    def _delivers(self, number: int, corpus: PublishedCorpus, place: Place) -> bool:
        entry, segments, shards = corpus.shard(place.shard), self._opened.segments, corpus.manifest.shards
        for segment in np.flatnonzero(segments["corpus"] == number).tolist():
            if shards[int(segments["shard"][segment])].bin.path == entry.bin.path and (
                not segments["runs"][segment] or place.document in self._rows(segment, corpus, entry)
            ):
                return True
        return False

    def text(self, id: str | bytes) -> str:
        """The text of the document of that id. Raises KeyError where the view delivers none."""
        for number, corpus in enumerate(self.corpora):
            for found in corpus.find(id=id):
                if self._delivers(number, corpus, found.place):
                    return corpus.text(found.place)
        raise KeyError(f"{self.root}: no document has the id {id!r:.80}")
