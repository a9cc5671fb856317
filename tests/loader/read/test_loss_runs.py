"""Runs of trained tokens: the column there and back, values that cannot be, and the masks of rows by brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.loader.errors import FormatError
from refinery.loader.read.loss_runs import mask_of, read_runs, write_runs
from refinery.loader.read.trained_tokens import TrainedTokens, cut_mask, with_loss
from tests.sampling import examples

MASKS = st.lists(st.lists(st.booleans(), min_size=1, max_size=12), min_size=1, max_size=6)


@settings(max_examples=examples(100), deadline=None)
@given(MASKS)
def test_there_and_back(masks: list[list[bool]]) -> None:
    values = [write_runs(np.array(mask)) for mask in masks]
    offsets = np.cumsum([0, *map(len, masks)])
    starts, ends = read_runs(values, offsets, "shard")
    found = np.zeros(offsets[-1], bool)
    for start, end in zip(starts, ends, strict=True):
        found[start:end] = True
    assert found.tolist() == [trained for mask in masks for trained in mask]
    assert [mask_of(value, len(mask), "").tolist() for value, mask in zip(values, masks, strict=True)] == masks


@pytest.mark.parametrize(
    "value", ["5-3", "0-9", "1-3 2-5", "1-3 3-5", "x-3", "1-", "1", "-1-3", "1-3 0-1", "9" * 30 + "-3"]
)
def test_other_values_are_refused(value: str) -> None:
    with pytest.raises(FormatError, match=r"shard: trained_tokens"):
        read_runs([value], np.array([0, 8]), "shard")


@settings(max_examples=examples(100), deadline=None)
@given(MASKS, st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30), st.integers(1, 9)), max_size=6), st.booleans())
def test_rows_of_pieces(masks: list[list[bool]], cuts: list[tuple[int, int, int]], has_runs: bool) -> None:
    """Pieces of two shards, one of which may be of a corpus without masks."""
    flat = np.array([trained for mask in masks for trained in mask])
    offsets = np.cumsum([0, *map(len, masks)])
    runs = read_runs([write_runs(np.array(mask)) for mask in masks], offsets, "")
    rows, width = 4, 40
    expected, filled, pieces = np.zeros((rows, width), bool), [0] * rows, []
    for number, (row, begin, size) in enumerate(sorted(cuts)):
        shard = number % 2 if not has_runs else 0
        begin = begin % len(flat)
        size = min(size, len(flat) - begin, width - filled[row])
        if size < 1:
            continue
        pieces.append((7 + row, shard, begin, size, filled[row]))
        place = slice(filled[row], filled[row] + size)
        expected[row, place] = True if shard else flat[begin : begin + size]
        filled[row] += size
    table = np.array(pieces, np.int64).reshape(-1, 5)
    trained = TrainedTokens(lambda shard: None if shard else runs)
    assert trained.inside(table, 7, rows, width).tolist() == expected.tolist()


def test_labels_of_what_is_not_trained() -> None:
    trained = np.array([[True, False, True, True, False]])
    batch = {"labels": np.arange(4)[None], "loss_mask": np.array([[True, True, False, True]])}
    found = with_loss(batch, trained, -100)
    assert found["labels"].tolist() == [[-100, 1, 2, -100]]
    assert found["loss_mask"].tolist() == [[False, True, False, False]]
    assert cut_mask(trained, 2).tolist() == [[True, False, True], [True, True, False]]
    assert cut_mask(trained, 1) is trained
