from numpy.typing import ArrayLike

class Cues:
    def __new__(
        cls,
        bucket: ArrayLike,
        cues: ArrayLike,
        sets: ArrayLike,
        first: ArrayLike,
        automata: ArrayLike,
        states: ArrayLike,
        most: ArrayLike,
        runs: ArrayLike,
    ) -> Cues: ...
    def find(self, data: bytes, /) -> dict[int, list[int] | None] | None: ...
