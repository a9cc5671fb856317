import numpy as np
from numpy.typing import NDArray

def word_keys(text: str, table: NDArray[np.uint32]) -> bytearray: ...
def score(
    text: str, table: NDArray[np.uint32], keys: NDArray[np.int64], costs: NDArray[np.int32]
) -> tuple[int, int]: ...
def insert(
    given: NDArray[np.int64], found: NDArray[np.int32], keys: NDArray[np.int64], costs: NDArray[np.int32]
) -> None: ...
