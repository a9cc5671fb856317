"""Which source files shingles of code tokens find alike, beside shingles of words and BigCode's split.

    python -m benchmarks.code_copies --pairs pairs.jsonl.gz --files files.jsonl.gz

pairs: JSONL of `kind`, `relation`, and `a` and `b` with a `text` each. Versions of a file and vendored copies
are copies, different files of one project are not. files: JSONL of `path` and `content`. The similarity is
the exact Jaccard index of sets of five units.
"""

import argparse
import gzip
import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from refinery.transforms.code.languages import LANGUAGES
from refinery.transforms.core.document import Document, hash64
from refinery.transforms.dedup.chunk_copies.cut import ChunkCopyParams
from refinery.transforms.dedup.chunk_copies.hashes import TOKENS, VALUES, hash_constructs
from refinery.transforms.dedup.near_duplicates import NearParams
from refinery.transforms.dedup.signatures import SignatureParams, compute_signatures, shingle_hashes

THRESHOLD = 0.7
MIN_TOKENS = ChunkCopyParams().min_tokens
NOT_COPIES = "different_files_same_project"
NON_WORD = re.compile("[^A-Za-z_0-9]+")  # bigcode-dataset, near_deduplication/minhash_deduplication.py
ENDINGS = tuple(ending for language in LANGUAGES.values() for ending in language.endings)
SCOPES = {
    "in source: 128 permutations, bands derived": (128, NearParams(threshold=THRESHOLD, bands=None, rows=None)),
    "across: 112 permutations, 14 x 8": (112, NearParams(threshold=THRESHOLD)),
}


def words_of_bigcode(text: str) -> frozenset[int]:
    """BigCode's shingles: five words of letters, digits and underscores."""
    words = [word for word in NON_WORD.split(text) if word]
    return frozenset(hash64(*words[i : i + 5]) for i in range(max(1, len(words) - 4)))


def ours(unit: str) -> Callable[[str], frozenset[int]]:
    params = SignatureParams.model_validate({"unit": unit})
    return lambda text: frozenset(shingle_hashes(text, params).tolist())


MEASURES = {"words": ours("word"), "BigCode's words": words_of_bigcode, "code tokens": ours("code")}


def jaccard(a: frozenset[int], b: frozenset[int]) -> float:
    return len(a & b) / len(a | b) if a or b else 1.0


def rows_of(path: str) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt") if path.endswith(".gz") else Path(path).open() as lines:
        yield from map(json.loads, lines)


def alike(sets: Sequence[frozenset[int]]) -> Iterator[tuple[int, int]]:
    """Pairs of sets whose similarity reaches the threshold, by an index of their members."""
    holders: dict[int, list[int]] = defaultdict(list)
    for number, members in enumerate(sets):
        shared: defaultdict[int, int] = defaultdict(int)
        for member in members:
            for other in holders[member]:
                shared[other] += 1
            holders[member].append(number)
        for other, both in shared.items():
            if both >= THRESHOLD * (len(members) + len(sets[other]) - both):
                yield other, number


def places_above(values: Sequence[int], least: int) -> list[int]:
    """Where constructs of at least so many tokens stand among the values of a file."""
    return [i for i in range(0, len(values), VALUES) if values[i + TOKENS] >= least]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", required=True)
    parser.add_argument("--files", required=True)
    parser.add_argument("--show", action="store_true", help="write the pairs of files that are alike")
    args = parser.parse_args()
    pairs = [row for row in rows_of(args.pairs) if row["kind"] != "document_revisions"]
    files = [row for row in rows_of(args.files) if row["path"].endswith(ENDINGS)]

    print(f"| similarity at least {THRESHOLD} | copies found | of different files | pairs of files |")
    for name, shingles in MEASURES.items():
        scores = [
            (row["relation"] == NOT_COPIES, jaccard(*(shingles(row[side]["text"]) for side in "ab"))) for row in pairs
        ]
        found = {wrong: [score >= THRESHOLD for other, score in scores if other == wrong] for wrong in (False, True)}
        same = list(alike([shingles(row["content"]) for row in files]))
        shares = " | ".join(f"{sum(found[wrong])} of {len(found[wrong])}" for wrong in (False, True))
        print(f"| {name} | {shares} | {len(same)} of {len(files)} files |")
        for one, other in same if args.show else ():
            print("   ", files[one]["path"], files[other]["path"])

    copies = [row for row in pairs if row["relation"] != NOT_COPIES]
    code = [jaccard(*(MEASURES["code tokens"](row[side]["text"]) for side in "ab")) for row in copies]
    for scope, (used, near) in SCOPES.items():
        params = SignatureParams(permutations=128, unit="code")
        a, b = (compute_signatures([row[side]["text"] for row in copies], params)[:, :used] for side in "ab")
        bands, size = near.layout(used)
        equal = (a == b)[:, : bands * size].reshape(-1, bands, size).all(axis=2).any(axis=1)
        removed = equal & ((a == b).sum(axis=1) >= near.minimum(used))
        true = np.array(code) >= THRESHOLD
        right, more = (removed & true).sum(), (removed & ~true).sum()
        print(f"{scope} ({bands} x {size}): {right} of {true.sum()} removed, {more} more")

    texts = [row["content"] for row in files]
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    for unit in ("word", "code"):
        params = SignatureParams.model_validate({"unit": unit, "permutations": 128})
        start = time.perf_counter()
        compute_signatures(texts, params)
        print(f"{unit}: {megabytes / (time.perf_counter() - start):.0f} MB/s of signatures of 128 values")

    docs = [Document(b"", row["content"], "", "files", row["path"], 0, {"path": row["path"]}) for row in files]
    start = time.perf_counter()
    lists = hash_constructs(docs).to_pylist()
    seconds = time.perf_counter() - start
    holders = Counter(number for values in lists for number in {values[i] for i in places_above(values, MIN_TOKENS)})
    print(
        f"constructs: {sum(map(len, lists)) // VALUES}, of {MIN_TOKENS} tokens or more "
        f"{sum(len(places_above(values, MIN_TOKENS)) for values in lists)}, copies in other files "
        f"{sum(holders.values()) - len(holders)}, {megabytes / seconds:.1f} MB/s"
    )


if __name__ == "__main__":
    main()
