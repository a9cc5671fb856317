"""Pieces and joins of a check in this process or in several, with the same results in the same order."""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from pathlib import Path
from typing import Any

from refinery.loader.storage.open_store import open_store
from refinery.pipelines.corpus.verify.joins import Found, add_found, find_cycles, join_partitions
from refinery.pipelines.corpus.verify.keyed_rows import TABLES, Run, RunWriter, Tables
from refinery.pipelines.corpus.verify.pieces import Checker, Finding, Piece, Question
from refinery.pipelines.run.errors import RefineError
from refinery.transforms.core.live import LIVE, WORK

TASK_BYTES, TASK_DOCUMENTS = 8 << 30, 1 << 21  # of the pieces that a process gets at once, at most
TASKS = 8  # of each process, at least, so all end at about the same time

_CHECKERS: list[Checker] = []  # of a worker process


def _start(question: Question) -> None:
    _CHECKERS[:] = [Checker(question)]


def _check(pieces: Sequence[Piece], stem: str, folder: Path) -> tuple[list[Finding], list[Run], int]:
    before = LIVE[WORK, "bytes"]
    findings, runs = check_with(_CHECKERS[0], pieces, stem, folder)
    return findings, runs, LIVE[WORK, "bytes"] - before


def check_with(checker: Checker, pieces: Sequence[Piece], stem: str, folder: Path) -> tuple[list[Finding], list[Run]]:
    """The finding of each piece, and the runs in `folder` of the rows that they left."""
    writer = RunWriter(folder, stem, checker.question.partitions)
    return [checker.check(piece, writer) for piece in pieces], writer.flush()


class Processes:
    """Checks the pieces of one corpus in `workers` processes; below 2 in this one."""

    def __init__(self, question: Question, workers: int) -> None:
        self._question, self._workers = question, workers
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> "Processes":
        if self._workers > 1:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self._workers, context, _start, (self._question,))
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def check(self, pieces: Sequence[Piece], folder: Path) -> tuple[list[Finding], list[Run]]:
        """The finding of each piece, and the runs in `folder` of the rows that all left."""
        tasks = [
            (part, f"task-{number:06d}", folder) for number, part in enumerate(_tasks(pieces, max(1, self._workers)))
        ]
        findings, runs = list[Finding](), list[Run]()
        if self._pool is None:
            with closing(Checker(self._question)) as checker:
                for task in tasks:
                    found, written = check_with(checker, *task)
                    findings += found
                    runs += written
            return findings, runs
        for found, written, done in self._each(_check, tasks):
            findings += found
            runs += written
            LIVE[WORK, "bytes"] += done
        return findings, runs

    def join(self, tables: Tables, folder: Path) -> Found:
        """What all partitions say together. folder: for what is followed from partition to partition."""
        step = -(-tables.partitions // (TASKS * max(1, self._workers)))
        every = range(tables.partitions)
        tasks = [(tables, every[first : first + step], folder) for first in every[::step]]
        found, runs = list[Found](), list[Run]()
        for part, written in self._each(join_partitions, tasks):
            found.append(part)
            runs += written
        size = TABLES["removed"].itemsize
        rows = sum(run.size for run in tables.runs if run.table == "removed") // size
        cycles = find_cycles(open_store(folder), runs, tables.partitions, rows, folder)
        return add_found(found) | {"cycles": cycles}

    def _each(self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        if self._pool is None:
            yield from (function(*task) for task in tasks)
            return
        try:
            running = [self._pool.submit(function, *task) for task in tasks]
            for task in running:
                yield task.result()
        except BrokenProcessPool:
            raise RefineError(
                "a process that checked files was killed, most likely for lack of memory; give fewer --workers"
            ) from None


def _tasks(pieces: Sequence[Piece], workers: int) -> Iterator[list[Piece]]:
    """Neighbouring pieces together, up to a size."""
    share = sum(piece.size for piece in pieces) // (TASKS * workers)
    most, held, size, documents = min(TASK_BYTES, share), list[Piece](), 0, 0
    for piece in pieces:
        if held and (size + piece.size > most or documents + piece.documents > TASK_DOCUMENTS):
            yield held
            held, size, documents = [], 0, 0
        held.append(piece)
        size += piece.size
        documents += piece.documents
    if held:
        yield held
