"""What the first batch waits for: no import that it does not need, and only the blocks that its rows are of."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.loader import BestFitParams, TokenStream
from refinery.loader.order.arrays import distinct
from tests.loader.numbered import build_numbered

FIRST = """
import sys
from refinery.loader import TokenStream
with TokenStream(sys.argv[1], 64, 4, prefetch=0, packing="best_fit", doc_ids=True) as stream:
    next(stream)
print("numpy.ma" in sys.modules)
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_numbered(tmp_path_factory.mktemp("corpus"), {"a": [[*range(1, 60)] * 20]})


def test_numpy_ma_is_not_imported(corpus: Path) -> None:
    found = subprocess.run([sys.executable, "-c", FIRST, str(corpus)], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False"]


def test_only_the_blocks_of_the_first_rows_are_laid_out(corpus: Path) -> None:
    with TokenStream(str(corpus), 64, 4, prefetch=0, packing=BestFitParams(block=500)) as stream:
        next(stream)
        layouts = stream._schedule.domains[0]._layouts  # type: ignore[attr-defined]
        laid_out = sum(int((slots >= 0).sum()) for slots in layouts._slots.values())
        assert 1 <= laid_out <= 4 < len(layouts._sizes)


@given(st.lists(st.integers(-3, 3)))
def test_distinct_is_numpys_unique(values: list[int]) -> None:
    array = np.array(values, np.int64)
    assert distinct(array).tolist() == np.unique(array).tolist() and distinct(array).dtype == np.int64
