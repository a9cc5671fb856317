"""Documents far longer than a row, packed: every token once, with spare rows only where there are pieces for them, and
states that were made before rows without a piece were left out."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from refinery.loader import BestFitParams, OrderParams, StateError, TokenStream
from refinery.loader.packing import row_table
from refinery.loader.packing.packing import TRIMMED
from tests.loader.numbered import Lengths, build_numbered
from tests.loader.packing.packing_oracle import delivered_rows, expected_rows
from tests.sampling import examples

ALL: dict[str, Any] = {"doc_ids": True, "position_ids": True, "loss_mask": True}
PLAIN: Lengths = {"a": [[1 + 7 * i % 61 for i in range(900)]], "b": [[45, 3, 50, 20] * 40]}
STUCK: Lengths = {"a": [[30_000], *PLAIN["a"]], "b": PLAIN["b"]}  # 469 pieces, which need 469 rows, and a spare one


def stream(corpus: Path, **options: Any) -> TokenStream:
    shape: dict[str, Any] = {"sequence_length": 64, "batch_size": 4, "seed": 5, "order": OrderParams(1, 4, 2)}
    return TokenStream(
        corpus, **(shape | {"prefetch": 0, "epochs": 1, "packing": "best_fit", "doc_ids": True} | options)
    )


def tokens(batch: dict[str, Any]) -> Any:
    return batch["input_ids"][batch["doc_ids"] >= 0]


def epochs(one: TokenStream) -> list[Any]:
    """Tokens of each epoch, which must all be there once: their ids are their positions (tests.loader.numbered)."""
    found = [tokens(batch) for batch in one]
    steps = one.steps_per_epoch or 0
    assert len(found) % steps == 0
    return [np.sort(np.concatenate(found[i : i + steps])) for i in range(0, len(found), steps)]


@pytest.mark.parametrize(
    ("documents", "length", "rows"),
    [([700_000], 2048, 342), ([120_000] * 3, 256, 1407), ([150_000, 9, 9], 512, 294), ([6000], 2, 3000)],
)
def test_long_documents(tmp_path: Path, documents: list[int], length: int, rows: int) -> None:
    """Books at a row of few tokens; also one document alone."""
    corpus = build_numbered(tmp_path, {"books": [documents]}, vocab_size=1 << 21)
    one = stream(corpus, sequence_length=length, epochs=2, batch_size=1)
    assert one.steps_per_epoch == rows
    for found in epochs(one):
        assert np.array_equal(found, np.arange(sum(documents)))
    ranks = [stream(corpus, sequence_length=length, rank=rank, world_size=3, batch_size=7) for rank in range(3)]
    both = np.concatenate([tokens(batch) for rank in ranks for batch in rank])
    assert np.array_equal(np.sort(both), np.arange(sum(documents)))


long_lengths = st.lists(st.lists(st.integers(0, 9) | st.integers(0, 400), max_size=6), min_size=1, max_size=3)


@settings(max_examples=examples(160), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.fixed_dictionaries({"a": long_lengths, "b": long_lengths}), st.data())
def test_any_long_documents(tmp_path_factory: pytest.TempPathFactory, layout: Lengths, data: st.DataObject) -> None:
    """Documents of up to 200 rows, with a spare row for every so many: the oracle's rows, and any state goes on."""
    if not any(length for shards in layout.values() for shard in shards for length in shard):
        return
    corpus = build_numbered(tmp_path_factory.mktemp("long"), layout)
    length, spare, block = data.draw(st.integers(2, 16)), data.draw(st.integers(1, 6)), data.draw(st.integers(1, 500))
    options: dict[str, Any] = {"sequence_length": length, "packing": BestFitParams(block), "epochs": 2, **ALL}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_table, "SPARE", spare)
        one = stream(corpus, **options)
        steps = [delivered_rows(batch) for batch in one]
        half = len(steps) // 2
        for epoch in range(2):
            its = [row for step in steps[epoch * half : epoch * half + half] for row in step]
            assert sorted(its) == expected_rows(layout, layout, length, block, epoch, spare)
        one.restart()
        position = data.draw(st.integers(0, len(steps)))
        one.skip(position)
        other = stream(corpus, **options)
        other.load_state_dict(json.loads(json.dumps(one.state_dict())))
        assert [row for batch in other for row in delivered_rows(batch)] == [
            r for step in steps[position:] for r in step
        ]
        _check_states_from_before(corpus, layout, options, one.steps_per_epoch or 0)


def _check_states_from_before(corpus: Path, layout: Lengths, options: dict[str, Any], steps: int) -> None:
    """A stream that counts rows without a piece, as all did: every token once, also across a state."""
    old = stream(corpus, **options)
    state = old.state_dict()
    if state["order"]["repack"] is True:
        assert old._packing is not None and old._packing.of_state(state) is old._packing
        return  # no block has such rows: nothing is another one
    old.load_state_dict(as_before(state))
    assert (old.steps_per_epoch or 0) >= steps
    before = [tokens(next(old)) for _ in range((old.steps_per_epoch or 0) // 2)]
    new = stream(corpus, **options)
    new.load_state_dict(json.loads(json.dumps(old.state_dict())))
    after = [tokens(batch) for batch in new]
    every = np.arange(sum(length for shards in layout.values() for shard in shards for length in shard))
    assert np.array_equal(np.sort(np.concatenate([*before, *after])), np.sort(np.concatenate([every, every])))


def as_before(state: dict[str, Any]) -> dict[str, Any]:
    """The state as it was made until rows without a piece were left out. It has no checksum, which is allowed."""
    assert state["order"]["repack"] == TRIMMED
    rest = {name: value for name, value in state.items() if name != "check"}
    return rest | {"order": rest["order"] | {"repack": True}}


BASE = {"version": 1, "split": "train", "sequence_length": 64, "seed": 5, "shards": None, "subset": None, "mix": None}
ORDER = {"version": 1, "block": 1, "lanes": 4, "window": 2, "packing": "best_fit", "pack_block": 1 << 20}
# Options, a state that was made before rows without a piece were left out, and a digest of the tokens behind it.
GOLDEN: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "repack": (
        {"epochs": 2},
        {"order": ORDER | {"repack": True}, "epoch": 1, "position": 148, "usage": ["6ad8cb9d3fa82d1a"]},
        "1281e92c7ebec5a9",
    ),
    "the same rows": (
        {"packing": BestFitParams(repack=False), "epochs": 2},
        {"order": ORDER, "epoch": 1, "position": 152, "usage": ["a449ac6ff5561068"]},
        "5236f64a05347d5b",
    ),
    "blocks": (
        {"packing": BestFitParams(5000)},
        {
            "order": ORDER | {"pack_block": 5000, "repack": True},
            "epoch": 0,
            "position": 132,
            "usage": ["22a5eec1a98669fc"],
        },
        "9d936de86cf1f9f1",
    ),
    "weights": (
        {"weights": {"a": 3, "b": 1}, "epochs": 2},
        {
            "order": ORDER | {"repack": True},
            "mix": "80db35d1a88be50b",
            "epoch": 0,
            "position": 400,
            "usage": ["3b05a6b088287ace", "5b3c3d020068cea4"],
        },
        "3547f9661f28a533",
    ),
}


def digest(parts: list[Any]) -> str:
    return hashlib.sha256(np.concatenate(parts).astype(np.int64).tobytes()).hexdigest()[:16]


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_states_go_on(tmp_path: Path, name: str) -> None:
    options, state, expected = GOLDEN[name]
    one = stream(build_numbered(tmp_path, PLAIN), **options)
    one.load_state_dict(BASE | state | {"corpus": one.corpus})
    assert digest([tokens(batch) for batch in one]) == expected


def test_a_golden_state_of_a_run_that_was_stuck(tmp_path: Path) -> None:
    """It ended with an error as soon as its next step had the long document. It goes on, and delivers the rest."""
    options: dict[str, Any] = {"packing": BestFitParams(30_000), "order": OrderParams(64, 1, 1)}
    order = {"version": 1, "block": 64, "lanes": 1, "window": 1, "packing": "best_fit", "pack_block": 30_000}
    saved = {"order": order | {"repack": True}, "epoch": 0, "position": 64, "usage": ["2956ec6451c5b2c0"]}
    corpus = build_numbered(tmp_path, STUCK)
    one = stream(corpus, **options)
    rows_now = one.steps_per_epoch
    one.load_state_dict(BASE | saved | {"corpus": one.corpus})
    assert one.state_dict()["order"]["repack"] is True
    batches = list(one)
    found = np.concatenate([tokens(batch) for batch in batches])
    every = np.arange(sum(sum(sum(shard) for shard in shards) for shards in STUCK.values()))
    assert len(np.unique(found)) == len(found)
    assert digest([np.setdiff1d(every, found)]) == "080e74c2aa6ea8ef"  # what it had delivered
    assert one.tokens_per_domain == {name: sum(map(sum, shards)) for name, shards in STUCK.items()}
    fresh = stream(corpus, **options).state_dict()
    one.load_state_dict(fresh)  # and back
    assert one.state_dict() == fresh and one.steps_per_epoch == rows_now == 250


def test_a_state_from_before_by_weights_subset_and_ids(tmp_path: Path) -> None:
    """Rows without a piece are empty rows: padding, without labels, and with no documents to locate."""
    corpus = build_numbered(tmp_path, STUCK)
    options: dict[str, Any] = {
        "packing": BestFitParams(30_000),
        "sample_ids": True,
        "domain_ids": True,
        "loss_mask": True,
    }
    one = stream(corpus, weights={"a": 1, "b": 1}, **options)
    one.load_state_dict(as_before(one.state_dict()))
    assert sum(len(tokens(batch)) for batch in one) == sum(one.tokens_per_domain.values())
    one = stream(corpus, subset=0.999, **options)
    one.load_state_dict(as_before(one.state_dict()))
    assert one.steps_per_epoch == 250
    one = stream(corpus, **options)
    one.load_state_dict(as_before(one.state_dict()))
    empty = [
        (i, batch) for batch in one for i in range(4) if (batch["doc_ids"][i] < 0).all() and batch["sample_ids"][i] >= 0
    ]
    assert len(empty) == 1
    ((i, batch),) = empty
    assert (batch["labels"][i] == -100).all() and not batch["loss_mask"][i].any()
    assert one.locate(int(batch["sample_ids"][i])) == []


def test_states_of_other_rows_are_refused(tmp_path: Path) -> None:
    """No number but those of states, and only where some block has fewer pieces than rows."""
    one = stream(build_numbered(tmp_path, PLAIN))
    state = one.state_dict()
    for repack in (TRIMMED, 3, None, "2", np.arange(3)):
        changed = {name: value for name, value in state.items() if name != "check"}
        changed["order"] = state["order"] | {"repack": repack}
        with pytest.raises(StateError, match="order"):
            one.load_state_dict(changed)
