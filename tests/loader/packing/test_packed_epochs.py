"""Streams that pack documents by best fit: rows as the textbook has them, every token once, whatever reads them."""

import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from refinery.loader import (
    BestFitParams,
    FillInMiddleParams,
    OrderParams,
    PackedStream,
    RemoteParams,
    StateError,
    TokenStream,
)
from refinery.loader.storage.open_store import open_store
from tests.loader.numbered import Lengths, build_numbered
from tests.loader.packing.packing_oracle import Row, delivered_rows, documents, expected_rows
from tests.loader.range_server import range_server
from tests.loader.remote_split import FETCH
from tests.sampling import examples, one_commit_in_four

LAYOUT: Lengths = {"a": [[5, 9, 40, 3, 3], [], [33, 0, 0, 1, 17]], "b": [[100, 1, 1, 32, 1], [0]], "c": [[], []]}
ALL: dict[str, Any] = {"doc_ids": True, "position_ids": True, "loss_mask": True}
BLOCK = 50


def stream(corpus: Path | str, **options: Any) -> TokenStream:
    shape: dict[str, Any] = {"sequence_length": 16, "batch_size": 3, "order": OrderParams(2, 4, 2), "prefetch": 0}
    return TokenStream(corpus, **(shape | {"epochs": 1, "packing": BestFitParams(BLOCK)} | ALL | options))


def rows(batches: Any) -> list[Row]:
    return [row for batch in batches for row in delivered_rows(batch)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_numbered(tmp_path_factory.mktemp("corpus"), LAYOUT)


lengths = st.lists(st.lists(st.integers(0, 12) | st.integers(0, 70), max_size=12), min_size=1, max_size=3)


@one_commit_in_four
@settings(max_examples=examples(120), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.fixed_dictionaries({"a": lengths, "b": lengths}), st.integers(2, 40), st.integers(1, 300), st.data())
def test_any_documents(
    tmp_path_factory: pytest.TempPathFactory, layout: Lengths, length: int, block: int, data: st.DataObject
) -> None:
    """Rows are those of the oracle in each epoch, each once; ranks divide them, and a state goes on anywhere."""
    if not any(True for _ in documents(layout, layout)):
        return
    corpus = build_numbered(tmp_path_factory.mktemp("any"), layout)
    repack = data.draw(st.booleans())
    options: dict[str, Any] = {"sequence_length": length, "packing": BestFitParams(block, repack=repack), "epochs": 2}
    first = stream(corpus, **options)
    whole = [delivered_rows(batch) for batch in first]
    assert first.steps == len(whole)
    half = len(whole) // 2
    for number, epoch in enumerate((whole[:half], whole[half:])):
        expected = expected_rows(layout, layout, length, block, number if repack else None)
        assert sorted(row for step in epoch for row in step) == expected
    position = data.draw(st.integers(0, len(whole)))
    first.restart()
    first.skip(position)
    state = json.loads(json.dumps(first.state_dict()))
    assert len(json.dumps(state)) < 1024
    ranks = data.draw(st.integers(1, 4))
    rest: list[Row] = []
    for rank in range(ranks):
        one = stream(corpus, **options, rank=rank, world_size=ranks, batch_size=data.draw(st.integers(1, 1)))
        one.load_state_dict(state)
        rest += rows(one)
    assert sorted(rest) == sorted(row for step in whole[position:] for row in step)


def test_default_block_and_epochs_in_other_orders(corpus: Path) -> None:
    one = stream(corpus, packing="best_fit", epochs=2)
    found = rows(one)
    half = len(found) // 2
    for epoch, its in enumerate((found[:half], found[half:])):
        assert sorted(its) == expected_rows(LAYOUT, LAYOUT, 16, 1 << 20, epoch)
    assert set(found[:half]) != set(found[half:])
    assert found == rows(stream(corpus, packing="best_fit", epochs=2, prefetch=2))


def test_every_epoch_has_the_same_rows_without_repack(corpus: Path) -> None:
    """In another order."""
    one = stream(corpus, packing=BestFitParams(repack=False), epochs=2)
    found = rows(one)
    half = len(found) // 2
    assert sorted(found[:half]) == sorted(found[half:]) == expected_rows(LAYOUT, LAYOUT, 16, 1 << 20)
    assert found[:half] != found[half:]


def test_most_neighbours_are_others_in_each_epoch(tmp_path: Path) -> None:
    """400 rows of documents as they are: few of the pairs that shared a row share one again, and no row more than one
    in 300 is added for it."""
    chance = np.random.default_rng(5)
    layout = {"a": [np.minimum(chance.lognormal(3, 0.8, 2000).astype(np.int64) + 1, 128).tolist()]}
    corpus = build_numbered(tmp_path, layout, vocab_size=1 << 17)
    epochs: list[set[tuple[int, int]]] = []
    for _ in range(3):
        one = stream(corpus, packing="best_fit", sequence_length=128, epochs=3)
        one.skip(len(epochs) * (one.steps_per_epoch or 0))
        some = [next(one) for _ in range(one.steps_per_epoch or 0)]
        epochs.append({pair for row in rows(some) for pair in combinations([first for first, _, _ in row], 2)})
        if len(epochs) == 2:
            assert sorted(rows(some)) == expected_rows(layout, layout, 128, 1 << 20, 1)
    fixed = stream(corpus, packing=BestFitParams(repack=False), sequence_length=128, batch_size=1)
    count = stream(corpus, packing="best_fit", sequence_length=128, batch_size=1).steps_per_epoch
    assert count == (fixed.steps_per_epoch or 0) * 301 // 300 > 300
    for first, second in combinations(epochs, 2):
        assert len(first & second) < 0.1 * len(first)


def test_no_label_inside_a_document_is_lost(corpus: Path) -> None:
    """All but the last token of each document and of its shorter pieces have the next token as label."""
    labels = Counter(int(x) for batch in stream(corpus) for x in batch["labels"][batch["loss_mask"]])
    expected = [first + i for first, _, size in documents(LAYOUT, LAYOUT) for i in range(1, size)]
    assert labels == Counter(expected)


def test_weights(corpus: Path) -> None:
    """Each domain is packed for itself and has epochs of its own; tokens count what is no padding."""
    one = stream(corpus, weights={"a": 1, "b": 1}, epochs=2)
    found = Counter(rows(one))
    for domain, other in (("a", "b"), ("b", "a")):
        mine = [expected_rows(LAYOUT, [domain], 16, BLOCK, epoch) for epoch in range(2)]
        both = Counter(mine[0]) + Counter(mine[1])
        of_domain = Counter({row: n for row, n in found.items() if row in both})
        assert Counter(mine[0]) <= of_domain <= both or of_domain <= Counter(mine[0])
        assert set(both).isdisjoint(expected_rows(LAYOUT, [other], 16, BLOCK, 0))
    assert sum(one.tokens_per_domain.values()) == sum(size * n for row, n in found.items() for _, size, _ in row)


def test_a_domain_without_tokens_comes_first(tmp_path: Path) -> None:
    """Empty rows are counted as rows of it."""
    layout: Lengths = {"none": [[0], []], "a": [[5, 9, 40, 3]]}
    corpus = build_numbered(tmp_path, layout)
    expected = expected_rows(layout, ["a"], 16, BLOCK, 0)
    for weights in (None, {"a": 1}):
        one = stream(corpus, weights=weights, batch_size=4, domain_ids=True, sample_ids=True)
        assert sorted(rows(one)) == expected
    with pytest.raises(ValueError, match="split: one without tokens given"):
        stream(build_numbered(tmp_path / "no", {"none": [[0]]}))


def test_counts_and_padding(corpus: Path) -> None:
    one = stream(corpus, sample_ids=True, domain_ids=True)
    batches = list(one)
    places = sum(batch["input_ids"].size for batch in batches)
    padding = sum(int((batch["doc_ids"] == -1).sum()) for batch in batches)
    assert one.telemetry.snapshot()["padding_share"] == padding / places > 0
    assert f"padding {padding / places:.2%}" in one.telemetry.summary()
    assert one.tokens_per_domain == {"a": 111, "b": 135, "c": 0}
    numbers = sorted(n for batch in batches for n in batch["sample_ids"].tolist() if n >= 0)
    assert numbers == list(range(len(expected_rows(LAYOUT, LAYOUT, 16, BLOCK, 0))))
    for batch in batches:
        firsts = np.where(batch["sample_ids"] < 0, -1, (batch["input_ids"][:, 0] >= 111).astype(int))
        assert batch["domain_ids"].tolist() == firsts.tolist()


@pytest.mark.parametrize("subset", [0.5, 4])
def test_subset(corpus: Path, subset: float) -> None:
    """So many rows of those of the whole, counted exactly, twice the same."""
    whole = expected_rows(LAYOUT, LAYOUT, 16, BLOCK, 0)
    one = stream(corpus, subset=subset, loop="restart", epochs=None)
    found = rows(one)
    again = rows(stream(corpus, subset=subset, epochs=2))
    assert Counter(again) == Counter(found) + Counter(found)  # epochs of a subset have the same rows
    assert len(found) == (4 if subset == 4 else -(-len(whole) // 2)) and Counter(found) <= Counter(whole)
    assert rows(one) == found
    assert sum(one.tokens_per_shard.values()) == sum(size for row in found for _, size, _ in row)


def test_locate(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("refinery.loader.stream.origins.provenance", lambda store, entry, some: [{} for _ in some])
    one = stream(corpus, sample_ids=True, domain_ids=True, epochs=2)
    numbers = [number for batch in one for number in batch["sample_ids"].tolist() if number >= 0]
    assert sorted(numbers) == list(range(2 * len(expected_rows(LAYOUT, LAYOUT, 16, BLOCK, 0))))
    one.restart()
    for batch in one:
        for i, number in enumerate(batch["sample_ids"].tolist()):
            found = [] if number < 0 else one.locate(number)
            ids = batch["doc_ids"][i]
            assert [(part.start, part.stop) for part in found] == [
                (int(np.flatnonzero(ids == k)[0]), int(np.flatnonzero(ids == k)[-1]) + 1) for k in range(ids.max() + 1)
            ]


def test_locate_where_only_some_domains_have_other_rows_in_each_epoch(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A subset that has all rows of one domain, and some of another."""
    monkeypatch.setattr("refinery.loader.stream.origins.provenance", lambda store, entry, some: [{} for _ in some])
    small = build_numbered(corpus / "small", {"a": [[500]], "b": [[2]]})
    one = stream(small, subset=0.9, weights={"a": 1, "b": 1}, sample_ids=True, epochs=3)
    numbers = {number for batch in one for number in batch["sample_ids"].tolist() if number >= 0}
    assert max(numbers) > len(numbers)  # rows of another epoch
    assert all(one.locate(number) for number in numbers)
    with pytest.raises(ValueError, match="given, 0 to"):
        one.locate(max(numbers) - 1)


def test_remote_as_local(corpus: Path, tmp_path: Path) -> None:
    store = open_store(corpus)
    with range_server() as server:
        server.files = {name: store.read(name) for name in store.list()}
        remote = RemoteParams(cache=tmp_path, threads=2, stagger=0, fetch=FETCH)
        with stream(server.url, remote=remote, epochs=2) as one:
            found = rows(one)
            state = one.state_dict()
    assert found == rows(stream(corpus, epochs=2))
    other = stream(corpus, epochs=3)
    other.load_state_dict(state)
    assert sorted(rows(other)) == expected_rows(LAYOUT, LAYOUT, 16, BLOCK, 2)


def test_fill_in_middle_keeps_documents_in_their_places(corpus: Path) -> None:
    infill = FillInMiddleParams(prefix_id=60_000, suffix_id=60_001, middle_id=60_002, vocab_size=60_003, rate=1.0)
    plain, changed = list(stream(corpus)), list(stream(corpus, fill_in_middle=infill))
    assert any((batch["input_ids"] == 60_000).any() for batch in changed)
    for one, other in zip(plain, changed, strict=True):
        assert (one["doc_ids"] == other["doc_ids"]).all() and (one["loss_mask"] == other["loss_mask"]).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"packing": "first_fit"}, "packing: 'first_fit' given, 'best_fit', BestFitParams, LengthBuckets or None"),
        ({"packing": True}, "packing: True given"),
        ({"sequence_length": 1}, "sequence_length: 1 given with packing, 2 or more"),
        ({"sequence_length": 1 << 24}, "given with packing, less than 2"),
    ],
)
def test_refused(corpus: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        stream(corpus, **options)
    with pytest.raises(ValueError, match="packing: given, rows are packed already"):
        PackedStream(corpus, 16, packing="best_fit")
    with pytest.raises(ValueError, match="block: 0 given, 1 to"):
        BestFitParams(0)


def test_states_of_other_rows_are_refused(corpus: Path) -> None:
    state, plain = stream(corpus).state_dict(), stream(corpus, packing=None).state_dict()
    for options, saved in (
        ({"packing": None}, state),
        ({}, plain),
        ({"packing": BestFitParams(60)}, state),
        ({"packing": BestFitParams(BLOCK, repack=False)}, state),
    ):
        with pytest.raises(StateError, match="state: order"):
            stream(corpus, **options).load_state_dict(saved)


def test_states_of_earlier_versions_are_refused(corpus: Path) -> None:
    """Without the documents that were taken out, the others are in other rows."""
    one = stream(corpus)
    with pytest.raises(StateError, match="state: of an earlier version of this corpus"):
        one._turn_to("0" * 64)
    assert sorted(rows(one)) == expected_rows(LAYOUT, LAYOUT, 16, BLOCK, 0)
