"""Array types that the modules of this folder share."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
I64 = npt.NDArray[np.int64]
Batch = dict[str, Any]  # array name -> array; "max_seqlen" is an int


def distinct(values: I64) -> I64:
    """The different values, ascending. np.unique would import numpy.ma, which the first batch would wait for."""
    ordered = np.sort(values)
    found: I64 = ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
    return found
