"""Copies of documents with a known exact similarity to their original, and the results that independent permutations
predict.
"""

import random
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import comb

import numpy as np
from numpy.typing import NDArray

from benchmarks.signatures import make_texts
from refinery.transforms.core.document import document_id
from refinery.transforms.dedup.near_duplicates import NearParams, found_share
from refinery.transforms.dedup.signatures import SignatureParams, shingle_hashes

SIGNATURE = SignatureParams()
STEPS = tuple(step / 100 for step in range(50, 100, 5))
WINDOW = 0.02  # a pair of a step has step <= J < step + WINDOW
BLOCKS = ("insert", "delete", "boilerplate")
KINDS = ("words", *BLOCKS, "case")
WORDS = range(60, 20_000)  # of originals
SITES = 10  # different headers and footers
TRIES = 4  # for short texts some steps are out of reach


@dataclass(frozen=True)
class Pair:
    """Positions of an original and its copy among all texts, exact similarity, its step, and the kind of change."""

    original: int
    copy: int
    similarity: float
    step: float
    kind: str


# --- exact similarity -------------------------------------------------------------------------------------------------


def shingle_set(text: str) -> NDArray[np.uint32]:
    """The project's own 5-word shingles as a sorted set of 32-bit hashes."""
    return np.unique(shingle_hashes(text, SIGNATURE))


def jaccard(x: NDArray[np.uint32], y: NDArray[np.uint32]) -> float:
    """Similarity of two sorted sets."""
    common = len(np.intersect1d(x, y, assume_unique=True))
    return common / (len(x) + len(y) - common) if len(x) + len(y) else 1.0


def plain_jaccard(a: str, b: str, ngram: int = 5) -> float:
    """The same in plain Python, sharing nothing with the kernel: for scripts that put spaces between words."""
    sets = []
    for text in (a, b):
        kept = (c if c.isalnum() or unicodedata.category(c)[0] == "M" else " " for c in text)
        words = "".join(c.lower()[0] for c in kept).split()
        sets.append({tuple(words[i : i + ngram]) for i in range(max(1, len(words) - ngram + 1))})
    return len(sets[0] & sets[1]) / len(sets[0] | sets[1])


# --- planted copies ---------------------------------------------------------------------------------------------------


def changed(text: str, kind: str, other: Sequence[str], site: Sequence[str], seed: int) -> Callable[[int], str]:
    """A function amount -> copy of the text with that many words changed: the more, the less similar.

    other: words of another document, for replacements and insertions. site: words of a header and a footer.
    """
    generator = random.Random(seed)
    pieces = re.split(r"(\s+)", text)  # words at even positions, white space between them
    words = len(pieces) // 2 + 1
    order = generator.sample(range(0, len(pieces), 2), words)
    place = 2 * generator.randrange(words)

    def change(amount: int) -> str:
        if kind == "words":
            out = list(pieces)
            for rank, where in enumerate(order[:amount]):
                out[where] = other[rank % len(other)]
            return "".join(out)
        if kind == "insert":
            return "".join([*pieces[:place], "\n\n", " ".join(other[:amount]), "\n\n", *pieces[place:]])
        if kind == "delete":
            start = min(place, max(0, len(pieces) - 2 * amount))
            return "".join(pieces[:start] + pieces[start + 2 * amount :])
        half = amount // 2
        return f"{' '.join(site[: amount - half])}\n\n{text}\n\n{' '.join(site[len(site) - half :])}"

    return change


def change_case(text: str, seed: int) -> str:
    """Other letter case (ASCII only) and other punctuation: the same words."""
    generator = random.Random(seed)
    flipped = "".join(c.swapcase() if c.isascii() and generator.random() < 0.2 else c for c in text)
    return "".join(
        c if c != " " or generator.random() < 0.9 else generator.choice([", ", " - ", "; "]) for c in flipped
    )


def fit(change: Callable[[int], str], most: int, own: NDArray[np.uint32], step: float) -> tuple[str, float] | None:
    """The most changed copy with J >= step, and its J; None when there is none in the step's window. Bisection."""
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        if jaccard(own, shingle_set(change(middle))) >= step:
            low = middle
        else:
            high = middle
    text = change(low)
    similarity = jaccard(own, shingle_set(text))
    return (text, similarity) if step <= similarity < step + WINDOW else None


def plant(texts: list[str], each: int, seed: int = 1) -> tuple[list[str], list[Pair]]:
    """All texts followed by the copies, and the pairs: `each` per step of replaced words, of blocks, and of case.

    Raises SystemExit when the texts do not suffice.
    """
    generator = random.Random(seed)
    wanted = [(step, kind) for step in STEPS for i in range(each) for kind in ("words", BLOCKS[i % len(BLOCKS)])]
    generator.shuffle(wanted)
    wanted += [(1.0, "case")] * each
    sites = [text.split() for text in make_texts(SITES, seed + 1000, median=40_000, spread=0.01)]
    times = Counter(map(document_id, texts))
    out, pairs = list(texts), []
    for number in generator.sample(range(len(texts)), len(texts)):
        text = texts[number]
        if not wanted or len(text.split()) not in WORDS or times[document_id(text)] > 1:
            continue
        own, other = shingle_set(text), texts[generator.randrange(len(texts))].split() or ["other"]
        for _ in range(TRIES):
            step, kind = wanted[-1]
            if kind == "case":
                found: tuple[str, float] | None = (change_case(text, number), 1.0)
            else:
                change = changed(text, kind, other, generator.choice(sites), number)
                most = {"insert": len(other), "boilerplate": len(sites[0])}.get(kind, len(text.split()))
                found = fit(change, most, own, step)
            if found:
                pairs.append(Pair(number, len(out), found[1], step, kind))
                out.append(found[0])
                wanted.pop()
                break
            wanted.insert(generator.randrange(len(wanted)), wanted.pop())
    if wanted:
        sys.exit(f"{len(texts)} documents suffice for {len(pairs)} pairs, {len(wanted)} are missing: lower --each")
    return out, pairs


# --- predictions ------------------------------------------------------------------------------------------------------


def binomial(n: int, p: float) -> NDArray[np.float64]:
    """Chances of 0 to n successes."""
    return np.array([comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)])


@cache
def chances(similarity: float, near: NearParams, permutations: int) -> tuple[float, float, float]:
    """Chances that a pair shares a band, that its estimate reaches the threshold, and that both happen.

    For permutations that agree independently with probability J. Both: the estimate reaches the threshold, less the
    cases where it does although every band has a difference. With verify "exact" the estimate must reach the minimum of
    candidates, and a pair below the threshold is never removed.
    """
    bands, rows = near.layout(permutations)
    minimum = near.candidate_minimum(permutations)
    estimate = binomial(permutations, similarity)[minimum:].sum()
    torn = binomial(permutations - bands * rows, similarity)
    for _ in range(bands):
        torn = np.convolve(torn, binomial(rows, similarity)[:rows])
    both = estimate - np.concatenate([torn, np.zeros(permutations)])[minimum : permutations + 1].sum()
    removable = near.verify != "exact" or similarity >= near.threshold
    return found_share(similarity, bands * rows, rows), float(estimate), float(both) if removable else 0.0
