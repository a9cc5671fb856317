"""Batch sizes that change: what a step has follows from its place, over random chains of saving and resuming.

The order of rows is taken from a stream of single rows; the size of each step from the definition of stages.
"""

from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any

import pytest

from refinery.loader import BatchStage, MixParams, MixStage, PackedStream, TokenStream
from refinery.loader.order.batch_stages import Steps
from refinery.loader.stream.state import StateError
from tests.corpus_factory import build_corpus
from tests.loader.numbered import build_numbered
from tests.packed_factory import add_packed_rows
from tests.sampling import scaled

S = 8
LENGTHS = {"a": [[5, 9, 40, 80], [33, 0, 0, 1]], "b": [[100, 1, 1, 1]]}  # 271 tokens in 34 rows
STAGES = [BatchStage(1, tokens=5 * S - 1), BatchStage(3, tokens=17 * S), BatchStage(2, tokens=90), BatchStage(4)]
MIXED = MixParams([MixStage({"a": 1, "b": 2}, 60 * S)], on_limit="repeat", block=8)
WAYS: list[dict[str, Any]] = [{"epochs": 3}, {"weights": MIXED}, {"epochs": 3, "packing": "best_fit"}]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_numbered(tmp_path_factory.mktemp("corpus"), LENGTHS)


def stream(corpus: Path, batch_size: Any = STAGES, **options: Any) -> TokenStream:
    return TokenStream(corpus, S, batch_size, **({"prefetch": 0, "doc_ids": True} | options))


def rows(batch: Any) -> list[list[int]]:
    found = [inputs[ids >= 0].tolist() for inputs, ids in zip(batch["input_ids"], batch["doc_ids"], strict=True)]
    return [row for row in found if row]


def singles(corpus: Path, **options: Any) -> list[list[list[int]]]:
    """The rows of each epoch in order."""
    epochs: list[list[list[int]]] = [[]]
    with stream(corpus, 1, **options) as batches:
        for batch in batches:
            epochs[-1] += rows(batch)
            if batches.state_dict()["epoch"] == len(epochs):
                epochs.append([])
    return [epoch for epoch in epochs if epoch]


def size_at(place: int, ranks: int, stages: list[BatchStage] = STAGES) -> int:
    """By the definition: a step belongs to the stage in which it begins."""
    ends = accumulate(-(-stage.tokens // S) for stage in stages if stage.tokens is not None)
    return ranks * stages[sum(end <= place for end in ends)].batch_size


@pytest.mark.parametrize("options", WAYS, ids=["epochs", "mixed", "packed"])
@pytest.mark.parametrize("number", range(scaled(34, 5)))
def test_random_chains_deliver_each_token_once(corpus: Path, options: dict[str, Any], number: int) -> None:
    """Each link has other ranks, and may pass over steps."""
    random, want = Random(number), singles(corpus, **options)
    lengths = [len(epoch) for epoch in want]
    state, epoch, position = None, 0, 0
    while epoch < len(want):
        ranks = [stream(corpus, rank=rank, world_size=world, **options) for world in [random.randint(1, 3)]
                 for rank in range(world)]  # fmt: skip
        for each in ranks:
            if state is not None:
                each.load_state_dict(state)
        for _ in range(random.randint(1, 5)):
            if epoch == len(want):
                break
            stop = min(position + size_at(sum(lengths[:epoch]) + position, len(ranks)), lengths[epoch])
            if random.random() < 0.2:
                assert [each.skip(1) for each in ranks] == [1] * len(ranks)
            else:
                found = [row for each in ranks for row in rows(next(each))]
                assert sorted(found) == sorted(want[epoch][position:stop])
            epoch, position = (epoch + 1, 0) if stop == lengths[epoch] else (epoch, stop)
        states = [each.state_dict() for each in ranks]
        assert states == [states[0]] * len(ranks)
        state = states[0]
    for each in ranks:
        with pytest.raises(StopIteration):
            next(each)


@pytest.mark.parametrize("loop", ["continue", "epoch", "restart"])
@pytest.mark.parametrize("options", WAYS, ids=["epochs", "mixed", "packed"])
def test_steps_are_counted_at_every_place(corpus: Path, options: dict[str, Any], loop: str) -> None:
    if "weights" in options and loop == "epoch":
        return
    with stream(corpus, loop=loop, world_size=2, rank=1, **options) as batches:
        for _ in range(3 if loop == "epoch" else 1):
            steps, left = batches.steps, batches.steps_left
            found = []
            for batch in batches:
                found.append(batches.steps_left)
                assert len(batch["input_ids"]) in {stage.batch_size for stage in STAGES}
            assert steps == left == len(found)
            assert found[:-1] == list(range(len(found) - 1, 0, -1))


def test_stages_in_steps_last_for_these_steps(corpus: Path) -> None:
    """Across the ends of epochs, where a step has fewer rows, and for several epochs at once."""
    sizes = [(5, 12), (1, 3), (16, 7), (2, 1)]
    stages = [BatchStage(size, steps=steps) for size, steps in sizes]
    with stream(corpus, [*stages, BatchStage(3)], epochs=9) as batches:
        found = [len(batch["input_ids"]) for batch in batches]
    expected = [size for size, steps in sizes for _ in range(steps)]
    assert found[: len(expected)] == expected and set(found[len(expected) :]) == {3}


def test_stages_of_many_epochs_end_where_counting_says() -> None:
    for length, size, steps in [(7, 2, 9), (7, 2, 400), (8, 4, 401), (5, 9, 77), (9, 3, 1)]:
        place = 0
        for _ in range(steps):
            place = min(place + size, (place // length + 1) * length)
        stages = [BatchStage(size, steps=steps), BatchStage(1)]
        found = Steps(stages, S, 1, lambda at, n=length: (at // n * n, at // n * n + n))  # type: ignore[misc] # n is bound
        assert found.ramp_ends == place


def test_workers_share_the_steps_of_a_ramp(corpus: Path) -> None:
    with stream(corpus, epochs=2) as one:
        want = [rows(batch) for batch in one]
    each = [[rows(batch) for batch in stream(corpus, epochs=2, worker=k, workers=3)] for k in range(3)]
    assert [each[i % 3][i // 3] for i in range(len(want))] == want


def test_states_go_on_with_any_batch_size(corpus: Path) -> None:
    """A state says nothing of batch sizes, so one of a version that had none goes on, too."""
    with stream(corpus, 5, epochs=1) as plain, stream(corpus, epochs=1) as ramp:
        next(plain)
        ramp.load_state_dict(plain.state_dict())
        assert len(next(ramp)["input_ids"]) == 3  # place 5 is in the second stage
        assert ramp.receipt()["batch_size"][0] == {"batch_size": 1, "tokens": 5 * S - 1, "steps": None}
        with pytest.raises(StateError):
            ramp.load_state_dict({**plain.state_dict(), "position": 10**6})


def test_packed_rows_of_a_corpus(tmp_path: Path) -> None:
    texts = [f"document {i} " * (i % 5) for i in range(40)]
    length, corpus = 32, build_corpus(tmp_path, {("train", "web"): [texts]})
    add_packed_rows(corpus, length)
    ramp = [BatchStage(1, steps=2), BatchStage(2)]
    with PackedStream(corpus, length, ramp, epochs=1) as batches, PackedStream(corpus, length, 1, epochs=1) as each:
        found = [batch["input_ids"].tolist() for batch in batches]
        assert [len(rows) for rows in found] == [1, 1] + [2] * (len(found) - 2)
        want = [batch["input_ids"].tolist()[0] for batch in each]
        assert [row for rows in found for row in rows][: len(want)] == want


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ([], "a number or a list of BatchStage"),
        ([8], "a number or a list of BatchStage"),
        ([BatchStage(8)] * 2, "tokens or steps of every stage but the last"),
        ([BatchStage(8, steps=10)], "tokens or steps of every stage but the last"),
        ("8", "'8' given, a whole number"),
    ],
)
def test_wrong_stages(corpus: Path, stages: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"batch_size: .*{message}"):
        stream(corpus, stages)


@pytest.mark.parametrize("given", [{"batch_size": 0}, {"batch_size": 1, "tokens": 0}, {"batch_size": 1, "steps": 1.5},
                                   {"batch_size": 1, "steps": 1, "tokens": 1}])  # fmt: skip
def test_wrong_stage(given: Any) -> None:
    with pytest.raises(ValueError, match=r"^(batch_size|tokens|steps|tokens, steps): .* given"):
        BatchStage(**given)
