"""Which blocks of a page are main text: scores from boosted trees, and a choice that fits the page.

A score says how probable it is that a block's words are main text. Which blocks are kept is decided per page: those
that give the highest expected F1 of words (the plug-in rule: Ye, Chai, Lee and Chieu, "Optimizing F-measure", ICML
2012). On a page where all is clear that is a threshold near a half; on lists of products, where each block is doubtful
and many are needed, it is lower. Where even the best choice is more likely wrong than right, nothing is kept: what is
left of a page without main text (a shop's empty shell, a list that a script fills) is its frame.
"""

from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from refinery.transforms.core.resources import local_copy
from refinery.transforms.extract.blocks.page import Page
from refinery.transforms.native import htmlblocks, trees

FORMAT = 2
RECALL = 3, 4  # three quarters: a corpus has more text than it needs, and boilerplate comes again and again
LEAST_F1 = 300  # in 1/1000: a page whose best choice is expected to be worse has no main text
SHIPPED = "weights.npy"
HEAD = 6


@dataclass(frozen=True)
class Model:
    """Boosted trees over the features of blocks, and the lexicon that one group of features is made with.

    lexicon: a hash table of words and their weights (include/htmlblocks/htmlblocks_words.h). features, edges: trees x
    (2**depth - 1); a value goes left where it is at most the edge. leaves: trees x 2**depth, in 1/65536 of a logit.
    base: the score of no tree. width: features that a block must have.
    """

    depth: int
    width: int
    base: int
    lexicon: NDArray[np.int32]
    features: NDArray[np.uint16]
    edges: NDArray[np.float32]
    leaves: NDArray[np.int32]

    def to_array(self) -> NDArray[np.int32]:
        """All of it as one array of int32, which is what a weights file holds."""
        head = [FORMAT, self.depth, self.width, self.base, len(self.leaves), len(self.lexicon)]
        parts = [self.lexicon, self.features.astype(np.int32), self.edges.view(np.int32), self.leaves]
        return np.concatenate([np.array(head, np.int32), *(part.reshape(-1) for part in parts)])


def from_array(array: NDArray[np.int32]) -> Model:
    """The model in `array`. Raises ValueError for anything that `Model.to_array` does not give."""
    if array.ndim != 1 or array.dtype != np.int32 or len(array) < HEAD:
        raise ValueError("weights: an array of another kind")
    version, depth, width, base, count, slots = (int(value) for value in array[:HEAD])
    if version != FORMAT or not 1 <= depth <= 8 or not 1 <= count <= 100_000:
        raise ValueError(f"weights: version {version}, depth {depth}, {count} trees given")
    if not htmlblocks.LEAST_SLOTS <= slots <= htmlblocks.MOST_SLOTS or slots & (slots - 1):
        raise ValueError(f"weights: a lexicon of {slots} slots given")
    nodes, leaves = count * (2**depth - 1), count * 2**depth
    needed = HEAD + slots + 2 * nodes + leaves
    if len(array) != needed:
        raise ValueError(f"weights: {len(array)} values given, {needed} are needed")
    lexicon, features, edges, rest = np.split(array[HEAD:], [slots, slots + nodes, slots + 2 * nodes])
    if features.min() < 0 or features.max() >= width:
        raise ValueError("weights: an unknown feature")
    return Model(
        depth,
        width,
        base,
        np.ascontiguousarray(lexicon),
        np.ascontiguousarray(features.astype(np.uint16)).reshape(count, -1),
        np.ascontiguousarray(edges).view(np.float32).reshape(count, -1),
        np.ascontiguousarray(rest).reshape(count, -1),
    )


@lru_cache(maxsize=4)
def load_model(path: str | None) -> Model:
    """The model of a weights file (local, `gs://` or `s3://`; None: the one that ships with the project), once per
    process.

    Raises ValueError, one line, for a missing or foreign file.
    """
    try:
        if path is None:
            with (files(__package__) / SHIPPED).open("rb") as file:
                array = np.load(file, allow_pickle=False)
        else:
            with local_copy(path) as local:
                array = np.load(local, allow_pickle=False)
        return from_array(array)
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(f"weights: {path or SHIPPED!r} given, which cannot be loaded ({error})") from None


def score_blocks(page: Page, model: Model) -> NDArray[np.int32]:
    """The probability of each block in 1/1000. Cost: about 1 us per block and 100 trees."""
    scores = np.full(len(page.blocks), model.base, np.int32)
    said = htmlblocks.say(page.text, page.arrays.blocks, model.lexicon)
    its = page.arrays
    arrays = (its.blocks, its.groups, its.elements, said, its.values, its.titles, its.source)
    trees_of = (model.features.reshape(-1), model.edges.view(np.uint32).reshape(-1), model.leaves.reshape(-1))
    htmlblocks.score(*arrays, *trees_of, model.depth, scores)
    probabilities = np.empty_like(scores)
    trees.probabilities(scores, probabilities)
    return probabilities


def choose_blocks(probabilities: NDArray[np.int32], words: NDArray[np.int32]) -> NDArray[np.bool_]:
    """The blocks whose expected F1 of words is highest, where main text that is left out counts RECALL of a word; none
    where that is below LEAST_F1.

    All sums are of integers, so the choice is the same on every machine; of blocks with one probability the first are
    taken first.
    """
    kept = np.zeros(len(words), np.bool_)
    if not len(words):
        return kept
    order = np.argsort(-probabilities, kind="stable")
    weights = words[order].astype(np.int64)
    expected = probabilities[order] * weights
    whole, parts = RECALL
    gained = (whole + parts) * np.cumsum(expected)
    best = gained / np.maximum(parts * np.cumsum(weights) * 1000 + whole * expected.sum(), 1)
    last = int(np.argmax(best))
    if best[last] * 1000 >= LEAST_F1:
        kept[order[: last + 1]] = True
    return kept
