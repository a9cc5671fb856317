import numpy as np
from numpy.typing import NDArray

def find(
    rows: NDArray[np.int64],
    row_bounds: NDArray[np.int64],
    piece_bounds: NDArray[np.int64],
    slots: NDArray[np.int64],
    layouts: NDArray[np.int32],
    starts: NDArray[np.int64],
    reads: NDArray[np.int32],
    parts: NDArray[np.int64],
) -> bytearray: ...
