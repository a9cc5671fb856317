"""Chains of resemblance: a document is removed for a representative that it resembles, never for one that resembles
that.

Four figures of texts, unlike each other: a chain, a ring, a star of chains, a pair. A text shares 80 of 100 shingles
with its neighbours, Jaccard 0.8, 70 of 110 with theirs, 0.64, and nothing with what is nine or more away. Survivors
must stay dense along a chain: every removed text lies next to a representative, so of three texts in a row one survives
at least. That holds for exact similarities; an estimate errs, so there the bound is as far as any estimate reaches the
threshold, found by trying all.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from refinery.transforms.core.document import Document
from refinery.transforms.dedup.components.find import Method
from refinery.transforms.dedup.deduplicate import DedupParams
from refinery.transforms.dedup.near_duplicates import NearParams, band_hashes, sketches
from refinery.transforms.dedup.signatures import compute_signatures
from tests.beam import make_document
from tests.sampling import FILE_ON_ONE_COMMIT_IN_FOUR, sampled
from tests.transforms.dedup_oracle import SIGNATURE
from tests.transforms.dedup_parts import decide, rank_of

pytestmark = FILE_ON_ONE_COMMIT_IN_FOUR

THRESHOLD = 0.75
SHINGLES, STEP = 90, 10  # of a text; that a neighbour does not share
WORDS = SHINGLES + SIGNATURE.ngram - 1
CHAIN, RING, ARMS, ARM = 1000, 200, 8, 25
ERROR = 0.041  # standard error of an estimate at the threshold

ORDERS: dict[str, Callable[[int, int], int]] = {
    "in order": lambda place, count: place,
    "reversed": lambda place, count: count - 1 - place,
    "random": lambda place, count: random.Random(place).getrandbits(40),
    "every seventh first": lambda place, count: place % 7 * count + place,
}


def window(words: Sequence[str], start: int) -> str:
    return " ".join(words[start : start + WORDS])


@cache
def figures() -> tuple[tuple[str, ...], ...]:
    """Texts of a chain, of a ring, of a star of chains (its centre first, then arm by arm), and of a lone pair."""
    line = [f"chain{i}" for i in range((CHAIN - 1) * STEP + WORDS)]
    chain = [window(line, i * STEP) for i in range(CHAIN)]
    circle = [f"ring{i}" for i in range(RING * STEP)]
    ring = [window(circle + circle[:WORDS], i * STEP) for i in range(RING)]
    centre = [f"star{i}" for i in range(WORDS)]
    star = [window(centre, 0)]
    for arm in range(ARMS):  # changes words of the centre in a place of its own, then slides away from it
        changed = STEP - SIGNATURE.ngram + 1  # words that STEP shingles hold
        begin = 4 + STEP * arm
        first = [*centre[:begin], *(f"arm{arm}x{i}" for i in range(changed)), *centre[begin + changed :]]
        first += [f"arm{arm}y{i}" for i in range(ARM * STEP)]
        star += [window(first, i * STEP) for i in range(ARM)]
    pair = [window([f"pair{i}" for i in range(WORDS + STEP)], i * STEP) for i in range(2)]
    return tuple(chain), tuple(ring), tuple(star), tuple(pair)


def documents(order: str) -> list[Document]:
    """All figures' documents, figure by figure; of two the one with the smaller position survives."""
    return [
        make_document(text, f"{figure}:{place}", source="web", position=ORDERS[order](place, len(texts)))
        for figure, texts in enumerate(figures())
        for place, text in enumerate(texts)
    ]


@cache
def all_texts() -> tuple[str, ...]:
    return tuple(text for texts in figures() for text in texts)


@cache
def true_similarities() -> NDArray[np.float64]:
    """Jaccard of all pairs' sets of word 5-grams, counted shingle by shingle: no hash and no signature."""
    texts = all_texts()
    shared = np.zeros((len(texts), len(texts)))
    holders = defaultdict(list)
    for number, text in enumerate(texts):
        words = text.split()
        for shingle in {tuple(words[i : i + 5]) for i in range(len(words) - 4)}:
            holders[shingle].append(number)
    for numbers in holders.values():
        shared[np.ix_(numbers, numbers)] += 1
    sizes = shared.diagonal()
    return shared / (sizes[:, None] + sizes - shared)


@cache
def signatures() -> NDArray[np.uint32]:
    return compute_signatures(all_texts(), SIGNATURE)


@cache
def estimates() -> NDArray[np.float64]:
    """Share of equal values of all pairs of signatures."""
    return np.stack([(signatures() == row).mean(axis=1) for row in signatures()])


def similarities(verify: str) -> NDArray[np.float64]:
    return true_similarities() if verify == "exact" else estimates()


@cache
def components(near: NearParams) -> tuple[int, ...]:
    """The number of each document's component: what hangs together by pairs that share a band and look alike.

    Sketches of such pairs agree often enough. No bucket here has more than 64 documents, so that all pairs are tried.
    """
    hashes = band_hashes(signatures(), *near.layout(SIGNATURE.permutations))
    packed = sketches(signatures())
    nibbles = np.concatenate([packed & 15, packed >> 4], axis=1)
    minimum = near.candidate_minimum(SIGNATURE.permutations)
    labels = list(range(len(hashes)))
    for i in range(len(hashes)):
        for j in np.flatnonzero((hashes[:i] == hashes[i]).any(axis=1)).tolist():
            if (nibbles[i] == nibbles[j]).sum() >= minimum and labels[i] != labels[j]:
                old, new = labels[i], labels[j]
                labels = [new if label == old else label for label in labels]
    return tuple(labels)


def brute_force(docs: Sequence[Document], near: NearParams) -> list[tuple[int, int]]:
    """(removed, representative) by number, from all pairs: greedy clustering in rank order inside each component."""
    similar = similarities(near.verify) >= near.threshold
    labels = components(near)
    representatives: defaultdict[int, list[int]] = defaultdict(list)
    found = []
    for i in sorted(range(len(docs)), key=lambda i: (rank_of(docs[i]), docs[i].id)):
        first = next((j for j in representatives[labels[i]] if similar[i, j]), None)
        if first is None:
            representatives[labels[i]].append(i)
        else:
            found.append((i, first))
    return sorted(found)


def test_the_figures_are_what_they_are_said_to_be():
    true = true_similarities()
    chain, ring, star, _ = (len(texts) for texts in figures())
    names = [number for number, texts in enumerate(figures()) for _ in texts]
    assert not true[np.not_equal.outer(names, names)].any()
    for offset, similarity in ((1, 80 / 100), (2, 70 / 110), (3, 60 / 120), (9, 0), (500, 0)):
        assert (true[:chain, :chain].diagonal(offset) == similarity).all()
        around = true[chain : chain + ring, chain : chain + ring]
        assert ([around[i, (i + offset) % ring] for i in range(ring)] == np.full(ring, similarity)).all()
    inside = true[chain + ring : chain + ring + star, chain + ring : chain + ring + star]
    first = 1 + ARM * np.arange(ARMS)
    assert (inside[0, first] == 0.8).all()
    assert inside[np.ix_(first, first)][~np.eye(ARMS, dtype=bool)].max() < 0.64
    for begin in first:
        assert (inside[begin : begin + ARM, begin : begin + ARM].diagonal(1) == 0.8).all()
    # Removing whole components would leave a few texts of each figure: most are connected.
    for verify in ("signature", "exact"):
        labels = components(NearParams(verify=verify))
        assert max(Counter(labels[:chain]).values()) > 50
        assert max(Counter(labels[chain:]).values()) > 50


CASES = [
    *((verify, order, "forest") for verify in ("signature", "exact") for order in ORDERS),
    *((verify, order, "contraction") for verify in ("signature", "exact") for order in ("in order", "random")),
]


@pytest.mark.parametrize(("verify", "order", "method"), sampled("chains of resemblance", CASES, 5, lambda case: case))
def test_kept_texts_stay_dense(tmp_path: Path, verify: str, order: str, method: Method) -> None:
    near = NearParams(threshold=THRESHOLD, verify=verify)
    docs = documents(order)
    verdicts = decide(tmp_path, docs, DedupParams(near=near), method)
    number = {doc.id: i for i, doc in enumerate(docs)}
    rows = [verdicts[doc.origin] for doc in docs]
    alive = np.array([not row["removed"] for row in rows])
    gone = np.flatnonzero(~alive)
    stands = np.array([number[rows[i]["kept_id"]] for i in gone])

    # Nothing is removed without a better representative that is as similar as the threshold asks, counted
    # independently.
    assert alive[stands].all()
    assert all(rank_of(docs[j]) < rank_of(docs[i]) for i, j in zip(gone, stands, strict=True))
    similarity = similarities(verify)
    assert similarity[gone, stands].min() >= THRESHOLD
    assert [rows[i]["similarity"] for i in gone] == similarity[gone, stands].astype(np.float32).tolist()
    assert true_similarities()[gone, stands].min() >= THRESHOLD - 4 * ERROR
    assert {rows[i]["reason"] for i in gone} == {"near-duplicate"}
    assert sum(row["copies"] for row in rows) == len(docs)
    # And it is what trying all pairs gives.
    assert list(zip(gone.tolist(), stands.tolist(), strict=True)) == brute_force(docs, near)

    # So no place of the chain is farther from a representative than similarity reaches, and no gap wider than twice
    # that.
    first, second = np.nonzero(similarity[:CHAIN, :CHAIN] >= THRESHOLD)
    reach = int(np.abs(first - second).max())
    assert reach == 1 if verify == "exact" else reach <= 2
    kept = np.flatnonzero(alive[:CHAIN])
    assert kept[0] <= reach
    assert kept[-1] >= CHAIN - 1 - reach
    assert np.diff(kept).max() <= 2 * reach + 1
    assert CHAIN / (2 * reach + 1) <= len(kept) < 0.6 * CHAIN
    around = np.flatnonzero(alive[CHAIN : CHAIN + RING])
    assert np.diff(np.append(around, around[0] + RING)).max() <= 2 * reach + 1
    assert RING / (2 * reach + 1) <= len(around) < 0.6 * RING
    begin = CHAIN + RING
    for arm in range(ARMS):
        inside = np.flatnonzero(alive[begin + 1 + arm * ARM : begin + 1 + (arm + 1) * ARM])
        assert np.diff([-1, *inside, ARM]).max() <= 2 * reach + 1  # the centre may stand for the first ones


def test_in_rank_order_every_second_text_of_an_unbroken_chain_survives(tmp_path: Path) -> None:
    """0 removes 1, nothing is left to remove 2, and so on: with exact similarities wherever the links hold."""
    near = NearParams(threshold=THRESHOLD, verify="exact")
    docs = documents("in order")[:CHAIN]
    verdicts = decide(tmp_path, docs, DedupParams(near=near))
    alive = [not verdicts[doc.origin]["removed"] for doc in docs]
    labels = components(near)
    linked = [labels[i] == labels[i + 1] for i in range(CHAIN - 1)]
    expected = [True]
    for i in range(1, CHAIN):
        expected.append(not (expected[i - 1] and linked[i - 1]))
    assert alive == expected
    assert sum(linked) > 0.9 * CHAIN
