"""Resume at any position under other shapes, rejected states, mixtures over time, usage counters."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refinery.loader.order.mix_params import MixParams, MixStage
from refinery.loader.order.mixing import RepetitionLimit
from refinery.loader.order.order import Order, OrderParams
from refinery.loader.stream.state import StateError
from refinery.loader.stream.usage import UsageError, digest, digest_of_all
from tests.corpus_factory import build_corpus
from tests.loader.numbered import build_numbered
from tests.loader.streams import TEXTS, S, expected_rows, rows, stream, tokens_of
from tests.sampling import spread


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_corpus(tmp_path_factory.mktemp("corpus"), TEXTS)


# --- resume --------------------------------------------------------------------------------------------------------


MIXED = {"weights": MixParams([MixStage({"web": 1, "code": 3}, 30 * S), MixStage({"web": 1})], repeats=2, block=8)}


@pytest.mark.parametrize("options", [{"epochs": 2}, MIXED], ids=["epochs", "mixed"])
def test_resume_at_every_position_with_other_shapes(corpus: Path, options: dict[str, Any]) -> None:
    reference = rows(stream(corpus, batch_size=1, **options))
    one = stream(corpus, batch_size=1, **options)
    positions = spread(f"resumed positions, {next(iter(options))}", range(len(reference) + 1), 10)
    for position in range(len(reference) + 1):
        state = json.loads(json.dumps(one.state_dict()))
        assert len(json.dumps(state)) < 700
        if position not in positions:
            next(one, None)
            continue
        world_size, batch_size = [(1, 1), (1, 3), (2, 2), (3, 1), (8, 1)][position % 5]
        ranks = [
            stream(corpus, rank=rank, world_size=world_size, batch_size=batch_size, **options)
            for rank in range(world_size)
        ]
        found = []
        for rank in ranks:
            rank.load_state_dict(state)
            found += rows(rank)
        assert sorted(found) == sorted(reference[position:])
        if world_size == 1:
            assert found == reference[position:]
        if position < len(reference):
            next(one)


@pytest.mark.parametrize("domains, least, most", [(24, 400, 860), (40, 280, 350)])
def test_a_state_stays_small(tmp_path: Path, domains: int, least: int, most: int) -> None:
    """Under a schedule of weights for many domains with long names, and at any position of any corpus."""
    names = [f"{i:02d}-{'x' * 40}" for i in range(domains)]
    build_numbered(tmp_path, {name: [[70, 75]] for name in names})
    stages = [MixStage({name: 1 + (i + k) % 5 for i, name in enumerate(names)}, 2560 * (k + 1)) for k in range(5)]
    weights = MixParams([*stages, MixStage(dict.fromkeys(names, 1.0))])
    with stream(tmp_path, sequence_length=8, seed=2**64 - 1, weights=weights) as batches:
        states = [batches.state_dict() for _ in zip(range(20), batches, strict=False)]
        batches.load_state_dict(states[10])
    sizes = [len(json.dumps(state)) for state in states]
    assert least <= min(sizes) and max(sizes) <= most
    longest = {"sequence_length": 2**40, "shards": "f" * 16, "epoch": 2**62, "position": 2**62}
    longest |= {"order": {"version": 1, "block": 2**24, "lanes": 2**24, "window": 2**24}}
    usage = states[-1]["usage"]
    assert (usage is None) == (domains > 24)
    assert len(json.dumps(states[-1] | longest | {"usage": usage and ["f" * 16] * domains})) <= 1024


def test_state_advances_with_delivery_alone(corpus: Path) -> None:
    with stream(corpus, prefetch=3) as ahead:
        next(ahead)
        next(ahead)
        state = ahead.state_dict()
        assert state["position"] == 4
        following = rows([next(ahead)])
    with stream(corpus) as other:
        other.load_state_dict(state)
        assert rows([next(other)]) == following


def test_loading_discards_prefetched_batches(corpus: Path) -> None:
    with stream(corpus, prefetch=2) as batches:
        begin = batches.state_dict()
        first = rows([next(batches), next(batches)])
        batches.load_state_dict(begin)
        assert rows([next(batches), next(batches)]) == first


def test_a_state_can_be_continued_for_more_epochs(corpus: Path) -> None:
    short, long = stream(corpus, epochs=1), stream(corpus, epochs=2)
    first = rows(short)
    long.load_state_dict(short.state_dict())
    assert first + rows(long) == rows(stream(corpus, epochs=2))


def test_a_second_loop_continues(corpus: Path) -> None:
    batches = stream(corpus, epochs=1)
    found = []
    for batch in batches:
        found += rows([batch])
        if len(found) == 6:
            break
    assert found + rows(batches) == rows(stream(corpus, epochs=1))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"seed": 6}, "seed 5 given, this stream has 6"),
        ({"sequence_length": 8}, "sequence_length 16 given, this stream has 8"),
        ({"split": "validation"}, "split 'train' given, this stream has 'validation'"),
        ({"order": OrderParams(3, 4, 3)}, r"order \{.*'window': 2\} given, this stream has \{.*'window': 3\}"),
        ({"weights": {"web": 1}}, r"made without weights, this stream has MixStage\(\{'web': 1\}, tokens=None\)"),
    ],
)
def test_states_of_other_streams_are_rejected(corpus: Path, change: dict[str, Any], message: str) -> None:
    state = stream(corpus).state_dict()
    with pytest.raises(StateError, match=message):
        stream(corpus, **change).load_state_dict(state)


def test_a_state_of_another_corpus_is_rejected(corpus: Path, tmp_path: Path) -> None:
    other = build_corpus(tmp_path, {("train", "web"): [["other"]]})
    with pytest.raises(StateError, match=rf"corpus with another manifest given, this stream has '.+' \({tmp_path}\)"):
        stream(other).load_state_dict(stream(corpus).state_dict())


@pytest.mark.parametrize(
    "change, message",
    [
        ({"version": 2}, "version 2 given"),
        ({"position": -1}, "position -1 given"),
        ({"position": 10**9}, r"position 1000000000 given, 0 to \d+ is allowed; this stream ends there"),
        ({"epoch": True}, "epoch True given"),
        ({"epoch": None}, "epoch None given"),
        ({"usage": ["xyz"]}, r"usage \['xyz'\] given, a hexadecimal number for each domain"),
        ({"usage": ["1", "2"]}, "usage"),
        ({"usage": 7}, "usage"),
        ({"seed": np.array([5, 5])}, r"seed array\(\[5, 5\]\) given"),
        ({"mix": np.array([5, 5])}, "made with weights, this stream has none"),
        ({"order": {"block": np.array([5, 5])}}, "order {'block': array"),
        ({"check": np.array(["a", "b"])}, "changed since it was saved"),
        ({7: "of another type than the other keys"}, "changed since it was saved"),
    ],
)
def test_broken_states_are_rejected(corpus: Path, change: dict[str, Any], message: str) -> None:
    batches = stream(corpus)
    first = rows([next(batches)])
    with pytest.raises(StateError, match=message):
        batches.load_state_dict(batches.state_dict() | change)
    with pytest.raises(StateError, match="version None given"):
        batches.load_state_dict({})
    with pytest.raises(StateError, match=r"state: \[7\] given"):
        batches.load_state_dict([7])  # type: ignore[arg-type]
    assert first + rows([next(batches)]) == rows(stream(corpus, epochs=1))[:4]  # as before


def test_state_size_and_that_it_is_plain(corpus: Path) -> None:
    batches = stream(corpus, weights={"web": 1, "code": 1})
    next(batches)
    state = batches.state_dict()
    assert json.loads(json.dumps(state)) == state
    assert len(json.dumps(state)) <= 1024
    assert len(json.dumps(state | {"usage": ["f" * 16] * 24, "position": 2**61, "seed": 2**63})) <= 1024


# --- mixing --------------------------------------------------------------------------------------------------------


def test_mixed_domains_have_strict_epochs_of_their_own(corpus: Path) -> None:
    batches = stream(corpus, weights={"web": 1, "code": 3}, batch_size=1, loss_mask=True)
    web, code = tokens_of(corpus, "web"), tokens_of(corpus, "code")
    found = rows(next(batches) for _ in range(300))
    for name, tokens in (("web", web), ("code", code)):
        cycle = [row for epoch in range(20) for row in expected_rows(tokens, 5, epoch, domain=name)]
        mine = [row for row in found if row in cycle]
        assert mine == cycle[: len(mine)] and len(mine) > 60
    shares = {name: row["share"] for name, row in batches.mix.items()}
    assert shares == pytest.approx({"web": 0.25, "code": 0.75}, abs=0.05)
    assert stream(corpus).mix == {}


def test_epochs_limit_repetition_in_a_mixture(corpus: Path) -> None:
    batches = stream(corpus, weights={"web": 1, "code": 9}, epochs=2)
    for _ in batches:
        pass
    assert batches.mix["code"]["epochs"] == 2.0 and batches.mix["web"]["epochs"] < 2


def test_a_limit_can_be_an_error(corpus: Path) -> None:
    params = MixParams([MixStage({"web": 1, "code": 9})], repeats={"code": 1}, on_limit="error")
    batches = stream(corpus, weights=params, batch_size=1)
    found = 0
    with pytest.raises(RepetitionLimit, match="domain 'code': its limit of repetition is reached at position"):
        for _ in batches:
            found += 1
    assert found >= -(-len(tokens_of(corpus, "code")) // S)


def test_later_stages_may_change_but_not_the_past(corpus: Path) -> None:
    first, second = MixStage({"web": 1, "code": 1}, 20 * S), MixStage({"web": 1})
    state_at = {}
    batches = stream(corpus, weights=[first, second], batch_size=1)
    for i in range(1, 31):
        next(batches)
        state_at[i] = batches.state_dict()
    other = stream(corpus, weights=[first, MixStage({"code": 1})])
    other.load_state_dict(state_at[20])
    with pytest.raises(StateError, match=r"by other weights up to position 21 .*MixStage\(old, tokens=336\)"):
        other.load_state_dict(state_at[21])


# --- usage ---------------------------------------------------------------------------------------------------------


def test_digest_in_closed_form() -> None:
    for n in (1, 2, 3, 1000, 2**20 + 1):
        assert digest(np.random.default_rng(n).permutation(n)) == digest_of_all(n)
    assert digest(np.array([0, 1, 1, 3])) != digest_of_all(4)


def test_tokens_per_shard_agree_with_the_manifest(corpus: Path) -> None:
    batches = stream(corpus, batch_size=1)
    steps = -(-len(tokens_of(corpus)) // S)
    for _ in range(steps - 1):
        next(batches)
    manifest = {entry.bin.path: entry.tokens for entry in batches.manifest.shards if entry.split == "train"}
    missing = {name: manifest[name] - count for name, count in batches.tokens_per_shard.items()}
    assert 0 < sum(missing.values()) <= S and min(missing.values()) >= 0
    next(batches)
    assert batches.tokens_per_shard == manifest  # of the whole epoch, until the next one begins
    state = batches.state_dict()
    next(batches)
    assert 0 < sum(batches.tokens_per_shard.values()) <= S
    batches.load_state_dict(state)
    assert set(batches.tokens_per_shard.values()) == {0}  # nothing was delivered since


def test_tokens_per_shard_after_the_last_batch(corpus: Path) -> None:
    """Of a stream that has ended, asked before and after its end is noticed; of a mixture, by the domain."""
    manifest = {entry.bin.path: entry.tokens for entry in stream(corpus).manifest.shards if entry.split == "train"}
    ended = stream(corpus, batch_size=1, epochs=2)
    for _ in range(2 * -(-len(tokens_of(corpus)) // S)):
        next(ended)
    assert ended.tokens_per_shard == manifest
    with pytest.raises(StopIteration):
        next(ended)
    assert ended.tokens_per_shard == manifest
    resumed = stream(corpus, batch_size=1, epochs=1)
    next(resumed)
    resumed.load_state_dict(resumed.state_dict())
    assert resumed.tokens_per_shard == {} and len(list(resumed)) > 0
    mixed = stream(corpus, batch_size=1, weights={"web": 1}, epochs=1)
    list(mixed)
    assert {path: count for path, count in mixed.tokens_per_shard.items() if count} == {
        path: count for path, count in manifest.items() if "/web/" in path and count
    }


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("world_size", [1, 3])
@pytest.mark.parametrize("options", [{"epochs": 2}, {"weights": {"web": 1}, "epochs": 2}], ids=["epochs", "mixed"])
def test_an_order_that_repeats_a_sample_raises(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], world_size: int, resume: bool
) -> None:
    batches = stream(corpus, world_size=world_size, batch_size=1, **options)
    next(batches)
    if resume:
        state = batches.state_dict()
        batches = stream(corpus, world_size=world_size, batch_size=1, **options)
        batches.load_state_dict(state)
    right = Order.__getitem__

    def wrong(self: Order, positions: Any) -> Any:
        samples = right(self, positions)
        samples[np.asarray(positions) == 20] = right(self, [3])[0]
        return samples

    monkeypatch.setattr(Order, "__getitem__", wrong)
    batches._schedule.order.cache_clear()
    batches.load_state_dict(batches.state_dict())  # plan again
    with pytest.raises(UsageError, match=r"epoch 0: .*(delivered|expected|twice)"):
        list(batches)
