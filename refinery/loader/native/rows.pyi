from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

def gather(
    shards: Mapping[int, tuple[NDArray[Any], Any]],
    block: int,
    pieces: NDArray[np.int64],
    first: int,
    out: NDArray[np.int64],
    labels: NDArray[np.int64] | None = None,
) -> int | None: ...
def pad(out: NDArray[np.int64], valid: NDArray[np.int64], value: int) -> int: ...
