"""What no piece of a corpus can tell alone: ids and addresses that come twice, and where removals lead.

A partition has all rows of its keys, so it is judged alone; the counts add up, and the first of the examples is
reported.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from refinery.loader.format.removals import ID_BYTES
from refinery.loader.storage.store import Store
from refinery.pipelines.corpus.verify.keyed_rows import (
    CAPTURE,
    REFERENCE,
    Rows,
    Run,
    RunWriter,
    Tables,
    halves,
    table_rows,
)

BY_ID, HEAD = 1, 2  # flags of a row of "gone", see takedown_rows.py
Ids = npt.NDArray[np.bytes_]  # "S16": compares like bytes, and loses nothing since all ids have 16 bytes
Found = dict[str, tuple[int, Any]]  # what -> how many, and the first (a tuple or text that compares), if any


def add_found(parts: Iterable[Found]) -> Found:
    """The findings of several partitions as one."""
    total: Found = {}
    for part in parts:
        for what, (count, first) in part.items():
            before, example = total.get(what, (0, None))
            both = [each for each in (example, first) if each is not None]
            total[what] = before + count, min(both, default=None)
    return total


def join_partitions(tables: Tables, partitions: Sequence[int], folder: Path) -> tuple[Found, list[Run]]:
    """Findings of partitions, one after the other, and runs (in `folder`) of the removals whose kept document is
    removed, too.

    Memory: about 100 bytes for each of `tables.bound` rows, or of the rows of one key where these are more.
    """
    writer = RunWriter(folder, f"first-{partitions[0]:05d}", tables.partitions)
    found = add_found(_join(rows, writer) for partition in partitions for rows in tables.parts(partition))
    return found, writer.flush()


def _join(rows: dict[str, Rows], writer: RunWriter) -> Found:
    alone = {"ids": _same_ids(rows["ids"]), "addresses": _same_addresses(rows["addresses"])}
    return {**alone, **_removals(rows, writer), "left": _left(rows["gone"], rows["present"])}


def _same_ids(rows: Rows) -> tuple[int, Any]:
    """Documents with the id of another. The first: its shard and row, those of the other, the id."""
    first = halves(rows["key"])[:, 0]
    ordered = np.sort(first)
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(repeated):
        return 0, None
    rows = rows[np.isin(first, repeated)]
    rows = rows[np.lexsort((rows["row"], rows["shard"], rows["key"]))]
    again = np.concatenate([[False], rows["key"][1:] == rows["key"][:-1]])
    if not again.any():
        return 0, None
    owners = np.maximum.accumulate(np.where(again, 0, np.arange(len(rows))))
    places = np.flatnonzero(again)
    example = places[np.lexsort((rows["row"][places], rows["shard"][places]))[0]]
    here, other = (rows[at] for at in (example, owners[example]))
    return len(places), (*_place(here), *_place(other), hexed(here["key"]))


def _same_addresses(rows: Rows) -> tuple[int, Any]:
    """Documents with the address of another record. The first: the address, shard and row of both."""
    address = halves(rows["key"])
    rows = rows[(address != 0).any(axis=1)]
    address = halves(rows["key"])
    order = np.lexsort((rows["row"], rows["shard"], rows["record"], address[:, 1], address[:, 0]))
    rows, address = rows[order], address[order]
    same = (address[1:] == address[:-1]).all(axis=1) & (rows["record"][1:] != rows["record"][:-1])
    if not same.any():
        return 0, None
    at = int(np.argmax(same))
    return int(same.sum()), (*address[at].tolist(), *_place(rows[at]), *_place(rows[at + 1]))


def _place(row: Any) -> tuple[int, int]:
    return int(row["shard"]), int(row["row"])


def _removals(rows: dict[str, Rows], writer: RunWriter) -> Found:
    """Where removals lead, by ids alone.

    Rows that are removed for their address come before all others, and speak of one document of their id: others of it
    may be kept, or removed in favour of another one. So what is followed are the other rows; of these, only that the
    kept one is somewhere.
    """
    removed, kept, ids = rows["removed"], rows["kept"], rows["ids"]
    gone = unique(removed["key"][_moved(removed) | _is(removed, REFERENCE)])  # no document of these should be left
    followed = np.sort(removed["key"][_followed(removed)])  # removed in favour of another id
    twice = followed[1:][followed[1:] == followed[:-1]]
    wanted = unique(kept["key"][~_is(kept, REFERENCE)])
    taken = unique(rows["gone"]["key"][_is(rows["gone"], HEAD)])
    unknown = wanted[~(among(wanted, gone) | among(wanted, np.sort(ids["key"])))]
    nowhere = unknown[among(unknown, taken)]
    both = ids[among(ids["key"], gone)]
    both = both[np.lexsort((both["key"], both["shard"]))]
    edges = kept[_followed(kept)]
    add_edges(writer, edges[among(edges["key"], followed)])
    return {
        "unknown": (len(unknown), hexed(unknown[0]) if len(unknown) else None),
        "nowhere": (len(nowhere), hexed(nowhere[0]) if len(nowhere) else None),
        "twice": (len(twice), hexed(twice[0]) if len(twice) else None),
        "both": (len(both), (int(both[0]["shard"]), hexed(both[0]["key"])) if len(both) else None),
    }


def _left(gone: Rows, present: Rows) -> tuple[int, Any]:
    """Documents that are there, and that takedowns list as gone: by their record, or by their id where that went from
    the shards. What counts of an id or a record is the last step that lists it. The first: its file and row."""
    present = present[among(present["key"], unique(gone["key"]))]
    if not len(present):
        return 0, None
    by_id = gone[(gone["flags"] & BY_ID) != 0]
    there = among(present["key"], _last_went(by_id["key"], by_id["step"]))
    there |= among(_records(present), _last_went(_records(gone), gone["step"]))
    if not there.any():
        return 0, None
    present = present[there]
    first = present[np.lexsort((present["row"], present["shard"]))[0]]
    return len(present), _place(first)


def _records(rows: Rows) -> npt.NDArray[np.bytes_]:
    """Id and record of rows, as one key."""
    both = np.zeros(len(rows), np.dtype([("key", "S16"), ("record", "<u8")]))
    both["key"], both["record"] = rows["key"], rows["record"]
    keys: npt.NDArray[np.bytes_] = both.view("S24")
    return keys


def _last_went(keys: npt.NDArray[np.bytes_], steps: npt.NDArray[Any]) -> npt.NDArray[np.bytes_]:
    """Keys whose last step is one in which they went, sorted."""
    order = np.lexsort((steps, keys))
    keys = keys[order]
    wanted = np.asarray(steps[order] % 2 == 0)
    wanted[:-1] &= keys[1:] != keys[:-1]
    last: npt.NDArray[np.bytes_] = keys[wanted]
    return last


def _is(rows: Rows, flag: int) -> npt.NDArray[np.bool_]:
    return np.asarray((rows["flags"] & flag) != 0)


def _moved(rows: Rows) -> npt.NDArray[np.bool_]:
    return np.asarray((rows["key"] != rows["other"]) & ~_is(rows, CAPTURE))


def _followed(rows: Rows) -> npt.NDArray[np.bool_]:
    return _moved(rows) & ~_is(rows, REFERENCE)


def add_edges(writer: RunWriter, edges: Rows) -> None:
    """Edges under their `kept_id`, into both tables of removals."""
    writer.add("kept", edges)
    writer.add("removed", table_rows("removed", key=edges["other"], other=edges["key"], order=edges["order"]))


def find_cycles(store: Store, runs: list[Run], partitions: int, rows: int, folder: Path) -> tuple[int, Any]:
    """Removals from which following kept_id leads into a cycle, and the lowest id of these.

    runs: of edges whose kept document is removed, too; rows: of all removals. By pointer doubling every chain leaves
    the removals, after as many rounds as its length has bits. Where an id is removed twice, the first row counts.
    """
    for number in range(rows.bit_length() + 1):
        if not runs:
            return 0, None
        writer = RunWriter(folder, f"round-{number:02d}", partitions)
        tables = Tables(store, partitions, runs)
        for partition in range(partitions):
            for part in tables.parts(partition):
                removed, kept = part["removed"], part["kept"]
                removed = removed[np.lexsort((removed["order"], removed["key"]))]
                kept = kept[among(kept["key"], removed["key"])]
                towards = removed["other"][np.searchsorted(removed["key"], kept["key"])]
                add_edges(writer, table_rows("kept", key=towards, other=kept["other"], order=kept["order"]))
        done, runs = runs, writer.flush()
        for run in done:
            store.delete(run.name)
    tables = Tables(store, partitions, runs)
    left = [part["removed"]["key"] for partition in range(partitions) for part in tables.parts(partition)]
    return sum(map(len, left)), min((hexed(np.sort(keys)[0]) for keys in left if len(keys)), default=None)


def hexed(id_: bytes) -> str:
    return bytes(id_).ljust(ID_BYTES, b"\0").hex()


def unique(ids: Ids) -> Ids:
    """Sorted, each once. (np.unique hashes texts, which takes ten times as long.)"""
    ordered = np.sort(ids)
    first = np.ones(len(ordered), np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]


def among(ids: Ids, known: Ids) -> npt.NDArray[np.bool_]:
    """Which of `ids` are in `known`, which is sorted."""
    if not len(known):
        return np.zeros(len(ids), np.bool_)
    return np.asarray(known[np.minimum(np.searchsorted(known, ids), len(known) - 1)] == ids)
