import numpy as np
from numpy.typing import NDArray

def permute(
    x: NDArray[np.uint64],
    n: NDArray[np.uint64],
    keys: NDArray[np.uint64],
    tweak: NDArray[np.uint64],
    inverse: bool,
    out: NDArray[np.uint64],
) -> int: ...
