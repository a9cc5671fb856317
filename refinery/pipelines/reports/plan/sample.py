"""A finished run as a sample of something larger: what each input file gave, and what other files have, too."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Sample:
    """sizes: bytes of every input file. weights: tokens that a file would give if it were alone, deduplicated in itself
    only. Both float64 [files]. documents: their number over all files;
    infinite if no deduplication ran, because then no copy will be found.

    families: documents that more than one file has, as (tokens of one copy, numbers of the files that have one). A
    family is a document that was kept and those removed in its favour; copies inside one file count once.
    """

    sizes: Floats
    weights: Floats
    documents: float
    families: Sequence[tuple[float, Sequence[int]]]

    @property
    def files(self) -> int:
        return len(self.sizes)

    @property
    def effective_files(self) -> float:
        """How many files of one size say as much: (sum of sizes)² over the sum of their squares (Kish 1965)."""
        return float(self.sizes.sum() ** 2 / (self.sizes**2).sum())

    @property
    def tokens(self) -> float:
        """What all files gave together: of every family one copy."""
        return float(self.weights.sum() - sum(tokens * (len(files) - 1) for tokens, files in self.families))

    def subset(self, chosen: npt.NDArray[np.int64]) -> "Sample":
        """The run of these files alone: families keep the copies that are in them. For held-out checks; linear."""
        place = np.full(self.files, -1)
        place[chosen] = np.arange(len(chosen))
        found = ((tokens, place[list(files)]) for tokens, files in self.families)
        inside = [(tokens, [int(at) for at in places if at >= 0]) for tokens, places in found]
        documents = self.documents * len(chosen) / self.files  # near enough: it only sets a limit's scale
        families = [family for family in inside if len(family[1]) > 1]
        return Sample(self.sizes[chosen], self.weights[chosen], documents, families)
