import numpy as np
from numpy.typing import NDArray

TAIL: int  # last words of a short run that `tails` knows

def scan(
    text: str,
    table: NDArray[np.uint32],
    salt: int,
    lengths: NDArray[np.int64],
    shorter: NDArray[np.int64],
    keys: NDArray[np.int64],
    filter: NDArray[np.int64],
    tails: NDArray[np.int64],
    /,
) -> bytes:
    """int64 triples (start, end, place): text[start:end] is a run of words whose key is keys[place], for each of
    `lengths`; and for each of `shorter` (ascending, TAIL or more) where the key of its last TAIL words is in `tails`.
    At most 2 lengths and 64 shorter ones, up to 64 words. keys: sorted as uint64.
    filter and tails: a power of 2 of words; the highest bits of a key choose the word, in which its bits 0-5, 6-11 and
    12-17 name three set bits. Raises ValueError, TypeError,
    MemoryError."""

def windows(text: str, table: NDArray[np.uint32], ngram: int, salt: int, /) -> tuple[bytes, bytes, int, int]:
    """(keys, distinct, words, solitary): uint64 keys of every run of `ngram` words, uint8 numbers of different words in
    each (with salt 0: of those with content), how many words the text has, and how many of them are SOLITARY."""
