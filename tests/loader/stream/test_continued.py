"""`continue_from`: streams of other weights, rows, seeds and data sets go on where another one is.

The oracle counts every token of every batch along chains of such moves. Tokens are their positions
(tests.loader.numbered), and the rule is one sentence: no token of a domain comes again before all of that domain have
come equally often.
"""

import json
import random
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refinery.loader import (
    BestFitParams,
    LengthStage,
    MixParams,
    MixStage,
    OrderParams,
    PackedStream,
    RemoteParams,
    StateError,
    TokenStream,
)
from refinery.loader.order.arrays import I64
from refinery.loader.storage.open_store import open_store
from tests.corpus_factory import build_corpus
from tests.loader.numbered import Lengths, build_numbered
from tests.loader.range_server import range_server
from tests.loader.remote_split import FETCH
from tests.loader.view.test_view_stream import fill
from tests.loader.view.test_view_stream import stream as view_stream
from tests.packed_factory import add_packed_rows
from tests.sampling import sampled
from tests.shared import shared

SMALL: Lengths = {"a": [[5, 9, 40, 3, 3], [], [33, 0, 1, 17]], "b": [[100, 1, 1, 32, 1], [0, 25]]}
LARGER: Lengths = SMALL | {"c": [[60, 7, 7, 7]]}
LARGEST: Lengths = LARGER | {"d": [[4, 90], [11]]}
LAYOUTS = [SMALL, LARGER, LARGEST]
IGNORE = -100


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Each has the shards of the one before, and another domain."""
    root = tmp_path_factory.mktemp("corpora")
    return [build_numbered(root / str(i), layout, name=f"corpus-{i}") for i, layout in enumerate(LAYOUTS)]


def stream(corpus: Path | str, **options: Any) -> TokenStream:
    shape: dict[str, Any] = {"sequence_length": 8, "batch_size": 3, "order": OrderParams(1, 4, 2), "prefetch": 0}
    return TokenStream(corpus, **(shape | {"doc_ids": True} | options))


def inputs(batch: dict[str, Any]) -> I64:
    """Tokens of a batch, its labels checked: each is the next token."""
    ids, labels, real = batch["input_ids"], batch["labels"], batch["doc_ids"] >= 0
    assert (labels[~real] == IGNORE).all()
    assert ((labels == IGNORE) | (labels == ids + 1)).all()
    found: I64 = ids[real]
    return found


class Oracle:
    """Counts of every token, by domain."""

    def __init__(self, layout: Lengths) -> None:
        sizes = [sum(map(sum, shards)) for shards in layout.values()]
        self.bounds = np.cumsum([0, *sizes]).tolist()
        self.counts = np.zeros(sum(sizes), np.int64)

    def add(self, batch: dict[str, Any]) -> None:
        np.add.at(self.counts, inputs(batch), 1)
        for first, stop in zip(self.bounds, self.bounds[1:], strict=False):
            its = self.counts[first:stop]
            assert its.max(initial=0) - its.min(initial=1 << 60) <= 1

    def is_even(self, domains: int) -> bool:
        """Whether each of the first domains has come equally often as a whole."""
        pairs = list(zip(self.bounds, self.bounds[1:], strict=False))[:domains]
        return all(len(set(self.counts[first:stop].tolist())) <= 1 for first, stop in pairs)


def choose(chance: random.Random, level: int) -> dict[str, Any]:
    """Options of a stream of the corpus of a level."""
    names = list(LAYOUTS[level])
    weights = None
    if chance.random() < 0.6:
        some = chance.sample(names, chance.randint(1, len(names)))
        weights = {name: chance.choice([1, 2, 5]) for name in some}
    packing = chance.choice([None, None, "best_fit", BestFitParams(60, repack=False), BestFitParams(200)])
    length = chance.choice([5, 8, 13])
    return {
        "sequence_length": length,
        "batch_size": chance.randint(1, 4),
        "seed": chance.randint(0, 9),
        "weights": weights,
        "packing": packing,
        "order": OrderParams(chance.choice([0, 1, 3]), chance.choice([2, 5]), 2),
    }


@pytest.mark.parametrize("number", sampled("chains of moves", range(100), 8))
def test_chains_of_moves(corpora: list[Path], number: int) -> None:
    """Up to six streams, each from where the last one is, directly or from its state; a corpus may become a larger one.
    At last an epoch is completed."""
    chance, oracle, level = random.Random(f"chain {number}"), Oracle(LARGEST), number % 2
    options, where = choose(chance, level), corpora[level]
    one = stream(where, **options)
    for _ in range(chance.randint(1, 6)):
        for _ in range(chance.choice([0, 1, 7, 30])):
            oracle.add(next(one))
        level = chance.randint(level, len(corpora) - 1)
        if chance.random() < 0.5:
            again = stream(where, **options)
            again.load_state_dict(json.loads(json.dumps(one.state_dict())))
            one = again
        options, where = choose(chance, level), corpora[level]
        moved = stream(corpora[level], **options)
        state = moved.continue_from(one)
        one = moved
        if chance.random() < 0.5:
            one = stream(corpora[level], **options)
            one.load_state_dict(json.loads(json.dumps(state)))
    last = stream(corpora[level], sequence_length=8, epochs=1, seed=4)
    last.continue_from(one)
    for batch in last:
        oracle.add(batch)
    assert oracle.is_even(len(LAYOUTS[level])) and last.steps_left == 0


def run(one: TokenStream, steps: int) -> Iterator[dict[str, Any]]:
    for _ in range(steps):
        yield next(one)


@pytest.mark.parametrize("packing", [None, "best_fit"])
def test_ranks_and_states_in_the_left_over_epoch(corpora: list[Path], packing: Any) -> None:
    """Ranks divide what is left over, any state of it goes on, and locate finds its rows."""
    old = stream(corpora[0], epochs=2, packing=packing)
    used = [inputs(batch) for batch in run(old, 5)]
    options: dict[str, Any] = {"epochs": 2, "seed": 7, "packing": packing, "sample_ids": True}
    new = stream(corpora[1], **options)
    new.continue_from(old)
    assert new.steps is not None and new.steps_per_epoch is not None
    assert new.steps == new.steps_left < 2 * new.steps_per_epoch
    states, batches = [new.state_dict()], []
    for batch in new:
        batches.append(batch)
        states.append(json.loads(json.dumps(new.state_dict())))
    assert len(batches) == new.steps
    first = new.steps - new.steps_per_epoch
    rest = np.sort(np.concatenate([inputs(batch) for batch in batches[:first]] + used))
    assert np.array_equal(rest, np.arange(sum(sum(map(sum, shards)) for shards in LARGER.values())))
    assert np.array_equal(np.sort(np.concatenate([inputs(batch) for batch in batches[first:]])), rest)
    numbers = [number for batch in batches for number in batch["sample_ids"].tolist() if number >= 0]
    assert len(set(numbers)) == len(numbers)
    for step in (0, first // 2, first, len(batches) - 1):
        found = []
        for rank in range(3):
            one = stream(corpora[1], **options | {"batch_size": 1}, rank=rank, world_size=3)
            one.load_state_dict(states[step])
            found += [inputs(batch) for batch in one]
        assert np.array_equal(
            np.sort(np.concatenate(found)), np.sort(np.concatenate([inputs(batch) for batch in batches[step:]]))
        )
    again = stream(corpora[1], **options)
    again.load_state_dict(states[0])
    assert again.skip(first + 1) == first + 1 and again.state_dict() == states[first + 1]
    again.restart()
    assert again.state_dict() == states[0]
    plain = stream(corpora[1], **options).state_dict()
    again.load_state_dict(plain)  # and back to whole epochs
    assert again.state_dict() == plain and again.steps == 2 * new.steps_per_epoch


def test_annealing(corpora: list[Path]) -> None:
    """From plain epochs to weights: no token of a domain twice before all have come; `repeats` counts what is left as
    the first epoch."""
    old = stream(corpora[0])
    oracle = Oracle(SMALL)
    for batch in run(old, 6):
        oracle.add(batch)
    new = stream(corpora[0], weights=MixParams([MixStage({"a": 1, "b": 4}, tokens=80), MixStage({"a": 1})], repeats=1))
    new.continue_from(old)
    used = oracle.counts.sum()
    for batch in new:
        oracle.add(batch)
    first, stop = oracle.bounds[:2]
    assert set(oracle.counts[first:stop].tolist()) == {1}
    assert new.mix["a"]["epochs"] == 1.0 and 0 < new.mix["b"]["epochs"] < 1
    assert sum(new.tokens_per_domain.values()) + used == oracle.counts.sum()


def test_stages_of_lengths_and_masks(corpora: list[Path]) -> None:
    old = stream(corpora[0])
    used = [inputs(batch) for batch in run(old, 3)]
    lengths = [LengthStage(4, 50), LengthStage(8)]
    new = stream(corpora[0], sequence_length=lengths, epochs=1, position_ids=True, cu_seqlens=True, prefetch=2)
    new.continue_from(old)
    found = np.sort(np.concatenate([inputs(batch) for batch in new] + used))
    assert np.array_equal(found, np.arange(len(found))) and len(found) == Oracle(SMALL).bounds[-1]


def test_remote(corpora: list[Path], tmp_path: Path) -> None:
    """The earlier corpus may be on a server; it is found again by its address."""
    store = open_store(corpora[0])
    with range_server() as server:
        server.files = {name: store.read(name) for name in store.list()}
        remote = RemoteParams(cache=tmp_path, threads=2, stagger=0, fetch=FETCH)
        with stream(server.url, remote=remote, order=OrderParams(2, 4, 2)) as old:
            used = [inputs(batch) for batch in run(old, 4)]
            new = stream(server.url, remote=remote, weights={"a": 1, "b": 1}, epochs=1)
            state = new.continue_from(old)
            with new:
                used += [inputs(batch) for batch in run(new, 3)]
                state = new.state_dict()
        last = stream(corpora[1], epochs=1, remote=remote)
        with stream(server.url, remote=remote, weights={"a": 1, "b": 1}, epochs=1) as again:
            again.load_state_dict(state)
            last.continue_from(again)
        found = np.sort(np.concatenate([inputs(batch) for batch in last] + used))
        assert np.array_equal(found, np.arange(len(found))) and len(found) == Oracle(LARGER).bounds[-1]


def test_packed_rows(tmp_path: Path) -> None:
    """Of PackedStream: by other weights, each row of the epoch once. Its rows are no tokens of a TokenStream."""
    corpus = add_packed_rows(build_corpus(tmp_path / "corpus"), 12)
    options: dict[str, Any] = {"batch_size": 2, "prefetch": 0, "doc_ids": True}

    def row(batch: dict[str, Any]) -> list[bytes]:
        real = (batch["doc_ids"] >= 0).any(axis=1)
        return [ids.tobytes() for ids in batch["input_ids"][real]]

    old = PackedStream(corpus, 12, **options)
    whole = sorted(each for batch in PackedStream(corpus, 12, epochs=1, **options) for each in row(batch))
    used = [each for batch in run(old, 2) for each in row(batch)]
    names = dict.fromkeys(old.domain_names, 1)
    new = PackedStream(corpus, 12, weights=MixParams([MixStage(names)], repeats=1, on_limit="renormalise"), **options)
    state = new.continue_from(old)
    again = PackedStream(corpus, 12, weights=MixParams([MixStage(names)], repeats=1, on_limit="renormalise"), **options)
    again.load_state_dict(state)
    found = [each for batch in again for each in row(batch)]
    assert sorted(used + found) == whole and 0 < len(found) < len(whole)
    with pytest.raises(StateError, match=r"carried by packed rows of .*, which only PackedStream"):
        TokenStream(corpus, 12, **options).continue_from(old)
    with pytest.raises(StateError, match=r"reads no shard that the earlier stream of .* read"):
        old.continue_from(TokenStream(corpus, 12, **options))


def test_what_cannot_be_carried(corpora: list[Path], tmp_path: Path) -> None:
    """An error in words; the stream stays what it was."""
    old = stream(corpora[0])
    next(old)
    new = stream(corpora[0], weights={"a": 1})
    before = new.state_dict()
    other = build_numbered(tmp_path / "other", {"x": [[50]]})
    changed = build_numbered(tmp_path / "changed", SMALL | {"a": [[5, 9, 41, 3, 3], [], [33, 0, 1, 17]]})
    for corpus, options, message in (
        (other, {}, "reads no shard that the earlier stream of"),
        (changed, {}, r"train/a/shard-00000-of-00003\.bin has other bytes here"),
        (corpora[0], {"subset": 0.5}, "a stream of a subset or of chosen shards given"),
        (corpora[0], {"shards": ["train/b/shard-00000-of-00002.bin"]}, "a stream of a subset or of chosen"),
    ):
        with pytest.raises(ValueError, match=message):
            new.continue_from(stream(corpus, **options))
        assert new.state_dict() == before
    gone = build_numbered(tmp_path / "gone", SMALL)
    there = stream(gone)
    next(there)
    state = stream(corpora[1]).continue_from(there)
    shutil.rmtree(gone)
    with pytest.raises(StateError, match=rf"it continues a stream of {gone}, which cannot be read"):
        stream(corpora[1]).load_state_dict(state)
    build_numbered(gone, {"x": [[50]]})
    with pytest.raises(StateError, match=rf"it continues a stream of {gone}, where another corpus is now"):
        stream(corpora[1]).load_state_dict(state)


@pytest.mark.parametrize(
    "change",
    [
        {"reached": {"": [0]}},
        {"reached": {"": [0, -1]}},
        {"reached": {"": [0, 10**9]}},
        {"reached": 5},
        {"seed": "x"},
        {"order": {}},
        {"sequence_length": 0},
        {"split": "test"},
        {"carried": {"corpus": 1}},
        {"at": None},
        {"order": {"version": 1, "block": 1, "lanes": 4, "window": 2, "packed": True}},
    ],
)
def test_wrong_records(corpora: list[Path], change: dict[str, Any]) -> None:
    old = stream(corpora[0])
    next(old)
    new = stream(corpora[0], weights={"a": 1})
    state = {name: value for name, value in new.continue_from(old).items() if name != "check"}
    with pytest.raises(StateError, match="carried"):
        new.load_state_dict(state | {"carried": state["carried"] | change})


def test_errors_say_how_to_go_on(corpora: list[Path]) -> None:
    """Names and numbers that can be copied, no digests."""
    plain, mixed = stream(corpora[0]), stream(corpora[0], weights={"a": 3, "b": 1})
    for each in (plain, mixed):
        for _ in range(4):
            next(each)
    cases = (
        (stream(corpora[0], weights={"a": 1}), plain, r"without weights, this stream has MixStage\(\{'a': 1\}"),
        (stream(corpora[0]), mixed, "made with weights, this stream has none"),
        (
            stream(corpora[0], weights={"a": 1}),
            mixed,
            r"`weights=\[MixStage\(old, tokens=96\), MixStage\(\{'a': 1\}, tokens=None\)\]`",
        ),
        (stream(corpora[1]), plain, "corpus with another manifest given, this stream has 'corpus-1'"),
    )
    for new, old, message in cases:
        with pytest.raises(StateError, match=message) as caught:
            new.load_state_dict(old.state_dict())
        assert "stream.continue_from(old)" in str(caught.value)
        assert not re.search("[0-9a-f]{16}", str(caught.value).replace(str(corpora[0].parent), ""))
    old_weights = {"a": 3, "b": 1}
    given = stream(corpora[0], weights=[MixStage(old_weights, tokens=96), MixStage({"a": 1})])
    given.load_state_dict(mixed.state_dict())  # the line that the error prints
    assert next(given)["input_ids"].shape == (3, 8)


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shared(tmp_path_factory, "views", fill)


def test_a_corpus_and_its_view(views: Path) -> None:
    """A view of a corpus delivers what a stream of the corpus left over, and the other way round."""
    shape: dict[str, Any] = {"epochs": 1, "doc_ids": True, "batch_size": 2}
    whole = Counter(token for batch in view_stream(views / "b", **shape) for token in real(batch))
    for first, second in (("b", "whole"), ("whole", "b")):
        old = view_stream(views / first, **shape)
        used = [token for batch in run(old, 4) for token in real(batch)]
        new = view_stream(views / second, **shape | {"sequence_length": 8})
        again = view_stream(views / second, **shape | {"sequence_length": 8})
        again.load_state_dict(new.continue_from(old))
        assert Counter(used + [token for batch in again for token in real(batch)]) == whole


def test_a_view_that_repeats_documents(views: Path) -> None:
    """By other weights, each place of an epoch once; another corpus has no counterpart of what comes several times."""
    shape: dict[str, Any] = {"epochs": 1, "doc_ids": True}
    whole = Counter(token for batch in view_stream(views / "chosen", **shape) for token in real(batch))
    old = view_stream(views / "chosen", **shape)
    used = [token for batch in run(old, 9) for token in real(batch)]
    names = dict.fromkeys(old.domain_names, 1)
    weights = MixParams([MixStage(names)], repeats=1, on_limit="renormalise")
    new = view_stream(views / "chosen", **shape | {"weights": weights, "epochs": None})
    new.continue_from(old)
    assert Counter(used + [token for batch in new for token in real(batch)]) == whole
    with pytest.raises(StateError, match="comes several times in an epoch of one of the views"):
        view_stream(views / "b", **shape).continue_from(old)


def real(batch: dict[str, Any]) -> list[int]:
    found: list[int] = batch["input_ids"][batch["doc_ids"] >= 0].tolist()
    return found
