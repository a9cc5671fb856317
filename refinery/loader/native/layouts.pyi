import numpy as np
from numpy.typing import NDArray

def lay_out(
    starts: NDArray[np.int64],
    reads: NDArray[np.int32],
    piece_bounds: NDArray[np.int64],
    row_bounds: NDArray[np.int64],
    capacity: int,
    noise: int,
    key: int,
    wanted: NDArray[np.int64],
    at: NDArray[np.int64],
    ring: NDArray[np.int32],
) -> None: ...
