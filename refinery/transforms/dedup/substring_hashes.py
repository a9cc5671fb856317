"""Hashes of runs of words, by which substring_duplicates.py finds texts that are repeated word for word.

Words and their 64-bit hashes are those of signatures.py: runs of letters and digits with their marks, lower-cased;
every character of scripts written without spaces. So case, punctuation and spacing do not matter.

Anchors (winnowing: Schleimer, Wilkerson and Aiken 2003): each run of GRAM words has the hash fmix64(sum of word hash[i]
* ROLL^(GRAM-1-i) mod 2^64); of each SPAN_WORDS words the least of the GUARD such hashes in them is the anchor, the
leftmost where several are least. It depends on these words alone, so equal runs of SPAN_WORDS words have equal anchors,
at different places. The anchor's value is fmix64 of that least hash, with the lowest bit 0. A text of random words has
one for every (GUARD + 1) / 2 = 13.5 words.

Windows: a run of `size` words has the hash fmix64(sum of word hash[i] * BASE^(size-1-i) mod 2^61 - 1), with the lowest
bit 0. Modulo a prime no pattern of words cancels out, as Thue-Morse sequences do modulo a power of two. With a key
words have the keyed hashes of signatures.py, and BASE is drawn from it: then nobody without the key can write a run of
words that has the hash of another one. Anchors only propose windows, and are never keyed.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from refinery.transforms.dedup.signatures import PUBLIC, character_table
from refinery.transforms.native import substrings

GRAM, GUARD = 25, 26
SPAN_WORDS = GRAM + GUARD - 1  # 50: the least number of words of a repeat that is sure to be found
MAX_WORDS = 1 << 16


@dataclass(frozen=True)
class Windows:
    """Of every run of so many words of a text: the anchor of its first SPAN_WORDS words, and its hash; and begin and
    end of every word in characters, of shape (words, 2).
    """

    anchors: NDArray[np.uint64]
    hashes: NDArray[np.uint64]
    places: NDArray[np.uint32]


def hash_anchors(texts: Sequence[str]) -> pa.ListArray:
    """list<uint64>, one list per text with its anchors, one for each place. Lone surrogates separate words.

    Cost: one pass in C without the GIL and without copying the texts, linear in characters; about 8 bytes for each 13
    words, at most 8 bytes a word. Raises ValueError above 2^31 - 1 anchors in all.
    """
    hashes, places = substrings.anchors(texts, character_table())
    offsets = np.frombuffer(places, np.int64)
    if offsets[-1] > np.iinfo(np.int32).max:
        raise ValueError(f"{offsets[-1]} anchors found, up to 2^31 - 1 are allowed")
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(np.frombuffer(hashes, np.uint64)))


def window_key(key: bytes) -> bytes:
    """What the kernel takes of a key: the key itself, which is that of words, and 8 bytes for the base."""
    return key + hashlib.blake2b(b"window", key=key, digest_size=8).digest() if key else PUBLIC


def hash_windows(text: str, size: int, key: bytes = PUBLIC) -> Windows:
    """The windows of `size` words (SPAN_WORDS to MAX_WORDS) of a text. 24 bytes a word, and 16 while it counts (24 with
    a key). key: of `window_key`."""
    anchors, hashes, places = substrings.windows(text, character_table(), size, key)
    return Windows(
        np.frombuffer(anchors, np.uint64),
        np.frombuffer(hashes, np.uint64),
        np.frombuffer(places, np.uint32).reshape(-1, 2),
    )
