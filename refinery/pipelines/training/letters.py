"""Counts pairs of letters by language, for the detector of encodings (`transforms/extract/charsets/letters.py`).

Run: python -m refinery.pipelines.training.letters TEXTS.jsonl.gz --output letters.npy. A line is an object with `text`
and `lang_macro` (ISO 639-3). What `held_out` says is left out, so what was not counted can be measured.
"""

import argparse
import gzip
import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from refinery.transforms.extract.charsets.letters import IDEOGRAPHIC, LANGUAGES, folded

SHARE_ALIKE = "CC-BY-SA"  # texts under such a licence are not counted
LEAST = 1  # times that a pair must be there


def held_out(text: str) -> bool:
    """Whether a text is for measuring: a quarter of all, by hash."""
    return blake2b(text.encode(), digest_size=1).digest()[0] < 64


def count_letters(texts: Iterable[tuple[str, str]]) -> NDArray[np.uint16]:
    """Rows of language, letter, next letter or 0, and how often, from pairs of language and text; sorted."""
    single: Counter[tuple[int, int, int]] = Counter()
    pairs: Counter[tuple[int, int, int]] = Counter()
    for language, text in texts:
        if language not in LANGUAGES:
            continue
        number = LANGUAGES.index(language)
        codes = [min(ord(sign), 0xFFFF) for sign in folded(unicodedata.normalize("NFC", text))]
        single.update((number, code, 0) for code in codes)
        most = (
            0x3100 if language in IDEOGRAPHIC else 0x10000
        )  # kana and signs in pairs, not what there are thousands of
        kept = [code if code < most else 0 for code in codes]
        pairs.update((number, former, later) for former, later in pairwise(kept) if former and later)
    rows = [(*key, min(times, 0xFFFF)) for key, times in (single + pairs).items() if times >= LEAST]
    return np.array(sorted(rows), np.uint16).reshape(-1, 4)


def read_texts(path: str) -> Iterator[tuple[str, str]]:
    """Language and text of the lines that are to be counted."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if SHARE_ALIKE not in row.get("licence", "") and not held_out(row["text"]):
                yield row["lang_macro"], row["text"]


def main() -> None:
    """Read texts, write counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts")
    parser.add_argument("--output", required=True)
    given = parser.parse_args()
    counts = count_letters(read_texts(given.texts))
    np.save(given.output, counts, allow_pickle=False)
    print(f"{len(counts):,} counts of {len(LANGUAGES)} languages")


if __name__ == "__main__":
    main()
