from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

def hash_lines(texts: Sequence[str], table: NDArray[np.uint32], key: bytes = b"") -> tuple[bytearray, bytes]: ...
