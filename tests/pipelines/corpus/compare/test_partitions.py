"""The join on disk against sets and counts in memory."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.pipelines.corpus.compare.joining import join as join_module
from refinery.pipelines.corpus.compare.joining import partitions
from refinery.pipelines.corpus.compare.joining.documents import ROW, Shared
from refinery.pipelines.corpus.compare.joining.evidence import DTYPE
from refinery.pipelines.corpus.compare.joining.fates import Fate, Kind
from refinery.pipelines.corpus.compare.joining.join import Join
from refinery.pipelines.corpus.compare.joining.partitions import Partitions, first_of_key, match, without
from tests.sampling import examples

KEYS = st.lists(st.integers(0, 6), max_size=30)


def keys(numbers: list[int]) -> Any:
    """S16: hashes of these numbers, some of which end in zeros."""
    return np.array([((n + 1) * 2654435761 % 2**32).to_bytes(4, "big") + bytes(12) for n in numbers], "S16")


@given(KEYS, KEYS)
def test_match_pairs_equal_keys_as_often_as_both_have_them(a: list[int], b: list[int]) -> None:
    in_a, in_b = match(keys(a), keys(b))
    assert Counter(np.array(a, int)[in_a].tolist()) == Counter(a) & Counter(b)
    assert [a[place] for place in in_a] == [b[place] for place in in_b]
    assert len(set(in_a.tolist())) == len(in_a) and len(set(in_b.tolist())) == len(in_b)
    rest = Counter(np.array(a, int)[without(np.arange(len(a)), in_a)].tolist())
    assert rest == Counter(a) - Counter(b)


@given(KEYS, KEYS)
def test_first_of_key(a: list[int], b: list[int]) -> None:
    there = np.sort(keys(a))
    for key, place in zip(keys(b), first_of_key(there, keys(b)).tolist(), strict=True):
        assert place == (there.tolist().index(key) if key in there.tolist() else -1)


@settings(max_examples=examples(20))
@given(st.lists(KEYS, max_size=4), st.integers(1, 5))
def test_partitions_give_back_every_row_in_order(tmp_path_factory: Any, batches: list[list[int]], count: int) -> None:
    folder = tmp_path_factory.mktemp("rows") / "p"
    dealt = Partitions(folder, ROW, "id", count)
    rows = []
    for batch in batches:
        block = np.zeros(len(batch), ROW)
        block["id"], block["row"] = keys(batch), np.arange(len(batch)) + len(rows)
        rows += block.tolist()
        dealt.add(block)
    ranges = list(dealt)
    assert len(ranges) == count and sorted(row for each in ranges for row in each.tolist()) == sorted(rows)
    for each in ranges:
        assert np.all(np.diff(each["row"].astype(int)) > 0)
    owners = [set(each["id"].tolist()) for each in ranges]
    assert sum(map(len, owners)) == len(set().union(*owners))
    assert not list(folder.iterdir())


# --- the whole join -------------------------------------------------------------------------------------------------

# A document of a corpus: (id, origin); what a run says of a record: (kind, id or None, origin).
DOCUMENTS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12)
SAID = st.lists(
    st.tuples(
        st.sampled_from([Kind.TAKEN_DOWN, Kind.REMOVED, Kind.DROPPED, Kind.DEAD, Kind.PASSED]),
        st.integers(0, 9),
        st.integers(0, 9),
    ),
    max_size=8,
)
NAMED = (Kind.TAKEN_DOWN, Kind.REMOVED, Kind.PASSED)


def side(label: str, documents: int, read: list[int], made: bool) -> Any:
    row = {"created": {"documents": 1, "bytes": 0}} if made else {}
    manifest = SimpleNamespace(totals={"documents": documents}, funnel=[row])
    inputs = {("s", f"file{number}"): (1, "") for number in read}
    return SimpleNamespace(label=label, manifest=manifest, inputs=inputs, knows_inputs=True, phases=("clean", "dedup"))


def path_of(origin: int) -> int:
    return origin % 4


def expected_fate(id_: int, origin: int, other: list[tuple[int, int]], said: list[Any], read: list[int]) -> set[Kind]:
    """What may be said of a document that the other side lacks, and of whose record it has no text."""
    exact = {kind for kind, i, o in said if o == origin and (i == id_ or kind not in NAMED)}
    of_record = {kind for kind, _, o in said if o == origin}
    for kind in (Kind.TAKEN_DOWN, Kind.REMOVED):
        if (kind, id_, origin) in said:
            return {kind}
    if exact & {Kind.DROPPED, Kind.DEAD}:
        return {Kind.DROPPED} if Kind.DROPPED in exact else {Kind.DEAD}
    if exact:
        return {Kind.PASSED}
    if of_record:
        return {min(of_record)}
    if path_of(origin) in read:
        return {Kind.UNLISTED}
    if any(kind is Kind.REMOVED and i == id_ for kind, i, _ in said):
        return {Kind.REMOVED_ELSEWHERE}
    return {Kind.NOT_READ}


@settings(max_examples=examples(150), deadline=None)
@given(DOCUMENTS, DOCUMENTS, SAID, SAID, st.lists(st.integers(0, 3)), st.booleans(), st.integers(1, 3))
def test_every_document_has_one_answer_and_the_right_one(
    tmp_path_factory: Any, a: Any, b: Any, said_a: Any, said_b: Any, read: list[int], made: bool, rows: int
) -> None:
    documents, said = {"A": a, "B": b}, {"A": said_a, "B": said_b}
    sides = {label: side(label, len(documents[label]), read, made) for label in "AB"}
    shared = Shared()
    same: list[tuple[Any, Any]] = []
    changed: list[tuple[Any, Any]] = []
    lost: dict[str, list[tuple[int, int, Kind]]] = {"A": [], "B": []}
    fates: Any = None

    def block(label: str) -> Any:
        found = np.zeros(len(documents[label]), ROW)
        found["id"] = keys([id_ for id_, _ in documents[label]])
        for n, (id_, origin) in enumerate(documents[label]):
            key, path = shared.key(f"file{path_of(origin)}@{origin}", sides[label])
            found[n]["origin"], found[n]["path"] = key, path
            found[n]["text_bytes"], found[n]["tokens"] = id_, origin
        return found

    def evidence(other: Any, _: Any, fates: Any, with_ids: bool = False) -> Any:
        found = np.zeros(len(said[other.label]), DTYPE)
        for n, (kind, id_, origin) in enumerate(said[other.label]):
            found[n]["fate"] = fates.number(Fate(kind, "stage"))
            found[n]["origin"] = shared.key(f"file{path_of(origin)}@{origin}", other)[0]
            if kind in NAMED:
                found[n : n + 1]["id"] = keys([id_])
        yield found[found["id"] != b""] if with_ids else found

    def pairs_of(found: list[tuple[Any, Any]]) -> Any:
        def add(one: Any, other: Any) -> None:
            both = (rows[["text_bytes", "tokens"]].tolist() for rows in (one, other))
            found.extend(zip(*both, strict=True))

        return add

    def add_lost(side: Any, rows: Any, numbers: Any, other: Any) -> None:
        assert len(rows) == len(numbers) == len(other)
        for row, number in zip(rows, numbers.tolist(), strict=True):
            lost[side.label].append((int(row["text_bytes"]), int(row["tokens"]), fates[number].kind))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join_module, "evidence_rows", evidence)
        patch.setattr(partitions, "RANGE_ROWS", rows * 4)
        folder: Path = tmp_path_factory.mktemp("join")
        join = Join(sides["A"], sides["B"], shared, folder, pairs_of(same), pairs_of(changed), add_lost)
        fates = join.fates
        for label in "AB":
            join.add(sides[label], block(label))
        join.run()

    # Each document once, in one place.
    for place, label in enumerate("AB"):
        seen = [pair[place] for pair in (*same, *changed)] + [(id_, origin) for id_, origin, _ in lost[label]]
        assert Counter(seen) == Counter(documents[label])
    # By id as often as both have it, and those of one record first.
    ids = [Counter(id_ for id_, _ in documents[label]) for label in "AB"]
    assert all(one[0] == other[0] for one, other in same)
    assert Counter(one[0] for one, _ in same) == ids[0] & ids[1]
    assert Counter(one for one, other in same if one == other) == Counter(a) & Counter(b)
    # Then by origin, as often as both have it in what is left.
    rest = [Counter(documents[label]) - Counter(pair[n] for pair in same) for n, label in enumerate("AB")]
    origins = [Counter(origin for _, origin in left.elements()) for left in rest]
    assert all(one[1] == other[1] and one[0] != other[0] for one, other in changed)
    assert Counter(one[1] for one, _ in changed) == origins[0] & origins[1]
    # The rest by what is known of it.
    for label, other in (("A", "B"), ("B", "A")):
        in_other = {origin for _, origin in documents[other]}
        pairs = {one for one, other_one in same if one == other_one}
        for id_, origin, kind in lost[label]:
            if kind in (Kind.SAME_TEXT_ELSEWHERE, Kind.SPLIT):
                assert origin in in_other
            elif origin in in_other:  # only a record whose documents are the same, where no stage splits any
                assert not made and all((i, o) in pairs for i, o in documents[other] if o == origin)
            else:
                assert kind in expected_fate(id_, origin, documents[other], said[other], read)
