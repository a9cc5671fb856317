"""Training of `refinery.transforms.extract.blocks.model.Model`: gradient boosting on blocks of pages.

All sums are of integers, and what is left out of a tree is chosen by hash, so the same pages give the same bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from refinery.transforms.core.document import hash64
from refinery.transforms.extract.blocks.model import Model
from refinery.transforms.native import htmlblocks, trees

MEAN_WEIGHT = 500  # weights are integers with about this mean, or less where their sum would pass MOST_SUM
MOST_SUM = 1_000_000_000  # sums of gradients must stay under 2^31
MOST_WEIGHT = 20_000
EDGE_ROWS = 200_000  # blocks whose values decide the edges of bins
HALF = 1 << 63


@dataclass(frozen=True)
class BoostingParams:
    """Settings: models that are averaged, trees of each, their depth, the learning rate, the share of features that a
    tree may use, the regulariser and the least weight of a leaf (both in units of mean blocks), and the seed of the
    first model. Each tree sees half of the pages."""

    models: int = 2
    trees: int = 300
    depth: int = 6
    rate: float = 0.07
    columns: float = 0.1
    penalty: float = 100.0
    least: float = 20.0
    seed: int = 1

    def __post_init__(self) -> None:
        given = self.models, self.trees, self.depth
        if self.models < 1 or self.trees < 1 or not 1 <= self.depth <= 8:
            raise ValueError(f"models, trees, depth: {given} given, 1 and more, and a depth of 1 to 8, are allowed")


def bin_edges(rows: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    """Per feature, the values between which its bins lie: all that occur, or quantiles."""
    rows = rows[:: max(1, len(rows) // EDGE_ROWS)]
    edges = []
    for column in range(rows.shape[1]):
        values = np.sort(rows[:, column])
        distinct = np.unique(values)
        if len(distinct) > trees.BINS:
            distinct = np.unique(values[np.arange(1, trees.BINS) * len(values) // trees.BINS])
            edges.append(distinct[: trees.BINS - 1])
        else:
            edges.append(distinct[:-1])
    return edges


def train_trees(
    rows: NDArray[np.float32],
    targets: NDArray[np.int32],
    weights: NDArray[np.float64],
    pages: Sequence[str],
    starts: NDArray[np.int64],
    params: BoostingParams,
) -> Model:
    """A model of the blocks in `rows` (blocks x features), with an empty lexicon: the mean of several.

    targets: in 1/1000. pages: names of the pages; the blocks of page i are starts[i] to starts[i + 1]. Cost: about
    0.3 s per tree and 400,000 blocks; memory: blocks x features x 5 bytes.
    """
    edges = bin_edges(rows)
    table = np.full((len(edges), trees.BINS + 1), np.inf, np.float32)
    bins = np.empty(rows.shape, np.uint8)
    for column, values in enumerate(edges):
        table[column, : len(values)] = values
        bins[:, column] = np.searchsorted(values, rows[:, column], side="left")
    seeds = range(params.seed, params.seed + params.models)
    parts = [
        _train_one(rows, bins, table, targets, weights, pages, starts, replace(params, seed=seed)) for seed in seeds
    ]
    return replace(
        parts[0],
        features=np.concatenate([part.features for part in parts]),
        edges=np.concatenate([part.edges for part in parts]),
        leaves=np.concatenate([part.leaves for part in parts]) // params.models,
    )


def _train_one(
    rows: NDArray[np.float32],
    bins: NDArray[np.uint8],
    table: NDArray[np.float32],
    targets: NDArray[np.int32],
    weights: NDArray[np.float64],
    pages: Sequence[str],
    starts: NDArray[np.int64],
    params: BoostingParams,
) -> Model:
    """One of the models. bins: uint8, blocks x features; table: float32, the upper edge of each feature's bins."""
    count, width = rows.shape
    mean = min(MEAN_WEIGHT, MOST_SUM // max(count, 1))
    scale = mean * count / float(np.cumsum(weights)[-1])  # cumsum: from first to last, unlike sum
    fixed = np.minimum(np.rint(weights * scale), MOST_WEIGHT).astype(np.int32)
    nodes = 2**params.depth - 1
    splits, leaves = np.zeros((params.trees, nodes, 2), np.int32), np.zeros((params.trees, nodes + 1), np.int32)
    features, limits = np.zeros((params.trees, nodes), np.uint16), np.zeros((params.trees, nodes), np.float32)
    scores, gradients = np.zeros(count, np.int32), np.empty((count, 2), np.int32)
    sizes = np.diff(starts)
    for tree in range(params.trees):
        trees.gradients(scores, targets, fixed, gradients.reshape(-1))
        used = np.array([hash64("pages", params.seed, tree, page) < HALF for page in pages])
        chosen = np.flatnonzero(np.repeat(used, sizes)).astype(np.int32)
        order = sorted(range(width), key=lambda column: hash64("features", params.seed, tree, column))
        columns = np.array(sorted(order[: max(1, int(width * params.columns))]), np.int32)
        trees.grow(
            bins.reshape(-1), width, gradients.reshape(-1), chosen if len(chosen) else np.arange(count, dtype=np.int32),
            columns, params.depth, params.penalty * MEAN_WEIGHT, params.least * MEAN_WEIGHT, params.rate,
            splits[tree].reshape(-1), leaves[tree],
        )  # fmt: skip
        features[tree] = splits[tree, :, 0]
        limits[tree] = table[splits[tree, :, 0], splits[tree, :, 1]]
        trees.score(
            rows.view(np.uint32).reshape(-1), width, features[tree], limits[tree].view(np.uint32), leaves[tree],
            params.depth, scores,
        )  # fmt: skip
    return Model(params.depth, width, 0, np.zeros(htmlblocks.LEAST_SLOTS, np.int32), features, limits, leaves)
