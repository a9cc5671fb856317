"""Documents that hold a piece of text, found by reading texts: no index has them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from refinery.loader.format.manifest import ShardEntry
from refinery.loader.format.parquet.guarded import guarded_parquet
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.progress.words import human_bytes
from refinery.pipelines.published.published import PublishedCorpus
from refinery.pipelines.published.scan import Say, scan
from refinery.pipelines.published.shard_tokens import corpus_tokenizer, read_tokens
from refinery.pipelines.run.phases import Phase, read_phase
from refinery.transforms.extract.clean_text import clean_text

MOST_FOUND = 20  # documents of one piece of text
ROWS = 1024


@dataclass(frozen=True)
class Searched:
    """Ids of the documents found, in the order of the files. done, size: bytes of files searched, and of all."""

    ids: tuple[str, ...]
    what: str
    done: int
    size: int

    @property
    def line(self) -> str:
        """What was searched, in words."""
        most = f"; the first {MOST_FOUND} are shown" if len(self.ids) == MOST_FOUND else ""
        rest = "" if self.done == self.size else "; a larger --search-texts reads more"
        return (
            f"{len(self.ids)} found in {human_bytes(self.done)} of {human_bytes(self.size)} of {self.what}{rest}{most}"
        )


def search_texts(prefix: str, work: str, text: str, most: float, say: Say) -> Searched:
    """Documents whose text holds `text`, letter by letter once it is cleaned, in at most `most` bytes of files (the
    first one whole).

    It reads work/documents/ where it is (as phase 1 left them: before lines are cut and personal data is replaced),
    else the shards. Cost: all of those files up to the bound. Raises ValueError for a text without a letter.
    """
    wanted = clean_text(text, False)
    if not wanted:
        raise ValueError("--text: empty after cleaning; give one or more characters")
    corpus = PublishedCorpus(prefix)
    clean = _cleaned(corpus, work or f"{prefix.rstrip('/')}/work")
    if clean:
        parts = clean.parts("documents")
        what, sizes = "work/documents", [int(part["size"]) for part in parts]
        look: Callable[[Any], list[str]] = lambda part: list(_in_part(clean, part, wanted))  # noqa: E731
        items: Sequence[Any] = parts
    else:
        shards = [shard for shard in corpus.manifest.shards if shard.documents]
        what, sizes = "shards", [shard.written[0].size for shard in shards]
        look, items = lambda shard: list(_in_shard(corpus, shard, wanted)), shards
    chosen, done = _up_to(sizes, most)
    say(f"searching {human_bytes(done)} of {what} for the text")
    ids = _first(scan(look, items[:chosen], "files", say))
    return Searched(ids, what, done, sum(sizes))


def _cleaned(corpus: PublishedCorpus, work: str) -> Phase | None:
    run = corpus.run
    try:
        return read_phase(work, "clean", run["phases"]["clean"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _up_to(sizes: Sequence[int], most: float) -> tuple[int, int]:
    """How many of the files, from the first, stay below `most` bytes, at least one; and their bytes."""
    count = total = 0
    for size in sizes:
        if count and total + size > most:
            break
        count, total = count + 1, total + size
    return count, total


def _first(found: Iterable[list[str]]) -> tuple[str, ...]:
    ids: dict[str, None] = {}
    for some in found:
        ids |= dict.fromkeys(some)
        if len(ids) >= MOST_FOUND:
            break
    return tuple(ids)[:MOST_FOUND]


def _in_part(clean: Phase, part: dict[str, Any], text: str) -> Iterator[str]:
    store = open_store(clean.root_of(part))
    with guarded_parquet(store.open(part["path"]), store.url(part["path"])) as file:
        for batch in file.iter_batches(ROWS, columns=["id", "text"], use_threads=False):
            rows = pc.match_substring(batch.column("text"), text)
            yield from (id_.hex() for id_ in batch.column("id").filter(rows).to_pylist())


def _in_shard(corpus: PublishedCorpus, shard: ShardEntry, text: str) -> Iterator[str]:
    if not corpus.manifest.has_tokens:
        for batch, _ in corpus.rows(shard, ["id", "text"]):
            rows = pc.match_substring(batch.column("text"), text)
            yield from (id_.hex() for id_ in batch.column("id").filter(rows).to_pylist())
        return
    tokenizer, path = corpus_tokenizer(corpus), shard.provenance.path
    with corpus.parquet(path, corpus.manifest.provenance_schema) as file:
        columns = ["id", "token_offset", "token_count"]
        for batch in file.iter_batches(ROWS, columns=columns, use_threads=False):
            rows = pa.table(batch).to_pylist()
            if not rows:
                continue
            start = rows[0]["token_offset"]
            ids = read_tokens(corpus, shard, start, rows[-1]["token_offset"] + rows[-1]["token_count"])
            for row in rows:
                at = row["token_offset"] - start
                if text in tokenizer.decode(ids[at : at + row["token_count"]]):
                    yield row["id"].hex()
