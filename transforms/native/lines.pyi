from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

def hash_lines(texts: Sequence[str], table: NDArray[np.uint32]) -> tuple[bytearray, bytes]: ...
