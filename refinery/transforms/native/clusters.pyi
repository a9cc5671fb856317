import numpy as np
from numpy.typing import NDArray

def link(
    sketches: NDArray[np.uint8],
    starts: NDArray[np.int64],
    permutations: int,
    minimum: int,
    always: int,
    protected: NDArray[np.uint8] | None = None,
    whole: int = 0,
    held: NDArray[np.uint8] | None = None,
) -> bytes: ...
def assign(
    signatures: NDArray[np.uint32],
    starts: NDArray[np.int64],
    permutations: int,
    minimum: int,
    certain: int,
    always: int,
    protected: NDArray[np.uint8],
    representative: NDArray[np.uint32],
    matches: NDArray[np.uint32],
    whole: int = 0,
    held: NDArray[np.uint8] | None = None,
) -> None: ...
def comparisons() -> int: ...
