"""What a run says of the records that it lost: takedowns, removals, rejects, dead letters, and its work files."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from refinery.loader.errors import FormatError
from refinery.loader.format.parquet.batches import stored_table
from refinery.loader.format.removals import FOLDER, REMOVALS_SCHEMA
from refinery.loader.format.takedown import REMOVED_SCHEMA, STAGE
from refinery.loader.storage.open_store import open_store
from refinery.pipelines.corpus.compare.joining.documents import Shared, ids_of
from refinery.pipelines.corpus.compare.joining.fates import EVIDENCE, Fate, Kind
from refinery.pipelines.corpus.compare.joining.names import Names
from refinery.pipelines.corpus.compare.joining.partitions import Rows
from refinery.pipelines.corpus.compare.joining.side import Side
from refinery.pipelines.corpus.compare.joining.tables import Place, read_groups
from refinery.transforms.core.names import OVER_TARGET, TARGET_STAGE
from refinery.transforms.dedup.verdicts import part_name

DTYPE = np.dtype(EVIDENCE)


def evidence_rows(side: Side, shared: Shared, fates: Names[Fate], with_ids: bool = False) -> Iterator[Rows]:
    """DTYPE [n] of all that the run at `side` says of lost records. with_ids: only that which has an id.

    Cost: one pass over these columns of takedowns' listings, removals, rejects, dead letters and work documents.
    """
    yield from _taken_down(side, shared, fates)
    yield from _removals(side, shared, fates)
    if not with_ids:
        yield from _records(side, shared, fates, "rejects", ("stage", "reason"), Kind.DROPPED)
        yield from _records(side, shared, fates, "dead_letters", ("stage", "error"), Kind.DEAD)
    yield from _passed(side, shared, fates)


def removing_stages(side: Side) -> dict[str, str]:
    """Reason of a removal -> the stage whose count it is in."""
    return {
        reason: row["stage"]
        for row in side.manifest.funnel
        for reason in row["dropped"]
        if row["stage"] in {stage.name for stage in side.manifest.stages if stage.phase == "dedup"}
    }


def _taken_down(side: Side, shared: Shared, fates: Names[Fate]) -> Iterator[Rows]:
    files = [takedown.removed for takedown in side.manifest.takedowns]
    for number, table in read_groups(_places(side, files), ("id", "was", "why", "origin"), REMOVED_SCHEMA):
        rows = _rows(table, shared, side, side.store.url(files[number]))
        rows["id"] = ids_of(table["id"], files[number])
        rows["fate"] = _numbers(table, "why", "was", fates, _taken)
        yield rows


def _taken(why: str, was: str) -> Fate:
    return Fate(Kind.TAKEN_DOWN, STAGE, why)


def _removals(side: Side, shared: Shared, fates: Names[Fate]) -> Iterator[Rows]:
    stages = removing_stages(side)
    files = side.files(FOLDER)
    columns = ("id", "kept_id", "reason", "scope", "origin")
    for number, table in read_groups(_places(side, files), columns, REMOVALS_SCHEMA):
        what = side.store.url(files[number])
        rows = _rows(table, shared, side, what)
        rows["id"], rows["other"] = ids_of(table["id"], what), ids_of(table["kept_id"], what)
        rows["fate"] = _numbers(table, "reason", "scope", fates, partial(_removed, stages))
        yield rows


def _records(
    side: Side, shared: Shared, fates: Names[Fate], folder: str, columns: tuple[str, str], kind: Kind
) -> Iterator[Rows]:
    files = side.files(folder)
    for number, table in read_groups(_places(side, files), (*columns, "origin")):
        rows = _rows(table, shared, side, side.store.url(files[number]))
        rows["fate"] = _numbers(table, *columns, fates, partial(Fate, kind))
        yield rows


def _passed(side: Side, shared: Shared, fates: Names[Fate]) -> Iterator[Rows]:
    """Documents of the work files that deduplication kept: those that are not in the corpus were dropped later."""
    if side.phases is None:
        return
    clean, dedup = side.phases
    verdicts = {part_name(part["path"]): part["path"] for part in dedup.parts("verdicts")}
    parts = clean.parts("documents")
    places = [(open_store(clean.root_of(part)), part["path"]) for part in parts]
    later, beyond = (fates.number(fate) for fate in (Fate(Kind.PASSED), Fate(Kind.DROPPED, TARGET_STAGE, OVER_TARGET)))
    cut = {shared.sources.number(source) for source in side.cut_sources} if side.rate == 1 else set()
    current, seen = -1, 0
    kept: npt.NDArray[np.bool_] | None = None
    for number, table in read_groups(places, ("id", "source", "origin")):
        what = clean.url(parts[number])
        if number != current:
            current, seen = number, 0
            kept = _kept(dedup.root, verdicts.get(part_name(parts[number]["path"]), ""))
        here = slice(seen, seen + table.num_rows)
        seen += table.num_rows
        if kept is not None and len(kept) < seen:
            raise FormatError(f"{what}: more documents than verdicts; run the recipe again, or remove {dedup.root}")
        rows = _rows(table, shared, side, what)
        rows["id"] = ids_of(table["id"], what)
        sources = Shared.numbers(shared.sources, table["source"])
        # Where every dropped document is listed, only the target is left.
        rows["fate"] = np.where(np.isin(sources, list(cut)), beyond, later)
        yield rows if kept is None else rows[kept[here]]


def _kept(root: str, path: str) -> npt.NDArray[np.bool_] | None:
    """Which documents of a part deduplication kept; None: it judged none."""
    if not path:
        return None
    store = open_store(root)
    try:
        table = stored_table(store, path, ["removed"])
    except FormatError as error:
        raise OSError(f"{store.url(path)}: cannot be read ({error}); run the recipe again") from None
    return ~np.asarray(table["removed"].to_numpy(), np.bool_)


def _places(side: Side, files: Sequence[str]) -> list[Place]:
    return [(side.store, path) for path in files]


def _removed(stages: Mapping[str, str], reason: str, scope: str) -> Fate:
    return Fate(Kind.REMOVED, stages.get(reason, ""), reason, scope)


def _numbers(
    table: pa.Table, first: str, second: str, fates: Names[Fate], make: Callable[[str, str], Fate]
) -> npt.NDArray[np.int64]:
    """The number of the fate that each row's two strings make. Shape [n]."""
    words: Names[str] = Names()
    pairs = np.stack([Shared.numbers(words, table[name]) for name in (first, second)], axis=1).astype(np.int64)
    known, codes = np.unique(pairs, axis=0, return_inverse=True)
    numbers = [fates.number(make(words[one], words[other])) for one, other in known.tolist()]
    return np.array(numbers, np.int64)[codes.reshape(-1)]


def _rows(table: pa.Table, shared: Shared, side: Side, what: str) -> Rows:
    if "origin" not in table.column_names:
        raise FormatError(f"{what}: the column origin is missing; see `refinery verify`")
    rows = np.zeros(table.num_rows, DTYPE)
    rows["origin"], _ = shared.keys(table["origin"], side)
    return rows
