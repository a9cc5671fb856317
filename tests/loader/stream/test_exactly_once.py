"""Every token is an input once per epoch, for any number of ranks and workers, with errors, interrupts and forks.

Checked by the tokens themselves (tests.loader.numbered), not by the loader's arithmetic.
"""

import json
import multiprocessing
import pickle
from collections.abc import Sequence
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refinery.loader import TokenStream
from refinery.loader.order.mix_params import MixParams, MixStage
from refinery.loader.order.order import Order, OrderParams
from refinery.loader.read.local.local_source import LocalSource
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store
from refinery.loader.stream.state import StateError
from refinery.loader.stream.usage import UsageError
from tests.loader.numbered import Lengths, build_numbered
from tests.sampling import sampled, spread

IGNORE, PADDING = -100, -1
LAYOUTS: dict[str, Lengths] = {
    "shards": {"a": [[5, 9, 40], [], [33, 0, 0, 1]], "b": [[100, 1, 1, 1]], "c": [[], []]},
    "one token": {"a": [[1]]},
    "whole samples": {"a": [[7] * 12], "b": [[84]]},
    "long documents": {"a": [[0, 300], [1], [500]]},
}
Row = tuple[int, tuple[int, ...], tuple[int, ...]]  # first token, inputs, labels


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: build_numbered(tmp_path_factory.mktemp("corpus"), layout) for name, layout in LAYOUTS.items()}


def stream(corpus: Path, **options: Any) -> TokenStream:
    shape: dict[str, Any] = {"sequence_length": 7, "batch_size": 3, "order": OrderParams(2, 4, 2)}
    return TokenStream(corpus, **(shape | {"prefetch": 0, "doc_ids": True} | options))


def rows(batch: dict[str, Any]) -> list[Row]:
    """The rows that are not empty, each checked: its tokens are consecutive, its labels are the next tokens."""
    found = []
    for inputs, labels, ids in zip(batch["input_ids"], batch["labels"], batch["doc_ids"], strict=True):
        real = int((ids != PADDING).sum())
        assert (ids[real:] == PADDING).all()
        if not real:
            assert (labels == IGNORE).all()
            continue
        first = int(inputs[0])
        assert inputs[:real].tolist() == list(range(first, first + real))
        last = real if labels[real - 1] != IGNORE else real - 1
        assert labels.tolist() == list(range(first + 1, first + 1 + last)) + [IGNORE] * (len(labels) - last)
        found.append((first, tuple(inputs[:real].tolist()), tuple(labels[:real].tolist())))
    return found


def check_epoch(found: Sequence[Row], corpus: Path, length: int) -> None:
    """Every token once, in samples that start at multiples of the length; only the last token has no label."""
    total = sum(entry.tokens for entry in stream(corpus).manifest.shards)
    assert sorted(token for _, inputs, _ in found for token in inputs) == list(range(total))
    assert all(first % length == 0 for first, _, _ in found)
    assert [inputs[-1] for _, inputs, labels in found if IGNORE in labels] == [total - 1]


def world(
    corpus: Path, ranks: int, workers: int, steps: int | None = None, state: Any = None, **options: Any
) -> tuple[list[list[Row]], Any]:
    """The sorted rows of each step of all ranks together, and the state after the last of them, which all ranks share.

    workers: processes that share a rank; 0 for none. steps: where to stop. state: where to start.
    """
    turns = max(workers, 1)
    streams = [
        [stream(corpus, rank=r, world_size=ranks, worker=w, workers=turns, **options) for w in range(turns)]
        for r in range(ranks)
    ]
    for each in streams:
        for one in each:
            if state is not None:
                one.load_state_dict(state)
    found: list[list[Row]] = []
    while len(found) != steps:
        turn = [each[len(found) % turns] for each in streams]
        batches = [next(one, None) for one in turn]
        if None in batches:
            assert batches == [None] * ranks  # all ranks make the same number of steps
            break
        found.append(sorted(row for batch in batches if batch is not None for row in rows(batch)))
        state = json.loads(json.dumps(turn[0].state_dict()))
        assert len(json.dumps(state)) <= 1024
        assert all(one.state_dict() == state for one in turn)
    return found, state


LENGTHS = (1, 7, 2000)
SHAPES = ((1, 4, 3), (2, 0, 5), (3, 1, 1), (3, 2, 2), (8, 3, 2), (64, 0, 1))  # world size, workers, batch size
JOBS = sampled("shapes of jobs", product(LAYOUTS, LENGTHS, SHAPES), 14, axes=lambda cell: (cell[:2], cell[2]))


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_epoch_for_any_number_of_ranks_and_workers(corpora: dict[str, Path], layout: str, length: int) -> None:
    corpus = corpora[layout]
    whole = [row for batch in stream(corpus, sequence_length=length, batch_size=1, epochs=2) for row in rows(batch)]
    half = len(whole) // 2
    check_epoch(whole[:half], corpus, length)
    check_epoch(whole[half:], corpus, length)
    for world_size, workers, batch_size in (shape for *cell, shape in JOBS if cell == [layout, length]):
        found, _ = world(corpus, world_size, workers, sequence_length=length, batch_size=batch_size, epochs=2)
        step = world_size * batch_size
        expected = [epoch[i : i + step] for epoch in (whole[:half], whole[half:]) for i in range(0, half, step)]
        assert found == [sorted(part) for part in expected]


STAGES = MixParams([MixStage({"a": 2, "b": 1}, 70), MixStage({"b": 1, "a": 1}, 63), MixStage({"b": 1})], 2, block=8)


@pytest.mark.parametrize("options", [{"epochs": 2}, {"weights": STAGES}], ids=["epochs", "stages"])
def test_resuming_anywhere_under_any_shape(corpora: dict[str, Path], options: dict[str, Any]) -> None:
    """To a position, then some steps under a second shape, the rest under a third. test-all: to every position."""
    corpus = corpora["shards"]
    whole = [row for batch in stream(corpus, batch_size=1, **options) for row in rows(batch)]
    shapes = [(1, 0, 2), (2, 2, 1), (1, 3, 1), (3, 0, 1), (2, 0, 3), (8, 0, 1), (1, 4, 4)]
    first = stream(corpus, batch_size=1, **options)
    positions = {10, *spread(f"positions of {next(iter(options))}", range(1, len(whole) + 1), 8)}
    for position in range(1, len(whole) + 1):
        next(first)
        if position not in positions:
            continue
        state = json.loads(json.dumps(first.state_dict()))
        ranks, workers, batch_size = shapes[position % 5]
        second, state = world(corpus, ranks, workers, position % 4, state, batch_size=batch_size, **options)
        ranks, workers, batch_size = (64, 0, 1) if position == 10 else shapes[-1 - position % 6]
        third, _ = world(corpus, ranks, workers, None, state, batch_size=batch_size, **options)
        delivered = whole[:position] + list(chain.from_iterable(second))
        assert sorted(delivered) == sorted(whole[: len(delivered)])
        assert sorted([*delivered, *chain.from_iterable(third)]) == sorted(whole)


class Flaky:
    """The read number `left` raises `error`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left, self.error = 0, BaseException()
        right = LocalSource.opened

        def opened(source: LocalSource, *arguments: Any) -> Any:
            self.left -= 1
            if self.left == 0:
                raise self.error
            return right(source, *arguments)

        monkeypatch.setattr(LocalSource, "opened", opened)


@pytest.mark.parametrize("error", [OSError("disk"), KeyboardInterrupt()])
@pytest.mark.parametrize("workers, prefetch", [(1, 0), (1, 1), (2, 0), (3, 1), (3, 4)])
def test_errors_and_interrupts_lose_nothing_and_repeat_nothing(
    corpora: dict[str, Path], monkeypatch: pytest.MonkeyPatch, error: BaseException, workers: int, prefetch: int
) -> None:
    corpus = corpora["shards"]
    whole = [rows(batch) for batch in stream(corpus, epochs=2)]
    flaky = Flaky(monkeypatch)
    flaky.error = error
    for worker in range(workers):
        for fail in sorted(spread(f"reads that fail, {workers}, {prefetch}", range(1, 40), 3)):
            flaky.left = fail
            one = stream(corpus, epochs=2, worker=worker, workers=workers, prefetch=prefetch)
            found, errors = [], 0
            while True:
                try:
                    found.append(rows(next(one)))
                except StopIteration:
                    break
                except type(error):
                    errors += 1
            assert (found, errors) == (whole[worker::workers], 1 if flaky.left < 0 else 0)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")  # Python 3.12 and later
@pytest.mark.parametrize("prefetch", [0, 1, 3])
def test_a_forked_child_continues_independently(corpora: dict[str, Path], prefetch: int) -> None:
    corpus = corpora["shards"]
    whole = [rows(batch) for batch in stream(corpus, epochs=1)]
    one = stream(corpus, epochs=1, prefetch=prefetch)
    found = [rows(next(one)), rows(next(one))]
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def child() -> None:
        one.telemetry.summary()
        sender.send([rows(batch) for batch in one])
        one.close()

    process = context.Process(target=child)
    process.start()
    assert receiver.recv() == whole[2:]
    process.join()
    assert process.exitcode == 0
    assert found + [rows(batch) for batch in one] == whole


def test_usage_errors_are_permanent(corpora: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """After UsageError the stream neither continues nor saves, but another state can be loaded."""
    one = stream(corpora["shards"], epochs=3)
    begin = one.state_dict()
    right = Order.__getitem__
    monkeypatch.setattr(Order, "__getitem__", lambda self, positions: right(self, np.asarray(positions) // 2 * 2))
    for _ in range(3):
        with pytest.raises(UsageError, match="epoch 0: "):
            list(one)
    with pytest.raises(UsageError, match="epoch 0: "):
        one.state_dict()
    monkeypatch.undo()
    one._schedule.order.cache_clear()
    one.load_state_dict(begin)
    check_epoch([row for batch in one for row in rows(batch)][: one._schedule.domains[0].samples], corpora["shards"], 7)
    one.close()


def test_int32_tokens(tmp_path: Path) -> None:
    corpus = build_numbered(tmp_path, LAYOUTS["long documents"], vocab_size=70_000)
    check_epoch([row for batch in stream(corpus, epochs=1) for row in rows(batch)], corpus, 7)


def test_a_state_is_json_whatever_integers_were_given(corpora: dict[str, Path]) -> None:
    one = stream(corpora["shards"], seed=np.int64(5), sequence_length=np.int32(7), batch_size=np.uint8(3))
    next(one)
    assert len(json.dumps(one.receipt())) > 100
    with pytest.raises(ValueError, match=r"sequence_length: 7\.0 given, a whole number"):
        stream(corpora["shards"], sequence_length=7.0)
    with pytest.raises(TypeError, match="load its state_dict"):
        pickle.dumps(one)
    with pytest.raises(ValueError, match=f"seed: {2**64} given, {-(2**63)} to {2**64 - 1} is allowed"):
        stream(corpora["shards"], seed=2**64)


@pytest.mark.parametrize(
    "weights, message", [(None, r"epoch \d+ given, 0 to \d+"), ({"a": 1}, "epoch 1 given, 0 to 0")]
)
def test_impossible_epochs_of_a_state(corpora: dict[str, Path], weights: Any, message: str) -> None:
    one = stream(corpora["shards"], weights=weights)
    with pytest.raises(StateError, match=message):
        one.load_state_dict(one.state_dict() | {"epoch": 2**61 if weights is None else 1})


def test_only_own_stores_are_closed(corpora: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Store] = []
    monkeypatch.setattr(Store, "close", lambda self: closed.append(self))
    store = open_store(corpora["shards"])
    TokenStream(store).close()
    assert closed == []
    TokenStream(str(corpora["shards"])).close()
    assert len(closed) == 1 and closed[0] is not store
