"""What a tokenizer is to the funnel.

Three engines: "byte-level-bpe" (the project's own, for a tokenizer.json that it can prove to handle), "hugging-face"
(any other tokenizer.json) and "sentencepiece". In all of them a document's text is nothing but text: an entry of the
vocabulary that stands outside what was learned (special, added and user-defined tokens, SentencePiece's control
symbols) is never produced from it, so a page that says "<|endoftext|>" cannot forge the end of a document. The one
exception are such entries that are whitespace alone (runs of spaces in GPT-NeoX): these are text.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from refinery.transforms.tokenize.token_spans import Spans

Ids = npt.NDArray[np.uint32]

BOS_NAMES = ("<s>", "<|begin_of_text|>", "<|startoftext|>", "<|begin▁of▁sentence|>", "<bos>", "[BOS]", "[CLS]")
EOS_NAMES = ("</s>", "<|endoftext|>", "<|end_of_text|>", "<|end▁of▁sentence|>", "<eos>", "[EOS]", "[SEP]")


class Tokenizer(Protocol):
    """Text to token ids and back.

    engine: name of the implementation. vocab_size: highest id + 1, added tokens included, so every id is below it.
    lossless: decode(encode(text)) == text for every text without lone surrogates.
    """

    engine: str
    vocab_size: int
    lossless: bool

    def encode(self, text: str) -> Ids:
        """Ids of the text, uint32, shape (tokens,), maybe read-only; no BOS, no EOS, no special token.

        Raises ValueError for lone surrogates (UnicodeEncodeError) and for what the engine cannot encode.
        """
        ...

    def encode_batch(self, texts: Iterable[str]) -> list[Ids]:
        """`encode` of each text."""
        ...

    def spans(self, text: str, ids: Ids) -> Spans | None:
        """The characters of each of the text's ids, as `encode` gave them; None where that cannot be proved."""
        ...

    def decode(self, ids: Sequence[int] | npt.NDArray[Any]) -> str:
        """Text of the ids. Special tokens are left out; bytes that are not UTF-8 become U+FFFD.

        Raises ValueError for an id outside the vocabulary.
        """
        ...

    def token_id(self, name: str) -> int | None:
        """Id of an entry of the vocabulary, special tokens included."""
        ...

    def bos_id(self) -> int | None:
        """The model's own BOS, None if it has none."""
        ...

    def eos_id(self) -> int | None:
        """The model's own EOS, None if it has none."""
        ...


def check_ids(ids: Sequence[int] | npt.NDArray[Any], vocab_size: int) -> npt.NDArray[np.int64]:
    """`ids` as int64, shape (tokens,). Raises ValueError for one outside 0 … vocab_size - 1."""
    array = np.asarray(ids, dtype=np.int64)
    if array.size and not 0 <= array.min() <= array.max() < vocab_size:
        wrong = array[(array < 0) | (array >= vocab_size)][0]
        raise ValueError(f"id {wrong} given, 0 to {vocab_size - 1} is allowed")
    return array


def first_known(added: Mapping[str, int], names: Iterable[str]) -> int | None:
    """Id of the first of `names` among the added tokens."""
    return next((added[name] for name in names if name in added), None)
