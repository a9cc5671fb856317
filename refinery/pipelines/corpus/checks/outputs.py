"""Files of the shape of the inputs, beside the accounts of the run that wrote them: their bytes, and that they hold the
texts of the documents that the accounts say."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import zip_longest
from typing import Any

import orjson

from refinery.loader.format.manifest import FileEntry, ShardEntry
from refinery.loader.read.corpus import Corpus
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.corpus.checks.file_checks import check_file
from refinery.pipelines.published.outputs import OUTPUTS, load_outputs, outputs_of
from refinery.pipelines.recipe.load_recipe import recorded_recipe
from refinery.pipelines.recipe.recipe import Recipe
from refinery.transforms.core.answers import Damaged, Skipped
from refinery.transforms.core.document import TEXT_ID, Document
from refinery.transforms.extract.extract import EXTRACT, ExtractParams, extract_document
from refinery.transforms.read.byte_source import MemberStream, open_source
from refinery.transforms.read.lines import lines_of
from refinery.transforms.read.plan import whole_file
from refinery.transforms.read.remote.files import Found
from refinery.transforms.read.sources import read_task
from refinery.transforms.write.rows.rows_stage import rows_params
from refinery.transforms.write.rows.writer import LAYOUT

PIECE = 1 << 20  # bytes of a line that are held


def listed_outputs(corpus: Corpus) -> list[dict[str, Any]]:
    """The files that a run says it wrote beside its accounts; none of other runs. Raises FormatError."""
    if corpus.manifest.recipe.get("layout") != LAYOUT:
        return []
    return load_outputs(corpus.read(OUTPUTS), corpus.store.url(OUTPUTS))


class OutputChecks:
    """The checks of the files of one run, which look up its recipe and its shards once."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus

    @cached_property
    def _recipe(self) -> Recipe:
        return recorded_recipe(self.corpus.root, self.corpus.manifest.recipe)

    @cached_property
    def _shards(self) -> dict[tuple[str, int], ShardEntry]:
        return {(shard.domain, shard.index): shard for shard in self.corpus.entries()}

    def check(self, file: Mapping[str, Any]) -> Iterator[str]:
        """Failures of one file. Text i that a reader finds in it has to be that of row i of its provenance. Memory:
        that of its reader, and a batch of provenance."""
        entry = FileEntry(file["path"], file["size"], file["crc32c"], file["sha256"])
        store = open_store(outputs_of(self.corpus.root))
        failures = list(check_file(store, entry))
        yield from failures
        if failures:
            return
        if not rows_params(self._recipe).has_rows:
            yield from _count_rows(store.url(file["path"]), file)
            return
        shard = self._shards.get((file["domain"], file["number"]))
        expected = _ids(self.corpus, shard) if shard is not None else iter(())
        documents = 0
        for found, wanted in zip_longest(texts_of(self._recipe, store.url(file["path"]), file), expected):
            if found is None or wanted is None:
                yield f"{file['path']}: {'fewer' if found is None else 'more'} texts than its provenance has documents"
                return
            if found.id not in wanted:
                place = found.origin.rpartition("@")[2]
                yield f"{file['path']}: the text at {place} is not that of row {documents} of its provenance"
                return
            documents += 1
        if documents != file["documents"]:
            yield f"{file['path']}: {documents} texts found, {file['documents']} expected from {OUTPUTS}"


def _count_rows(path: str, file: Mapping[str, Any]) -> Iterator[str]:
    """Failures of a file of attributes, which has a line for each row. path: where it is."""
    with open_source(path, file["size"]) as source:
        rows = sum(line.endswith(b"\n") for _, line in lines_of(MemberStream(source), PIECE))
    if rows != file["rows"]:
        yield f"{file['path']}: {rows} rows found, {file['rows']} expected from {OUTPUTS}"


def _ids(corpus: Corpus, shard: ShardEntry) -> Iterator[tuple[bytes, ...]]:
    """Of each document the ids that its text may have: its own, or that of its changed text."""
    for batch in corpus.provenance(shard, ["id", "meta"]):
        for id_, meta in zip(batch.column("id").to_pylist(), batch.column("meta").to_pylist(), strict=True):
            changed = orjson.loads(meta).get(TEXT_ID)
            yield (bytes.fromhex(changed),) if changed else (id_,)


def texts_of(recipe: Recipe, path: str, file: Mapping[str, Any]) -> Iterator[Document]:
    """The documents in a file, as the run read its input. path: where it is."""
    facts = recipe.source_facts()
    source = next(source for source in recipe.sources if facts[source.name].domain == file["domain"])
    into = rows_params(recipe).into
    if into:
        source = source.replace(text_field=into, content="text")
    task = whole_file(source, Found(path, file["size"]))
    params = recipe.params_of(EXTRACT) or ExtractParams()
    for one in read_task(task, recipe.limits):
        if isinstance(one, (Skipped, Damaged)):
            continue
        found = extract_document(one, params)
        if isinstance(found, Document):
            yield found
