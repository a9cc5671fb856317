"""What phase 2 says of families without some of their documents: its own graph, on their parts alone.

A run without these documents decides the same of them, since nothing outside a family is compared with it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import apache_beam as beam
import numpy as np
import orjson
import pyarrow as pa

from refinery.loader.errors import FormatError
from refinery.loader.format.parquet.batches import stored_batches, stored_table
from refinery.loader.format.removals import ID_BYTES
from refinery.loader.storage.store import Store
from refinery.pipelines.corpus.remove.families import (
    IDS,
    Absent,
    Compared,
    Found,
    PartFiles,
    find_families,
    write_families,
)
from refinery.pipelines.corpus.remove.kept_work import NotKept
from refinery.pipelines.corpus.remove.place import Place
from refinery.pipelines.corpus.remove.rows import Key, Row, key_of
from refinery.pipelines.progress.phase_work import dedup_step
from refinery.pipelines.progress.work import Work
from refinery.pipelines.recipe import graphs
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.open_references import load_reference_corpora
from refinery.pipelines.run.refine import DOCUMENTS_PER_PARTITION
from refinery.transforms.core.document import Document
from refinery.transforms.dedup.deduplicate import list_parts
from refinery.transforms.dedup.verdicts import part_name
from refinery.transforms.write.documents import DOCUMENTS_SCHEMA

REPORT = "report.json"
RECORD = ["id", "url", "source", "origin"]
VERDICT = ["removed", "reason", "kept_id", "similarity", "scope", "copies", "sources"]
VERDICT_TYPES = pa.schema([("removed", pa.bool_()), ("kept_id", pa.binary(ID_BYTES))])
FIRST_JOB = 2  # numbers of its jobs begin after this one, that of lookup/


@dataclass(frozen=True)
class Attributed:
    """What is decided of a document. removal: its row of removals/, None where it is kept, and then stands for `copies`
    documents of `sources`, itself included."""

    key: Key
    removal: Row | None
    copies: int
    sources: tuple[str, ...]


@dataclass
class Attribution:
    """Decides families, some of their documents left out, and again with more of them left out.

    place: where its jobs run and leave their parts. salt: of the run's own comparisons. withheld: (url, rows) of the
    signatures of what was dropped with its copies. parts, records: of all
    documents of the families, and where each is. decided: the last decision of each that is not left out.
    """

    recipe: Recipe
    compared: Compared
    place: Place
    salt: str
    withheld: Sequence[tuple[str, int]] = ()
    parts: Sequence[PartFiles] = ()
    records: dict[Key, tuple[int, int]] = field(default_factory=dict)
    decided: dict[Key, Attributed] = field(default_factory=dict)
    rounds: int = 0

    def hold(self, found: Found) -> None:
        """Take these families."""
        self.parts = write_families(found, self.compared, self.place.work_store, "families")
        for number, part in enumerate(self.parts):
            self.records |= {key: (number, row) for row, key in enumerate(read_records(part))}

    def decide(self, left_out: Collection[Key]) -> None:
        """Decide all documents of the families but some."""
        rows: dict[int, list[int]] = {}
        for key, (number, row) in self.records.items():
            if key not in left_out:
                rows.setdefault(number, []).append(row)
        self._decide(Found(self.parts, {number: np.array(many, np.int64) for number, many in rows.items()}))

    def without(self, more: Collection[Key], absent: Absent) -> None:
        """Decide the families of `more` again, which are left out, too. absent: all that is left out by now."""
        for key in more:
            del self.decided[key]
        self._decide(find_families(self.parts, self.compared, more, absent, ()))

    def documents(self, keys: Iterable[Key]) -> Iterator[tuple[Key, Document]]:
        """Documents of the families with their texts. Memory: a batch."""
        by_part: dict[int, list[tuple[int, Key]]] = {}
        for key in keys:
            number, row = self.records[key]
            by_part.setdefault(number, []).append((row, key))
        for number, several in sorted(by_part.items()):
            several.sort()
            part, rows = self.parts[number], np.array([row for row, _ in several], np.int64)
            texts = stored_batches(part.store, part.documents, DOCUMENTS_SCHEMA.names, DOCUMENTS_SCHEMA, rows)
            known = (row for batch in texts for row in batch.to_pylist())
            for (_, key), row in zip(several, known, strict=True):
                yield key, Document(**{**row, "meta": orjson.loads(row["meta"])})

    def _decide(self, found: Found) -> None:
        if not len(found):
            return
        self.rounds += 1
        folder, parts = f"families-{self.rounds}", self.parts
        if len(found) < len(self.records):
            parts = write_families(found, self.compared, self.place.work_store, folder)
        verdicts = self._run(folder, parts)
        for part in parts:
            answers = read_decided(self.place.work_store, part, verdicts[part_name(part.signatures)])
            self.decided |= {each.key: each for each in answers}

    def _run(self, folder: str, parts: Sequence[PartFiles]) -> Mapping[str, str]:
        """Run phase 2 on parts; name -> path of the verdicts of each."""
        store, location = self.place.work_store, f"{self.place.work}/{folder}"
        try:
            corpora = load_reference_corpora(self.recipe)
        except ValueError as error:
            raise NotKept(f"what it would be compared with is gone ({error})") from None
        rows = [(store.url(part.signatures), _count(part)) for part in parts]
        documents = sum(count for _, count in (*rows, *(each for corpus in corpora for each in corpus.parts)))
        partitions = 1 << max(0, (documents // DOCUMENTS_PER_PARTITION).bit_length())
        work = Work("duplicates")

        def build(pipeline: beam.Pipeline) -> None:
            lists = list_parts(location, rows, corpora, self.withheld)
            facts = {"fingerprint": self.place.fingerprint}
            graphs.dedup(pipeline, self.recipe, lists, partitions, location, REPORT, facts, self.salt)
            work.steps.append(dedup_step(pipeline, lists))

        report = self.place.run_job(folder, build, FIRST_JOB + self.rounds, work)
        return {part_name(part["path"]): f"{folder}/{part['path']}" for part in report["parts"]["verdicts"]}


def read_records(part: PartFiles) -> Iterator[Key]:
    """The record of each row of a part."""
    for batch in stored_batches(part.store, part.documents, RECORD, DOCUMENTS_SCHEMA):
        yield from map(key_of, batch.to_pylist())


def read_decided(store: Store, part: PartFiles, verdicts: str) -> Iterator[Attributed]:
    """The decisions on the documents of a part, in its order. Raises FormatError where the two are not aligned."""
    judged = stored_table(store, verdicts, VERDICT, VERDICT_TYPES)
    row = 0
    for batch in stored_batches(part.store, part.documents, RECORD, DOCUMENTS_SCHEMA):
        answers = judged.slice(row, len(batch)).to_pylist()
        for record, verdict in zip(batch.to_pylist(), answers, strict=True):
            removal: Row | None = None
            if verdict["removed"]:
                told = {name: verdict[name] for name in ("kept_id", "similarity", "reason", "scope")}
                removal = {**record, **told, "similarity": float(verdict["similarity"])}
            yield Attributed(key_of(record), removal, verdict["copies"], tuple(sorted(verdict["sources"])))
        row += len(batch)
    if row != judged.num_rows:
        raise FormatError(f"{store.url(verdicts)}: {judged.num_rows} rows found, {row} expected")


def _count(part: PartFiles) -> int:
    """Rows of a part that `write_families` wrote."""
    return sum(len(batch) for batch in stored_batches(part.store, part.signatures, ["bytes"], IDS))
