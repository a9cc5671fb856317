from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

def anchors(texts: Sequence[str], table: NDArray[np.uint32]) -> tuple[bytearray, bytes]: ...
def windows(
    text: str, table: NDArray[np.uint32], size: int, key: bytes = b""
) -> tuple[bytearray, bytearray, bytearray]: ...
