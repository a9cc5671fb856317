"""Assignment of shards to nodes by hash, and rotation when a shard is memorised."""

import hashlib
import json
import random
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.loader.stream.assignment import PlateauParams, RotateOnPlateau, assign, ranked_nodes, walk

SHARDS = [f"train/web/shard-{i:05d}-of-02000" for i in range(2000)]
NODES = [f"node-{i}" for i in range(10)]


def owners(owned: dict[str, list[str]]) -> dict[str, str]:
    return {shard: node for node, shards in owned.items() for shard in shards}


def test_every_shard_has_one_owner_and_the_order_of_nodes_does_not_matter() -> None:
    owned = assign(SHARDS, NODES)
    assert sorted(shard for shards in owned.values() for shard in shards) == SHARDS
    assert all(shards == sorted(shards) for shards in owned.values())
    assert owned == assign(SHARDS, [*reversed(NODES), "node-3"])


def test_the_owner_is_the_highest_sha256() -> None:
    """Computed without the module's code: later versions must assign shards to the same nodes."""
    for shard, node in owners(assign(SHARDS[:50], NODES)).items():
        scores = {n: hashlib.sha256(bytes([len(n), 0, 0, 0]) + n.encode() + shard.encode()).digest() for n in NODES}
        assert max(scores, key=scores.__getitem__) == node


def test_shares_are_even() -> None:
    sizes = [len(shards) for shards in assign(SHARDS, NODES).values()]
    assert min(sizes) > 150 and max(sizes) < 250  # 200, standard deviation 13


def test_a_joining_node_takes_its_share_and_moves_nothing_else() -> None:
    before, after = owners(assign(SHARDS, NODES)), owners(assign(SHARDS, [*NODES, "newcomer"]))
    moved = {shard for shard in SHARDS if before[shard] != after[shard]}
    assert moved == {shard for shard, node in after.items() if node == "newcomer"}
    assert 130 < len(moved) < 240  # 2000 / 11 = 182
    assert len({before[shard] for shard in moved}) == len(NODES)


@given(st.integers(0, 9), st.integers(1, 3))
def test_a_leaving_nodes_shards_go_to_the_next_in_rank(gone: int, copies: int) -> None:
    some = SHARDS[:60]
    rest = [node for i, node in enumerate(NODES) if i != gone]
    before, after = assign(some, NODES, copies), assign(some, rest, copies)
    for shard in some:
        held = {node for node in NODES if shard in before[node]}
        now = {node for node in rest if shard in after[node]}
        assert held - {NODES[gone]} <= now and len(held) == len(now) == copies
        assert set(ranked_nodes(shard, NODES)[:copies]) == held


def test_walks_differ_by_node_and_cover_everything() -> None:
    walks = [walk(SHARDS, node) for node in NODES]
    assert all(sorted(w) == SHARDS for w in walks)
    assert len({w[0] for w in walks}) == len(NODES)
    assert walk(SHARDS[::-1], "node-1") == walks[1]


@pytest.mark.parametrize(
    ("shards", "nodes", "copies", "message"),
    [
        (["a"], [], 1, "nodes: none given"),
        (["a"], ["n"], 2, "copies: 2 given, 1 to 1"),
        (["a"], ["n"], 0, "copies: 0 given"),
        (["a", "a"], ["n"], 1, "named twice"),
    ],
)
def test_invalid_assignments(shards: list[str], nodes: list[str], copies: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        assign(shards, nodes, copies)


# Only by improvement, as by default before `max_loss`.
FLAT = partial(PlateauParams, max_improvement=0.01, max_variance=None, max_loss=None)
MEMORISED = PlateauParams(10)


def rotations(losses: list[float], params: PlateauParams) -> list[int]:
    rotation = RotateOnPlateau(["a", "b", "c"], params)
    return [i for i, loss in enumerate(losses) if rotation.observe(loss)]


@pytest.mark.parametrize(
    ("losses", "params", "moves"),
    [
        ([1.0] * 25, FLAT(10), [9, 19]),  # flat: as soon as the window is full
        ([2 - 0.1 * i for i in range(20)], FLAT(10), []),  # falling by 0.5 from half to half
        ([2 - 0.1 * i for i in range(20)], FLAT(10, max_improvement=0.6), [9, 19]),
        ([1 + 0.1 * i for i in range(10)], FLAT(10), [9]),  # rising is no improvement
        ([2 - 0.1 * i for i in range(10)] + [1.0] * 20, FLAT(10), [19, 29]),
        ([0.0, 2.0] * 10, FLAT(10, max_variance=0.5), []),  # flat mean, but variance 1
        ([0.0, 2.0] * 10, FLAT(10, max_variance=1.0), [9, 19]),
        ([1.0] * 25, FLAT(10, least_steps=12), [11, 23]),
        ([1.0] * 9, FLAT(10), []),
        # The default: memorised data.
        ([0.01] * 25, MEMORISED, [9, 19]),
        ([0.04, 0.06] * 13, MEMORISED, []),  # a mean of 0.05 is not below it
        ([0.04, 0.0599] * 13, MEMORISED, [9, 19]),
        ([0.0] * 9 + [0.49], MEMORISED, []),  # a mean of 0.049, but variance 0.0216
        ([0.0] * 9 + [0.47], MEMORISED, [9]),  # 0.0199
        ([2.5] * 30 + [0.01] * 15, MEMORISED, [39]),  # no loss of the window is of before
        ([max(0.4 - 0.01 * i, 0.0) for i in range(45)], MEMORISED, [40]),  # it may fall
        ([0.06] * 25, PlateauParams(10, max_loss=0.07), [9, 19]),
        ([0.04 - 0.002 * i for i in range(20)], PlateauParams(10, max_improvement=0.005), []),  # all three
        ([0.01] * 20, PlateauParams(10, max_improvement=0.005), [9, 19]),
    ],
)
def test_when_it_rotates(losses: list[float], params: PlateauParams, moves: list[int]) -> None:
    assert rotations(losses, params) == moves


def test_shards_repeat() -> None:
    rotation = RotateOnPlateau(["a", "b"], FLAT(2))
    seen = []
    for _ in range(8):
        seen.append(rotation.shard)
        rotation.observe(1.0)
    assert seen == list("aabbaabb") and rotation.rotations == 4


@given(st.integers(0, 60), st.integers(0, 2**32))
def test_a_resumed_rotation_continues_identically(cut: int, seed: int) -> None:
    rng = random.Random(seed)
    losses = [rng.choice([1.0, 1.0, 1.01, 0.9, 3.0]) for _ in range(60)]
    params = FLAT(6, max_improvement=0.2, max_variance=0.5, least_steps=8)
    whole, first, second = (RotateOnPlateau(["a", "b", "c"], params) for _ in range(3))
    moves = [(whole.observe(loss), whole.shard) for loss in losses]
    for loss in losses[:cut]:
        first.observe(loss)
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert [(second.observe(loss), second.shard) for loss in losses[cut:]] == moves[cut:]
    assert second.state_dict() == whole.state_dict()


def test_states_that_do_not_fit() -> None:
    rotation = RotateOnPlateau(["a", "b"], PlateauParams(4))
    for loss in (3.0, 2.0, 1.0):
        rotation.observe(loss)
    state = rotation.state_dict()
    with pytest.raises(ValueError, match="another list of shards"):
        RotateOnPlateau(["b", "a"], PlateauParams(4)).load_state_dict(state)
    with pytest.raises(ValueError, match="window: 2 given, the state holds 3"):
        RotateOnPlateau(["a", "b"], PlateauParams(2)).load_state_dict(state)


@pytest.mark.parametrize("loss", [float("nan"), float("inf"), float("-inf")])
def test_losses_that_are_not_finite(loss: float) -> None:
    with pytest.raises(ValueError, match="loss: "):
        RotateOnPlateau(["a"]).observe(loss)


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"window": 1}, "window: 1 given, 2 or more"),
        ({"max_improvement": -0.1}, "max_improvement: -0.1"),
        ({"max_variance": float("nan")}, "max_variance: nan"),
        ({"least_steps": -1}, "least_steps: -1"),
        ({"max_loss": float("inf")}, "max_loss: inf given, 0 or more"),
        ({"max_loss": None, "max_variance": None}, "max_improvement, max_variance, max_loss: None given for all"),
    ],
)
def test_invalid_parameters(given_: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PlateauParams(**given_)


def test_no_shards() -> None:
    with pytest.raises(ValueError, match="shards: none given"):
        RotateOnPlateau([])
