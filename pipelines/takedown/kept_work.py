"""What the work files of a run still have of duplicates: their texts and signatures, and the documents that they are to
be compared with."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import RUN, unseal
from refinery.loader.format.removals import ID_BYTES, column_ids
from refinery.loader.parquet.batches import stored_batches, stored_table
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store
from refinery.pipelines.export.place import SourceCorpus
from refinery.pipelines.recipe.load_recipe import recorded_recipe
from refinery.pipelines.recipe.recipe import Recipe
from refinery.pipelines.run.differences import differences
from refinery.pipelines.run.fingerprint import phase_fingerprints
from refinery.pipelines.run.phases import Phase, read_phase
from refinery.pipelines.run.prefix import describe_run
from refinery.pipelines.takedown.rows import Key, among, sorted_keys
from refinery.transforms.core.document import Document
from refinery.transforms.dedup.near_duplicates import NearParams, band_hashes
from refinery.transforms.dedup.signatures import fixed_width, signature_values
from refinery.transforms.dedup.verdicts import part_name
from refinery.transforms.records.rank import RANK_BYTES
from refinery.transforms.write.documents import DOCUMENTS_SCHEMA

REMOVED = pa.schema([("removed", pa.bool_())])
IDS = pa.schema([("id", pa.binary(ID_BYTES))])


class NotKept(ValueError):
    """Why nothing can come back. One sentence, without a full stop."""


@dataclass(frozen=True)
class Member:
    """A document that takes part in a comparison. rank: of `rank_key`; kept: it is in the corpus, and stays."""

    id: bytes
    rank: bytes
    source: str
    signature: NDArray[np.uint32]
    kept: bool
    document: Document | None = None

    @property
    def order(self) -> tuple[bool, bytes, bytes]:
        """What is kept first, then by rank; a tie is broken by the id."""
        return not self.kept, self.rank, self.id


@dataclass(frozen=True)
class KeptWork:
    """Phases 1 and 2 of a corpus, as they were left. clean: with `recipe`'s own result, checked by fingerprint.
    digests: of the files that the recipe names, as the run recorded them."""

    recipe: Recipe
    clean: Phase
    dedup: Phase
    digests: Mapping[str, str] = field(default_factory=dict)

    def pairs(self) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any] | None]]:
        """(documents, signatures, verdicts) of each part."""
        signatures = {_name(part): part for part in self.clean.parts("signatures")}
        verdicts = {_name(part): part for part in self.dedup.parts("verdicts")}
        for part in self.clean.parts("documents"):
            yield part, signatures[_name(part)], verdicts.get(_name(part))

    def candidates(self, wanted: Iterable[Key]) -> dict[Key, Member]:
        """The documents of these keys with their texts. Cost: the ids of all documents are read. Memory: the texts, and
        that of `stored_table` for those of a part. Raises FormatError for a part that is not what it has to be."""
        keys = set(wanted)
        ids, found = sorted_keys(key[0] for key in keys), dict[Key, Member]()
        for documents, signatures, _ in self.pairs():
            hits = self._hits(signatures, ids)
            if not len(hits):
                continue
            texts = stored_table(*_place(self.clean, documents), DOCUMENTS_SCHEMA.names, DOCUMENTS_SCHEMA, hits)
            facts = stored_table(*_place(self.clean, signatures), ["rank", "signature"], rows=hits)
            if not len(texts) == len(facts) == len(hits):
                raise FormatError(f"{documents['path']}: its rows are not those of its signatures")
            ranks = fixed_width(facts["rank"], RANK_BYTES)
            values = signature_values(facts["signature"], self.recipe.signature.permutations)
            for row, known in enumerate(texts.to_pylist()):
                key = known["id"], known["source"], known["origin"]
                if key in keys:
                    document = Document(**{**known, "meta": orjson.loads(known["meta"])})
                    rank = ranks[row].tobytes()
                    found[key] = Member(known["id"], rank, known["source"], values[row].copy(), False, document)
        return found

    def neighbours(
        self, members: Sequence[Member], layouts: Iterable[NearParams], gone: set[bytes], back: set[bytes]
    ) -> list[Member]:
        """Documents that deduplication kept, that stay, and that share a band with one of `members`.

        gone: ids that are in the corpus no more; back: ids that came back in an earlier takedown, which count as kept.
        Cost: the signatures of all documents are read.
        """
        permutations = self.recipe.signature.permutations
        shapes = {params.layout(params.compared(permutations)) for params in layouts}
        ours = np.stack([member.signature for member in members])
        bands = {shape: np.sort(_keyed(ours, shape).ravel()) for shape in shapes}
        found: dict[bytes, Member] = {}
        for _, signatures, verdicts in self.pairs():
            removed = None
            if verdicts is not None:
                removed = stored_table(*_place(self.dedup, verdicts), ["removed"], REMOVED)["removed"].to_numpy()
            start = 0
            for table in self._tables(signatures, ["id", "rank", "source", "signature"]):
                values = signature_values(table["signature"], permutations)
                shared = np.zeros(table.num_rows, np.bool_)
                for shape, known in bands.items():
                    keyed = _keyed(values, shape)
                    place = np.minimum(np.searchsorted(known, keyed), len(known) - 1)
                    shared |= (known[place] == keyed).any(axis=1)
                rows = np.flatnonzero(shared)
                facts = table.select(["id", "rank", "source"]).take(pa.array(rows)).to_pylist()
                for row, known_row in zip(rows.tolist(), facts, strict=True):
                    id_ = known_row["id"]
                    kept = (removed is None or not removed[start + row]) or id_ in back
                    if kept and id_ not in gone:
                        found[id_] = Member(id_, known_row["rank"], known_row["source"], values[row].copy(), True)
                start += table.num_rows
            if removed is not None and len(removed) != start:
                raise FormatError(f"{signatures['path']}: its rows are not those of its verdicts")
        return list(found.values())

    def _hits(self, part: Mapping[str, Any], ids: NDArray[np.bytes_]) -> NDArray[np.int64]:
        """Rows of a part with one of these ids."""
        start, hits = 0, [np.empty(0, np.int64)]
        for table in self._tables(part, ["id"]):
            hits.append(start + np.flatnonzero(among(column_ids(table["id"]), ids)))
            start += table.num_rows
        return np.concatenate(hits)

    def _tables(self, part: Mapping[str, Any], columns: list[str]) -> Iterator[pa.Table]:
        """Columns of a part of phase 1, some rows at a time, bounded."""
        for batch in stored_batches(*_place(self.clean, part), columns, IDS):
            yield pa.Table.from_batches([batch])


def _place(phase: Phase, part: Mapping[str, Any]) -> tuple[Store, str]:
    """Where a part of a phase is."""
    return open_store(phase.root_of(part)), str(part["path"])


def _name(part: Mapping[str, Any]) -> str:
    return part_name(str(part["path"]))


def _keyed(signatures: NDArray[np.uint32], shape: tuple[int, int]) -> NDArray[np.uint64]:
    """Hashes of a signature's bands, each mixed with the band's number: [documents, bands]."""
    salt = np.arange(1, shape[0] + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return band_hashes(signatures, *shape) ^ salt


def read_kept_work(corpus: SourceCorpus, work: str, recipe_file: str, use_code: Any) -> KeptWork:
    """The work files that a corpus was made from. use_code: tells the runner of stages of the user's own.

    Raises NotKept where they are not there, or where this code would judge them otherwise.
    """
    run = unseal(corpus.store.read(RUN), corpus.store.url(RUN))
    try:
        recipe = recorded_recipe(corpus.root, run["recipe"], recipe_file)
        fingerprints = phase_fingerprints(recipe, run["inputs"])
    except (ValueError, OSError) as error:
        raise NotKept(f"its recipe cannot be run here ({error})") from None
    use_code(recipe.CODE.folder, tuple(recipe.CODE.files))
    phases = [read_phase(work, name, run["phases"][name]) for name in ("clean", "dedup")]
    if phases[0] is None or phases[1] is None:
        raise NotKept(f"its text is gone: {work} does not hold the parts of the run; --work names where they are")
    if fingerprints["shards"] != corpus.manifest.fingerprint:
        told = differences(run, describe_run(recipe, run["inputs"], fingerprints))
        raise NotKept(f"it would not be judged as the others were: {told}")
    stages = (stage for listed in run["stages"].values() for stage in listed)
    digests = {path: digest for stage in stages for path, digest in stage.get("files", ())}
    return KeptWork(recipe, phases[0], phases[1], digests)
