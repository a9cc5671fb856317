import numpy as np
from numpy.typing import NDArray

BINS: int  # values that a binned feature has at most
ONE: int  # of a leaf: one logit

def gradients(
    scores: NDArray[np.int32], targets: NDArray[np.int32], weights: NDArray[np.int32], out: NDArray[np.int32]
) -> None: ...
def probabilities(scores: NDArray[np.int32], out: NDArray[np.int32]) -> None: ...
def grow(
    bins: NDArray[np.uint8],
    width: int,
    gradients: NDArray[np.int32],
    rows: NDArray[np.int32],
    features: NDArray[np.int32],
    depth: int,
    penalty: float,
    least: float,
    rate: float,
    splits: NDArray[np.int32],
    leaves: NDArray[np.int32],
) -> None: ...
def score(
    rows: NDArray[np.uint32],
    width: int,
    features: NDArray[np.uint16],
    edges: NDArray[np.uint32],
    leaves: NDArray[np.int32],
    depth: int,
    out: NDArray[np.int32],
) -> None: ...
