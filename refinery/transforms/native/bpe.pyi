from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.uint32] | bytes

class Encoder:
    def __new__(
        cls, pattern: str, byte_ids: Rows, merges: Rows, classes: bytes, whole: Mapping[bytes, int] | None = None
    ) -> Encoder: ...
    def encode(self, text: str, stable: bool = False, /) -> bytes | None: ...
    def merge(self, piece: bytes, /) -> bytes: ...
    def work(self) -> tuple[int, int, int]: ...
