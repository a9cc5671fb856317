"""Components: links between documents become one label per document, the same for all that hang together."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from transforms.packed import LABEL, LABELS, LINK, LINKS, Block, Rows, gather, part_of, scatter


def connected_components(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> Rows:
    """LABEL rows, sorted by reference: every reference of an edge with the least reference of its component.

    Each round hooks the larger root of every edge below the smaller one and halves all paths until they are flat;
    it ends when no edge joins two roots. Same answer for any order of edges. Time: rounds * edges, rounds about
    log2(references); memory: about 40 bytes per edge.
    """
    nodes, index = np.unique(np.concatenate([first, second]), return_inverse=True)
    roots = np.arange(len(nodes))
    left, right = index[: len(first)], index[len(first) :]
    while len(left):
        low, high = np.minimum(left, right), np.maximum(left, right)
        np.minimum.at(roots, high, low)
        while True:
            shorter = roots[roots]
            if np.array_equal(shorter, roots):
                break
            roots = shorter
        left, right = roots[left], roots[right]
        apart = left != right
        left, right = left[apart], right[apart]
    labels = np.empty(len(nodes), LABEL)
    labels["reference"] = nodes
    labels["component"] = nodes[roots]
    return labels


def label_blocks(key: int, blocks: list[bytes]) -> Iterator[Block]:
    """All LINK rows -> LABEL rows by part. One worker holds them: 16 bytes per link, so some 100 million fit."""
    links = gather(blocks, LINKS, LINK)
    labels = connected_components(links["member"], links["leader"])
    yield from scatter(part_of(labels["reference"]), LABELS, labels)
