"""A 64-bit hash of every line of a text, by which line_duplicates.py recognises lines.

A line is the text between two newlines: `text.split("\\n")`. Its hash depends on its words alone (words and their
hashes as in signatures.py: runs of letters and digits with their marks, lower-cased; every character of scripts written
without spaces; under the secret of `SignatureParams.key`, if there is one), so case, punctuation and spacing do not
matter: S = sum of word hash[i] * ROLL^(words-1-i) mod 2^64,
then fmix64(S). The lowest four bits are then replaced by the number of words, capped at 15; a line without any
word has hash 0.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from refinery.transforms.dedup.signatures import PUBLIC, character_table
from refinery.transforms.native import lines

LINE_SCHEME = "lines-1/keyed"  # of hashes under a secret
WORDS_MASK = np.uint64(15)  # the bits of a hash that hold the number of words


def hash_lines(texts: Sequence[str], key: bytes = PUBLIC) -> pa.ListArray:
    """list<uint64>, one list per text with one hash per line. Lone surrogates separate words. key: of `word_key`.

    Cost: one pass in C without the GIL and without copying the texts, linear in characters; 8 bytes a line.
    Raises ValueError above 2^31 - 1 lines in all.
    """
    hashes, places = lines.hash_lines(texts, character_table(), key)
    offsets = np.frombuffer(places, np.int64)
    if offsets[-1] > np.iinfo(np.int32).max:
        raise ValueError(f"{offsets[-1]} lines given, up to 2^31 - 1 are allowed")
    values = np.frombuffer(hashes, np.uint64)
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(values))


def word_counts(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Words of the lines with these hashes, capped at 15; 0 for a line without any."""
    return hashes & WORDS_MASK
