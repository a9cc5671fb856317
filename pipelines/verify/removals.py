"""Checks of removals/: order, values, counts against the funnel, and that every chain of kept_id ends."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from refinery.loader.format.manifest import Manifest
from refinery.loader.format.removals import (
    CORPUS,
    FOLDER,
    ID_BYTES,
    REASONS,
    REFERENCE,
    REMOVALS_SCHEMA,
    SOURCE,
    column_ids,
    removals_file,
    removals_name,
)
from refinery.loader.storage.store import Store
from refinery.pipelines.checks.parquet_batches import bounded_parquet
from refinery.pipelines.verify.shard import Faults, ShardFacts

URL_DUP, EXACT, IN_SOURCE, NEAR = REASONS
ROUNDING = 1e-6  # similarities are float32, thresholds are not

Ids = npt.NDArray[np.bytes_]  # "S16": compares like bytes, and loses nothing since all ids have 16 bytes


@dataclass
class RemovalFacts:
    """Results. unknown: values of kept_id found nowhere in the published files: a later stage dropped them."""

    rows: int = 0
    unknown: int = 0


def check_removals(
    store: Store,
    manifest: Manifest,
    damaged: set[str],
    shards: Sequence[ShardFacts],
    later: Sequence[str],
    facts: RemovalFacts,
) -> Iterator[str]:
    """Failures of all removals files; fills `facts`. later: the stages that come after deduplication.

    Memory: about 120 bytes per removal. Files with wrong checksums, which are reported already, end the check.
    """
    files = manifest.removals
    names = [file.path for file in files]
    if names != [removals_name(i, len(files)) for i in range(len(files))]:
        yield f"{FOLDER}/: {names} found, files 0 to {len(files) - 1} of {len(files)} expected"
        return
    if damaged.intersection(names):
        return
    rows = Rows(manifest.recipe)
    for index, file in enumerate(files):
        before = rows.seen
        with store.open(file.path) as stream, bounded_parquet(stream, file.path) as (schema, batches):
            if not schema.equals(REMOVALS_SCHEMA):
                yield f"{file.path}: columns {schema.names} found, {REMOVALS_SCHEMA.names} expected"
                return
            for batch in batches:
                nulls = [name for name in REMOVALS_SCHEMA.names if batch.column(name).null_count]
                if nulls:
                    yield f"{file.path}: nulls in {', '.join(nulls)}, none expected"
                    return
                rows.watch(batch, index, len(files))
        if rows.seen - before != file.rows:
            yield f"{file.path}: {rows.seen - before} rows found, {file.rows} expected from the manifest"
    facts.rows = rows.seen
    yield from (f"{FOLDER}/: {failure}" for failure in rows.faults.sentences())
    yield from check_counts(manifest.funnel, rows.counts)
    if all(shard.ids is not None for shard in shards):  # otherwise reported already
        corpus = [shard.ids.view(f"S{ID_BYTES}").reshape(-1) for shard in shards if shard.ids is not None]
        exact = bool(manifest.recipe.get("exact_dup", True))
        lost = sum(
            count["documents"]
            for row in manifest.funnel
            if row["stage"] in later
            for count in (*row["dropped"].values(), *row["dead"].values())
        )
        yield from Chains(*rows.edges(), corpus).check(exact, lost, facts)


def check_counts(funnel: Sequence[Mapping[str, Any]], found: Mapping[tuple[str, str], int]) -> Iterator[str]:
    """A row for every document that deduplication dropped, per reason and source."""
    dropped: Counter[tuple[str, str]] = Counter()
    for row in funnel:
        for reason, count in row["dropped"].items():
            if reason in REASONS:
                dropped[reason, row["source"]] += count["documents"]
    for reason, source in sorted(found.keys() | dropped.keys()):
        rows, documents = found.get((reason, source), 0), dropped[reason, source]
        if rows != documents:
            yield (
                f"{FOLDER}/: {rows} rows of reason {reason!r}, source {source!r} found, "
                f"the funnel has {documents} dropped"
            )


def thresholds(recipe: Mapping[str, Any], reason: str, source: str) -> float:
    """The least similarity that a removal of this reason may have, from a recipe as plain data; 0 where it has none."""
    if reason in (URL_DUP, EXACT):
        return float(reason == EXACT)
    section = recipe.get("near_dup")
    if reason == IN_SOURCE:
        own = recipe.get("near_dup_in_source")
        section = own.get(source, own.get("*")) if isinstance(own, dict) else None
    value = section.get("threshold") if isinstance(section, dict) else None
    return float(value) if isinstance(value, (int, float)) else 0.0


class Rows:
    """Checks every row as batches are streamed, and keeps the ids: 34 bytes per row."""

    def __init__(self, recipe: Mapping[str, Any]) -> None:
        self.recipe = recipe
        self.seen = 0
        self.faults = Faults()
        self.counts: Counter[tuple[str, str]] = Counter()  # (reason, source) -> rows
        self.last: pa.RecordBatch | None = None  # the row before the batch
        self.ids: list[Ids] = []
        self.kept: list[Ids] = []
        self.reference: list[npt.NDArray[np.bool_]] = []
        self.captures: list[npt.NDArray[np.bool_]] = []
        corpora = recipe.get("reference_corpora")
        prefixes = [c.get("prefix") for c in corpora if isinstance(c, dict)] if isinstance(corpora, list) else []
        self.scopes = pa.array([SOURCE, CORPUS, *(f"{REFERENCE}{prefix}" for prefix in prefixes)], pa.string())

    def watch(self, batch: pa.RecordBatch, index: int, count: int) -> None:
        """Check the rows of file `index` of `count`."""
        if not len(batch):
            return
        raw = column_ids(batch.column("id"))
        ids, kept = (_ids(batch.column(name)) for name in ("id", "kept_id"))
        self._add("rows of another file's range of ids", removals_file(raw, count) != index)
        self._order(batch, ids)
        self._values(batch, ids == kept)
        self.ids.append(ids)
        self.kept.append(kept)
        self.captures.append(_numpy(pc.equal(batch.column("reason"), URL_DUP)))
        self.reference.append(_numpy(pc.starts_with(batch.column("scope"), REFERENCE)))
        self.seen += len(batch)

    def _add(self, kind: str, wrong: npt.NDArray[np.bool_]) -> None:
        if wrong.any():
            self.faults.add(kind, int(wrong.sum()), f"row {self.seen + int(np.argmax(wrong))} of all")

    def _order(self, batch: pa.RecordBatch, ids: Ids) -> None:
        """Rows ascend by all columns; only rows of equal ids, which are few, need comparing by the others."""
        both = [self.last, batch] if self.last is not None else [batch]
        table = pa.Table.from_batches(both)
        previous = ids[:-1] if self.last is None else np.concatenate([_ids(self.last.column("id")), ids[:-1]])
        here = ids if self.last is not None else ids[1:]
        wrong = previous > here
        same = np.flatnonzero(previous == here)
        if len(same):
            before, after = (_keys(table.take(same + step)) for step in (0, 1))
            wrong[same] = [b > a for b, a in zip(before, after, strict=True)]
        self._add("rows out of order", wrong if self.last is not None else np.concatenate([[False], wrong]))
        self.last = batch.slice(len(batch) - 1)

    def _values(self, batch: pa.RecordBatch, own: npt.NDArray[np.bool_]) -> None:
        similarity = batch.column("similarity").to_numpy()
        known = (similarity >= 0) & (similarity <= 1)  # not so for NaN
        self._add("rows whose similarity is not from 0 to 1", ~known)
        exact, urls = (_numpy(pc.equal(batch.column("reason"), reason)) for reason in (EXACT, URL_DUP))
        self._add("exact copies whose kept_id is another id", exact & ~own)
        if self.recipe.get("exact_dup", True):
            self._add("near duplicates of their own id", ~exact & ~urls & own)
        self._add("captures of one address with a similarity, though texts are not compared", urls & (similarity != 0))
        strange = ~_numpy(pc.is_in(batch.column("reason"), value_set=pa.array(REASONS)))
        self._add("rows of an unknown reason", strange)
        self._add("rows of an unknown scope", ~_numpy(pc.is_in(batch.column("scope"), value_set=self.scopes)))
        groups = pa.Table.from_batches([batch.select(["reason", "source"])]).group_by(["reason", "source"])
        for group in groups.aggregate([([], "count_all")]).to_pylist():
            self.counts[group["reason"], group["source"]] += group["count_all"]
        sources = batch.column("source").dictionary_encode()
        for reason in REASONS:  # a corrupt file may have as many sources as rows: no loop over sources scans all rows
            least = np.array([thresholds(self.recipe, reason, name) for name in sources.dictionary.to_pylist()])
            low = similarity < least[_numpy(sources.indices)] - ROUNDING
            here = _numpy(pc.equal(batch.column("reason"), reason))
            self._add(f"rows of {reason!r} less similar than the recipe asks", here & known & low)

    def edges(self) -> tuple[Ids, Ids, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """id, kept_id, whether kept_id is in a reference corpus, and whether they are captures of one address, of all
        rows, sorted by id. Empties this object.
        """
        empty = np.empty(0, f"S{ID_BYTES}")
        ids, kept = np.concatenate([empty, *self.ids]), np.concatenate([empty, *self.kept])
        reference, captures = (np.concatenate([np.empty(0, np.bool_), *own]) for own in (self.reference, self.captures))
        self.ids, self.kept, self.reference, self.captures = [], [], [], []
        if (ids[1:] < ids[:-1]).any():  # reported already
            order = np.argsort(ids, kind="stable")
            ids, kept, reference, captures = ids[order], kept[order], reference[order], captures[order]
        return ids, kept, reference, captures


class Chains:
    """Where removals lead, by ids alone. ids is sorted; corpus: the ids of each shard.

    captures: rows that are removed for their address. They come before all others, and speak of one document of their
    id: others of it may be kept, or removed in favour of another one. So what is followed are the other rows; of these,
    only that the kept one is somewhere.
    """

    def __init__(
        self,
        ids: Ids,
        kept: Ids,
        reference: npt.NDArray[np.bool_],
        captures: npt.NDArray[np.bool_],
        corpus: Sequence[Ids],
    ) -> None:
        moved = (ids != kept) & ~captures
        self.moved = ids[moved & ~reference]  # removed in favour of another id
        self.towards = kept[moved & ~reference]
        self.gone = _unique(ids[moved | reference])  # no document of these ids should be left
        self.wanted = _unique(kept[~reference])
        self.corpus = corpus

    def check(self, exact: bool, lost: int, facts: RemovalFacts) -> Iterator[str]:
        """exact: whether documents of one id are one. lost: documents that later stages dropped."""
        found = _among(self.wanted, self.gone)
        both, example = 0, b""
        for unsorted in self.corpus:
            ids = np.sort(unsorted)  # a search for sorted ids is ten times as fast
            found[np.searchsorted(self.wanted, ids[_among(ids, self.wanted)])] = True
            here = ids[_among(ids, self.gone)]
            both += len(here)
            example = example or (here[0] if len(here) else b"")
        facts.unknown = int(np.count_nonzero(~found))
        if facts.unknown > lost:
            yield (
                f"{FOLDER}/: {facts.unknown} kept documents are neither in the corpus nor removed themselves, but "
                f"later stages dropped {lost} documents; the first: {_hex(self.wanted[np.argmin(found)])}"
            )
        if not exact:
            return
        twice = self.moved[1:][self.moved[1:] == self.moved[:-1]]
        if len(twice):
            yield f"{FOLDER}/: {len(twice)} ids are removed twice in favour of others; the first: {_hex(twice[0])}"
        if both:
            yield f"{FOLDER}/: {both} ids are removed and yet in the corpus; the first: {_hex(example)}"
        yield from self._check_ends()

    def _check_ends(self) -> Iterator[str]:
        """No chain of kept_id is a cycle: by pointer doubling every one leaves the removals."""
        if not len(self.moved):
            return
        order = np.argsort(self.towards)
        towards = self.towards[order]
        place = np.minimum(np.searchsorted(self.moved, towards), len(self.moved) - 1)
        step = np.empty(len(order), np.int64)
        step[order] = np.where(self.moved[place] == towards, place, -1)
        for _ in range(len(self.moved).bit_length() + 1):
            if not (step >= 0).any():
                return
            step = np.where(step >= 0, step[step], -1)
        cyclic = np.flatnonzero(step >= 0)
        first = _hex(self.moved[cyclic[0]])
        yield f"{FOLDER}/: following kept_id from {len(cyclic)} ids leads into a cycle; the first: {first}"


def _ids(column: pa.Array) -> Ids:
    return column_ids(column).view(f"S{ID_BYTES}").reshape(-1)


def _hex(id_: bytes) -> str:
    return bytes(id_).ljust(ID_BYTES, b"\0").hex()


def _unique(ids: Ids) -> Ids:
    """Sorted, each once. (np.unique hashes texts, which takes ten times as long.)"""
    ordered = np.sort(ids)
    first = np.ones(len(ordered), np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]


def _among(ids: Ids, known: Ids) -> npt.NDArray[np.bool_]:
    """Which of `ids` are in `known`, which is sorted."""
    if not len(known):
        return np.zeros(len(ids), np.bool_)
    return np.asarray(known[np.minimum(np.searchsorted(known, ids), len(known) - 1)] == ids)


def _keys(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows as Arrow compares them: texts by their bytes."""
    return [
        tuple(value.encode() if isinstance(value, str) else value for value in row.values())
        for row in table.to_pylist()
    ]


def _numpy(array: Any) -> npt.NDArray[Any]:
    return np.asarray(array.to_numpy(zero_copy_only=False))
