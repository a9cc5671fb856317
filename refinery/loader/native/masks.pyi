import numpy as np
from numpy.typing import NDArray

def fill(
    tokens: NDArray[np.int64],
    starts: NDArray[np.int64],
    counts: NDArray[np.int64],
    valid: NDArray[np.int64],
    options: int,
    eos: int,
    labels: NDArray[np.int64] | None,
    loss: NDArray[np.bool_] | None,
    positions: NDArray[np.int32] | None,
    documents: NDArray[np.int32] | None,
    bounds: NDArray[np.int32] | None,
) -> tuple[int, int]: ...
