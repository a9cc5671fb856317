import numpy as np
import numpy.typing as npt

Raw = npt.NDArray[np.uint32] | bytes
Marks = npt.NDArray[np.bool_] | npt.NDArray[np.uint8] | bytes

class Encoder:
    def __new__(
        cls,
        unigram: bool,
        pieces: bytes,
        ends: npt.NDArray[np.uint32],
        ids: npt.NDArray[np.uint32],
        values: Raw,
        whole: Marks,
        byte_ids: Raw,
        unknown: int,
        unknown_score: float,
        charsmap: bytes,
        prefix: bool,
        trim: bool,
        merges: Raw,
    ) -> Encoder: ...
    def encode(self, text: str, /) -> bytes: ...
    def work(self) -> tuple[int, int]: ...

def joins(tokens: bytes, ends: npt.NDArray[np.uint32], ranks: npt.NDArray[np.uint32], /) -> bytes | int: ...
