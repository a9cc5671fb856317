"""Near copies by MinHash: datatrove's own signatures beside ours, on the same documents, 14 bands of 8, 5-grams.

    PYTHONPATH=. .venv/bin/python benchmarks/conformance_copies.py DOCUMENTS.jsonl.gz [--every 10] [--seeds 8]

Needs the extra [bench]. What is compared is which pairs of documents are linked by an equal band, and which documents
have any copy. A pair that is less than alike is found by chance, so the sides are compared in three ways:

1. The same hashes: datatrove's own signatures go through our bands. Rules and units are the same, so every decision is.
2. The same shingles: our hashes and datatrove's, with several seeds each, on its own simplified words. Two seeds of
   datatrove find other pairs, too; the question is whether a seed of ours differs from it more than another of its own.
3. Each side's own words: what numbers, accents and punctuation add to that.

`verified` is what our stage then removes: pairs of which the exact similarity of the 5-grams is 0.75.
"""

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from datatrove.pipeline.dedup import MinhashConfig, MinhashDedupSignature
from datatrove.utils.text import simplify_text

from benchmarks.conformance import read
from benchmarks.conformance_rules import SameWords
from refinery.transforms.dedup.near_duplicates import NearParams, band_hashes
from refinery.transforms.dedup.signatures import SignatureParams, compute_signatures, shingle_hashes

Pairs = set[tuple[int, int]]
BANDS, ROWS, NGRAM = 14, 8, 5
STEPS = (0.0, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 0.999)


def linked(rows: Iterable[Sequence[object]]) -> Pairs:
    """Pairs of documents that agree in a band; rows: of each document, its bands."""
    buckets: dict[tuple[int, object], list[int]] = defaultdict(list)
    for number, bands in enumerate(rows):
        for band, value in enumerate(bands):
            buckets[band, value].append(number)
    return {pair for members in buckets.values() for pair in combinations(members, 2)}


class Theirs:
    """datatrove's signatures on our words, its shingles made once for all seeds."""

    def __init__(self, texts: Sequence[str], folder: str) -> None:
        self._folder = folder
        self._shingles = list(map(self._block(1).get_shingles, texts))

    def _block(self, seed: int) -> Any:
        config = MinhashConfig(n_grams=NGRAM, num_buckets=BANDS, hashes_per_bucket=ROWS, seed=seed)
        return MinhashDedupSignature(self._folder, config, language=SameWords("same"))

    def bands(self, seed: int = 1) -> list[list[tuple[int, ...]]]:
        """A text of no shingle agrees with nothing."""
        block = self._block(seed)
        return [[tuple(band) for band in block.get_signature(each)] if each.size else [] for each in self._shingles]


def our_bands(texts: Sequence[str], seed: int = 1) -> list[list[int]]:
    """By our kernel."""
    params = SignatureParams(permutations=BANDS * ROWS, ngram=NGRAM, seed=seed)
    found: list[list[int]] = band_hashes(compute_signatures(texts, params), BANDS, ROWS).tolist()
    return found


def through_our_bands(theirs: Sequence[Sequence[tuple[int, ...]]]) -> Pairs:
    """What our code links by datatrove's hashes: of 64 bits, of which a signature of ours holds 32. Texts of no
    shingle, to which datatrove gives no signature, are left out."""
    known = [number for number, bands in enumerate(theirs) if bands]
    values = np.array([[value for band in theirs[number] for value in band] for number in known], np.uint64)
    found = linked(band_hashes((values & np.uint64(0xFFFFFFFF)).astype(np.uint32), BANDS, ROWS).tolist())
    return {(known[a], known[b]) for a, b in found}


def simplified(text: str) -> str:
    """datatrove's simplified words, one space apart, which gives our shingles the same words."""
    return " ".join(SameWords("same").word_tokenize(simplify_text(text)))


def documents_alike(a: Pairs, b: Pairs, count: int) -> float:
    """The share of documents, in percent, that have a copy on both sides or on neither."""
    copies = [{number for pair in pairs for number in pair} for pairs in (a, b)]
    return 100 * (1 - len(copies[0] ^ copies[1]) / count)


def by_similarity(texts: Sequence[str], there: Pairs, here: Pairs) -> Iterator[str]:
    """Markdown: pairs by the exact similarity of our 5-grams, beside the chance that 14 bands of 8 find them."""
    params, near = SignatureParams(permutations=BANDS * ROWS, ngram=NGRAM), NearParams()
    shingles = {number: set(shingle_hashes(texts[number], params).tolist()) for pair in here | there for number in pair}
    found: dict[str, Counter[float]] = defaultdict(Counter)
    chances: dict[float, list[float]] = defaultdict(list)
    for a, b in here | there:
        similarity = len(shingles[a] & shingles[b]) / max(1, len(shingles[a] | shingles[b]))
        step = max(step for step in STEPS if step <= similarity)
        chances[step].append(1 - (1 - similarity**ROWS) ** BANDS)
        name = "both" if (a, b) in here and (a, b) in there else "here" if (a, b) in here else "there"
        found[name][step] += 1
        found["verified"][step] += (a, b) in here and similarity >= near.threshold
    yield "| similarity from | pairs linked by both | there alone | here alone | chance, mean | verified |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for step in STEPS:
        counts = [found[name][step] for name in ("both", "there", "here")]
        if any(counts):
            yield f"| {step} | {' | '.join(map(str, counts))} | {mean(chances[step]):.3f} | {found['verified'][step]} |"


def table(texts: Sequence[str], seeds: int) -> Iterator[str]:
    """Markdown: the three comparisons."""
    with TemporaryDirectory() as folder:
        theirs = Theirs(texts, folder)
        first = theirs.bands()
        there = [linked(theirs.bands(seed)) for seed in range(1, seeds + 1)]
    same = through_our_bands(first)
    words = list(map(simplified, texts))
    here = [linked(our_bands(words, seed)) for seed in range(1, seeds + 1)]
    own = linked(our_bands(texts))

    def row(name: str, sides: Iterable[tuple[Pairs, Pairs]]) -> str:
        return _row(name, list(sides), len(texts))

    yield f"{len(texts)} documents, {seeds} seeds on each side\n"
    yield "| compared | pairs linked, there and here | documents alike, %: mean | least | most |"
    yield "| --- | --- | --- | --- | --- |"
    yield row("datatrove's hashes, its bands and ours", [(there[0], same)])
    yield row("datatrove with two seeds", combinations(there, 2))
    yield row("datatrove and ours, the same shingles", product(there, here))
    yield row("ours with two seeds", combinations(here, 2))
    yield row("datatrove and ours, each its own words", [(pairs, own) for pairs in there])
    yield f"\npairs by datatrove's hashes that differ: {len(there[0] ^ same)}\n"
    yield from by_similarity(texts, there[0], own)


def _row(name: str, sides: Sequence[tuple[Pairs, Pairs]], count: int) -> str:
    shares = [documents_alike(a, b, count) for a, b in sides]
    pairs = " and ".join(f"{mean(len(side[i]) for side in sides):.0f}" for i in (0, 1))
    return f"| {name} | {pairs} | {mean(shares):.3f} | {min(shares):.3f} | {max(shares):.3f} |"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", nargs="+", metavar="DOCUMENTS", help="JSON Lines, plain, .gz or .zst")
    parser.add_argument("--text", default="text", metavar="FIELD", help="the field that holds the text")
    parser.add_argument("--html", default="", metavar="FIELD", help="a field with a page, which is extracted first")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="take each N-th document")
    parser.add_argument("--seeds", type=int, default=8, metavar="N", help="seeds on each side")
    args = parser.parse_args()
    rows = [text for path in args.documents for _, text in read(path, args.text, args.html)]
    print("\n".join(table(rows[:: args.every], args.seeds)))


if __name__ == "__main__":
    main()
