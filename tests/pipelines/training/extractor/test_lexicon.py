"""The lexicon: what it weighs, that a page is described without its own domain, and the table."""

import math

import numpy as np

from refinery.pipelines.training.extractor.lexicon import Lexicon, PageWords, hash_table, logarithm
from refinery.transforms.native import htmlblocks

GOOD, BAD, RARE = 1_000, 2_000, 3_000


def page(number: int) -> PageWords:
    """One block of main text with GOOD, one of its frame with BAD; an unknown one; RARE is on the first two only."""
    words = [GOOD, BAD, GOOD] + [RARE] * (number < 2)
    return PageWords(
        f"site{number}.org",
        np.array(words, np.uint32),
        np.array([0, 1, 2] + [0] * (number < 2)),
        np.array([1, 0, -1], np.int8),
    )


def test_weights_are_odds_of_words_on_enough_domains() -> None:
    pages = [page(number) for number in range(12)]
    hashes, weights = Lexicon(pages).weights()
    odds = (12 + 2 + 1) / (12 + 1)
    expected = [round(32 * math.log((12 + 2) / 2 / odds)), round(32 * math.log(2 / (12 + 2) / odds))]
    assert (hashes.tolist(), weights.tolist()) == ([GOOD, BAD], expected)


def test_a_page_does_not_know_its_own_domain() -> None:
    pages = [page(number) for number in range(10)]
    lexicon = Lexicon(pages)
    assert lexicon.weights()[0].tolist() == [GOOD, BAD]
    said = np.frombuffer(lexicon.said(pages[0]), np.int32).reshape(-1, 4)
    assert said.tolist() == [[0, 2, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0]]  # nine other domains are too few
    other = np.frombuffer(lexicon.said(page(99)), np.int32).reshape(-1, 4)
    assert other[0, 0] > 0 > other[1, 0] == other[1, 2] and other[2].tolist() == other[0].tolist()
    assert other[:, 3].tolist() == [1, 1, 1]


def test_the_table_holds_what_finds_room() -> None:
    hashes, weights = np.arange(1, 400, dtype=np.uint32) * 7919, np.full(399, -5, np.int32)
    table = hash_table(hashes, weights).view(np.uint32)
    assert len(table) == 1024 and 390 <= np.count_nonzero(table) <= 399
    crowded = hash_table(np.arange(1, 21, dtype=np.uint32) << 8, np.full(20, 3, np.int32))
    assert np.flatnonzero(crowded).tolist() == list(range(htmlblocks.PROBES))


def test_logarithm() -> None:
    values = np.exp(np.linspace(-8, 8, 999))
    assert np.abs(logarithm(values) - np.log(values)).max() < 1e-6
