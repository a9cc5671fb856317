"""Fixed shapes: cu_seqlens of one size for a compiled model, and parts of rows for context parallelism."""

from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refinery.loader import LengthStage, TokenStream
from refinery.loader.order.context_parallel import LAYOUTS, ContextSlice
from refinery.loader.stream.masks import MaskParams, TooManyRuns
from tests.loader.numbered import build_numbered

LENGTH = 48
MASKS: dict[str, Any] = dict.fromkeys(
    ("loss_mask", "position_ids", "doc_ids", "cu_seqlens", "ignore_cross_document", "sample_ids"), True
)
ROWS = ("input_ids", "labels", "loss_mask", "position_ids", "doc_ids")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    chance = np.random.default_rng(3)
    return build_numbered(tmp_path_factory.mktemp("corpus"), {"a": [chance.integers(0, 60, 70).tolist()]})


def batches(corpus: Path, **options: Any) -> list[dict[str, Any]]:
    how: dict[str, Any] = {"sequence_length": LENGTH, "batch_size": 3, "epochs": 1, "prefetch": 0}
    with TokenStream(corpus, **(how | options)) as stream:
        return list(stream)


def as_megatron(array: np.ndarray, rank: int, size: int) -> np.ndarray:
    """get_batch_on_this_cp_rank, written again from its description: 2 x size chunks, of which a rank takes two."""
    rows, length = array.shape
    chunks = array.reshape(rows, 2 * size, length // (2 * size))
    return chunks[:, [rank, 2 * size - rank - 1]].reshape(rows, length // size)


@pytest.mark.parametrize("labels", ["shifted", "unshifted"])
@pytest.mark.parametrize("masks", [{}, MASKS])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_zigzag_is_megatrons(corpus: Path, size: int, masks: dict[str, Any], labels: str) -> None:
    whole = batches(corpus, labels=labels, **masks)
    for rank in range(size):
        parts = batches(corpus, labels=labels, cp_rank=rank, cp_size=size, **masks)
        for part, batch in zip(parts, whole, strict=True):
            assert part.keys() == batch.keys()
            for name, array in batch.items():
                want = as_megatron(np.asarray(array), rank, size) if name in ROWS else array
                assert np.array_equal(part[name], want), name
                if name in ROWS:
                    assert part[name].dtype == array.dtype and part[name].flags.c_contiguous
                    assert part[name].flags.writeable and part[name].base is None


@pytest.mark.parametrize("size", [2, 3, 16])
def test_contiguous_parts_follow_each_other(corpus: Path, size: int) -> None:
    whole = batches(corpus, **MASKS)
    parts = [batches(corpus, cp_rank=rank, cp_size=size, cp_layout="contiguous", **MASKS) for rank in range(size)]
    for batch, *its in zip(whole, *parts, strict=True):
        for name in ROWS:
            assert np.array_equal(np.concatenate([part[name] for part in its], axis=1), batch[name]), name


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_every_place_is_in_one_part(layout: str, size: int) -> None:
    places = [ContextSlice(rank, size, layout).places(60).tolist() for rank in range(size)]
    assert sorted(chain.from_iterable(places)) == list(range(60)) and {len(each) for each in places} == {60 // size}


def test_zigzag_is_balanced() -> None:
    """With causal attention a place looks at itself and all before it."""
    works = {int((ContextSlice(rank, 8).places(1024) + 1).sum()) for rank in range(8)}
    assert works == {1024 * 1025 // 2 // 8}
    assert len({int(ContextSlice(rank, 8, "contiguous").places(1024).sum()) for rank in range(8)}) == 8


def test_a_state_is_that_of_any_rank_of_the_group(corpus: Path) -> None:
    how: dict[str, Any] = {"sequence_length": LENGTH, "batch_size": 3, "prefetch": 1}
    with TokenStream(corpus, **how, cp_rank=1, cp_size=4) as one, TokenStream(corpus, **how) as other:
        for _ in range(4):
            next(one), next(other)
        assert one.state_dict() == other.state_dict()
        other.load_state_dict(one.state_dict())
        assert np.array_equal(next(one)["labels"], as_megatron(np.asarray(next(other)["labels"]), 1, 4))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"cp_size": 5},
            "48 given with cp_size=5 and cp_layout='zigzag', a multiple of 10 is allowed",
        ),
        ({"cp_size": 5, "cp_layout": "contiguous"}, "a multiple of 5 is allowed"),
        ({"cp_size": 2, "cp_rank": 2}, "cp_rank: 2 given, 0 to 1 is allowed"),
        ({"cp_size": 0}, "cp_size: 0 given"),
        ({"cp_layout": "striped"}, "cp_layout: 'striped' given, zigzag or contiguous is allowed"),
        ({"cp_size": 4, "sequence_length": [LengthStage(12, 100), LengthStage(48)]}, "sequence_length: 12 given with"),
        ({"cu_seqlens_size": 9}, "cu_seqlens_size: given without cu_seqlens"),
        ({"cu_seqlens_size": 1, "cu_seqlens": True}, "cu_seqlens_size: 1 given, 2 to"),
    ],
)
def test_what_cannot_be_is_refused(corpus: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        batches(corpus, **options)


@pytest.mark.parametrize("packing", [None, "best_fit"])
def test_cu_seqlens_of_a_fixed_size(corpus: Path, packing: str | None) -> None:
    """The same runs, then empty ones; max_seqlen does not change either."""
    whole = batches(corpus, packing=packing, **MASKS)
    fixed = batches(corpus, packing=packing, cu_seqlens_size=40, **MASKS)
    assert len({len(batch["cu_seqlens"]) for batch in whole}) > 1
    for batch, same in zip(whole, fixed, strict=True):
        found = same["cu_seqlens"]
        assert found.shape == (40,) and found.dtype == np.int32 and same["max_seqlen"] == LENGTH
        count = len(batch["cu_seqlens"])
        assert found[:count].tolist() == batch["cu_seqlens"].tolist()
        assert {b - a for a, b in pairwise(found[count - 1 :].tolist())} == {0} and found[-1] == 3 * LENGTH
        assert all(np.array_equal(same[name], batch[name]) for name in ROWS)


def test_a_size_that_is_too_small_says_which_is_enough(corpus: Path) -> None:
    """The stream can be opened again with it, and goes on where it was."""
    sizes = [len(batch["cu_seqlens"]) for batch in batches(corpus, cu_seqlens=True)]
    first = next(i for i, size in enumerate(sizes) if size > 4)
    how: dict[str, Any] = {"sequence_length": LENGTH, "batch_size": 3, "cu_seqlens": True}
    with TokenStream(corpus, **how, cu_seqlens_size=4) as stream:
        for _ in range(first):
            next(stream)
        with pytest.raises(TooManyRuns, match=f"cu_seqlens_size: 4 given, .* so {sizes[first]} or more is allowed"):
            next(stream)
        state = stream.state_dict()
    with TokenStream(corpus, **how, cu_seqlens_size=max(sizes)) as stream:
        stream.load_state_dict(state)
        assert [int((np.diff(next(stream)["cu_seqlens"]) > 0).sum()) + 1 for _ in sizes[first:]] == sizes[first:]


def test_the_size_is_a_parameter_of_masks() -> None:
    assert MaskParams(cu_seqlens_size=np.int64(7)).cu_seqlens_size == 7  # type: ignore[arg-type]
