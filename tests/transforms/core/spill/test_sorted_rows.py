"""Rows in order and in pieces, from memory and from disk alike."""

import errno
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.loader.storage.full_disk import DiskFull
from refinery.transforms.core.spill import sorted_rows
from refinery.transforms.core.spill.sorted_rows import RowSorter, group_pieces
from tests.sampling import one_commit_in_four

DTYPE = np.dtype([("group", "<u8"), ("rank", "<u8"), ("wide", "<u4", (5,)), ("locator", "<u8")])
ORDER = ("group", "rank", "locator")


def some_rows(count: int, seed: int, groups: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rows = np.zeros(count, DTYPE)
    rows["group"], rows["rank"] = rng.integers(0, groups, count), rng.integers(0, 4, count)
    rows["locator"] = rng.permutation(count)
    rows["wide"] = rows["locator"][:, None].astype(np.uint32) + np.arange(5, dtype=np.uint32)
    return rows


def sorter(rows: np.ndarray, pieces: int, limit: int = 0, payload: str = "wide") -> RowSorter:
    made = RowSorter(DTYPE, ORDER, payload, limit)
    for piece in np.array_split(rows, pieces):
        made.add(piece)
    return made


@one_commit_in_four
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 300), st.integers(1, 40), st.sampled_from([0, 50, 500, 4000]), st.integers(0, 10**6))
def test_equals_sorting_at_once(count, pieces, limit, seed):
    rows = some_rows(count, seed)
    expected = np.sort(rows, order=list(ORDER))
    blocks = list(sorter(rows, pieces, limit).blocks())
    assert np.array_equal(np.concatenate([block.facts["locator"] for block in blocks]), expected["locator"])
    assert np.array_equal(np.concatenate([block.payload for block in blocks]), expected["wide"])
    assert all(block.payload.flags.c_contiguous for block in blocks)


@one_commit_in_four
@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 300), st.sampled_from([0, 200, 1000]), st.integers(1, 6), st.integers(1, 90), st.integers(0, 10**6)
)
def test_pieces_are_whole_groups_or_parts_of_one_large_group(count, limit, groups, split_rows, seed):
    rows = some_rows(count, seed, groups)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_rows, "SPLIT_ROWS", split_rows)
        pieces = list(group_pieces(sorter(rows, 10, limit).blocks(), "group"))
    expected = np.sort(rows, order=list(ORDER))
    facts = [piece.block.facts for piece in pieces]
    assert np.array_equal(
        np.concatenate([expected["locator"][:0], *(f["locator"] for f in facts)]), expected["locator"]
    )
    seen: set[int] = set()
    going_on: int | None = None
    for piece, found in zip(pieces, facts, strict=True):
        values = set(found["group"].tolist())
        if piece.split:
            assert len(values) <= 1 and (going_on is None or values <= {going_on})
            if going_on is None:
                assert len(found) >= split_rows and not piece.last
            going_on = None if piece.last else found["group"][0].item()
        else:
            assert going_on is None
            assert not values & seen
        seen |= values
    assert going_on is None


def test_no_file_is_left_and_rows_without_a_payload_are_sorted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rows = some_rows(500, 1)
    made = sorter(rows, 20, 1000, payload="")
    assert len(made.runs) > 5 and not list(tmp_path.iterdir())
    found = np.concatenate([block.facts for block in made.blocks()])
    assert np.array_equal(found, np.sort(rows, order=list(ORDER)))


def test_a_full_disk_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(DiskFull, match=r"sorted rows .*TMPDIR"):
        sorter(some_rows(500, 1), 20, 1000)
