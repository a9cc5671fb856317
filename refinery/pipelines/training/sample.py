"""A deterministic sample of cleaned text for the training commands, through the same sources and stages as a run.

No `from __future__ import annotations` here: Beam reads these hints.
"""

import hashlib
import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindows

from refinery.loader.format.manifest import unseal
from refinery.pipelines.progress.work import Step, Work
from refinery.pipelines.recipe.graphs import clean_documents
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.funnel import check_budget
from refinery.pipelines.runners.runner import Runner
from refinery.transforms.core.data_text.plain_yaml import RecipeError
from refinery.transforms.core.document import Document, Drop, RawDocument, hash64, text_bytes
from refinery.transforms.core.exchange.exchange import Exchange
from refinery.transforms.core.job.write_report import WriteReport
from refinery.transforms.core.wording import meant
from refinery.transforms.extract.extract import ExtractParams, extract_document
from refinery.transforms.read.sources import DEFAULT_LIMITS, SourceParams, plan_sources, read_task, write_tasks
from refinery.transforms.read.text_fields import settle_tasks

ALL = ""  # the group of all sources, where none has a share of its own


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
    """budgets: source -> bytes of text that are wanted of it; of all sources together under the key ALL."""

    def __init__(self, budgets: Mapping[str, int], seed: int) -> None:
        self.budgets = budgets
        self.seed = seed

    def start_bundle(self) -> None:
        self.smallest = {group: _Smallest(budget) for group, budget in self.budgets.items()}
        self.seen: set[tuple[str, bytes]] = set()

    def process(self, doc: Document) -> None:
        group = ALL if ALL in self.budgets else doc.source
        if (group, doc.id) not in self.seen:
            self.seen.add((group, doc.id))
            self.smallest[group].add(hash64("tokenizer", self.seed, doc.id), _pack(doc.source, doc.text))

    def finish_bundle(self) -> Iterator[Any]:
        for group, smallest in self.smallest.items():
            for key, packed in smallest.take():
                element = (group, key.to_bytes(8, "big") + packed)
                yield GlobalWindows.windowed_value_at_end_of_window(element)


def _pack(source: str, text: str) -> bytes:
    name = source.encode()
    return len(name).to_bytes(2, "big") + name + text.encode()


def _unpack(packed: bytes) -> tuple[str, str]:
    start = 2 + int.from_bytes(packed[:2], "big")
    return packed[2:start].decode(), packed[start:].decode()


def _merge(group: str, texts: Iterable[bytes], budgets: Mapping[str, int], folder: str) -> None:
    smallest = _Smallest(budgets[group])
    before = b""
    for text in sorted(texts):  # one text from two sources counts for the first of them by name
        if text[:8] != before:
            before = text[:8]
            smallest.add(int.from_bytes(before, "big"), text[8:])
    with Path(folder, hashlib.sha256(group.encode()).hexdigest()).open("wb") as out:
        for _, text in smallest.take():
            out.write(len(text).to_bytes(8, "big") + text)


def parse_shares(recipe: Recipe, given: Sequence[str]) -> dict[str, float]:
    """`--share SOURCE=NUMBER` flags as source -> share, summing to 1, in the recipe's order; {} without any.

    Raises ValueError for what is no such pair, a source that the recipe does not have or that is given twice, and a
    share that is not a positive number.
    """
    names = [source.name for source in recipe.sources]
    found: dict[str, float] = {}
    for pair in given:
        name, _, number = pair.rpartition("=")
        if name not in names:
            raise ValueError(
                f"--share: {pair!r} given, SOURCE=NUMBER is allowed, with one of {', '.join(names)}{meant(name, names)}"
            )
        if name in found:
            raise ValueError(f"--share: {name} given twice, once is allowed")
        try:
            found[name] = float(number)
        except ValueError:
            found[name] = math.nan
        if not 0 < found[name] < math.inf:
            raise ValueError(f"--share: {pair!r} given, a number above 0 is allowed")
    total = sum(found.values())
    return {name: found[name] / total for name in names if name in found}


def sample_texts(
    recipe: Recipe,
    runner: Runner,
    budget: int,
    seed: int,
    shares: Mapping[str, float] = {},
    say: Callable[[str], None] = print,
) -> dict[str, list[str]]:
    """Texts that phase 1 of the recipe keeps, by source, up to `budget` UTF-8 bytes: those with the smallest hash of
    (seed, id).

    shares: source -> share of the bytes, summing to 1; sources without one are not read. Without any, sources give what
    they have, as in a run. The proportions hold even where a source has too little: the whole sample is smaller then,
    and `say` receives the reason. Exact copies count once. The sample depends on the inputs, the recipe, the seed
    and the shares alone. Raises RecipeError when nothing is kept of a source that has a share, or of all, and
    ValueError for a runner whose workers are on other machines. Cost: phase 1 over the whole input, and the budget
    in memory of every worker.
    """
    if runner.name == "DataflowRunner":  # the sample is returned in a local file
        raise ValueError("--runner: DataflowRunner given, samples are taken on this machine (also of gs:// inputs)")
    if shares:
        recipe = recipe.model_copy(update={"sources": tuple(s for s in recipe.sources if s.name in shares)})
    budgets = {name: math.ceil(budget * share) for name, share in shares.items()} or {ALL: budget}
    planned = plan_sources(recipe.sources, notes=recipe.notes(), readers=recipe.LANE.readers)
    tasks = settle_tasks(recipe.sources, planned, recipe.limits)
    runner.use_code(recipe.CODE.folder, tuple(recipe.CODE.files))
    with TemporaryDirectory(prefix="refinery-sample-") as scratch:
        listed = write_tasks(scratch, tasks)

        def build(pipeline: beam.Pipeline) -> None:
            (
                clean_documents(pipeline, recipe, listed)  # Document
                | "sample" >> beam.ParDo(_SampleBundle(budgets, seed)).with_output_types(tuple[str, bytes])
                | Exchange("together")  # (group, hash + source + text)
                | "write" >> beam.MapTuple(partial(_merge, budgets=budgets, folder=scratch))
            )
            pipeline | WriteReport(scratch, "report.json", {})

        size = sum(task.share_bytes for task in tasks)
        work = Work("sample", steps=[Step("bytes", size)], bytes=size, files=len(tasks))
        runner.run("sample", build, work)
        report = unseal((Path(scratch) / "report.json").read_bytes(), "report.json")
        problems = check_budget(report["counters"], recipe.failures.max_ratio, recipe.failures.grace)
        if problems:
            raise RefineError("too many dead letters in the sources:\n  " + "\n  ".join(problems))
        found: dict[str, list[str]] = {source.name: [] for source in recipe.sources}
        seen: set[str] = set()
        for group in budgets:
            for source, text in _read(Path(scratch, hashlib.sha256(group.encode()).hexdigest())):
                if text not in seen:  # it may be in two sources
                    seen.add(text)
                    found[source].append(text)
    if not any(found.values()):
        raise RecipeError("the recipe keeps no document of its sources, so there is nothing to train on")
    return in_proportion(found, budgets, shares, say) if shares else found


def in_proportion(
    found: Mapping[str, list[str]], budgets: Mapping[str, int], shares: Mapping[str, float], say: Callable[[str], None]
) -> dict[str, list[str]]:
    """As many of each source's texts, from the first, as keep the proportions of `shares`. Raises RecipeError for a
    source without any."""
    sizes = {name: sum(map(text_bytes, found[name])) for name in shares}
    empty = [name for name in shares if not sizes[name]]
    if empty:
        raise RecipeError(f"--share: the recipe keeps no document of {empty[0]}, which has a share of the sample")
    scarce = min(shares, key=lambda name: sizes[name] / budgets[name])
    part = min(1.0, sizes[scarce] / budgets[scarce])
    if part < 1:
        say(
            f"{scarce} has {sizes[scarce]:,} bytes of the {budgets[scarce]:,} that its share asks for: every source "
            f"gives {part:.1%} of its own, so the proportions hold (a smaller share of it allows more)"
        )
    kept: dict[str, list[str]] = {}
    for name in shares:
        taken = 0
        kept[name] = []
        for text in found[name]:
            if taken >= budgets[name] * part:
                break
            kept[name].append(text)
            taken += text_bytes(text)
    return kept


def _read(path: Path) -> Iterator[tuple[str, str]]:
    data = path.read_bytes() if path.exists() else b""
    position = 0
    while position < len(data):
        start = position + 8
        position = start + int.from_bytes(data[position:start], "big")
        yield _unpack(data[start:position])


def read_texts(name: str, globs: Sequence[str]) -> list[str]:
    """The cleaned texts of some files, whatever their format; damaged and empty records are left out.

    Raises RecipeError when no text is found.
    """
    texts = []
    sources = (SourceParams(name=name, paths=tuple(globs)),)
    for task in settle_tasks(sources, plan_sources(sources), DEFAULT_LIMITS):
        for record in read_task(task):
            if isinstance(record, RawDocument):
                doc = extract_document(record, ExtractParams())
                if not isinstance(doc, Drop):
                    texts.append(doc.text)
    if not texts:
        raise RecipeError(f"{name}: no text found in {', '.join(globs)}; give files with texts (docs/sources.md)")
    return texts
