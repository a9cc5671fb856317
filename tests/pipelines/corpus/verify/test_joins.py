"""Joins against brute force, for any number of partitions, and how many rows are joined at once."""

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.loader.storage.open_store import open_store
from refinery.pipelines.corpus.verify.joins import Found, find_cycles, hexed, join_partitions
from refinery.pipelines.corpus.verify.keyed_rows import PARTITIONS, RunWriter, Tables, partitions_for, table_rows

Ids = list[int]


def key(number: int) -> bytes:
    return number.to_bytes(16, "big")


def found_in(corpus: Ids, removed: list[tuple[int, int]], partitions: int, bound: int) -> Found:
    """Joined from rows of a corpus of one shard, and removals in favour of others."""
    with TemporaryDirectory() as folder:
        place, store = Path(folder), open_store(folder)
        writer = RunWriter(place, "made", partitions)
        ids = np.array([key(each) for each in corpus], "S16")
        writer.add("ids", table_rows("ids", key=ids, row=np.arange(len(ids))))
        one, other = (np.array([key(pair[side]) for pair in removed], "S16") for side in (0, 1))
        order = np.arange(len(removed))
        writer.add("removed", table_rows("removed", key=one, other=other, order=order))
        writer.flush()
        writer.add("kept", table_rows("kept", key=other, other=one, order=order))
        tables = Tables(store, partitions, writer.flush(), bound)
        found, runs = join_partitions(tables, range(partitions), place)
        return found | {"cycles": find_cycles(store, runs, partitions, len(removed), place)}


def lowest(ids: set[int]) -> str | None:
    return hexed(key(min(ids))) if ids else None


def in_cycles(towards: dict[int, int]) -> set[int]:
    found = set()
    for start in towards:
        at = start
        for _ in range(len(towards) + 1):
            at = towards.get(at, -1)
        if at >= 0:
            found.add(start)
    return found


numbers = st.integers(0, 12)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(numbers, max_size=15),
    st.dictionaries(numbers, numbers, max_size=10),
    st.sampled_from([1, 2, 5]),
    st.sampled_from([1, 4, 1000]),
)
def test_joins_are_those_of_brute_force(corpus: Ids, towards: dict[int, int], partitions: int, bound: int) -> None:
    found = found_in(corpus, sorted(towards.items()), partitions, bound)
    again = [(row, corpus.index(id_)) for row, id_ in enumerate(corpus) if corpus.index(id_) != row]
    first = (0, again[0][0], 0, again[0][1], hexed(key(corpus[again[0][0]]))) if again else None
    assert found["ids"] == (len(again), first)
    moved = {one: other for one, other in towards.items() if one != other}
    unknown = set(towards.values()) - set(corpus) - moved.keys()
    assert found["unknown"] == (len(unknown), lowest(unknown))
    both = [id_ for id_ in corpus if id_ in moved]
    assert found["both"] == (len(both), (0, lowest(set(both))) if both else None)
    assert found["twice"] == (0, None)
    cyclic = in_cycles(moved)
    assert found["cycles"] == (len(cyclic), lowest(cyclic))


def test_rows_at_once_are_bounded(tmp_path: Path) -> None:
    """By parts of a partition, which together are its rows; those of one key are in one part."""
    rng = np.random.default_rng(7)
    keys = np.array([rng.bytes(16) for _ in range(3000)] + [key(7)] * 10, "S16")
    writer = RunWriter(tmp_path, "made", 4)
    for part in np.array_split(keys, 9):
        writer.add("ids", table_rows("ids", key=part))
        writer.flush()
    tables = Tables(open_store(tmp_path), 4, writer.runs, bound=100)
    parts = [part["ids"]["key"] for partition in range(4) for part in tables.parts(partition)]
    assert max(map(len, parts)) < 200 and len(parts) > 28
    assert Counter(np.concatenate(parts).tolist()) == Counter(keys.tolist())
    assert sum(key(7).rstrip(b"\0") in part for part in parts) == 1


@pytest.mark.parametrize(("rows", "partitions"), [(0, 1), (1 << 22, 1), (1 << 23, 2), (1 << 62, PARTITIONS)])
def test_partitions_are_bounded(rows: int, partitions: int) -> None:
    """Also for a manifest that claims more documents than there are."""
    assert partitions_for(rows) == partitions


Step = tuple[int, int, int, bool]  # an id, a record, a step that lists them, whether it speaks of the id


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 5), st.booleans()), max_size=12),
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), max_size=10),
    st.integers(1, 4),
)
def test_what_takedowns_list_against_brute_force(
    steps: list[Step], present: list[tuple[int, int]], partitions: int
) -> None:
    """Even steps take out, odd ones bring back; sets of ids and records, step after step."""
    ids, records = set[int](), set[tuple[int, int]]()
    rows = [(id_, record, step, by_id or step % 2 == 1) for id_, record, step, by_id in steps]
    for id_, record, step, by_id in sorted(rows, key=lambda row: row[2]):
        (records.discard if step % 2 else records.add)((id_, record))
        if by_id:
            (ids.discard if step % 2 else ids.add)(id_)
    left = [row for row, (id_, record) in enumerate(present) if id_ in ids or (id_, record) in records]

    with TemporaryDirectory() as folder:
        writer = RunWriter(Path(folder), "made", partitions)
        columns = {name: [row[at] for row in rows] for at, name in enumerate(("key", "record", "step", "flags"))}
        columns["key"] = np.array([key(row[0]) for row in rows], "S16")
        writer.add("gone", table_rows("gone", **columns))
        keys = np.array([key(id_) for id_, _ in present], "S16")
        place = {"record": [record for _, record in present], "row": np.arange(len(present))}
        writer.add("present", table_rows("present", key=keys, **place))
        tables = Tables(open_store(folder), partitions, writer.flush())
        found, _ = join_partitions(tables, range(partitions), Path(folder))
    assert found["left"] == (len(left), (0, left[0]) if left else None)
