"""A hash of every self-contained construct of a source file, by which find.py recognises copies.

What a construct is: transforms/code/constructs.py. Its hash is of its code tokens (signatures.py, unit "code"), each
by its 32-bit shingle hash, so that layout does not matter; comments inside it count, those above it do not. The lowest
bit is 0. Two constructs that differ in one token only are taken for one once in 2^32, others once in 2^63.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from refinery.transforms.code.constructs import whole_constructs
from refinery.transforms.code.languages import language_of
from refinery.transforms.code.paths import path_of
from refinery.transforms.core.document import Document
from refinery.transforms.dedup.signatures import UNITS, character_table
from refinery.transforms.native import minhash

CHUNK_SCHEME = "code-tokens/constructs-1"
VALUES = 3  # of a construct: its hash, its place (begin << 32 | stop, in characters), its number of tokens


def hash_constructs(docs: Sequence[Document]) -> pa.ListArray:
    """list<uint64>, one list per document with VALUES numbers per construct. Nothing for texts without a grammar.

    Cost: one parse of each text. Raises ValueError above 2^31 - 1 values in all.
    """
    values: list[int] = []
    offsets = [0]
    for doc in docs:
        for begin, start, end, stop in whole_constructs(doc.text, language_of(path_of(doc), doc.text)):
            tokens = minhash.shingles(doc.text[start:end], character_table(), 1, UNITS.index("code"))
            number = int.from_bytes(hashlib.blake2b(tokens, digest_size=8).digest(), "little")
            values += [number & ~1, begin << 32 | stop, len(tokens) // 4]
        offsets.append(len(values))
    if offsets[-1] > np.iinfo(np.int32).max:
        raise ValueError(f"{offsets[-1]} values of constructs found, up to 2^31 - 1 are allowed")
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values, pa.uint64()))
