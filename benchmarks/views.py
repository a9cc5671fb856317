"""Streams over views compared with the stream over their corpus, in one process, in turns.

    python -m benchmarks.views [--tokens 100000000] [--repeat 5] [--work FOLDER]

The corpus is that of benchmarks/loader.py: int32 tokens in documents of about 500, on a local disk, in the page cache;
batches are 8 rows of 4,096 tokens, prefetch=0. Views: everything (no selection), and documents chosen at random, each
with probability 0.5 and 0.1. A figure is the median over the turns of tokens per CPU second of the process, after a
warm-up; ratios are of the same turn. Also: bytes of each selection, per document of the corpus, and how many bytes
remote reading would fetch for each that it delivers, by the blocks of a MiB that the windows of the first tenth of an
epoch touch (a host alone, with a cache that holds them).
"""

import argparse
import hashlib
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.loader_corpus import BATCH, SEED, SEQUENCE, Corpus, document_lengths, make_corpus
from benchmarks.signatures import describe_run
from refinery.loader import TokenStream
from refinery.loader.format.block_checksums import CHECKSUM_BLOCK
from refinery.loader.format.manifest import MANIFEST, SCHEMA_VERSION, VIEW_KIND, read_manifest, seal
from refinery.loader.format.selection import SELECTION
from refinery.loader.order.order import OrderParams
from refinery.loader.storage.open_store import open_store
from refinery.loader.stream.lookahead import Lookahead
from refinery.pipelines.corpus.mix.candidates import CANDIDATE
from refinery.pipelines.corpus.mix.selecting import SelectionWriter, TimesTable

SHARES = (1.0, 0.5, 0.1, 0.02)
WARM, MEASURED = 200, 800  # batches
MASKS: dict[str, Any] = dict.fromkeys(("loss_mask", "position_ids", "doc_ids", "cu_seqlens"), True)


def make_benchmark_view(corpus: Corpus, folder: Path, share: float) -> Path:
    """A view of the documents that a generator draws."""
    lengths = document_lengths(corpus.tokens)
    store = open_store(corpus.folder)
    entry = read_manifest(store).shards[0]
    some = np.zeros(len(lengths), CANDIDATE)
    some["document"], some["tokens"] = np.arange(len(lengths)), lengths
    some["start"] = np.cumsum(lengths) - lengths
    chosen = np.random.default_rng([SEED, 2]).random(len(lengths)) < share
    table = TimesTable()
    folder.mkdir(parents=True)
    selection = None
    if share == 1:
        table.add(1, entry.documents, entry.tokens)
    else:
        with SelectionWriter(folder / "spill") as writer:
            writer.chosen(0, 0, 0, 0, entry, some[chosen], np.ones(int(chosen.sum()), np.int64))
            found = writer.finish(folder / SELECTION)
        (folder / "spill").unlink()
        selection = {key: getattr(found, key) for key in ("path", "size", "crc32c", "sha256")}
        table.add_each(np.ones(int(chosen.sum()), np.int64), some["tokens"][chosen])
    digest = hashlib.sha256((corpus.folder / MANIFEST).read_bytes()).hexdigest()
    link = {"name": "c", "location": str(corpus.folder.resolve()), "manifest_sha256": digest}
    domain = {"name": "d", "parts": [{"corpus": 0, "domain": "web"}], "splits": {"train": table.published()}}
    totals = {key: table.published()[key] for key in ("documents", "tokens")}
    payload = {
        "schema_version": SCHEMA_VERSION, "kind": VIEW_KIND, "name": "benchmark", "corpora": [link],
        "domains": [domain], "selection": selection, "mixing": None, "totals": totals, "plan": {}, "recipe": {},
    }  # fmt: skip
    (folder / MANIFEST).write_bytes(seal(payload))
    return folder


def speed(prefix: Path, **options: Any) -> float:
    """M tokens per CPU second."""
    with TokenStream(prefix, SEQUENCE, BATCH, seed=SEED, prefetch=0, **options) as stream:
        for _ in range(WARM):
            next(stream)
        begin = time.process_time()
        for _ in range(MEASURED):
            next(stream)
        return MEASURED * BATCH * SEQUENCE / 1e6 / (time.process_time() - begin)


class _Blocks:
    """A source that notes which blocks are announced, and how long they are."""

    def __init__(self, itemsize: int) -> None:
        self.size, self.blocks = itemsize, set[tuple[int, int]]()

    def will_need(self, ranges: Any) -> None:
        for shard, start, stop in ranges:
            end = -(-stop * self.size // CHECKSUM_BLOCK)
            self.blocks.update((shard, block) for block in range(start * self.size // CHECKSUM_BLOCK, end))

    def done_with(self, ranges: Any) -> None:
        return


def fetched(prefix: Path) -> tuple[float, int]:
    """Bytes fetched per byte delivered in a whole epoch, each block once, and samples in a block of the order."""
    order = OrderParams(block=0)
    with TokenStream(prefix, SEQUENCE, BATCH, seed=SEED, order=order, prefetch=0, epochs=1) as stream:
        source = _Blocks(4)
        ahead = Lookahead(source, stream._schedule)  # type: ignore[arg-type]
        position, length = 0, stream._schedule.length or 0
        while position < length:
            plan = stream._schedule.plan(0, position)
            ahead.announce(plan)
            position = plan.stop
        domain = stream._schedule.domains[0]
        return len(source.blocks) * CHECKSUM_BLOCK / (domain.tokens * 4), domain.block


def lines(corpus: Corpus, folder: Path, repeat: int) -> Iterator[str]:
    documents = corpus.documents
    views = {share: make_benchmark_view(corpus, folder / f"view-{share}", share) for share in SHARES}
    for name, options in (("input_ids, labels", {}), ("with masks", MASKS)):
        turns = [
            {share: speed(view, **options) for share, view in views.items()} | {0.0: speed(corpus.folder, **options)}
            for _ in range(repeat)
        ]
        yield f"{name}: corpus {statistics.median(turn[0.0] for turn in turns):,.0f} M tokens per CPU second"
        for share in SHARES:
            own = statistics.median(turn[share] for turn in turns)
            ratio = statistics.median(turn[share] / turn[0.0] for turn in turns)
            yield f"  view of {share:4.0%}: {own:,.0f} M tokens per CPU second, {ratio:.2f} of the corpus"
    for share, view in views.items():
        path = view / SELECTION
        size = path.stat().st_size if path.exists() else 0
        factor, block = fetched(view)
        yield (
            f"selection of {share:4.0%}: {size:,} bytes, {size / documents:.2f} per document of the corpus, "
            f"{size / documents / share:.2f} per chosen one, {size / (corpus.tokens * 4):.3%} of the tokens' bytes; "
            f"fetched remotely {factor:.2f} times what is delivered, blocks of {block} samples"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--tokens", type=int, default=100_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--work", type=Path, default=None, help="a folder that keeps the corpus")
    args = parser.parse_args()
    print(describe_run())
    with tempfile.TemporaryDirectory(prefix="refinery-views-") as scratch:
        corpus = make_corpus(args.work or Path(scratch) / "corpus", args.tokens)
        for line in lines(corpus, Path(scratch) / "views", args.repeat):
            print(line)


if __name__ == "__main__":
    main()
