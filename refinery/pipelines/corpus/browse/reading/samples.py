"""Documents drawn by hash to stand for all: kept ones with their texts, and dropped ones from rejects/."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from refinery.loader.read.corpus import Corpus
from refinery.pipelines.corpus.browse.reading.deadline import Deadline
from refinery.pipelines.corpus.browse.reading.looked_at import Opened
from refinery.pipelines.corpus.show.draw import draw_kept
from refinery.pipelines.corpus.trace.answers import Doc, Kept, Rejected
from refinery.transforms.core.document import hash64

SEED = 0
WORDS = 8  # of a query
MOST_FILES = 20  # of rejects/ that are read, spread evenly
MOST_CHARACTERS = 40_000  # of a text that is searched
SECONDS = 8.0  # that drawing may take


@dataclass(frozen=True)
class Matches:
    """Documents of a sample whose text has all words. sample: how many were looked at, of `documents` kept ones."""

    kept: Sequence[Kept]
    sample: int
    documents: int


def kept_sample(opened: Opened, number: int) -> list[tuple[Kept, str]]:
    """Up to that many documents of the corpus with their published texts, fewer where they take longer than `SECONDS`.
    They are kept in memory. Cost: a row group and a range of bytes for each."""
    found: list[tuple[Kept, str]] = opened.memory.setdefault(("texts", number), [])
    if not found:
        deadline, drawn = Deadline(SECONDS), []
        for kept in draw_kept(opened.corpus, number, SEED):
            drawn.append((kept, opened.texts.kept(kept).text[:MOST_CHARACTERS]))
            if deadline.has_passed:
                break
        found[:] = drawn
    return found


def search_words(opened: Opened, text: str, number: int) -> Matches:
    """The documents of the sample that have all of these words, case aside. Raises ValueError for too many."""
    words = text.casefold().split()
    if not 0 < len(words) <= WORDS:
        raise ValueError(f"{len(words)} words given, 1 to {WORDS} are allowed")
    sample = kept_sample(opened, number)
    found = [kept for kept, each in sample if all(word in each.casefold() for word in words)]
    return Matches(found, len(sample), opened.corpus.manifest.totals["documents"])


def rejected_sample(corpus: Corpus, stage: str, reason: str, number: int) -> tuple[list[Rejected], int]:
    """Up to that many of what rejects/ lists of a stage and a reason, and how many these files list. Reads at most 20
    files; memory: a batch."""
    paths = [entry.path for entry in corpus.files("rejects")]
    few = min(MOST_FILES, len(paths))
    best: list[tuple[int, str, str, str]] = []
    listed = 0
    for path in (paths[place * len(paths) // few] for place in range(few)):
        with corpus.parquet(path) as file:
            columns = ["stage", "reason", "source", "url", "origin"]
            for batch in file.iter_batches(4096, columns=columns, use_threads=False):
                rows = [row for row in batch.to_pylist() if (row["stage"], row["reason"]) == (stage, reason)]
                listed += len(rows)
                ranked = (
                    (hash64("look", SEED, row["origin"]), row["origin"], row["source"], row["url"]) for row in rows
                )
                best = heapq.nsmallest(number, [*best, *ranked])
    return [Rejected(Doc("", url, source, origin), stage, reason) for _, origin, source, url in best], listed
