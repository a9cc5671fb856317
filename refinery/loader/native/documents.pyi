import numpy as np
from numpy.typing import NDArray

def find(
    offsets: NDArray[np.int64], begins: NDArray[np.int64], stops: NDArray[np.int64], shifts: NDArray[np.int64]
) -> tuple[bytearray, bytearray]: ...
