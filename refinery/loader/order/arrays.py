"""Array types that the modules of this folder share."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
I64 = npt.NDArray[np.int64]
Batch = dict[str, Any]  # array name -> array; "max_seqlen" is an int
