"""The texts of a corpus' documents: of kept ones from their tokens, of others by judging their records again."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from refinery.loader.storage.open_store import open_store
from refinery.pipelines.corpus.trace.answers import Doc, Kept
from refinery.pipelines.published.find_rows import Wanted, find_rows
from refinery.pipelines.published.published import Place, PublishedCorpus
from refinery.pipelines.published.shard_tokens import read_tokens
from refinery.pipelines.run.phases import read_phase
from refinery.transforms.core.document import Document

if TYPE_CHECKING:
    from refinery.pipelines.corpus.replay.try_document import Decision
    from refinery.pipelines.corpus.trace.recorded_run import RecordedRun

AS_PUBLISHED = "as published: decoded from its tokens"
AS_WRITTEN = "as published: read from its shard"
COLUMNS = ("id", "url", "source", "origin", "text")
FROM_WORK = "after phase 1, from work/documents/, credentials redacted"
NORMALISED = "decoded from its tokens; this tokenizer normalises text, so the encoded text may differ"


@dataclass(frozen=True)
class Text:
    """A document's text and what it is. ids: its tokens, of a kept one. decisions: of a replayed one. differs: what is
    not as it was in the run. problem: why there is no text."""

    text: str
    what: str
    ids: tuple[int, ...] = ()
    decisions: "tuple[Decision, ...]" = ()
    differs: str = ""
    problem: str = ""


class Texts:
    """Texts of documents of one corpus. Tokenizer, models and lists are loaded once, when they are needed."""

    def __init__(self, prefix: str, recipe: str = "", work: str = "") -> None:
        self.prefix, self.recipe, self.work = prefix, recipe, work or f"{prefix.rstrip('/')}/work"
        self.corpus = PublishedCorpus(prefix)

    @cached_property
    def run(self) -> "RecordedRun":
        from refinery.pipelines.corpus.trace.recorded_run import RecordedRun  # all stages, and what reads recipes

        return RecordedRun(self.prefix, self.recipe)

    @cached_property
    def _written(self) -> PublishedCorpus:
        """The corpus, once the writer of its texts is known."""
        from refinery.pipelines.recipe.writers import know_writer_of  # all stages, and what reads recipes

        know_writer_of(self.recipe)
        return self.corpus

    def kept(self, kept: Kept) -> Text:
        """Of a document of the corpus. Cost: its tokens, by one read of a range of the shard's file; in a corpus of
        texts the shard up to it."""
        if not self.corpus.manifest.has_tokens:
            split, domain, _ = kept.shard.split("/")
            place = Place(split, domain, kept.shard, kept.document, kept.token_offset, kept.token_count)
            return Text(self._written.text(place), AS_WRITTEN)
        shard, start = self.corpus.shard(kept.shard), kept.token_offset
        ids = read_tokens(self.corpus, shard, start, start + kept.token_count)
        what = AS_PUBLISHED if self.corpus.tokenizer.lossless else NORMALISED
        return Text(self.corpus.decode(ids), what, tuple(ids.tolist()))

    def lost(self, doc: Doc) -> Text:
        """Of a document that is not in the corpus. Cost: that of a replay; where its record is gone, a pass over the
        origins in work/documents/."""
        found, problem = self.run.replay(doc)
        if found is None:
            text = "" if self.run.problem else self.in_work(doc)
            return Text(text, FROM_WORK if text else "", problem=problem)
        what = f"read at its origin again; as {found.last.stage} was given it, credentials redacted"
        if not found.text:
            problem = "there is no text to show: the record was dropped before extraction, or as toxic or private"
        return Text(found.text, what, (), found.decisions, self.run.differs, problem)

    def in_work(self, doc: Doc) -> str:
        """The text of a cleaned document in the work location, "" where it is not there."""
        from refinery.pipelines.corpus.replay.replay import fit_to_read

        wanted = Wanted(origin=frozenset({doc.origin}))
        try:
            clean = read_phase(self.work, "clean", self.run.run["phases"]["clean"])
            if clean is None:
                return ""
            for part in clean.parts("documents"):
                for _, row in find_rows(open_store(clean.root_of(part)), part["path"], wanted, COLUMNS):
                    if doc.source in ("", row["source"]):
                        found = Document(row["id"], row["text"], row["url"], row["source"], row["origin"], 0)
                        return fit_to_read(found, self.run.replayer.trial)
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return ""
