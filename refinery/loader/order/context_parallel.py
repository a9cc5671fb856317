"""Rows divided among the ranks of a context-parallel group: each has a part of every row.

zigzag: a row is cut into 2 x size chunks, and rank r has chunks r and 2 x size - 1 - r, in this order, as Megatron-Core
and Transformer Engine expect them. With causal attention a place attends to all places before it, so every rank has the
same work. contiguous: rank r has the r-th of `size` chunks, as ring attention without load balancing takes them; later
ranks have more work.
"""

from dataclasses import dataclass

import numpy as np

from refinery.loader.arguments import MOST, whole
from refinery.loader.order.arrays import I64, Batch

LAYOUTS = ("zigzag", "contiguous")


@dataclass(frozen=True, slots=True)
class ContextSlice:
    """The part of each row that a rank has. Raises ValueError for what is none."""

    rank: int = 0
    size: int = 1
    layout: str = "zigzag"

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", whole("cp_size", self.size, 1, MOST))
        object.__setattr__(self, "rank", whole("cp_rank", self.rank, 0, self.size - 1))
        if self.layout not in LAYOUTS:
            raise ValueError(f"cp_layout: {self.layout!r:.80} given, {' or '.join(LAYOUTS)} is allowed")

    def spans(self, length: int) -> list[slice]:
        """Places of a row of `length` that this rank has, in the order in which it has them. Raises ValueError for a
        length that cannot be divided evenly."""
        if self.size == 1:
            return [slice(0, length)]
        chunks = 2 * self.size if self.layout == "zigzag" else self.size
        if length % chunks:
            raise ValueError(
                f"sequence_length: {length} given with cp_size={self.size} and cp_layout={self.layout!r}, a multiple "
                f"of {chunks} is allowed"
            )
        mine = [self.rank, chunks - 1 - self.rank] if self.layout == "zigzag" else [self.rank]
        step = length // chunks
        return [slice(chunk * step, (chunk + 1) * step) for chunk in mine]

    def places(self, length: int) -> I64:
        """The same places one by one, int64 [length / size]."""
        return np.concatenate([np.arange(span.start, span.stop) for span in self.spans(length)])

    def cut(self, batch: Batch) -> Batch:
        """The batch with this rank's part of every array [B, S], as contiguous arrays [B, S / size] with memory of
        their own. What is not of that shape stays: cu_seqlens and max_seqlen are those of the whole rows."""
        spans, found = self.spans(batch["input_ids"].shape[1]), dict(batch)
        for name, array in batch.items():
            if isinstance(array, np.ndarray) and array.ndim == 2:
                found[name] = np.concatenate([np.asarray(array)[:, span] for span in spans], axis=1)
        return found
