"""Cut documents that are longer than a row into pieces that fit; whole documents stay one piece.

A piece behind another one is a document of its own to the model, so BOS comes before it, and it has room for one token
of its document less. It ends at the last border (the end of a chunk) that fits, else where the row is full.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]


class Pieces(NamedTuple):
    """Piece i is tokens [starts[i], stops[i]) of document documents[i], int64 [pieces] each; documents ascend, and the
    pieces of each are its tokens in their order."""

    documents: I64
    starts: I64
    stops: I64

    @property
    def lengths(self) -> I64:
        """Tokens of a row that each piece takes: with the BOS put before a piece that does not begin its document."""
        return self.stops - self.starts + (self.starts > 0)


def split_documents(
    lengths: npt.ArrayLike, capacity: int, borders: Mapping[int, Sequence[int]] | None = None
) -> Pieces:
    """Pieces of documents of so many tokens each (at least 1, with BOS). borders: document -> ascending places, in
    tokens of it, where it is best cut.

    Raises ValueError for a capacity below 2, a document without tokens, and borders that do not ascend inside it.
    Cost: vectorised; a loop over pieces for documents that are cut at borders.
    """
    sizes = np.asarray(lengths, np.int64)
    if capacity < 2:
        raise ValueError(f"capacity: {capacity} given, 2 or more is allowed, for BOS and a token")
    if len(sizes) and int(sizes.min()) < 1:
        raise ValueError(f"lengths: document {int(np.argmin(sizes))} has {sizes.min()} tokens, 1 or more is allowed")
    # Without borders: `capacity` tokens, then one less in each piece.
    counts = np.maximum(1, 1 - (-(sizes - capacity) // (capacity - 1)))
    cut = {}
    for document, places in (borders or {}).items():
        if sizes[document] > capacity:
            cut[document] = _cut_at_borders(int(sizes[document]), capacity, places)
            counts[document] = len(cut[document])
    documents = np.repeat(np.arange(len(sizes)), counts)
    firsts = np.cumsum(counts) - counts
    number = np.arange(len(documents)) - np.repeat(firsts, counts)  # of the piece in its document
    stops = np.minimum(capacity + number * (capacity - 1), sizes[documents])
    for document, ends in cut.items():
        stops[firsts[document] : firsts[document] + len(ends)] = ends
    starts = np.where(number > 0, np.roll(stops, 1), 0)
    return Pieces(documents, starts, stops)


def _cut_at_borders(size: int, capacity: int, borders: Sequence[int]) -> list[int]:
    """Where each piece of a document ends. Linear in borders and pieces."""
    places = [int(place) for place in borders]
    if any(after <= before for before, after in zip([0, *places], places, strict=False)) or places[-1:] > [size]:
        raise ValueError(f"borders: they must ascend, from 1 to {size}, the document's tokens")
    ends = [0]
    while ends[-1] < size:
        most = min(size, ends[-1] + capacity - (ends[-1] > 0))
        index = bisect_right(places, most)
        best = places[index - 1] if index and most < size else most
        ends.append(best if best > ends[-1] else most)
    return ends[1:]
