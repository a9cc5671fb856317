"""A deterministic sample of cleaned text for the training commands, through the same sources and stages as a run.

No `from __future__ import annotations` here: Beam reads these hints.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindows

from refinery.loader.format.manifest import unseal
from refinery.pipelines.recipe.graphs import clean_documents
from refinery.pipelines.recipe.plain_yaml import RecipeError
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.funnel import check_budget
from refinery.pipelines.runners.runner import Runner
from refinery.transforms.core.document import Document, Drop, RawDocument, hash64
from refinery.transforms.core.report import WriteReport
from refinery.transforms.extract.extract import ExtractParams, extract_document
from refinery.transforms.read.sources import SourceParams, plan_sources, read_task, write_tasks


class _Smallest:
    """Keeps the texts with the smallest hashes, as many as fit the budget (the last one may exceed it)."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.held = 0
        self.heap: list[tuple[int, bytes]] = []  # largest hash first: (-hash, text)

    def add(self, key: int, text: bytes) -> None:
        heapq.heappush(self.heap, (-key, text))
        self.held += len(text)
        while self.held - len(self.heap[0][1]) >= self.budget:
            self.held -= len(heapq.heappop(self.heap)[1])

    def take(self) -> list[tuple[int, bytes]]:
        return sorted((-key, text) for key, text in self.heap)


class _SampleBundle(beam.DoFn):
    def __init__(self, budget: int, seed: int) -> None:
        self.budget = budget
        self.seed = seed

    def start_bundle(self) -> None:
        self.smallest = _Smallest(self.budget)
        self.seen: set[bytes] = set()

    def process(self, doc: Document) -> None:
        if doc.id not in self.seen:
            self.seen.add(doc.id)
            self.smallest.add(hash64("tokenizer", self.seed, doc.id), doc.text.encode())

    def finish_bundle(self) -> Iterator[Any]:
        for key, text in self.smallest.take():
            yield GlobalWindows.windowed_value_at_end_of_window((0, key.to_bytes(8, "big") + text))


def _merge(_: int, texts: Iterable[bytes], budget: int, path: str) -> None:
    smallest = _Smallest(budget)
    for text in set(texts):
        smallest.add(int.from_bytes(text[:8], "big"), text[8:])
    with Path(path).open("wb") as out:
        for _, text in smallest.take():
            out.write(len(text).to_bytes(8, "big") + text)


def sample_texts(recipe: Recipe, runner: Runner, budget: int, seed: int) -> list[str]:
    """Texts that phase 1 of the recipe keeps, those with the smallest hash of (seed, id), up to `budget` UTF-8 bytes.

    Exact copies count once. The sample depends on the inputs, the recipe and the seed alone. Raises RecipeError when
    nothing is kept, ValueError for a runner whose workers are on other machines. Cost: phase 1 over the whole input,
    and the budget in memory of every worker.
    """
    if runner.name == "DataflowRunner":  # the sample is returned in a local file
        raise ValueError("--runner: DataflowRunner given, samples are taken on this machine (also of gs:// inputs)")
    tasks = plan_sources(recipe.sources, notes=recipe.LANE.notes)
    with TemporaryDirectory(prefix="refinery-sample-") as scratch:
        path = str(Path(scratch) / "texts")
        listed = write_tasks(scratch, tasks)

        def build(pipeline: beam.Pipeline) -> None:
            (
                clean_documents(pipeline, recipe, listed)  # Document
                | "sample" >> beam.ParDo(_SampleBundle(budget, seed)).with_output_types(tuple[int, bytes])
                | "together" >> beam.GroupByKey()  # (0, hash + text)
                | "write" >> beam.MapTuple(partial(_merge, budget=budget, path=path))
            )
            pipeline | WriteReport(scratch, "report.json", {})

        runner.run("sample", build, files=len(tasks))
        report = unseal((Path(scratch) / "report.json").read_bytes(), "report.json")
        problems = check_budget(report["counters"], recipe.failures.max_ratio, recipe.failures.grace)
        if problems:
            raise RefineError("too many dead letters in the sources:\n  " + "\n  ".join(problems))
        data = Path(path).read_bytes() if Path(path).exists() else b""
    texts = []
    position = 0
    while position < len(data):
        size = int.from_bytes(data[position : position + 8], "big")
        texts.append(data[position + 8 : position + 8 + size].decode())
        position += 8 + size
    if not texts:
        raise RecipeError("the recipe keeps no document of its sources, so there is nothing to train on")
    return texts


def read_texts(name: str, globs: Sequence[str]) -> list[str]:
    """The cleaned texts of some files, whatever their format; damaged and empty records are left out.

    Raises RecipeError when no text is found.
    """
    texts = []
    for task in plan_sources((SourceParams(name=name, paths=tuple(globs)),)):
        for record in read_task(task):
            if isinstance(record, RawDocument):
                doc = extract_document(record, ExtractParams())
                if not isinstance(doc, Drop):
                    texts.append(doc.text)
    if not texts:
        raise RecipeError(f"{name}: no text found in {', '.join(globs)}")
    return texts
