"""The shards of a domain read for candidates, in this process or, where that pays, in several.

What a shard's file has depends on the shard alone, and parts come in the order of shards: a view has the same bytes
with any number of processes.
"""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from refinery.loader.format.manifest import SPLITS
from refinery.loader.read.corpus import Corpus
from refinery.pipelines.corpus.mix.candidates import Chooser, Corpora, Part, scan_shard
from refinery.pipelines.corpus.mix.recipe import MixDomainParams
from refinery.pipelines.run.errors import RefineError

WORTH = 5.0  # seconds of this process from which on others are started: these take a second or two each
READ, RULE, HOST = 0.7e-6, 0.1e-6, 2.5e-6  # seconds per document: its columns, a rule, its host (benchmarks/mixing.py)

_CORPORA: list[Corpora] = []  # of a worker process


def _start(roots: Sequence[str]) -> None:
    _CORPORA[:] = [[Corpus(root) for root in roots]]


def _scan(
    names: Sequence[str], domain: MixDomainParams, seed: int, split: str, place: tuple[int, int], path: Path
) -> None:
    scan_shard(_CORPORA[0], names, place, Chooser(domain, seed, split), path)


class Scans:
    """Reads shards in up to `workers` processes, which start when they are first worth it; 0 or 1: in this one."""

    def __init__(self, corpora: Corpora, names: Sequence[str], workers: int) -> None:
        self._corpora, self._names, self._workers = corpora, list(names), workers
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> "Scans":
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def parts(
        self, domain: MixDomainParams, seed: int, split: str, shards: Sequence[tuple[int, int]], folder: Path,
        done: Callable[[int], None],
    ) -> Iterator[Part]:  # fmt: skip
        """The candidates of each shard, in order; done: told the documents read. Raises the same errors as scan_shard,
        RefineError if a process died."""
        parts = [
            Part(corpus, shard, self._corpora[corpus].manifest.shards[shard], folder / f"{corpus}-{shard}")
            for corpus, shard in shards
        ]
        each = READ + RULE * bool(domain.where) + HOST * bool(domain.per_host and split == SPLITS[0])
        seconds = each * sum(part.entry.documents for part in parts)
        if self._workers < 2 or len(parts) < 2 or seconds < WORTH:
            chooser = Chooser(domain, seed, split)
            for part in parts:
                scan_shard(self._corpora, self._names, (part.corpus, part.shard), chooser, part.path, done)
                yield part
            return
        pool = self._started()
        tasks = [pool.submit(_scan, self._names, domain, seed, split, place, part.path)
                 for place, part in zip(shards, parts, strict=True)]  # fmt: skip
        try:
            for part, task in zip(parts, tasks, strict=True):
                task.result()
                done(part.entry.documents)
                yield part
        except BrokenProcessPool:
            raise RefineError(
                f"domain {domain.name!r}: a process that read its shards was killed, most likely for lack of "
                "memory; give fewer --workers (0: none but this one)"
            ) from None

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            roots = [corpus.root for corpus in self._corpora]
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self._workers, context, _start, (roots,))
        return self._pool
