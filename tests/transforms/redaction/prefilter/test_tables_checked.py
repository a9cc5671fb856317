"""Tables that would lead the kernel of cues out of bounds are refused."""

from typing import Any

import numpy as np
import pytest

from refinery.transforms.native import cues
from tests.native.kernel_calls import call


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"bucket": np.zeros(9, np.uint32)}, "bucket: 36 bytes given, 23 rows of 4 bytes are needed"),
        ({"sets": np.zeros((0, 4), np.uint64)}, "sets: a number out of bounds"),
        ({"bucket": np.arange(23, dtype=np.uint32)}, "bucket: a number out of bounds"),
        ({"cues": np.full((2, 13), 9, np.uint32)}, "cues: a number out of bounds"),
        ({"automata": np.array([0, 0, 9], np.uint32)}, "automata: a number out of bounds"),
        ({"first": np.full((2, 4), 2**63, np.uint64)}, "states: a number out of bounds"),
        ({"runs": np.array([[0, 0, 15]] * 2, np.uint32)}, "runs: a number out of bounds"),
    ],
)
def test_numbers_out_of_bounds_are_refused(changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        call(cues.Cues, changed)
