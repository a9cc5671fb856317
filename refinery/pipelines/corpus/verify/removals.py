"""Checks of removals/: a file's rows, and over all files order, counts against the funnel and where removals lead."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from refinery.loader.format.manifest import FileEntry, Manifest
from refinery.loader.format.parquet.batches import bounded_parquet
from refinery.loader.format.removals import (
    CORPUS,
    FOLDER,
    ID_BYTES,
    REASONS,
    REFERENCE,
    REMOVALS_SCHEMA,
    SOURCE,
    WITHHELD,
    column_ids,
    removals_file,
    removals_name,
)
from refinery.loader.storage.store import Store
from refinery.pipelines.corpus.verify import keyed_rows
from refinery.pipelines.corpus.verify.joins import Found, Ids
from refinery.pipelines.corpus.verify.keyed_rows import RunWriter, table_rows
from refinery.pipelines.corpus.verify.row_check import Present
from refinery.transforms.write.lookup.entries import Hashes, hash_rows

URL_DUP, EXACT, IN_SOURCE, NEAR, DENIED = REASONS
ROUNDING = 1e-6  # similarities are float32, thresholds are not
OUT_OF_ORDER = "rows out of order"

Facts = dict[str, Any]


def check_removals_file(
    store: Store,
    recipe: Mapping[str, Any],
    file: FileEntry,
    place: tuple[int, int],
    facts: Facts,
    writer: RunWriter,
    hashes: list[Hashes] | None = None,
    present: Present | None = None,
) -> Iterator[str]:
    """Failures of the rows of one file, whose checksum is right. place: its number, of how many. facts: gets what
    `check_rows` needs; complete only where "ends" is false. writer: gets (id, kept_id) of every row. hashes: gets those
    of addresses and origins; present: the rows. Memory: a batch.
    """
    rows = Rows(recipe, *place, writer)
    facts["ends"] = True
    with (
        store.open(file.path) as stream,
        bounded_parquet(stream, file.path, exactly=REMOVALS_SCHEMA) as (_, batches),
    ):
        for batch in batches:
            nulls = [name for name in REMOVALS_SCHEMA.names if batch.column(name).null_count]
            if nulls:
                yield f"{file.path}: nulls in {', '.join(nulls)}, none expected"
                return
            if present:
                present(batch, rows.seen)
            rows.watch(batch)
            if hashes is not None:
                hashes.append(hash_rows(batch))
    facts |= rows.facts()
    if rows.seen != file.rows:
        yield f"{file.path}: {rows.seen} rows found, {file.rows} expected from the manifest"


def names_fault(manifest: Manifest) -> str:
    """What is wrong with the set of files, "" if nothing."""
    files = manifest.removals
    names = [file.path for file in files]
    if names == [removals_name(i, len(files)) for i in range(len(files))]:
        return ""
    return f"{FOLDER}/: {names} found, files 0 to {len(files) - 1} of {len(files)} expected"


def check_rows(manifest: Manifest, files: Sequence[tuple[Sequence[str], Facts]]) -> Iterator[str]:
    """Failures of all files' rows, from (failures, facts) of each; stops after a file that could not be read to its
    end, which has a failure.
    """
    offset, faults, counts = 0, dict[str, list[int]](), Counter[tuple[str, str]]()
    last: tuple[Any, ...] | None = None
    for failures, facts in files:
        yield from failures
        if facts["ends"]:
            return
        found = [(kind, count, first + offset) for kind, count, first in facts["faults"]]
        if last is not None and facts["first"] and last > _restored(facts["first"]):
            found.append((OUT_OF_ORDER, 1, offset))
        for kind, count, first in found:
            known = faults.setdefault(kind, [0, first])
            known[:] = [known[0] + count, min(known[1], first)]
        for reason, source, count in facts["counts"]:
            counts[reason, source] += count
        last = _restored(facts["last"]) if facts["last"] else last
        offset += facts["rows"]
    for kind, (count, first) in faults.items():
        yield f"{FOLDER}/: {count} {kind}; the first: row {first} of all"
    yield from check_counts(manifest.funnel, counts)


def check_chains(manifest: Manifest, found: Found, lost: int) -> Iterator[str]:
    """Failures of where removals lead. lost: documents that later stages dropped."""
    unknown, first = found["unknown"]
    if unknown > lost:
        yield (
            f"{FOLDER}/: {unknown} kept documents are neither in the corpus nor removed themselves, but "
            f"later stages dropped {lost} documents; the first: {first}"
        )
    nowhere, first = found["nowhere"]
    if nowhere:
        yield (
            f"{FOLDER}/: {nowhere} kept documents were taken out, so duplicates removed in their favour refer to "
            f"missing documents; the first: {first}"
        )
    if not manifest.recipe.get("exact_dup", True):  # documents of one id may be several
        return
    twice, first = found["twice"]
    if twice:
        yield f"{FOLDER}/: {twice} ids are removed twice in favour of others; the first: {first}"
    both, example = found["both"]
    if both:
        yield f"{FOLDER}/: {both} ids are removed and yet in the corpus; the first: {example[1]}"
    cyclic, first = found["cycles"]
    if cyclic:
        yield f"{FOLDER}/: following kept_id from {cyclic} ids leads into a cycle; the first: {first}"


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
    """Checks every row of file `index` of `count` as batches are streamed, and passes the ids on."""

    def __init__(self, recipe: Mapping[str, Any], index: int, count: int, writer: RunWriter) -> None:
        self.recipe, self.index, self.count, self.writer = recipe, index, count, writer
        self.seen = self.held_back = self.copies = 0  # rows; in favour of a reference corpus; that survivors count
        self.faults: dict[str, list[int]] = {}  # kind -> how many, and the first row
        self.counts: Counter[tuple[str, str]] = Counter()  # (reason, source) -> rows
        self.first: pa.RecordBatch | None = None
        self.last: pa.RecordBatch | None = None  # the row before the batch
        corpora = recipe.get("reference_corpora")
        prefixes = [c.get("prefix") for c in corpora if isinstance(c, dict)] if isinstance(corpora, list) else []
        self.scopes = pa.array(
            [SOURCE, CORPUS, WITHHELD, *(f"{REFERENCE}{prefix}" for prefix in prefixes)], pa.string()
        )

    def watch(self, batch: pa.RecordBatch) -> None:
        """Check the next rows."""
        if not len(batch):
            return
        raw = column_ids(batch.column("id"))
        ids, kept = (_ids(batch.column(name)) for name in ("id", "kept_id"))
        self._add("rows that belong to the id range of another file", removals_file(raw, self.count) != self.index)
        self._order(batch, ids)
        self._values(batch, ids == kept)
        captures = _numpy(pc.equal(batch.column("reason"), URL_DUP))
        reference = _numpy(pc.starts_with(batch.column("scope"), REFERENCE))
        order = (self.index << 40) + self.seen + np.arange(len(batch), dtype=np.uint64)
        rest = {"order": order, "flags": keyed_rows.REFERENCE * reference + keyed_rows.CAPTURE * captures}
        self.writer.add("removed", table_rows("removed", key=ids, other=kept, **rest))
        self.writer.add("kept", table_rows("kept", key=kept, other=ids, **rest))
        self.seen += len(batch)
        self.held_back += int(reference.sum())
        self.copies += int((~reference & ~captures).sum())

    def facts(self) -> Facts:
        """What the checks of all files need, as plain data."""
        first, last = (_plain(row) if row is not None else None for row in (self.first, self.last))
        faults = [[kind, *found] for kind, found in self.faults.items()]
        counts = [[*key, count] for key, count in sorted(self.counts.items())]
        rows = {"rows": self.seen, "held_back": self.held_back, "copies": self.copies}
        return {"ends": False, **rows, "faults": faults, "counts": counts, "first": first, "last": last}

    def _add(self, kind: str, wrong: npt.NDArray[np.bool_]) -> None:
        if wrong.any():
            known = self.faults.setdefault(kind, [0, self.seen + int(np.argmax(wrong))])
            known[0] += int(wrong.sum())

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
        self._add(OUT_OF_ORDER, wrong if self.last is not None else np.concatenate([[False], wrong]))
        self.first = batch.slice(0, 1) if self.first is None else self.first
        self.last = batch.slice(len(batch) - 1)

    def _values(self, batch: pa.RecordBatch, own: npt.NDArray[np.bool_]) -> None:
        similarity = batch.column("similarity").to_numpy()
        known = (similarity >= 0) & (similarity <= 1)  # not so for NaN
        self._add("rows whose similarity is not from 0 to 1", ~known)
        exact, urls, denied = (_numpy(pc.equal(batch.column("reason"), each)) for each in (EXACT, URL_DUP, DENIED))
        self._add("exact copies whose kept_id is another id", exact & ~own)
        if self.recipe.get("exact_dup", True):
            self._add("near duplicates of their own id", ~exact & ~urls & ~denied & own)
        self._add("captures of one address with a similarity, though texts are not compared", urls & (similarity != 0))
        strange = ~_numpy(pc.is_in(batch.column("reason"), value_set=pa.array(REASONS)))
        self._add("rows of an unknown reason", strange)
        withheld = _numpy(pc.equal(batch.column("scope"), WITHHELD))
        self._add("copies of what was dropped whose scope says otherwise", denied != withheld)
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


def _ids(column: pa.Array) -> Ids:
    return column_ids(column).view(f"S{ID_BYTES}").reshape(-1)


def _keys(table: pa.Table | pa.RecordBatch) -> list[tuple[Any, ...]]:
    """Rows as Arrow compares them: texts by their bytes."""
    return [
        tuple(value.encode() if isinstance(value, str) else value for value in row.values())
        for row in table.to_pylist()
    ]


def _numpy(array: Any) -> npt.NDArray[Any]:
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _plain(row: pa.RecordBatch) -> list[str]:
    """A row as JSON can have it: in hexadecimal, bytes of texts and ids, and floats exactly."""
    return [value.hex() for value in _keys(row)[0]]


def _restored(row: Sequence[str]) -> tuple[Any, ...]:
    """The row of `_plain`, as `_keys` has it."""
    floats = [pa.types.is_floating(field.type) for field in REMOVALS_SCHEMA]
    return tuple(
        float.fromhex(value) if is_float else bytes.fromhex(value) for value, is_float in zip(row, floats, strict=True)
    )
