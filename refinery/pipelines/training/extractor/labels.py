"""Which blocks of a page are main text, from gold: the share of a block's words that is in the gold text.

Blocks of LONG words and more are covered where runs of RUN words occur in the gold text. Shorter ones are covered
where all of their words occur there in a row; where a page says them more often than the gold text does, the
occurrences nearest to covered long blocks count, and of these the ones between the first and the last of them first.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from refinery.pipelines.training.extractor.gold import GoldPage
from refinery.pipelines.training.extractor.scoring import words_of

LONG, RUN = 7, 4
SURE = 0.6  # a long block that is covered so far is main text
SNIPPET_WEIGHT = 0.2  # of one block with a snippet, where a whole page weighs about 1
LEAST_WORDS = 30  # a page with less main text does not weigh its few words more than this


def block_targets(texts: Sequence[str], page: GoldPage) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Targets in 1/1000 and weights of a page's blocks; weight 0 where nothing is known."""
    if page.text is None:
        return _snippet_targets(texts, page)
    blocks = [words_of(text) for text in texts]
    cover = coverage(blocks, words_of(page.text))
    sizes = np.array([len(words) for words in blocks], np.float64)
    main = max(float(sizes[cover > 0.5].sum()), LEAST_WORDS)
    share = np.minimum((sizes + 1) / (main + sizes.sum() / 4), 0.2)
    # The root: a compromise between words, which are scored, and blocks, which are decided on.
    return np.rint(cover * 1000).astype(np.int32), np.sqrt(share + 0.0005)


def _snippet_targets(texts: Sequence[str], page: GoldPage) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    targets, weights = np.zeros(len(texts), np.int32), np.zeros(len(texts))
    plain = [" ".join(text.split()) for text in texts]
    for snippets, target in ((page.wanted, 1000), (page.unwanted, 0)):
        for snippet in snippets:
            form = " ".join(snippet.split())
            for number, text in enumerate(plain):
                if form in text:
                    targets[number], weights[number] = target, np.sqrt(SNIPPET_WEIGHT)
    return targets, weights


def coverage(blocks: Sequence[Sequence[str]], gold: Sequence[str]) -> NDArray[np.float64]:
    """Share of each block's words that are main text, 0 to 1."""
    runs = {tuple(gold[start : start + RUN]) for start in range(len(gold) - RUN + 1)}
    cover = np.zeros(len(blocks))
    short: dict[str, list[int]] = defaultdict(list)
    for number, words in enumerate(blocks):
        if len(words) >= LONG:
            hit = np.zeros(len(words), np.bool_)
            for start in range(len(words) - RUN + 1):
                if tuple(words[start : start + RUN]) in runs:
                    hit[start : start + RUN] = True
            cover[number] = hit.sum() / len(words)
        elif words:
            short[f" {' '.join(words)} "].append(number)
    sure = np.flatnonzero(cover > SURE)
    first, last = (int(sure[0]), int(sure[-1])) if len(sure) else (0, len(blocks))
    anchors = sure if len(sure) else np.array([len(blocks) // 2])
    whole = f" {' '.join(gold)} "
    for form, numbers in short.items():
        times = whole.count(form)
        if times < len(numbers):
            numbers.sort(key=lambda number: (not first <= number <= last, int(np.abs(anchors - number).min()), number))
        cover[numbers[:times]] = 1
    return cover
