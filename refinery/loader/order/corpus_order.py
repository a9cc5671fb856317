"""The order of an epoch that is not shuffled: that of the corpus, shard by shard."""

import numpy as np
import numpy.typing as npt

from refinery.loader.order.arrays import I64
from refinery.loader.order.order import Order


class CorpusOrder(Order):
    """Order's interface, with sample p at position p. A window, which is announced and released together, is `span`
    samples."""

    def __init__(self, n: int, span: int) -> None:
        self.n, self.block, self.lanes, self.span = n, span, 1, span

    def _at(self, p: npt.NDArray[np.uint64]) -> I64:
        return p.astype(np.int64)

    def windows(self, positions: npt.ArrayLike) -> I64:
        start = np.asarray(positions).astype(np.int64).ravel() // self.span * self.span
        stop = np.minimum(start + self.span, self.n)
        return np.stack([start, stop, stop - 1], axis=1)

    def pieces_of(self, starts: I64, stops: I64) -> tuple[I64, I64]:
        return np.stack([starts, stops], axis=1), np.ones(len(starts), np.int64)
