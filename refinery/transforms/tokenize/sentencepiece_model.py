"""SentencePiece models (BPE or unigram), with user-defined pieces closed to document text.

They run on the fast engine if equality is certain (see sentencepiece_engine), else on the library."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import sentencepiece

from refinery.transforms.native import pieces
from refinery.transforms.tokenize.byte_level_bpe import BATTERY
from refinery.transforms.tokenize.sentencepiece_engine import (
    BYTES,
    CONTROL,
    PIECE_TEXT,
    PIECE_TYPE,
    PIECES,
    SPACE,
    SPACES,
    USER_DEFINED,
    VARINT,
    engine,
    fields,
    read_model,
)
from refinery.transforms.tokenize.token_spans import Spans, Spelling, offset_spans, spelt_spans
from refinery.transforms.tokenize.tokenizer import Ids, check_ids


class SentencePieceTokenizer:
    """A SentencePiece model.

    Control symbols never come from text (the library's own rule). User-defined pieces would; those that are not
    whitespace alone are turned into control symbols before loading. Never lossless: the model writes a space as U+2581,
    so a text that holds U+2581 comes back with a space, and most models normalise more than that.

    data: the .model file. Raises ValueError for bytes that are not a model. Cost: about 100 MB/s of English prose,
    on the library 5 (BPE) or 18 (unigram); 0.1 s to make for 32,000 pieces; memory about 30 MB more on the fast engine.
    """

    engine = "sentencepiece"
    lossless = False

    def __init__(self, data: bytes) -> None:
        try:
            closed = close_user_defined(data)
            self._model = sentencepiece.SentencePieceProcessor(model_proto=closed)
        except (RuntimeError, IndexError, UnicodeDecodeError) as error:  # the last: for what the library would say
            raise ValueError(f"not a SentencePiece model: {type(error).__name__}") from None
        self.vocab_size = int(self._model.vocab_size())
        if not self.vocab_size:
            raise ValueError("not a SentencePiece model: it has no pieces")
        self._fast = self._proved(engine(read_model(closed)))

    def _proved(self, fast: pieces.Encoder | None) -> pieces.Encoder | None:
        """The fast engine, if it gives the library's ids for the battery."""
        if fast is None:
            return None
        found = [np.frombuffer(fast.encode(text), np.uint32).tolist() for text in (*BATTERY, *SPACES)]
        return fast if found == [self._reference(text).tolist() for text in (*BATTERY, *SPACES)] else None

    def _reference(self, text: str) -> Ids:
        return np.asarray(self._model.encode_as_numpy(text.encode()), dtype=np.uint32)

    def encode(self, text: str) -> Ids:
        """See `Tokenizer.encode`."""
        if self._fast is None:
            return self._reference(text)
        return np.frombuffer(self._fast.encode(text), dtype=np.uint32)

    def encode_batch(self, texts: Iterable[str]) -> list[Ids]:
        """`encode` of each text."""
        return [self.encode(text) for text in texts]

    @cached_property
    def _is_byte(self) -> npt.NDArray[np.bool_]:
        """Whether each piece is a byte of a character, [pieces]."""
        return np.array([self._model.is_byte(id_) for id_ in range(self.vocab_size)], np.bool_)

    @cached_property
    def _spelling(self) -> Spelling:
        """The bytes of each piece, with spaces for U+2581; made when they are first asked for."""
        model = self._model
        names = (model.id_to_piece(id_) for id_ in range(self.vocab_size))
        return Spelling(
            [
                bytes.fromhex(name[3:5])
                if self._is_byte[id_]
                else b""
                if model.is_control(id_) or model.is_unknown(id_) or model.is_unused(id_)
                else name.replace(SPACE, " ").encode()
                for id_, name in enumerate(names)
            ]
        )

    def spans(self, text: str, ids: Ids) -> Spans | None:
        """See `Tokenizer.spans`. The library is asked where the model normalises; it has a character that is written in
        bytes at the last of them, which is spread over all."""
        found = spelt_spans(text, ids, self._spelling)
        if found is not None:
            return found
        mapping = self._model.encode(text, return_type="offset_mapping")
        found = offset_spans(text, ids, mapping["ids"], mapping["offsets"])
        if found is None:
            return None
        last = np.arange(len(ids))
        last[self._is_byte[ids] & (found.starts == found.ends)] = len(ids) - 1
        last = np.minimum.accumulate(last[::-1])[::-1]
        return Spans(found.starts, found.ends[last])

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
