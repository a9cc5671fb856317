"""A finished run that can judge its documents again: recipe and inputs from `_run.json`, stages from here."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from refinery.loader.format.manifest import RUN, unseal
from refinery.loader.read.corpus import Corpus
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.corpus.replay.replay import NoReplay, Replay, Replayer
from refinery.pipelines.corpus.trace.answers import Doc, Replayed
from refinery.pipelines.recipe.load_recipe import recorded_recipe
from refinery.pipelines.run.differences import differences
from refinery.pipelines.run.fingerprint import phase_fingerprints
from refinery.pipelines.run.prefix import describe_run
from refinery.transforms.core.safe_text import printable
from refinery.transforms.read.sources import POISON_RECORD
from refinery.transforms.redaction.redact_address import redact_address


class RecordedRun:
    """The run at a prefix, for replays. Nothing is loaded before the first one.

    problem: why none is possible, else "". differs: what of recipe, stages, libraries and files is not as it was.
    """

    def __init__(self, prefix: str, recipe: str = "", measure: bool = True) -> None:
        store, self.prefix = open_store(prefix), prefix
        self.run: Mapping[str, Any] = unseal(store.read(RUN), store.url(RUN))
        self.problem = self.differs = ""
        try:
            self.recipe = recorded_recipe(prefix, self.run["recipe"], recipe)
            self.replayer = Replayer(self.recipe, self.run["inputs"], measure)
            self.differs = self._differences()
        except (ValueError, OSError, KeyError, TypeError) as error:
            self.problem = f"{type(error).__name__}: {error}" if isinstance(error, KeyError | TypeError) else str(error)

    def _differences(self) -> str:
        inputs = [dict(entry) for entry in self.run["inputs"]]
        now = phase_fingerprints(self.recipe, inputs)
        if now["shards"] == self.run["fingerprint"]:
            return ""
        return differences(self.run, describe_run(self.recipe, inputs, now))

    def replay(self, doc: Doc) -> tuple[Replay | None, str]:
        """The replay of a document at its origin, or None and why there is none."""
        if self.problem:
            return None, self.problem
        try:
            if printable(doc.origin) in self._poison:
                return None, f"{doc.origin:.300}: worker processes died on this record, so it is not judged again"
            return self.replayer.replay(doc.origin, doc.source), ""
        except NoReplay as error:
            return None, str(error)
        except (ValueError, OSError) as error:  # of models, lists and storage
            return None, f"{doc.origin:.300}: {error}"

    @cached_property
    def _poison(self) -> frozenset[str]:
        """Origins of the records on which worker processes died: this process would die on them, too. Cost: the dead
        letters, where the funnel has such."""
        corpus = Corpus(self.prefix)
        if not any(POISON_RECORD in row["dead"] for row in corpus.manifest.funnel):
            return frozenset()
        rows = (row for batch in corpus.dead_letters(["error", "origin"]) for row in batch.to_pylist())
        return frozenset(row["origin"] for row in rows if row["error"] == POISON_RECORD)

    def replayed(self, doc: Doc) -> Replayed:
        """The same as an answer; what the replay finds out about the document is in its `doc`."""
        found, problem = self.replay(doc)
        if found is None:
            return Replayed(doc, problem=problem)
        known = Doc(doc.id, doc.url or redact_address(found.url), doc.source or found.source, found.origin)
        return Replayed(known, found.decisions, "", self.differs)
