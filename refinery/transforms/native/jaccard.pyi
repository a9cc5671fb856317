import numpy as np
from numpy.typing import NDArray

def cluster(
    values: NDArray[np.uint32],
    offsets: NDArray[np.int64],
    starts: NDArray[np.int64],
    threshold: float,
    representative: NDArray[np.uint32],
    shared: NDArray[np.uint32],
) -> None: ...
def merge_steps() -> int: ...
