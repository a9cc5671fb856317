from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

def values(data: bytes | bytearray | memoryview, page: int) -> bytes: ...
def gather(
    blocks: Sequence[tuple[int, int, bytes]],
    page: int,
    itemsize: int,
    pieces: NDArray[np.int64] | array[int],
    first: int,
    out: NDArray[np.int64],
) -> list[int]: ...
