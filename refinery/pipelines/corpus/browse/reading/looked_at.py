"""A run that is looked at: a finished corpus or one in progress, opened again when its manifest changes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any

from refinery.loader.format.manifest import MANIFEST
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.corpus.browse.reading.withheld import withheld_stages
from refinery.pipelines.corpus.show.texts import Texts
from refinery.pipelines.published.published import PublishedCorpus

if TYPE_CHECKING:
    from refinery.pipelines.run.inspection.inspection import Inspection

AGE = 5.0  # seconds that what was read of a manifest or of a run in progress is believed; longer, if reading takes long
WAIT = 15.0  # seconds that a request waits for another one that judges documents
MOST_PARTS = 4 << 30  # bytes of work/documents below which a search may look through them


class Busy(RuntimeError):
    """Other requests are at work."""


class NotFinished(ValueError):
    """The run has no corpus yet."""


@dataclass(frozen=True)
class Opened:
    """One version of a corpus. texts: its documents, and its run for replays. memory: what pages computed of it once,
    by name; forgotten with it."""

    texts: Texts
    memory: dict[Any, Any]

    @property
    def corpus(self) -> PublishedCorpus:
        return self.texts.corpus

    @cached_property
    def withheld(self) -> frozenset[str]:
        """Stages whose drops have no text here."""
        return withheld_stages(self.corpus.manifest.lane)

    @cached_property
    def work(self) -> str:
        """Where a search may look through cleaned documents: nowhere, if these are too large for a request."""
        work = self.texts.work
        try:
            size = sum(int(part["size"]) for part in self._clean_parts(work))
        except (OSError, ValueError, KeyError, TypeError):
            return work
        return work if size <= MOST_PARTS else f"{work}/too-large-for-a-request"

    def _clean_parts(self, work: str) -> Any:
        from refinery.pipelines.run.phases import read_phase

        clean = read_phase(work, "clean", self.corpus.run["phases"]["clean"])
        return clean.parts("documents") if clean else ()


class LookedAt:
    """The run at `prefix`. label: "a" or "b", as in addresses. work: its work location where that is not PREFIX/work.
    recipe: its file, where it has stages of its own. Used by several threads.

    Cost of opening: its manifest.
    """

    def __init__(self, label: str, prefix: str, work: str = "", recipe: str = "") -> None:
        self.label, self.prefix, self.work, self.recipe = label, prefix, work, recipe
        self._store = open_store(prefix)
        self._opened: Opened | None = None
        self._looked, self._took = float("-inf"), 0.0  # when the manifest was read, and seconds that it took
        self._inspection: tuple[float, Inspection] | None = None
        self._lock, self._judging = RLock(), Lock()

    @property
    def opened(self) -> Opened | None:
        """The corpus as it is now, None while there is none. A takedown makes another version, so the manifest is
        read again every few seconds. Raises FormatError for a damaged one."""
        with self._lock:
            started = time.monotonic()
            if started - self._looked > AGE * (1 + self._took):
                if self._store.size(MANIFEST) is None:
                    self._opened = None
                else:
                    texts = Texts(self.prefix, self.recipe, self.work)
                    if self._opened is None or self._opened.corpus.sha256 != texts.corpus.sha256:
                        self._opened = Opened(texts, {})
                self._looked = time.monotonic()
                self._took = self._looked - started
            return self._opened

    @property
    def finished(self) -> Opened:
        """The corpus. Raises NotFinished where there is none, ValueError for one that another tool wrote."""
        opened = self.opened
        if opened is None:
            raise NotFinished(f"{self.prefix}: the run is not finished: there are no documents to look at yet")
        if opened.corpus.is_adopted:
            raise ValueError(f"{self.prefix} was adopted from files without provenance: nothing of it can be found")
        return opened

    @property
    def inspection(self) -> "Inspection":
        """Where the run stands, at most a few seconds ago. Cost: its reports, so only of one in progress."""
        from refinery.pipelines.run.inspection.inspection import inspect  # jobs of all runners

        with self._lock:
            if self._inspection is None or time.monotonic() - self._inspection[0] > AGE:
                self._inspection = time.monotonic(), inspect(self.prefix, self.work)
            return self._inspection[1]

    @contextmanager
    def judging(self) -> Iterator[None]:
        """While documents are judged: by one request at a time, since models and caches are shared. Raises Busy."""
        if not self._judging.acquire(timeout=WAIT):
            raise Busy("another page is being judged; try again")
        try:
            yield
        finally:
            self._judging.release()
