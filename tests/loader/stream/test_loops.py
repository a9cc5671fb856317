"""Loops over a stream: where each begins and ends, how many batches it has, passing over some; labels for models that
shift them."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refinery.loader.order.mix_params import MixParams, MixStage
from refinery.loader.stream.loops import LOOPS
from refinery.loader.stream.packed.packed_stream import PackedStream
from refinery.loader.stream.state import StateError
from tests.corpus_factory import build_corpus
from tests.loader.streams import IGNORE, TEXTS, S, rows, stream
from tests.packed_factory import add_packed_rows
from tests.sampling import sampled

MIXED: dict[str, Any] = {
    "weights": MixParams([MixStage({"web": 1, "code": 3}, 30 * S), MixStage({"web": 1})], 2, block=8)
}
EPOCHS: dict[str, Any] = {"epochs": 3}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_corpus(tmp_path_factory.mktemp("corpus"), TEXTS)


def loop(batches: Any, most: int | None = None) -> list[Any]:
    """The rows of a loop, left after `most` batches."""
    found = []
    for i, batch in enumerate(batches, 1):
        found.append(rows([batch]))
        if i == most:
            break
    return found


# --- where loops begin and end ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefetch", [0, 1, 3])
@pytest.mark.parametrize("options", [EPOCHS, MIXED], ids=["epochs", "mixed"])
def test_a_loop_continues_to_the_end_of_all_epochs(corpus: Path, options: dict[str, Any], prefetch: int) -> None:
    want = loop(stream(corpus, **options))
    batches = stream(corpus, prefetch=prefetch, **options)
    assert loop(batches, 3) + loop(batches, 4) + loop(batches) == want
    assert loop(batches) == [] == loop(batches)
    batches.restart()
    assert loop(batches) == want


@pytest.mark.parametrize("prefetch", [0, 1, 3])
def test_a_loop_of_an_epoch(corpus: Path, prefetch: int) -> None:
    want = loop(stream(corpus, **EPOCHS))
    n = len(want) // 3
    batches = stream(corpus, loop="epoch", prefetch=prefetch, **EPOCHS)
    for epoch in range(3):
        assert (batches.steps, batches.steps_left) == (n, n)
        assert loop(batches) == want[epoch * n : (epoch + 1) * n]
        with pytest.raises(StopIteration):
            next(batches)
    assert batches.steps_left == 0 and loop(batches) == []
    assert batches.state_dict()["epoch"] == 3
    batches.restart()
    assert loop(batches, 5) + loop(batches) + loop(batches) == want[: 2 * n]


def test_loops_of_epochs_without_end(corpus: Path) -> None:
    want = loop(stream(corpus, epochs=5))
    batches = stream(corpus, loop="epoch")
    assert [row for _ in range(5) for row in loop(batches)] == want


@pytest.mark.parametrize("options", [{}, EPOCHS, MIXED], ids=["one epoch", "epochs", "mixed"])
def test_evaluation_begins_anew(corpus: Path, options: dict[str, Any]) -> None:
    want = loop(stream(corpus, **(options or {"epochs": 1})))
    batches = stream(corpus, loop="restart", **options)
    assert batches.steps == len(want)
    for most in (None, 2, None, 1, None):
        assert loop(batches, most) == want[:most]
    inside = iter(batches)
    assert rows([next(inside)]) == want[0] and loop(inside) == want[1:]  # an iterator's own iterator goes on


def test_evaluation_goes_on_once_after_a_state(corpus: Path) -> None:
    want = loop(stream(corpus, epochs=1))
    batches = stream(corpus, loop="restart")
    loop(batches, 4)
    again = stream(corpus, loop="restart")
    again.load_state_dict(batches.state_dict())
    assert loop(again) == want[4:]
    assert loop(again) == want
    assert again.skip(2) == 2
    assert loop(again) == want[2:]
    assert loop(again) == want


@pytest.mark.parametrize("options", [{}, EPOCHS, MIXED, {"packing": "best_fit"}], ids=["one", "epochs", "mixed", "fit"])
def test_a_state_of_the_end_is_a_beginning(corpus: Path, options: dict[str, Any]) -> None:
    """Saved after the last batch, before the loop is over and after it; with another batch size, too."""
    batches = stream(corpus, loop="restart", **options)
    want = loop(batches)
    states = [batches.state_dict()]
    loop(batches, len(want))
    states.append(batches.state_dict())
    assert states[0] == states[1]
    for batch_size in (2, 3):
        expected = loop(stream(corpus, loop="restart", batch_size=batch_size, **options))
        again = stream(corpus, loop="restart", batch_size=batch_size, **options)
        again.load_state_dict(states[0])
        assert loop(again) == expected == loop(again)
    again.close()
    with pytest.raises(RuntimeError, match="closed"):
        loop(again)


def test_a_closed_stream_stays_closed(corpus: Path) -> None:
    for how in LOOPS:
        batches = stream(corpus, loop=how, epochs=1)
        loop(batches)
        batches.close()
        for use in (batches.restart, lambda: batches.skip(1), lambda: loop(batches)):  # noqa: B023
            with pytest.raises(RuntimeError, match="closed"):
                use()


def test_wrong_loops(corpus: Path) -> None:
    with pytest.raises(ValueError, match="loop: 'again' given, continue, epoch, restart is allowed"):
        stream(corpus, loop="again")
    with pytest.raises(ValueError, match="loop: 'epoch' given with weights"):
        stream(corpus, loop="epoch", weights={"web": 1})
    with pytest.raises(ValueError, match="batches: -1 given, 0 or more"):
        stream(corpus).skip(-1)


# --- how many batches ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("world_size, batch_size", [(1, 1), (1, 7), (3, 2), (8, 1), (2, 500)])
@pytest.mark.parametrize("options", [EPOCHS, EPOCHS | {"loop": "epoch"}, MIXED], ids=["epochs", "epoch", "mixed"])
def test_steps_at_every_position(corpus: Path, options: dict[str, Any], world_size: int, batch_size: int) -> None:
    """Also of a state that was saved by one rank with one row."""
    shape = {"rank": world_size - 1, "world_size": world_size, "batch_size": batch_size}
    batches = stream(corpus, **options, **shape)
    total, whole = batches.steps, batches.steps_per_epoch
    assert total == (3 if options is EPOCHS else 1) * (whole or 0)
    found = 0
    for left in range(total or 0, 0, -1):
        assert (batches.steps, batches.steps_per_epoch, batches.steps_left) == (total, whole, left)
        next(batches)
        found += 1
    assert found == total
    one = stream(corpus, **(options | {"loop": "continue"}), batch_size=1)
    for position in (0, 5, 13):
        one.restart()
        one.skip(position)
        batches.load_state_dict(one.state_dict())
        assert batches.steps_left == len(list(batches))


def test_a_stream_without_end_has_no_length(corpus: Path) -> None:
    endless = stream(corpus)
    assert (endless.steps, endless.steps_left) == (None, None)
    assert endless.steps_per_epoch == stream(corpus, epochs=1).steps
    mixed = stream(corpus, weights={"web": 1})
    assert (mixed.steps, mixed.steps_left, mixed.steps_per_epoch) == (None, None, None)


# --- passing over ----------------------------------------------------------------------------------------------------


PLACES = product((0, 3, 40), (0, 1, 7, 28, 29, 30, 60))  # where, and how many batches
SKIPS = sampled("batches skipped", PLACES, 7, axes=lambda cell: cell)


@pytest.mark.parametrize("prefetch", [0, 1])
@pytest.mark.parametrize(
    "options", [EPOCHS, MIXED, {"weights": {"web": 1, "code": 1}}], ids=["epochs", "mixed", "endless"]
)
def test_skipping_is_delivering_unseen(corpus: Path, options: dict[str, Any], prefetch: int) -> None:
    """From anywhere, over epochs' ends: the same state, the same batches, and the counts at the epoch's end hold."""
    delivered = stream(corpus, **options)
    want, states = [], [delivered.state_dict()]
    for batch in delivered:
        want.append(rows([batch]))
        states.append(delivered.state_dict())
        if len(want) == 110:  # the furthest that is looked at of a stream without an end: 40 + 60 + 10
            break
    has_end = options is EPOCHS or options is MIXED
    for start, n in SKIPS:
        batches = stream(corpus, prefetch=prefetch, **options)
        here = len(loop(batches, start)) if start else 0
        there = min(here + n, len(want))
        assert batches.skip(n) == there - here
        assert batches.state_dict() == states[there]
        if has_end:
            assert loop(batches) == want[there:]
        else:
            assert loop(batches, 10) == want[there : there + 10]


def test_skipping_beyond_the_end(corpus: Path) -> None:
    batches = stream(corpus, epochs=1)
    n = batches.steps or 0
    assert batches.skip(10**6) == n and loop(batches) == [] and batches.skip(1) == 0
    assert batches.state_dict()["epoch"] == 1


def test_skipped_batches_are_not_in_the_tokens_per_shard(corpus: Path) -> None:
    batches = stream(corpus)
    batches.skip(3)
    assert batches.tokens_per_shard == {}
    batches.skip((batches.steps_per_epoch or 0) - 3)
    next(batches)
    assert sum(batches.tokens_per_shard.values()) == 2 * S


@pytest.mark.parametrize("workers", [2, 3])
def test_workers_skip_their_own_batches(corpus: Path, workers: int) -> None:
    want = [loop(stream(corpus, epochs=2, worker=w, workers=workers)) for w in range(workers)]
    for worker in range(workers):
        for n in (1, 4, 20):
            one = stream(corpus, epochs=2, worker=worker, workers=workers)
            first = loop(one, 2)
            assert one.skip(n) == min(n, len(want[worker]) - 2)
            assert first + want[worker][2 : 2 + n] + loop(one) == want[worker]


# --- positions beyond the end ----------------------------------------------------------------------------------------


def test_a_state_beyond_the_end_is_refused(corpus: Path) -> None:
    far = stream(corpus)
    far.skip((far.steps_per_epoch or 0) * 2)
    at_end = far.state_dict()
    next(far)
    short = stream(corpus, epochs=2)
    short.load_state_dict(at_end)
    assert loop(short) == []
    with pytest.raises(StateError, match="epoch 2, position 2 given, but this stream ends after 2 epochs"):
        short.load_state_dict(far.state_dict())


@pytest.mark.parametrize("options", [{}, MIXED], ids=["epochs", "mixed"])
def test_a_state_that_was_moved_by_hand_is_refused_at_once(corpus: Path, options: dict[str, Any]) -> None:
    batches = stream(corpus, **options)
    loop(batches, 3)
    state = batches.state_dict()
    if not options:
        with pytest.raises(StateError, match=r"changed since it was saved.* use skip"):
            batches.load_state_dict(state | {"position": state["position"] + 2})
    with pytest.raises(StateError, match="changed since it was saved"):
        batches.load_state_dict(state | {"usage": None})
    batches.load_state_dict({name: value for name, value in state.items() if name != "check"})  # of an older version


# --- labels ----------------------------------------------------------------------------------------------------------


def check_unshifted(shifted: Any, unshifted: Any) -> None:
    """What a model predicts at a place after its own shift is what it predicts there without."""
    assert np.array_equal(unshifted["input_ids"], shifted["input_ids"])
    assert np.array_equal(unshifted["labels"][:, 1:], shifted["labels"][:, :-1])
    assert (unshifted["labels"][:, 0] == IGNORE).all()
    assert np.array_equal(unshifted["loss_mask"], unshifted["labels"] != IGNORE)
    kept = unshifted["labels"] != IGNORE
    assert np.array_equal(unshifted["labels"][kept], unshifted["input_ids"][kept])
    for name in ("input_ids", "labels"):
        assert unshifted[name].flags.c_contiguous and unshifted[name].base is None and unshifted[name].flags.writeable
    unshifted["labels"][:] = 7
    assert np.array_equal(unshifted["input_ids"], shifted["input_ids"])


@pytest.mark.parametrize("options", [{}, {"ignore_eos": True}, {"batch_size": 1, "ignore_cross_document": True}])
def test_unshifted_labels(corpus: Path, options: dict[str, Any]) -> None:
    options = {"epochs": 1, "loss_mask": True} | options
    pairs = zip(stream(corpus, **options), stream(corpus, labels="unshifted", **options), strict=True)
    for shifted, unshifted in pairs:
        check_unshifted(shifted, unshifted)


def test_unshifted_labels_of_packed_rows(tmp_path: Path) -> None:
    corpus = str(add_packed_rows(build_corpus(tmp_path / "corpus"), 32))
    options: dict[str, Any] = {"sequence_length": 32, "batch_size": 2, "epochs": 1, "loss_mask": True}
    pairs = zip(PackedStream(corpus, **options), PackedStream(corpus, labels="unshifted", **options), strict=True)
    for shifted, unshifted in pairs:
        check_unshifted(shifted, unshifted)


def test_wrong_labels(corpus: Path) -> None:
    with pytest.raises(ValueError, match="labels: 'none' given, shifted or unshifted is allowed"):
        stream(corpus, labels="none")
