"""Modified Kneser-Ney trigrams (Chen and Goodman 1998, section 3) from the word keys of documents.

Counts are integers and every sum of them is exact, so the same documents in the same order give the same model.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from refinery.transforms.filter.ngram_model import START, UNKNOWN, Costs, Keys, as_cost, build_table

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

BITS = 21  # of a word's number in a packed n-gram: three fit into 63 bits
MOST_WORDS = (1 << BITS) - 2
LOW, PAIR = (1 << BITS) - 1, (1 << 2 * BITS) - 1
UNKNOWN_ID, START_ID = 0, 1

# Multipliers of transforms/native/include/words.h; the keys of n-grams are those of the kernel `ngram_costs`.
ROLL, WORD_SEED = np.uint64(0xD1342543DE82EF95), np.uint64(0x243F6A8885A308D3)
MIX = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))


@dataclass(frozen=True, slots=True)
class Order:
    """Distinct n-grams of one length, packed and ascending, with their (adjusted) counts."""

    packed: Ints
    counts: Ints


def learn(documents: Sequence[Keys], min_word_count: int, min_trigram_count: int) -> tuple[Keys, Costs]:
    """The table of a model. documents: word keys of each. Words seen less than min_word_count times count as unknown;
    trigrams below min_trigram_count leave their share to the bigrams.

    Cost: about 100 bytes of memory for each word of text while it sorts. Raises ValueError without any word.
    """
    numbers, words, unknown = number_words(documents, min_word_count)
    singles, pairs, triples = count(numbers)
    floor = 1 / (len(words) - 1)  # the uniform distribution over all words but START
    p1, rest1 = estimate(singles, np.zeros(len(singles.packed), np.int64), 1, np.full(len(singles.packed), floor))
    below = np.searchsorted(singles.packed, pairs.packed & LOW)
    p2, rest2 = estimate(pairs, pairs.packed >> BITS, len(words), p1[below])
    contexts, inside = np.unique(triples.packed >> BITS, return_inverse=True)
    below = np.searchsorted(pairs.packed, triples.packed & PAIR)
    p3, rest3 = estimate(triples, inside, len(contexts), p2[below], min_trigram_count)
    kept = triples.counts >= min_trigram_count

    unigrams = np.zeros(len(words))
    unigrams[singles.packed] = p1
    unigrams[UNKNOWN_ID] = unigrams[UNKNOWN_ID] or rest1[0] * floor
    all_pairs = np.union1d(
        pairs.packed, contexts
    )  # a context that ends no trigram, as START START, has a backoff alone
    bigrams, backoffs = np.zeros(len(all_pairs)), np.ones(len(all_pairs))
    bigrams[np.searchsorted(all_pairs, pairs.packed)] = p2
    backoffs[np.searchsorted(all_pairs, contexts)] = rest3
    a, b, c = (words[part].view(np.uint64) for part in _parts(triples.packed[kept]))
    d, e = (words[part].view(np.uint64) for part in _parts(all_pairs)[1:])
    keys = np.concatenate([words, pair_keys(d, e), triple_keys(a, b, c)])
    probabilities = np.concatenate([unigrams, bigrams, p3[kept]])
    ends = np.concatenate([np.arange(len(words)), all_pairs & LOW, triples.packed[kept] & LOW])
    # An unknown word is one of many: without their number in its price, a text of them alone would seem the best.
    probabilities = np.where(ends == UNKNOWN_ID, probabilities / (unknown + 1), probabilities)
    lower = np.concatenate([rest2, backoffs, np.ones(int(kept.sum()))])
    flat = np.empty((len(keys), 2), np.int32)
    flat[:, 0] = [as_cost(value) for value in probabilities.tolist()]
    flat[:, 1] = [as_cost(value) for value in lower.tolist()]
    return build_table(keys, flat.reshape(-1))


def number_words(documents: Sequence[Keys], min_count: int) -> tuple[list[Ints], Keys, int]:
    """(numbers of each document's words behind two START_ID, key of each number, number of distinct words without one).
    The most frequent words get one."""
    everything = np.concatenate(documents) if documents else np.zeros(0, np.int64)
    if not len(everything):
        raise ValueError("texts: no word in them, at least one is needed")
    keys, counts = np.unique(everything, return_counts=True)
    order = np.lexsort((keys, -counts))[: MOST_WORDS - 2]
    known = np.sort(keys[order[counts[order] >= min_count]])
    numbered = []
    for document in documents:
        places = np.searchsorted(known, document)
        found = (places < len(known)) & (known[np.minimum(places, len(known) - 1)] == document) if len(known) else False
        numbered.append(np.concatenate([[START_ID, START_ID], np.where(found, places + 2, UNKNOWN_ID)]))
    return numbered, np.concatenate([np.array([UNKNOWN, START], np.int64), known]), len(keys) - len(known)


def count(documents: Sequence[Ints]) -> tuple[Order, Order, Order]:
    """Trigrams as often as they are there; shorter n-grams by the number of words that they follow (Kneser and Ney
    1995), but those at the start of a document, which follow nothing, as often as they are there."""
    text = np.concatenate(documents)
    packed = (text[:-2] << 2 * BITS) | (text[1:-1] << BITS) | text[2:]
    triples = Order(*np.unique(packed[text[2:] != START_ID], return_counts=True))
    tails, inverse = np.unique(triples.packed & PAIR, return_inverse=True)
    first = (triples.packed >> BITS & LOW) == START_ID
    pairs = Order(tails, _total(inverse, np.where(first, triples.counts, 1), len(tails)))
    words, inverse = np.unique(pairs.packed & LOW, return_inverse=True)
    return Order(words, _total(inverse, np.ones_like(inverse), len(words))), pairs, triples


def _total(groups: Ints, values: Ints, size: int) -> Ints:
    # Sums of doubles below 2^53 are exact.
    return np.bincount(groups, values, size).astype(np.int64)


def discounts(counts: Ints) -> Floats:
    """[0, D1, D2, D3+] (Chen and Goodman 1998, equation 26); those of KenLM's --discount_fallback, [0.5, 1, 1.5], where
    so few n-grams have a count of 1 to 4 that they cannot be estimated."""
    n1, n2, n3, n4 = (int(np.count_nonzero(counts == times)) for times in (1, 2, 3, 4))
    if not (n1 and n2 and n3 and n4):
        return np.array([0, 0.5, 1, 1.5])
    y = n1 / (n1 + 2 * n2)
    found = [1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3]
    return np.array([0, *(min(max(value, 0.05), times) for times, value in enumerate(found, 1))])


def estimate(order: Order, contexts: Ints, size: int, lower: Floats, least: int = 1) -> tuple[Floats, Floats]:
    """(probability of each n-gram, weight of the lower order in each context). lower: the lower order's probability of
    each n-gram. least: n-grams below this count are left out, and their discounted counts go to the weight."""
    discount = discounts(order.counts)
    steps = np.minimum(order.counts, 3)
    totals = _total(contexts, order.counts, size)
    spared = np.zeros(size)
    for times in (1, 2, 3):
        spared = spared + discount[times] * _total(contexts, (steps == times) & (order.counts >= least), size)
    spared = spared + _total(contexts, np.where(order.counts < least, order.counts, 0), size)
    weight = np.divide(spared, totals, out=np.ones(size), where=totals > 0)
    return (order.counts - discount[steps]) / totals[contexts] + weight[contexts] * lower, weight


def _parts(packed: Ints) -> tuple[Ints, Ints, Ints]:
    return packed >> 2 * BITS, packed >> BITS & LOW, packed & LOW


def pair_keys(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> Keys:
    """As `pair_key` of the kernel."""
    return _finish(a * ROLL + b)


def triple_keys(a: NDArray[np.uint64], b: NDArray[np.uint64], c: NDArray[np.uint64]) -> Keys:
    """As `triple_key` of the kernel."""
    return _finish(((a ^ WORD_SEED) * ROLL + b) * ROLL + c)


def _finish(value: NDArray[np.uint64]) -> Keys:
    shift = np.uint64(33)
    value = (value ^ value >> shift) * MIX[0]
    value = (value ^ value >> shift) * MIX[1]
    value = value ^ value >> shift
    return np.where(value < 3, value + np.uint64(3), value).view(np.int64)
