"""Loss masks that come with the data, in batches."""

import numpy as np

from refinery.loader.order.arrays import Batch
from refinery.loader.read.trained_tokens import Bools
from refinery.loader.stream.masks import IGNORE


def cut_mask(trained: Bools, parts: int) -> Bools:
    """The mask [B, S + 1] of rows that are cut into `parts` (refinery.loader.order.subdivide)."""
    if parts == 1:
        return trained
    rows, length = trained.shape[0], (trained.shape[1] - 1) // parts
    found = np.empty((rows, parts, length + 1), np.bool_)
    found[:, :, :-1] = trained[:, :-1].reshape(rows, parts, length)
    found[:, :, -1] = trained[:, length::length]
    return found.reshape(rows * parts, length + 1)


def with_loss(batch: Batch, trained: Bools) -> Batch:
    """The batch without labels, and with no loss, where the token to be predicted is not trained. trained: of its
    tokens, bool [B, S + 1]. labels must be an array of their own."""
    wanted = trained[:, 1:]
    batch["labels"][~wanted] = IGNORE
    if "loss_mask" in batch:
        batch["loss_mask"] &= wanted
    return batch


def refused(**given: object) -> None:
    """Raise ValueError for the first argument that is given and has no meaning where masks come with the data."""
    for name, value in given.items():
        if value:
            raise ValueError(
                f"{name}: given with a corpus of loss masks, which it would put out of place; leave it out"
            )
