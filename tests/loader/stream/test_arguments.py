"""Arguments of wrong types and values: a ValueError that names the argument, before anything is opened."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refinery.loader import (
    BestFitParams,
    FetchParams,
    FillInMiddleParams,
    MixParams,
    MixStage,
    OrderParams,
    PackedStream,
    RemoteParams,
    TokenStream,
)
from refinery.loader.arguments import flag, of_kind, whole
from refinery.loader.stream.assignment import PlateauParams
from refinery.loader.stream.node import node_shards
from tests.loader.numbered import build_numbered


@pytest.mark.parametrize(
    "options, message",
    [
        ({"rank": True, "world_size": 2}, r"rank: True given, a whole number, 0 to 1, is allowed"),
        ({"epochs": 1.5}, r"epochs: 1\.5 given, a whole number, 1 or more, is allowed"),
        ({"epochs": 0}, r"epochs: 0 given, 1 or more is allowed"),
        ({"epochs": True}, r"epochs: True given, a whole number"),
        ({"batch_size": "8"}, r"batch_size: '8' given, a whole number"),
        ({"sequence_length": 4e3}, r"sequence_length: 4000\.0 given, a whole number"),
        ({"seed": None}, r"seed: None given, a whole number"),
        ({"seed": np.bool_(True)}, r"seed: .*True.* given, a whole number"),
        ({"prefetch": -1}, r"prefetch: -1 given, 0 to 2147483647 is allowed"),
        ({"prefetch": 0.5}, r"prefetch: 0\.5 given, a whole number"),
        ({"sequence_length": 2**70}, r"sequence_length: 1180591620717411303424 given, 1 to 2147483647 is allowed"),
        ({"rank": 2, "world_size": 2}, r"rank: 2 given, 0 to 1 is allowed"),
        ({"worker": 1.0, "workers": 2}, r"worker: 1\.0 given, a whole number, 0 to 1, is allowed"),
        ({"loss_mask": "False"}, r"loss_mask: 'False' given, True or False is allowed"),
        ({"ignore_eos": 1}, r"ignore_eos: 1 given, True or False is allowed"),
        ({"split": "test"}, r"split: 'test' given, train or validation is allowed"),
        ({"split": ["train"]}, r"split: \['train'\] given, train or validation is allowed"),
        ({"order": {"lanes": 4}}, r"order: \{'lanes': 4\} given, OrderParams or None is allowed"),
        ({"remote": 3}, r"remote: 3 given, RemoteParams or None is allowed"),
        ({"fill_in_middle": True}, r"fill_in_middle: True given, FillInMiddleParams or None is allowed"),
        ({"codec": len}, r"codec: .* given, \(encode, decode\) or None is allowed"),
        ({"shards": "train/a/shard-00000-of-00001.bin"}, r"shards: 'train/a.* given, a list of \.bin paths is allowed"),
        ({"shards": 3}, r"shards: 3 given, a list of \.bin paths is allowed"),
        ({"shards": [None]}, r"shards: \[None\] given, a list of \.bin paths is allowed"),
        ({"weights": ["a"]}, r"weights: \['a'\] given, numbers by domain, MixStages or MixParams are allowed"),
        ({"weights": 0.5}, r"weights: 0\.5 given, numbers by domain"),
        ({"weights": {"a": "1"}}, r"weights: '1' given for 'a', a finite number of 0 or more is allowed"),
        ({"weights": {"a": True}}, r"weights: True given for 'a'"),
    ],
)
def test_of_a_stream(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    corpus = build_numbered(tmp_path, {"a": [[20, 30]]})
    with pytest.raises(ValueError, match=message):
        TokenStream(corpus, **options)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: OrderParams(block=1.5), r"block: 1\.5 given, a whole number, 0 to 16777216, is allowed"),
        (lambda: OrderParams(lanes=True), r"lanes: True given, a whole number"),
        (lambda: OrderParams(window=None), r"window: None given, a whole number"),
        (lambda: MixStage({"a": 1}, 1e9), r"tokens: 1000000000\.0 given, a whole number"),
        (lambda: MixParams([MixStage({"a": 1})], repeats=1.5), r"repeats: 1\.5 given, a whole number"),
        (lambda: MixParams([MixStage({"a": 1})], block="8"), r"block: '8' given, a whole number"),
        (lambda: RemoteParams(threads=2.5), r"threads: 2\.5 given, a whole number"),
        (lambda: RemoteParams(peer_wait=float("nan")), r"peer_wait: nan given, 0 or more is allowed"),
        (lambda: RemoteParams(stagger="1"), r"stagger: '1' given, 0 or more is allowed"),
        (lambda: RemoteParams(cache="/x"), r"cache: '/x' given, Path or None is allowed"),
        (lambda: BestFitParams(folder="/x"), r"folder: '/x' given, Path or None is allowed"),
        (lambda: FetchParams(deadline=None), r"deadline: None given, a number above 0 is allowed"),
        (lambda: FetchParams(hedge_share=True), r"hedge_share: True given, 0 to 1 is allowed"),
        (lambda: MixParams(3), r"stages: 3 given, a list of MixStages is allowed"),
        (lambda: PlateauParams(window=2.5), r"window: 2\.5 given, a whole number"),
        (lambda: PlateauParams(max_variance="1"), r"max_variance: '1' given, 0 or more is allowed"),
        (lambda: node_shards(["a"], 3), r"node: 3 given, any text but an empty one is allowed"),
        (lambda: node_shards(["a"], "n", 1.5), r"count: 1\.5 given, a whole number"),
        (lambda: PackedStream("x", columns=3), r"columns: 3 given, a list of .* is allowed"),
        (lambda: PackedStream("x", packing_every="1"), r"packing_every: '1' given, a whole number"),
        (lambda: FillInMiddleParams(1, 2, 3, 4, rate="1"), r"rate: '1' given, 0 to 1 is allowed"),
        (lambda: FillInMiddleParams(1.0, 2, 3, 4), r"prefix_id: 1\.0 given, a whole number"),
        (lambda: FillInMiddleParams(1, 2, 3, 4, min_tokens=2.5), r"min_tokens: 2\.5 given, a whole number"),
    ],
)
def test_of_parameters(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_whatever_counts_as_a_whole_number_becomes_one_of_python() -> None:
    assert type(whole("x", np.uint8(3), 0)) is int and whole("x", np.uint8(3), 0, 3) == 3
    assert type(flag("x", np.bool_(True))) is bool
    assert of_kind("x", None, dict) is None and of_kind("x", {}, dict, list) == {}
    assert OrderParams(lanes=np.int64(4)) == OrderParams(lanes=4) and type(OrderParams(lanes=np.int64(4)).lanes) is int
