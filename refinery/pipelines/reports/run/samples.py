"""Documents to look at: some of what each rule dropped, and some of what stayed. Chosen by hash, bounded in number."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappush, heappushpop

import numpy as np
import pyarrow as pa

from refinery.loader.format.manifest import ShardEntry
from refinery.loader.read.corpus import Corpus
from refinery.pipelines.published.columns import SPANS, TEXT_BYTES
from refinery.pipelines.published.published import PublishedCorpus, WrittenTexts
from refinery.pipelines.published.shard_texts import shard_texts
from refinery.pipelines.published.shard_tokens import read_tokens
from refinery.transforms.core.document import hash64
from refinery.transforms.core.safe_text import printable

MOST_FILES = 20  # of a folder that are read
BATCH = 1 << 16  # rows in memory at once
PER_REASON = 6
MOST_REJECTS = 240
EXCERPT = 400  # characters of a text
ADDRESS = 200  # of an address
PER_DOMAIN = 12
MOST_KEPT = 48
TOKENS = 200  # of a kept document that are decoded
ERRORS = 3  # origins of each error that are named


@dataclass(frozen=True)
class Reject:
    """A dropped document. excerpt: the beginning of its text, "" where there is none to show. found: what the stage
    found. values: (name, what was measured, threshold) of what decided. size: bytes; 0: unknown."""

    source: str
    url: str
    origin: str
    excerpt: str
    found: str
    values: tuple[tuple[str, str | int | float, float | None], ...] = ()
    size: int = 0


@dataclass(frozen=True)
class Rejects:
    """samples: (stage, reason) -> some of its documents. rows: how many of them rejects/ has, where these are from
    there. files: that were read, of `of_files`. is_whole: whether they were chosen among all that was dropped."""

    samples: Mapping[tuple[str, str], Sequence[Reject]]
    rows: Mapping[tuple[str, str], int]
    files: int
    of_files: int
    is_whole: bool = False


@dataclass(frozen=True)
class KeptText:
    """The beginning of a document of the corpus, decoded from its tokens. tokens: None in a corpus of texts. notes:
    columns that say something of it."""

    source: str
    url: str
    tokens: int | None
    copies: int
    text: str
    notes: Mapping[str, str]


def read_rejects(corpus: Corpus) -> Rejects:
    """Samples of rejects/: of each reason those whose origins have the smallest hashes. Reads at most 20 files, spread
    evenly; memory: one batch of rows."""
    rows: dict[tuple[str, str], int] = {}
    heaps: dict[tuple[str, str], list[tuple[int, int, Reject]]] = {}
    names, of_files = some_files(corpus, "rejects")
    number = 0
    for batch in batches(corpus, names):
        has_found = "found" in batch.schema.names
        columns = (batch[name].to_pylist() for name in ("stage", "reason", "origin"))
        for place, (stage, reason, origin) in enumerate(zip(*columns, strict=True)):
            key, number = (stage, reason), number + 1
            rows[key] = rows.get(key, 0) + 1
            heap = heaps.setdefault(key, [])
            rank = -hash64("report", origin)
            if len(heap) == PER_REASON and rank <= heap[0][0]:
                continue
            reject = Reject(
                source=batch["source"][place].as_py(),
                url=cut(batch["url"][place].as_py(), ADDRESS),
                origin=cut(origin, ADDRESS),
                excerpt=cut(batch["excerpt"][place].as_py(), EXCERPT),
                found=cut(batch["found"][place].as_py(), ADDRESS) if has_found else "",
            )
            (heappush if len(heap) < PER_REASON else heappushpop)(heap, (rank, number, reject))
    each = max(1, min(PER_REASON, MOST_REJECTS // max(1, len(heaps))))
    samples = {
        key: [reject for _, _, reject in sorted(heaps[key], key=lambda kept: -kept[0])[:each]]
        for key in sorted(heaps)[:MOST_REJECTS]
    }
    return Rejects(samples, rows, len(names), of_files)


def read_dead_letters(corpus: Corpus) -> dict[tuple[str, str], list[str]]:
    """(stage, error) -> some origins of such dead letters, in order."""
    origins: dict[tuple[str, str], list[str]] = {}
    for batch in batches(corpus, some_files(corpus, "dead_letters")[0]):
        columns = (batch[name].to_pylist() for name in ("stage", "error", "origin"))
        for stage, error, origin in zip(*columns, strict=True):
            known = origins.setdefault((stage, error), [])
            if len(known) < ERRORS:
                known.append(cut(origin, ADDRESS))
    return origins


def some_files(corpus: Corpus, folder: str) -> tuple[list[str], int]:
    """Up to 20 files of a folder, spread evenly, and how many there are."""
    names = [entry.path for entry in corpus.files(folder)]
    few = min(MOST_FILES, len(names))
    return [names[place * len(names) // few] for place in range(few)], len(names)


def batches(corpus: Corpus, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of Parquet files."""
    for name in names:
        with corpus.parquet(name) as parquet:
            yield from parquet.iter_batches(BATCH)


def kept_texts(corpus: PublishedCorpus) -> list[KeptText]:
    """The first documents of each domain's first shard of the split "train": places in a shard are hashes, so they are
    a random sample. Texts are decoded from the shards' tokens, which is what a model will see; of a corpus of texts
    they are what was written."""
    first: dict[str, ShardEntry] = {}
    for shard in corpus.entries("train"):
        if shard.documents:
            first.setdefault(shard.domain, shard)
    if not first:
        return []
    per_domain = max(1, min(PER_DOMAIN, MOST_KEPT // len(first)))
    shards = [shard for _, shard in sorted(first.items())[:MOST_KEPT]]
    return [text for shard in shards for text in first_texts(corpus, shard, per_domain)]


def first_texts(corpus: PublishedCorpus, shard: ShardEntry, most: int) -> Iterator[KeptText]:
    """The first documents of a shard."""
    columns = [column.name for column in corpus.manifest.columns]
    names = ["source", "url", "copies", *(SPANS if corpus.manifest.has_tokens else (TEXT_BYTES,)), *columns]
    with corpus.parquet(shard.provenance.path) as parquet:
        batch = next(parquet.iter_batches(most, columns=names))
    texts = None
    if not corpus.manifest.has_tokens:
        written = WrittenTexts(shard_texts(corpus.store, corpus.writer, shard), corpus.store.url(shard.written[0].path))
        texts = written.texts(batch, np.arange(len(batch)))
    for row in batch.to_pylist():
        notes = {name: as_text(row[name]) for name in columns if row[name] not in (None, "")}
        yield KeptText(
            source=row["source"],
            url=cut(row["url"], ADDRESS),
            tokens=row.get("token_count"),
            copies=row["copies"],
            text=decoded_excerpt(corpus, shard, row) if texts is None else cut(printable(next(texts)), EXCERPT),
            notes=dict(sorted(notes.items())),
        )


def decoded_excerpt(corpus: PublishedCorpus, shard: ShardEntry, row: Mapping[str, int]) -> str:
    """The beginning of a document, of its first tokens."""
    begin, length = row["token_offset"], min(row["token_count"], TOKENS)
    text = printable(corpus.tokenizer.decode(read_tokens(corpus, shard, begin, begin + length)))
    return text[: EXCERPT - 1].rstrip() + "…" if length < row["token_count"] else cut(text, EXCERPT)


def as_text(value: object) -> str:
    """A value of a column."""
    return f"{value:.3g}" if isinstance(value, float) else cut(str(value), 60)


def cut(text: str, most: int) -> str:
    """The text, or its beginning and "…"."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
