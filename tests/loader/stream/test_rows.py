"""The kernel that copies rows into a batch, against numpy, and the arguments that it rejects."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.loader.native import rows


@given(st.integers(0, 2**32), st.integers(0, 9), st.one_of(st.integers(0, 70), st.integers(0, 5000)), st.booleans())
def test_rows_are_what_numpy_says(seed: int, count: int, size: int, mixed: bool) -> None:
    draw = np.random.default_rng(seed)
    given_ = []
    for _ in range(count):
        dtype = np.dtype(draw.choice([np.uint16, np.int32, np.int64]) if mixed else np.int32)
        bounds = np.iinfo(dtype)
        tokens = draw.integers(bounds.min, bounds.max, size + 3, dtype, endpoint=True)
        given_.append(tokens[draw.integers(0, 4) :][:size])
    around = np.full((count + 2, size), -7)
    rows.copy(given_, around[1:-1])
    for row, want in zip(around[1:-1], given_, strict=True):
        assert row.tolist() == want.tolist()
    assert (around[0] == -7).all() and (around[-1] == -7).all()


def test_a_row_at_the_end_of_its_memory() -> None:
    """Prefetching may run ahead, but nothing beyond an array is read as its token."""
    one = np.arange(33, dtype=np.int32)
    out = np.zeros((2, 33), np.int64)
    rows.copy([one, one[:33]], out)
    assert (out == one).all()


@pytest.mark.parametrize(
    ("given_", "out", "message"),
    [
        ([np.zeros(4, np.int32)], np.zeros(5, np.int64), "16 bytes in items of 4 in row 0"),
        ([np.zeros(4, np.int32), np.zeros(3, np.int32)], np.zeros(8, np.int64), "12 bytes in items of 4 in row 1"),
        ([np.zeros(4, np.uint64)], np.zeros(4, np.int64), "rows: 32 bytes"),
        ([np.zeros(33, np.uint8)[1:].view(np.int64)], np.zeros(4, np.int64), "aligned"),
        ([np.zeros(4, np.int32)], np.zeros(8, np.int64), "rows: 16 bytes"),  # as many bytes as eight uint16
        ([np.zeros(4, np.int32)], np.zeros(8, np.int32), "out: "),
        ([np.zeros(17, np.uint8)[1:].view(np.int32)], np.zeros(4, np.int64), "aligned"),
        ([], np.zeros(4, np.int64), "out: "),
        ([np.zeros(4, np.int32)] * 2, np.zeros(7, np.int64), "out: "),
        ([np.zeros(4, np.int32)], np.zeros(33, np.uint8)[1:].view(np.int64), "out: "),
    ],
)
def test_other_sizes_are_refused(given_: list[Any], out: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rows.copy(given_, out)


def test_other_objects_are_refused() -> None:
    fixed = np.zeros(4, np.int64)
    fixed.flags.writeable = False
    for given_, out in (
        ([np.zeros(4, np.int32)], fixed),
        (None, np.zeros(4, np.int64)),
        ([None], np.zeros(4, np.int64)),
        ([np.zeros(8, np.int32)[::2]], np.zeros(4, np.int64)),
    ):
        with pytest.raises((TypeError, ValueError, BufferError)):
            rows.copy(given_, out)  # type: ignore[arg-type]
