"""Texts that tokens cannot give back: phase 3 once more, up to the encoder, over the corpus' work files.

For tokenizers that normalise (many SentencePiece models), decoding gives a text that differs from the encoded one.
The stages between deduplication and the encoder are pure functions of documents that are still in work/, so they make
the same texts again, provided that recipe, files, stages and libraries are the same: the corpus' fingerprint says so.
Each text then meets its document by id, source and origin, and must encode to its tokens (rows.py).

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from refinery.loader.format.manifest import SPLITS
from refinery.pipelines.corpus.export.place import SourceCorpus
from refinery.pipelines.corpus.export.rows import TextDiffers
from refinery.pipelines.corpus.export.text_job import TextJob, export_shard
from refinery.pipelines.recipe.load_recipe import recorded_recipe
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.differences import differences
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.fingerprint import phase_fingerprints
from refinery.pipelines.run.phases import Phase, pair_parts, read_phase
from refinery.pipelines.run.prefix import describe_run
from refinery.pipelines.runners.runner import Runner
from refinery.transforms.core.document import Document, text_bytes
from refinery.transforms.core.exchange.side_outputs import add_side_output
from refinery.transforms.core.job.task_list import TaskList, read_task_list
from refinery.transforms.core.memory import with_memory
from refinery.transforms.tokenize.encode import EncodedDocument
from refinery.transforms.tokenize.load_tokenizer import load_tokenizer
from refinery.transforms.tokenize.tokenizer import Tokenizer
from refinery.transforms.write.deal_kept_documents import ReadKeptDocuments
from refinery.transforms.write.document_batch import read_batches
from refinery.transforms.write.kept_documents import PartPair, write_pairs
from refinery.transforms.write.shard_documents import sort_documents
from refinery.transforms.write.shuffle import shard_key
from refinery.transforms.write.shuffle_to_shards import ShuffleToShards
from refinery.transforms.write.targets import TARGET, slice_of

COLUMNS = ("id", "source", "origin", "tokens")  # the text, in UTF-8, crosses the shuffle where tokens do in a run


@dataclass
class RecomputedTexts:
    """The texts of a shard in its order. Those that encode to nothing were dropped by the encoder, and are passed over.
    So are those beyond the target of their source: all of them have later slices than the ones that are kept.

    table: of `sort_documents`. targets: sources that have one.
    """

    table: pa.Table
    tokenizer: Tokenizer
    targets: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.rows = zip(*(self.table[name].to_pylist() for name in COLUMNS), strict=True)
        self.last_kept: dict[str, int] = {}  # source -> slice
        self.first_cut: dict[str, tuple[int, bytes]] = {}  # source -> slice, id

    def text(self, id_: bytes, source: str, origin: str, ids: npt.NDArray[Any]) -> str:
        for found, its_source, its_origin, data in self.rows:
            if (found, its_source, its_origin) == (id_, source, origin):
                if source in self.targets:
                    self.last_kept[source] = max(slice_of(id_), self.last_kept.get(source, 0))
                return str(data.decode())
            self._pass_over(found, its_source, data.decode())
        raise TextDiffers(f"document {id_.hex()} of the corpus is not among those of its work files")

    def finish(self) -> None:
        for found, source, _, data in self.rows:
            self._pass_over(found, source, data.decode())
        for source, (cut, id_) in self.first_cut.items():
            if cut <= self.last_kept.get(source, -1):
                raise self._lost(id_)

    def _pass_over(self, found: bytes, source: str, text: str) -> None:
        cut = slice_of(found), found
        if source in self.first_cut and cut >= self.first_cut[source]:
            return
        try:
            empty = not len(self.tokenizer.encode(text))
        except ValueError:  # a dead letter of the encoder
            empty = True
        if empty:
            return
        if source not in self.targets:
            raise self._lost(found)
        self.first_cut[source] = cut

    def _lost(self, id_: bytes) -> TextDiffers:
        return TextDiffers(f"document {id_.hex()} of the work files is not in the corpus")


TEXT_MEMORY = 4  # bytes for each byte of a shard's text


def as_bytes(doc: Document) -> EncodedDocument:
    """The document with its text, UTF-8, in the place of tokens, for the shuffle of a run."""
    data = np.frombuffer(doc.text.encode(), np.uint8)
    return EncodedDocument(doc.id, data, doc.source, "", doc.origin, text_bytes(doc.text), {})


@lru_cache(maxsize=1)
def _lines(tasks: TaskList) -> dict[bytes, bytes]:
    """Shard key -> its line of the task list."""
    found = {}
    for line in read_task_list(tasks):
        entry = orjson.loads(line)
        found[shard_key(f"{entry['split']}/{entry['domain']}", entry["index"])] = line
    return found


def write_recomputed(
    key: bytes, batches: Iterable[bytes], tasks: TaskList, job: TextJob, targets: frozenset[str]
) -> Iterator[bytes]:
    """`export_shard` with the texts in `batches`; nothing for a shard that the corpus does not have, since none of its
    documents have a place there."""
    documents = sort_documents(read_batches(batches))
    texts = partial(RecomputedTexts, documents, load_tokenizer(job.corpus.tokenizer), targets)
    line = _lines(tasks).get(key)
    if line is None:
        texts().finish()
    else:
        yield export_shard(line, job, texts)


@dataclass
class ExportRecomputed(beam.PTransform):
    """Write the file of every shard of a list, its texts from the work files. pairs: of `pair_parts`. counts: shards of
    each "split/domain".
    """

    tasks: TaskList
    pairs: TaskList
    job: TextJob
    recipe: Recipe
    counts: Mapping[str, int]

    def __post_init__(self) -> None:
        super().__init__("export")

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection[bytes]:
        docs = begin.pipeline | ReadKeptDocuments(self.pairs, self.recipe.cuts())  # Document
        for stage, params in self.recipe.active("shards"):
            if stage.output is not EncodedDocument and stage is not TARGET:
                docs = docs | stage(params, self.recipe.rejects)  # Document
        domains = {name: facts.domain for name, facts in self.recipe.source_facts().items()}
        write = partial(write_recomputed, tasks=self.tasks, job=self.job, targets=frozenset(self.recipe.targets()))
        written = "write" >> beam.FlatMapTuple(write).with_output_types(bytes)
        step = with_memory(written, TEXT_MEMORY * self.recipe.shards.target_bytes)
        shards = (
            docs
            | "as bytes" >> beam.Map(as_bytes).with_output_types(EncodedDocument)
            | ShuffleToShards(self.recipe.shards, self.counts, domains, like=step)  # (shard key, its batches)
        )
        records = shards | step
        add_side_output(begin.pipeline, records)
        return records


def plan_recomputation(
    corpus: SourceCorpus, work: str, recipe_file: str, job: TextJob, runner: Runner
) -> Callable[[TaskList], ExportRecomputed]:
    """What makes the transform of a task list, once everything that it needs is known to be there, and the same.

    Raises RefineError, saying what is missing or differs, and RecipeError for a recipe that cannot be read.
    """
    where = f"{corpus.root}: its tokens do not decode to its text"
    recipe = recorded_recipe(where, corpus.manifest.recipe, recipe_file)
    runner.use_code(recipe.CODE.folder, tuple(recipe.CODE.files))
    run = corpus.run
    fingerprints = phase_fingerprints(recipe, run["inputs"])
    if fingerprints["shards"] != corpus.manifest.fingerprint:
        told = differences(run, describe_run(recipe, run["inputs"], fingerprints))
        raise RefineError(f"{corpus.root}: the original texts cannot be made again: {told}")
    clean, dedup = (_phase(corpus, work, name, fingerprints[name]) for name in ("clean", "dedup"))
    pairs: list[PartPair] = pair_parts(clean, dedup)
    # Splits and domains without shards, too: documents that are beyond a target come by.
    domains = {facts.domain for facts in recipe.source_facts().values()}
    counts = {f"{split}/{domain}": 1 for split in SPLITS for domain in domains}
    counts |= {f"{entry.split}/{entry.domain}": entry.count for entry in corpus.manifest.shards}
    return lambda tasks: ExportRecomputed(tasks, write_pairs(job.work, pairs), job, recipe, counts)


def _phase(corpus: SourceCorpus, work: str, name: str, fingerprint: str) -> Phase:
    place = work or f"{corpus.root}/work"
    phase = read_phase(place, name, fingerprint)
    if phase is None:
        raise RefineError(
            f"{place}: the parts of the phase {name} are not there; they are needed because the tokenizer of this "
            "corpus does not give the text back; name their place with --work, or run the recipe again if they "
            "were discarded"
        )
    return phase
