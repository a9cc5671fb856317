"""on_damage="skip" of packed rows: rows of a damaged row group are empty, the others are what they are."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refinery.loader import CorruptShard, PackedStream
from refinery.loader.format.block_checksums import CHECKSUM_BLOCK
from tests.corpus_factory import build_corpus
from tests.loader.stream.test_damage import flip
from tests.packed_factory import add_packed_rows

L = 256


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of several MiB, so that its footer is in another block than its first row groups."""
    chance = random.Random(3)
    texts = ["".join(chance.choices("abcdefghijklmnop qrstuvwxyz", k=900)) for _ in range(2200)]
    root = build_corpus(tmp_path_factory.mktemp("packed") / "corpus", {("train", "web"): [texts]})
    return add_packed_rows(root, L)


def stream(corpus: Path, **options: Any) -> PackedStream:
    return PackedStream(corpus, L, 16, prefetch=0, epochs=1, doc_ids=True, loss_mask=True, **options)


def test_damaged_rows(corpus: Path) -> None:
    whole = list(stream(corpus))
    (path,) = corpus.glob("packed/train/web/*.parquet")
    assert path.stat().st_size > 2 * CHECKSUM_BLOCK
    flip(path, 4000)
    try:
        with pytest.raises(CorruptShard):
            list(stream(corpus))
        one = stream(corpus, on_damage="skip")
        lost = 0
        for found, wanted in zip(one, whole, strict=True):
            empty = (found["doc_ids"] < 0).all(axis=1)
            for name in ("input_ids", "labels", "doc_ids", "loss_mask"):
                assert np.array_equal(found[name][~empty], wanted[name][~empty])
            assert (found["labels"][empty] == -100).all() and not found["loss_mask"][empty].any()
            lost += int((empty & ~(wanted["doc_ids"] < 0).all(axis=1)).sum())
        assert one.not_delivered is not None and one.not_delivered.damaged_tokens == lost * L > 0
        assert len(list(one.not_delivered.rows())) == len(one.not_delivered.damaged) > 0
        other = stream(corpus, on_damage="skip")
        other.load_state_dict(one.state_dict())
        assert other.state_dict()["damaged"]["tokens"] == lost * L
    finally:
        flip(path, 4000)
