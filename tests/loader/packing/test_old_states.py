"""States that older versions saved: packed rows are pinned, so a stream goes on where they were."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refinery.loader import BestFitParams, TokenStream
from refinery.loader.stream.state import checksum
from tests.loader.numbered import build_numbered

LENGTHS = [(7919 * i * i + 104_729 * i) % 1733 % 900 for i in range(2000)]
ORDER = {"version": 1, "block": None, "lanes": 256, "window": 16, "packing": "best_fit"}
STATES: list[tuple[int, BestFitParams, dict[str, Any], str]] = [
    (
        64,
        BestFitParams(20_000),
        {
            "order": ORDER | {"pack_block": 20000, "repack": True},
            "position": 13380,
            "usage": ["b7f6f25416f5f6ce"],
        },
        "2d3277a43e31a1e2",
    ),
    (
        64,
        BestFitParams(20_000, repack=False),
        {
            "order": ORDER | {"pack_block": 20000},
            "position": 13336,
            "usage": ["3c393dd7875168e8"],
        },
        "551e57f2a3a0ecf2",
    ),
    (
        1024,
        BestFitParams(),
        {
            "order": ORDER | {"pack_block": 1048576, "repack": True},
            "position": 800,
            "usage": ["bf40e6a54b2ffd60"],
        },
        "117dd0a4b7c06c6b",
    ),
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_numbered(tmp_path_factory.mktemp("corpus"), {"a": [LENGTHS[:900], LENGTHS[900:]]}, vocab_size=2**20)


def digest_of(stream: TokenStream, batches: int) -> str:
    found = hashlib.sha256()
    for _ in range(batches):
        batch = next(stream)
        for name in ("input_ids", "labels", "doc_ids", "sample_ids"):
            found.update(np.ascontiguousarray(batch[name]).tobytes())
    return found.hexdigest()[:16]


@pytest.mark.parametrize(("length", "packing", "state", "digest"), STATES)
def test_a_stream_goes_on_from_a_saved_state(
    corpus: Path, length: int, packing: BestFitParams, state: dict[str, Any], digest: str
) -> None:
    """At the end of an epoch and in the next one, in which documents meet others."""
    how: Any = {"seed": 3, "packing": packing, "prefetch": 0, "doc_ids": True, "sample_ids": True}
    with TokenStream(str(corpus), length, 4, **how) as stream:
        saved = {"version": 1, "corpus": stream.corpus, "split": "train", "seed": 3, "shards": None, "subset": None}
        saved |= {"mix": None, "epoch": 0, "sequence_length": length} | state
        stream.load_state_dict(saved | {"check": checksum(saved)})
        assert digest_of(stream, 20) == digest
        assert stream.state_dict()["epoch"] == 1
