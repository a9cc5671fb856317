"""Every token of a .bin as it is streamed: ids below the vocabulary's size, and what stands at documents' ends."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from refinery.loader.errors import FormatError
from refinery.loader.format.indexed import Index


@dataclass
class Marks:
    """A token at one end of documents. there: documents that have it there. total: of it, anywhere. first: number of
    the first document without it at that end, -1 if there is none."""

    id: int
    there: int = 0
    total: int = 0
    first: int = -1


class DocumentEnds:
    """The tokens of a shard. bos, eos: None if the tokenizer names no such token. filled: documents with tokens.

    Memory: the index, and 24 bytes a document.
    """

    def __init__(self, index: Index, vocab_size: int, bos_id: int | None, eos_id: int | None, what: str) -> None:
        self._index, self._vocab_size, self._what = index, vocab_size, what
        self.documents = np.flatnonzero(index.lengths)
        self.filled = len(self.documents)
        self._firsts = index.offsets[self.documents]
        self._lasts = self._firsts + index.lengths[self.documents] - 1
        self.bos = None if bos_id is None else Marks(bos_id)
        self.eos = None if eos_id is None else Marks(eos_id)
        self.position = 0  # tokens seen

    def watch(self, chunk: bytes) -> None:
        """The next tokens; only the last chunk may end inside one. Raises FormatError for an id that no token has."""
        dtype = self._index.dtype
        tokens = np.frombuffer(chunk, dtype, len(chunk) // dtype.itemsize)
        if not len(tokens):
            return
        if int(tokens.min()) < 0 or int(tokens.max()) >= self._vocab_size:
            at = int(np.argmax((tokens < 0) | (tokens >= self._vocab_size)))
            document = int(self.documents[np.searchsorted(self._firsts, self.position + at, "right") - 1])
            raise FormatError(
                f"{self._what}: id {tokens[at]} found at token {self.position + at}, in document {document}; 0 to "
                f"{self._vocab_size - 1}, the vocabulary of --tokenizer, expected"
            )
        stop = self.position + len(tokens)
        for marks, places in ((self.bos, self._firsts), (self.eos, self._lasts)):
            low, high = np.searchsorted(places, (self.position, stop)).tolist()
            self._count(marks, tokens, places[low:high] - self.position, low)
        self.position = stop

    def _count(self, marks: Marks | None, tokens: Any, places: Any, first: int) -> None:
        if marks is None:
            return
        has = tokens[places] == marks.id
        marks.there += int(has.sum())
        marks.total += int((tokens == marks.id).sum())
        if marks.first < 0 and not has.all():
            marks.first = int(self.documents[first + int(np.argmin(has))])
