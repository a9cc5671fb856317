"""Shards that are left early: what is read and repeated by the losses of a training, and states of older versions."""

import hashlib
import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from benchmarks.rotation import HEALTHY, LENGTH, MEMORISED, SHARDS, make_shards, simulate, table
from refinery.loader import NodeStream
from refinery.loader.stream.assignment import PlateauParams
from refinery.loader.stream.node import OLD_PLATEAU, PLATEAU
from refinery.loader.stream.state import StateError

BATCHES = 60  # of a shard


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_shards(tmp_path_factory.mktemp("rotation") / "corpus", BATCHES)


def node(corpus: Path, **options: Any) -> NodeStream:
    given = {"count": 3, "sequence_length": LENGTH, "batch_size": 1, "prefetch": 0} | options
    return NodeStream(corpus, "anna", **given)


def old_state(stream: NodeStream, **rule: Any) -> dict[str, Any]:
    """The stream's state as versions before `max_loss` wrote it."""
    state = {name: part for name, part in stream.state_dict().items() if name not in ("began", "left")}
    return state | {"plateau": OLD_PLATEAU | rule}


def train(stream: NodeStream, batches: int, loss: float) -> list[tuple[str, list[int]]]:
    found = []
    for _ in range(batches):
        tokens = next(stream)["input_ids"][0].tolist()
        found.append((stream.shard, tokens))
        stream.observe(loss)
    return found


# --- what is read -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_losses_read_everything_once_before_anything_twice(corpus: Path, name: str) -> None:
    found = simulate(corpus, HEALTHY[name], BATCHES * SHARDS + 1)
    assert found.first_round == found.read == 1.0
    assert found.repeated_first == 0.0 and found.rotations == SHARDS


def test_before_a_slope_left_its_shards(corpus: Path) -> None:
    """The simulation can tell the rules apart."""
    for loss in HEALTHY.values():
        found = simulate(corpus, loss, BATCHES * SHARDS, old=True)
        assert found.first_round < 0.6 and found.repeated > 0.2


def test_memorised_data_rotates_and_goes_on_where_it_was(corpus: Path) -> None:
    found = simulate(corpus, MEMORISED["memorised"], BATCHES * SHARDS)
    assert found.first_round == pytest.approx(20 / BATCHES)
    assert (found.read, found.repeated) == (1.0, 0.0)
    half = simulate(corpus, MEMORISED["half of the shards memorised"], BATCHES * SHARDS)
    assert half.first_round == pytest.approx((20 + BATCHES) / 2 / BATCHES) and half.repeated_first == 0.0


def test_the_table(corpus: Path) -> None:
    outcome = simulate(corpus, MEMORISED["memorised"], 60)
    assert table([("memorised", outcome, outcome)]).splitlines()[-1] == (
        "| memorised | 10.0 % | 10.0 % | 0.0 % | 10.0 % | 10.0 % | 0.0 % |"
    )


# --- shards that were left early --------------------------------------------------------------------------------------


def test_a_shard_goes_on_where_it_was_left(corpus: Path) -> None:
    """20 of 60 batches at a visit: after three rounds all were read once, in the order of one pass; then anew."""
    with node(corpus) as left, node(corpus, plateau=None) as whole:
        names = [entry.bin.path for entry in left.shards]
        found = train(left, 9 * 20, 0.01)
        assert [found[i][0] for i in range(0, len(found), 20)] == names * 3 and left.rotations == 9
        passes = {name: [tokens for shard, tokens in found if shard == name] for name in names}
        assert passes[names[0]] == [tokens for _, tokens in train(whole, BATCHES, 0.01)]  # both begun in visit 0
        assert all(Counter(map(str, each)).most_common(1)[0][1] == 1 for each in passes.values())
        again = train(left, 20, 0.01)
        assert {shard for shard, _ in again} == {names[0]} and [each for _, each in again] != passes[names[0]][:20]


def test_a_shard_that_is_left_at_its_end_begins_anew(corpus: Path) -> None:
    with node(corpus, count=1, plateau=PlateauParams(window=BATCHES), rounds=2) as stream:
        found = train(stream, 2 * BATCHES, 0.01)
        assert stream.rotations == 2 and stream.state_dict()["left"] == {}
        assert max(Counter(str(tokens) for _, tokens in found[:BATCHES]).values()) == 1
        with pytest.raises(StopIteration):
            next(stream)


@pytest.mark.parametrize("steps", [20, 25, 60, 61, 79, 80, 185])
def test_resumes_with_shards_that_were_left(corpus: Path, steps: int) -> None:
    with node(corpus) as whole:
        train(whole, steps, 0.01)
        state = json.loads(json.dumps(whole.state_dict()))
        expected = train(whole, 150, 0.01)
    with node(corpus) as again:
        again.load_state_dict(state)
        assert again.state_dict() == state and train(again, 150, 0.01) == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"left": 7}, "left: 7 given, a mapping of this node's shards"),
        ({"left": {"elsewhere": {}}}, "left: .* given, a mapping of this node's shards"),
        ({"began": 9}, "began: 9 given, 0 to 1 is allowed"),
        ({"began": None}, "began: None given, a whole number"),
    ],
)
def test_what_a_state_says_was_left_is_checked(corpus: Path, change: dict[str, Any], message: str) -> None:
    with node(corpus) as stream:
        train(stream, 25, 0.01)
        state = stream.state_dict()
        (shard,) = state["left"]
        place = state["left"][shard]
        wrong = [
            (change, message),
            ({"left": {shard: place | {"began": -1}}}, "left: -1 given, 0 to 1"),
            ({"left": {shard: {"began": 0}}}, "state: 'stream'"),
            ({"left": {shard: place | {"stream": place["stream"] | {"position": 3}}}}, "changed since it was saved"),
            ({"left": {shard: place | {"began": 1}}}, "state: seed .* given"),
        ]
        for each, told in wrong:
            with pytest.raises(StateError, match=told):
                stream.load_state_dict(state | each)
        assert stream.state_dict() == state


# --- states of versions before max_loss -------------------------------------------------------------------------------


def test_an_old_state_goes_on_as_it_was_made(corpus: Path) -> None:
    """By the rule in it, and with shards that begin anew; also through further states, and for the default only."""
    with node(corpus) as stream:
        train(stream, 5, 2.5)
        state = old_state(stream)
    with node(corpus) as old:
        old.load_state_dict(state)
        assert old.state_dict() == state and old.plateau == PlateauParams(**OLD_PLATEAU, max_loss=None)
        found = train(old, 70, 2.5)
        further = json.loads(json.dumps(old.state_dict()))
        assert old.rotations == 3 and further.keys() == state.keys() and further["plateau"] == OLD_PLATEAU
        expected = train(old, 50, 2.5)
        shards = [shard for shard, _ in found]
        assert shards == [entry.bin.path for entry in old.shards for _ in range(20)][5:] + shards[:15]
    with node(corpus) as again:
        again.load_state_dict(further)
        assert train(again, 50, 2.5) == expected
        again.load_state_dict(further | {"plateau": asdict(PLATEAU)})  # from here on by today's rule
        found = train(again, 44, 2.5)  # the rest of its shard, and no rotation after 20 batches
        assert {shard for shard, _ in found} == {shards[0]} and again.state_dict()["left"] == {}


def test_the_batches_of_an_old_state(corpus: Path) -> None:
    """Recorded from the version before: 10 steps, then its state, then this hash of the next 150 batches."""
    with node(corpus) as stream:
        train(stream, 10, 2.5)
        state = old_state(stream)
    with node(corpus) as old:
        old.load_state_dict(state)
        found = hashlib.sha256(json.dumps(train(old, 150, 2.5)).encode()).hexdigest()
    assert found == "d96270325015fc79a815fd5c0d070a52ebaa0c576a3c179a6e96e839f1ae3abb"


def test_old_states_of_other_rules_are_refused(corpus: Path) -> None:
    own = PlateauParams(window=7, max_improvement=0.1)
    with node(corpus) as stream:
        train(stream, 3, 2.5)
        state = old_state(stream)
        for plateau, made, fits in (
            (PLATEAU, state, True),
            (None, state, False),
            (own, state, False),
            (own, old_state(stream, window=7, max_improvement=0.1), True),  # by the same parameters
            (PLATEAU, old_state(stream, window=7, max_improvement=0.1), False),
            (PLATEAU, old_state(stream, max_loss=None), False),  # what no older version wrote
        ):
            with node(corpus, plateau=plateau) as other:
                if fits:
                    other.load_state_dict(made)
                    assert other.state_dict() == made
                    continue
                before = other.state_dict()
                with pytest.raises(StateError, match="state: plateau "):
                    other.load_state_dict(made)
                assert other.state_dict() == before and other.plateau == plateau
