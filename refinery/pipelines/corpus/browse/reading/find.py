"""What became of named documents, and documents that hold a passage: as `refinery trace` finds them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from refinery.pipelines.corpus.browse.reading.looked_at import Opened
from refinery.pipelines.corpus.browse.reading.withheld import taken_down
from refinery.pipelines.corpus.trace.answers import (
    Answer,
    Doc,
    Kept,
    Missing,
    Passed,
    Query,
    Removed,
    Replayed,
    TakenDown,
)
from refinery.pipelines.corpus.trace.search_texts import search_texts
from refinery.pipelines.corpus.trace.trace_documents import trace
from refinery.pipelines.published.published import PublishedCorpus
from refinery.pipelines.published.scan import silent
from refinery.transforms.redaction.redact_address import redact_address
from refinery.transforms.write.lookup.entries import FOLDER

UNINDEXED = 200  # shards of a corpus of an older version, without an index, that are all looked at for an address
MOST_TEXT = 64 << 20  # bytes of files that are searched for a passage
PASSAGE = 2000  # characters


@dataclass(frozen=True)
class Found:
    """answers: what became of each document. withheld: how many more there are that were taken down, or that stand for
    one that was. searched: how much was read, in words, "" where the index names the file."""

    answers: Sequence[Answer]
    withheld: int = 0
    searched: str = ""


def find(opened: Opened, query: Query, source: str = "", origin: str = "") -> Found:
    """The documents of an address, id, origin or token. source, origin: only those of it, if there are any. Raises as
    `trace`. Cost: that of `trace`; cleaned documents are looked through only below `looked_at.MOST_PARTS`. In a large
    corpus without an index nothing is known of an origin but that its record may be read again."""
    if query.field == "origin" and not has_index(opened.corpus):
        return _shown(opened, [Replayed(Doc(origin=query.value, source=source))])
    answers = [answer for _, answer in trace(opened.corpus.root, [query], opened.work, corpus=opened.corpus).answers]
    for name, wanted in (("source", source), ("origin", origin)):
        answers = [each for each in answers if wanted in ("", getattr(doc_of(each), name))] or answers
    return _shown(opened, answers)


def has_index(corpus: PublishedCorpus) -> bool:
    """Whether addresses and origins are found without a pass over very many files."""
    return bool(corpus.files(FOLDER)) or len(corpus.manifest.shards) <= UNINDEXED


def find_passage(opened: Opened, passage: str) -> Found:
    """Documents that hold this text, letter by letter once it is cleaned. Raises ValueError for one that is too long or
    has no letter. Cost: up to `MOST_TEXT` of texts."""
    if len(passage) > PASSAGE:
        raise ValueError(f"a passage of {len(passage):,} characters given, up to {PASSAGE:,} are allowed")
    searched = search_texts(opened.corpus.root, opened.work, passage, MOST_TEXT, silent)
    if not searched.ids:
        return Found((), 0, searched.line)
    queries = [Query("id", id_) for id_ in searched.ids]
    answers = trace(opened.corpus.root, queries, opened.work, corpus=opened.corpus).answers
    found = _shown(opened, [answer for _, answer in answers])
    return Found(found.answers, found.withheld, searched.line)


def _shown(opened: Opened, answers: Sequence[Answer]) -> Found:
    """The answers without documents that were withdrawn."""
    docs = [doc_of(each) for each in answers]
    gone = [each.doc for each in taken_down(opened.corpus, docs)]
    names = {name for doc in gone for name in (doc.id, doc.origin) if name}
    shown = [
        each
        for each, doc in zip(answers, docs, strict=True)
        if isinstance(each, Kept) or not (isinstance(each, TakenDown) or {doc.id, doc.origin} & names)
    ]
    return Found([redacted_address(each) for each in shown], len(answers) - len(shown))


def redacted_address(answer: Answer) -> Answer:
    """The answer, with an address redacted that only the work location has, from before personal data is replaced."""
    if isinstance(answer, Passed):
        return replace(answer, doc=replace(answer.doc, url=redact_address(answer.doc.url)))
    return answer


def doc_of(answer: Answer) -> Doc:
    """The document that an answer is about; an empty one where there is none."""
    return Doc() if isinstance(answer, Missing) else answer.doc


def end_of(answer: Answer) -> Answer:
    """Of a removed document what was kept instead, if that is one of this corpus."""
    return answer.end if isinstance(answer, Removed) and isinstance(answer.end, Kept) else answer
