from collections.abc import Buffer, Mapping

class Encoder:
    def __new__(
        cls, pattern: str, byte_ids: Buffer, merges: Buffer, classes: Buffer, whole: Mapping[bytes, int] | None = None
    ) -> Encoder: ...
    def encode(self, text: str, stable: bool = False, /) -> bytes | None: ...
