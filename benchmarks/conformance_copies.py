"""Near copies by MinHash: datatrove's own signatures beside ours, on the same documents, 14 bands of 8, 5-grams.

    PYTHONPATH=. .venv/bin/python benchmarks/conformance_copies.py DOCUMENTS.jsonl.gz [--every 10]

Needs the extra [bench]. Which copy stays differs by design, so what is compared is which pairs of documents are linked
by an equal band, and which documents have any copy. Hash functions differ, so a pair is found by chance on either side:
the table has the exact similarity of the pairs' 5-grams, and the chance to be found at that similarity. `verified` is
what our stage then removes: pairs whose signatures say 0.75.
"""

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from tempfile import TemporaryDirectory

import numpy as np
from datatrove.pipeline.dedup import MinhashConfig, MinhashDedupSignature

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


def their_bands(texts: Sequence[str], folder: str) -> list[list[tuple[int, ...]]]:
    """By datatrove's own code, on our words; a text of no shingle agrees with nothing."""
    config = MinhashConfig(n_grams=NGRAM, num_buckets=BANDS, hashes_per_bucket=ROWS)
    block = MinhashDedupSignature(folder, config, language=SameWords("same"))
    shingles = map(block.get_shingles, texts)
    return [[tuple(band) for band in block.get_signature(each)] if each.size else [] for each in shingles]


def table(texts: Sequence[str]) -> Iterable[str]:
    """Markdown: pairs by exact similarity, then documents."""
    with TemporaryDirectory() as folder:
        there = linked(their_bands(texts, folder))
    signature, near = SignatureParams(permutations=BANDS * ROWS, ngram=NGRAM), NearParams()
    signatures = compute_signatures(texts, signature)
    here = linked(band_hashes(signatures, BANDS, ROWS).tolist())
    shingles = {
        number: set(shingle_hashes(texts[number], signature).tolist()) for pair in here | there for number in pair
    }
    found: dict[str, Counter[float]] = defaultdict(Counter)
    chances: dict[float, list[float]] = defaultdict(list)
    for a, b in here | there:
        similarity = len(shingles[a] & shingles[b]) / max(1, len(shingles[a] | shingles[b]))
        step = max(step for step in STEPS if step <= similarity)
        chances[step].append(1 - (1 - similarity**ROWS) ** BANDS)
        name = "both" if (a, b) in here and (a, b) in there else "here" if (a, b) in here else "there"
        found[name][step] += 1
        equal = int(np.count_nonzero(signatures[a] == signatures[b]))
        found["verified"][step] += (a, b) in here and equal >= near.minimum(BANDS * ROWS)
    yield "| similarity from | pairs linked by both | there alone | here alone | chance, mean | verified |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for step in STEPS:
        counts = [found[name][step] for name in ("both", "there", "here")]
        if any(counts):
            chance = f"{sum(chances[step]) / len(chances[step]):.3f}"
            yield f"| {step} | {' | '.join(map(str, counts))} | {chance} | {found['verified'][step]} |"
    copies = [{number for pair in pairs for number in pair} for pairs in (there, here)]
    same = len(texts) - len(copies[0] ^ copies[1])
    share = f"{100 * same / len(texts):.3f} % alike"
    yield f"\n{len(texts)} documents; with a copy there {len(copies[0])}, here {len(copies[1])}; {share}"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", nargs="+", metavar="DOCUMENTS", help="JSON Lines, plain, .gz or .zst")
    parser.add_argument("--text", default="text", metavar="FIELD")
    parser.add_argument("--html", default="", metavar="FIELD", help="a field with a page, which is extracted first")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="take each N-th document")
    args = parser.parse_args()
    rows = [text for path in args.documents for _, text in read(path, args.text, args.html)]
    print("\n".join(table(rows[:: args.every])))


if __name__ == "__main__":
    main()
