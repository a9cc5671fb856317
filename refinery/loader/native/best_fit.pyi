import numpy as np
from numpy.typing import NDArray

def pack(
    lengths: NDArray[np.int64],
    groups: NDArray[np.int64],
    capacity: int,
    row_of: NDArray[np.int64],
    openers: NDArray[np.int64],
) -> int: ...
