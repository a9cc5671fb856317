"""Which documents are looked at: drawn by hash, the same ones every time, with no more reading than they need."""

import heapq
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate, count

from refinery.loader.format.document_fields import REJECTS, names_of
from refinery.loader.format.manifest import Manifest
from refinery.loader.read.corpus import Corpus
from refinery.pipelines.corpus.trace.answers import Doc, Kept, Rejected
from refinery.pipelines.corpus.trace.trace_documents import kept_answer
from refinery.pipelines.published.find_rows import Row
from refinery.pipelines.published.scan import Say, scan, silent
from refinery.pipelines.published.shard_tokens import read_row
from refinery.transforms.core.document import hash64
from refinery.transforms.core.wording import meant

COLUMNS = names_of(REJECTS)  # older corpora do not have the last
ROWS = 4096
LISTED = 12  # stages and reasons that a message names


def draw_kept(corpus: Corpus, number: int, seed: int) -> Iterator[Kept]:
    """That many documents of all shards, each as likely as any other, in the order in which they were drawn; all where
    there are no more. Cost: the manifest's counts, and a row group of provenance for each."""
    manifest = corpus.manifest
    ends = list(accumulate(shard.documents for shard in manifest.shards))
    total = ends[-1] if ends else 0
    drawn: dict[int, None] = {}
    if number >= total:
        drawn = dict.fromkeys(range(total))
    for k in count():
        if len(drawn) >= min(number, total):
            break
        drawn[hash64("look", seed, manifest.fingerprint, k) % total] = None
    for place in drawn:
        at = bisect_right(ends, place)
        shard = manifest.shards[at]
        document = place - (ends[at] - shard.documents)
        yield kept_answer(manifest, shard, document, read_row(corpus, shard, document))


def _meant(dropped: Iterable[tuple[str, str]], stage: str, reason: str) -> str:
    """ "; did you mean …?" of a stage or a reason that dropped nothing."""
    stages = {one for one, _ in dropped}
    if stage and stage not in stages:
        return meant(stage, sorted(stages))
    return meant(reason, sorted(name for one, name in dropped if stage in ("", one))) if reason else ""


def draw_rejected(
    corpus: Corpus, stage: str, reason: str, number: int, seed: int, say: Say = silent
) -> list[tuple[Rejected, str]]:
    """That many of what rejects/ lists of a stage and a reason ("": of any), each with its excerpt ("": none).

    Raises ValueError that says what there is, where nothing was dropped for that. Cost: one pass over rejects/.
    """
    dropped = dropped_counts(corpus.manifest)
    asked = {key: n for key, n in dropped.items() if stage in ("", key[0]) and reason in ("", key[1])}
    if not asked:
        there = ", ".join(f"{s} {r} ({n:,})" for (s, r), n in dropped.most_common(LISTED))
        what = " ".join(part for part in (stage[:80], reason[:80]) if part)
        hint = _meant(dropped, stage, reason) or f"; most were dropped by: {there or 'none'}"
        raise ValueError(f"{what!a}: no stage dropped a document for this reason{hint}")

    def look(path: str) -> list[tuple[int, Row]]:
        with corpus.parquet(path) as file:
            columns = [name for name in COLUMNS if name in file.schema_arrow.names]
            found = (
                (hash64("look", seed, row["stage"], row["reason"], row["origin"]), row)
                for batch in file.iter_batches(ROWS, columns=columns, use_threads=False)
                for row in batch.to_pylist()
                if stage in ("", row["stage"]) and reason in ("", row["reason"])
            )
            return heapq.nsmallest(number, found, key=lambda pair: (pair[0], pair[1]["origin"]))

    paths = [file.path for file in corpus.files("rejects")]
    every = [pair for some in scan(look, paths, "files of rejects/", say) for pair in some]
    best = heapq.nsmallest(number, every, key=lambda pair: (pair[0], pair[1]["origin"]))
    return [(_rejected(row), row.get("excerpt") or "") for _, row in best]


def dropped_counts(manifest: Manifest) -> Counter[tuple[str, str]]:
    """(stage, reason) -> documents that it dropped, of all sources."""
    counts: Counter[tuple[str, str]] = Counter()
    for row in manifest.funnel:
        for reason, entry in row["dropped"].items():
            counts[str(row["stage"]), reason] += entry["documents"]
    return counts


def _rejected(row: Row) -> Rejected:
    doc = Doc("", row["url"], row["source"], row["origin"])
    return Rejected(doc, row["stage"], row["reason"], row.get("found") or "")
