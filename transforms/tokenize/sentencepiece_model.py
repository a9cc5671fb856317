"""SentencePiece models (BPE or unigram), with user-defined pieces closed to document text."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import sentencepiece

from refinery.transforms.tokenize.tokenizer import Ids, check_ids

# Field numbers and piece types of sentencepiece_model.proto.
PIECES, PIECE_TEXT, PIECE_TYPE = 1, 1, 3
CONTROL, USER_DEFINED = 3, 4
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
SPACE = "▁"


class SentencePieceTokenizer:
    """A SentencePiece model.

    Control symbols never come from text (the library's own rule). User-defined pieces would; those that are not
    whitespace alone are turned into control symbols before loading. Never lossless: the model writes a space as U+2581,
    so a text that holds U+2581 comes back with a space, and most models normalise more than that.

    data: the .model file. Raises ValueError for bytes that are no model. Cost: about 6 MB/s of prose.
    """

    engine = "sentencepiece"
    lossless = False

    def __init__(self, data: bytes) -> None:
        try:
            self._model = sentencepiece.SentencePieceProcessor(model_proto=close_user_defined(data))
        except (RuntimeError, IndexError) as error:
            raise ValueError(f"no SentencePiece model: {type(error).__name__}") from None
        self.vocab_size = int(self._model.vocab_size())
        if not self.vocab_size:
            raise ValueError("no SentencePiece model: it has no pieces")

    def encode(self, text: str) -> Ids:
        """See `Tokenizer.encode`."""
        return np.asarray(self._model.encode_as_numpy(text.encode()), dtype=np.uint32)

    def encode_batch(self, texts: Iterable[str]) -> list[Ids]:
        """`encode` of each text."""
        return [self.encode(text) for text in texts]

    def decode(self, ids: Sequence[int] | npt.NDArray[Any]) -> str:
        """See `Tokenizer.decode`."""
        return str(self._model.decode(check_ids(ids, self.vocab_size).tolist()))

    def token_id(self, name: str) -> int | None:
        """Id of a piece."""
        found = int(self._model.piece_to_id(name))
        return found if self._model.id_to_piece(found) == name else None

    def bos_id(self) -> int | None:
        """The model's own BOS."""
        found = int(self._model.bos_id())
        return found if found >= 0 else None

    def eos_id(self) -> int | None:
        """The model's own EOS."""
        found = int(self._model.eos_id())
        return found if found >= 0 else None


def close_user_defined(data: bytes) -> bytes:
    """The model with every user-defined piece that is not whitespace alone turned into a control symbol.

    Works on the wire format (a ModelProto is a list of SentencePiece messages), since the protobuf classes that
    sentencepiece ships refuse the protobuf runtime that Beam pins. Raises IndexError for a truncated message.
    """
    changed = bytearray(data)
    for number, wire, start, stop in fields(data, 0, len(data)):
        if number != PIECES or wire != BYTES:
            continue
        text, type_at = b"", -1
        for inner, inner_wire, inner_start, inner_stop in fields(data, start, stop):
            if inner == PIECE_TEXT and inner_wire == BYTES:
                text = data[inner_start:inner_stop]
            elif inner == PIECE_TYPE and inner_wire == VARINT:
                type_at = inner_start
        blank = not text.decode("utf-8", "replace").replace(SPACE, " ").strip()
        if type_at >= 0 and data[type_at] == USER_DEFINED and not blank:
            changed[type_at] = CONTROL
    return bytes(changed)


def fields(data: bytes, at: int, stop: int) -> Iterator[tuple[int, int, int, int]]:
    """(field number, wire type, start, stop of the value) of each field of a protobuf message in data[at:stop]."""
    while at < stop:
        key, at = varint(data, at)
        wire = key & 7
        if wire == VARINT:
            end = varint(data, at)[1]
        elif wire == BYTES:
            size, at = varint(data, at)
            end = at + size
        elif wire in (FIXED32, FIXED64):
            end = at + (4 if wire == FIXED32 else 8)
        else:
            raise IndexError(f"wire type {wire}")
        if end > stop:
            raise IndexError("a field ends outside its message")
        yield key >> 3, wire, at, end
        at = end


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The base-128 number at `at`, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
