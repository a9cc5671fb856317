from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

def signatures(
    texts: Sequence[str],
    table: NDArray[np.uint32],
    ngram: int,
    unit: int,
    a: NDArray[np.uint32],
    b: NDArray[np.uint32],
    out: NDArray[np.uint32],
    key: bytes = b"",
) -> None: ...
def shingles(text: str, table: NDArray[np.uint32], ngram: int, unit: int, key: bytes = b"") -> bytes: ...
