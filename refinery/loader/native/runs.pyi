import numpy as np
from numpy.typing import NDArray

def cut(
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
    starts: NDArray[np.int64],
    blocks: NDArray[np.int64],
    runs: NDArray[np.int64],
    sizes: NDArray[np.int64],
    numbers: NDArray[np.int64],
    tokens: NDArray[np.int64],
    origins: NDArray[np.int64],
    places: NDArray[np.int64],
    data: NDArray[np.uint8],
    base: int,
) -> bytearray | int: ...
