from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

def copy(rows: Sequence[NDArray[Any]], out: NDArray[np.int64]) -> None: ...
