"""Rows of one document each in batches of similar length: every token once, no row longer than its bucket says, and the
same order over random chains of saving and resuming with other ranks, batch sizes and passed steps.

Token ids are positions in the corpus, so rows are checked against the lengths of documents alone.
"""

from bisect import bisect_left
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from refinery.loader import BatchStage, LengthBuckets, LengthStage, RemoteParams, StateError, TokenStream
from tests.corpus_factory import build_corpus
from tests.loader.numbered import Lengths, build_numbered
from tests.loader.packing.packing_oracle import delivered_rows, documents
from tests.loader.range_server import range_server
from tests.loader.streams import TEXTS
from tests.sampling import examples, scaled

S, WIDTHS = 32, (4, 12, 32)
LAYOUT: Lengths = {"a": [[1 + 7 * i % 41 for i in range(150)], [], [0, 320, 3]], "b": [[45, 3, 50, 20] * 12]}
ALL: dict[str, Any] = {"doc_ids": True, "position_ids": True, "loss_mask": True}
BUCKETS = LengthBuckets((4, 12), group=6)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_numbered(tmp_path_factory.mktemp("buckets"), LAYOUT)


def stream(corpus: Any, **options: Any) -> TokenStream:
    shape: dict[str, Any] = {"sequence_length": S, "batch_size": 3, "epochs": 2, "prefetch": 0, "packing": BUCKETS}
    return TokenStream(corpus, **(shape | ALL | options))


def pieces(layout: Lengths, length: int = S) -> list[Any]:
    """What rows there have to be: documents, and long ones cut into rows from the beginning on."""
    return sorted(
        ((first + start, min(length, size - start), start + length < size),)
        for first, _, size in documents(layout, layout)
        for start in range(0, size, length)
    )


def width(row: Any, widths: Any = WIDTHS) -> int:
    found: int = widths[bisect_left(widths, row[0][1])]
    return found


@settings(max_examples=examples(120), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_every_token_once_in_rows_as_long_as_the_bucket(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Documents of up to ten rows, any lengths of buckets, groups, ranks and sorts."""
    documents_of = st.lists(st.integers(0, 9) | st.integers(0, 160), max_size=12)
    layout = {name: data.draw(st.lists(documents_of, min_size=1, max_size=2)) for name in "ab"}
    if not any(length for shards in layout.values() for shard in shards for length in shard):
        return
    corpus = build_numbered(tmp_path_factory.mktemp("any"), layout)
    length = data.draw(st.integers(2, 16))
    lengths = sorted(data.draw(st.sets(st.integers(1, length), min_size=1, max_size=3)))
    widths = lengths if lengths[-1] == length else [*lengths, length]
    sort, group = data.draw(st.sampled_from(["mixed", "ascending", "descending"])), data.draw(st.integers(1, 9))
    world, batch_size = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4))
    shape: dict[str, Any] = {"sequence_length": length, "batch_size": batch_size, "world_size": world}
    shape |= {"packing": LengthBuckets(lengths, group, sort), "shuffle": data.draw(st.booleans())}
    ranks = [stream(corpus, rank=rank, **shape) for rank in range(world)]
    assert len({rank.steps for rank in ranks}) == 1
    found: list[list[Any]] = [[], []]
    for step in range(ranks[0].steps or 0):
        batches = [next(rank) for rank in ranks]
        its = [row for batch in batches for row in delivered_rows(dict(batch))]
        shapes = {batch["input_ids"].shape for batch in batches}
        assert shapes == {(batch_size, max(width(row, widths) for row in its))}
        found[step * 2 // (ranks[0].steps or 1)] += its
    for epoch in found:
        assert sorted(epoch) == pieces(layout, length)
        if sort != "mixed":
            its = [width(row, widths) for row in epoch]
            assert batch_size * world > 1 or its == sorted(its, reverse=sort == "descending")


def test_steps_that_divide_a_group_are_of_one_bucket(corpus: Path) -> None:
    """But for what is left of each bucket at the epoch's end."""
    with stream(corpus, epochs=1) as batches:
        steps = [delivered_rows(dict(batch)) for batch in batches]
    counts = Counter(width(row) for step in steps for row in step)
    of_groups = sum(count // 6 for count in counts.values()) * 2
    assert all(len({width(row) for row in step}) == 1 for step in steps[:of_groups])
    assert len({width(step[0]) for step in steps[:10]}) > 1  # buckets take turns
    assert len(steps) - of_groups <= len(WIDTHS) * 2


def test_less_padding_than_with_one_length(corpus: Path) -> None:
    shares = []
    for packing in (BUCKETS, LengthBuckets((S,))):
        with stream(corpus, packing=packing, epochs=1) as batches:
            for _ in batches:
                pass
            snapshot = batches.telemetry.snapshot()
            shares.append(snapshot["padding_share"])
            real = sum(row[0][1] for row in pieces(LAYOUT))
            assert snapshot["padding_share"] == pytest.approx(1 - real / snapshot["tokens"])
    assert shares[0] < 0.7 * shares[1]


def test_epochs_have_other_orders_and_the_same_documents(corpus: Path) -> None:
    with stream(corpus, batch_size=1) as batches:
        rows = [delivered_rows(dict(batch))[0] for batch in batches]
    half = len(rows) // 2
    assert rows[:half] != rows[half:] and sorted(rows[:half]) == sorted(rows[half:])


@pytest.mark.parametrize("number", range(scaled(34, 5)))
def test_random_chains_deliver_each_row_once(corpus: Path, number: int) -> None:
    """Each link has other ranks and another batch size, a number or a ramp."""
    random = Random(number)
    with stream(corpus, batch_size=1) as one:
        want = [delivered_rows(dict(batch))[0] for batch in one]
    half, state, at = len(want) // 2, None, 0
    while at < len(want):
        world = random.randint(1, 3)
        size: Any = random.choice([1, 2, 5, [BatchStage(1, tokens=40 * S), BatchStage(4, steps=9), BatchStage(2)]])
        ranks = [stream(corpus, rank=rank, world_size=world, batch_size=size) for rank in range(world)]
        for rank in ranks:
            if state is not None:
                rank.load_state_dict(state)
        for _ in range(random.randint(1, 40)):
            if at == len(want):
                break
            if random.random() < 0.2:
                assert {rank.skip(1) for rank in ranks} == {1}
            else:
                found = [row for rank in ranks for row in delivered_rows(dict(next(rank)))]
                assert sorted(found) == sorted(want[at : at + len(found)])
            now = ranks[0].state_dict()
            at = now["epoch"] * half + now["position"]
        state = now


def test_the_group_of_a_state_is_gone_on_with(corpus: Path) -> None:
    """Left open, it is that of a step when the first stream began."""
    left_open = LengthBuckets((4, 12))
    with stream(corpus, packing=left_open) as one, stream(corpus, packing=left_open, world_size=4) as other:
        assert one.state_dict()["order"] | {"group": 12} == other.state_dict()["order"]
        next(one)
        state = one.state_dict()
        other.load_state_dict(state)
        assert other.state_dict() == state
        with stream(corpus, packing=BUCKETS) as chosen, pytest.raises(StateError, match="'group': 3"):
            chosen.load_state_dict(state)
        with stream(corpus, packing="best_fit") as packed, pytest.raises(StateError, match="'packing': 'buckets'"):
            packed.load_state_dict(state)


def test_a_remote_corpus_is_read_in_the_same_order(corpus: Path, tmp_path: Path) -> None:
    with range_server() as server:
        paths = [path for path in corpus.rglob("*") if path.is_file()]
        server.files = {str(path.relative_to(corpus)): path.read_bytes() for path in paths}
        remote = RemoteParams(cache=tmp_path, stagger=0)
        with stream(server.url, remote=remote, prefetch=1) as far, stream(corpus) as near:
            for one, other in zip(far, near, strict=True):
                assert delivered_rows(dict(one)) == delivered_rows(dict(other))


def test_other_arrays_have_the_length_of_the_batch(corpus: Path) -> None:
    options: dict[str, Any] = {"sample_ids": True, "cu_seqlens": True, "cu_seqlens_size": 9, "labels": "unshifted"}
    with stream(corpus, **options) as batches, stream(corpus) as plain:
        for batch, like in zip(batches, plain, strict=True):
            rows, size = like["input_ids"].shape
            assert batch["cu_seqlens"].tolist()[-1] == rows * size and len(batch["cu_seqlens"]) == 9
            assert batch["labels"].shape == (rows, size) and batch["labels"][:, 0].tolist() == [-100] * rows
    with stream(corpus, cp_rank=1, cp_size=2) as halves:
        assert next(halves)["input_ids"].shape[1] * 2 in WIDTHS


def test_the_document_of_a_row(tmp_path: Path) -> None:
    corpus = build_corpus(tmp_path, TEXTS)
    with stream(corpus, sample_ids=True, epochs=1) as batches:
        for batch in batches:
            for number, ids in zip(batch["sample_ids"].tolist(), batch["doc_ids"], strict=True):
                origins = batches.locate(number) if number >= 0 else []
                assert [origin.stop - origin.start for origin in origins] == [int((ids == 0).sum())] * (number >= 0)


def test_a_subset_has_the_first_rows_of_the_corpus(corpus: Path) -> None:
    with stream(corpus, subset=20, epochs=1) as batches:
        rows = [row for batch in batches for row in delivered_rows(dict(batch))]
    assert sorted(rows) == pieces(LAYOUT)[:20]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": {"a": 1}}, "weights: domains are mixed"),
        ({"packing": LengthBuckets((64,))}, "lengths: 64 given, up to sequence_length, 32, is allowed"),
        ({"sequence_length": [LengthStage(16, 10), LengthStage(32)]}, "packing: LengthBuckets given with lengths"),
        ({"cp_size": 3}, "sequence_length: 32 given with cp_size=3"),
        ({"cp_size": 4, "packing": LengthBuckets((4, 16))}, "sequence_length: 4 given with cp_size=4"),
    ],
)
def test_what_does_not_go_with_buckets(corpus: Path, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        stream(corpus, **options)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"lengths": ()}, r"lengths: \(\) given, a list of numbers"),
        ({"lengths": "12"}, "lengths: '12' given, a list of numbers"),
        ({"lengths": (8, 8)}, "lengths: .* ascending"),
        ({"lengths": (0, 8)}, "lengths: 0 given"),
        ({"lengths": (8,), "group": 0}, "group: 0 given"),
        ({"lengths": (8,), "sort": "random"}, "sort: 'random' given, mixed, ascending, descending is allowed"),
    ],
)
def test_wrong_buckets(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LengthBuckets(**given)


def test_a_stream_of_buckets_cannot_be_continued_by_another(corpus: Path) -> None:
    with stream(corpus) as one, stream(corpus, packing=None) as other:
        for mine, theirs in ((one, other), (other, one)):
            with pytest.raises(ValueError, match="continue_from: a stream of LengthBuckets given"):
                mine.continue_from(theirs)
