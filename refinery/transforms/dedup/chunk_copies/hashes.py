"""A hash of every self-contained construct of a source file, by which find.py recognises copies.

What a construct is: transforms/code/constructs.py. Its hash, 128 bits of blake2b, is of its code tokens, so layout
does not matter; comments inside it count, those above it do not. What is compared is 63 bits of it, under a key that
nobody knew who wrote a file: with fewer or fixed bits a file could have the hash of another one's function.
"""

import hashlib
import re
import struct
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from refinery.transforms.code.constructs import whole_constructs
from refinery.transforms.code.languages import language_of
from refinery.transforms.code.paths import path_of
from refinery.transforms.core.document import Document
from refinery.transforms.dedup.signatures import UNITS, SignatureParams, character_table
from refinery.transforms.native import minhash

CHUNK_SCHEME = "code-tokens/constructs-3"
# Of a construct: its hash (two), its place (begin << 32 | stop, in characters), its number of tokens.
VALUES = 4
LOW, HIGH, PLACE, TOKENS = range(VALUES)
TOKEN = re.compile(r"\w+|[!-/:-@\[-^`{-~]")  # the units of signatures.py; its numbers of them count


def hash_constructs(docs: Sequence[Document]) -> pa.ListArray:
    """list<uint64>, one list per document with VALUES numbers per construct. Nothing for texts without a grammar.

    Cost: one parse of each text. Raises ValueError above 2^31 - 1 values in all.
    """
    values: list[int] = []
    offsets = [0]
    for doc in docs:
        for begin, start, end, stop in whole_constructs(doc.text, language_of(path_of(doc), doc.text)):
            tokens = minhash.shingles(doc.text[start:end], character_table(), 1, UNITS.index("code"))
            found = "\n".join(TOKEN.findall(doc.text[start:end])).encode("utf-8", "surrogatepass")
            low, high = struct.unpack("<QQ", hashlib.blake2b(found, digest_size=16).digest())
            values += [low, high, begin << 32 | stop, len(tokens) // 4]
        offsets.append(len(values))
    if offsets[-1] > np.iinfo(np.int32).max:
        raise ValueError(f"{offsets[-1]} values of constructs found, up to 2^31 - 1 are allowed")
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values, pa.uint64()))


def construct_column(docs: Sequence[Document], signature: SignatureParams) -> pa.ListArray:
    """`hash_constructs` of documents; the key comes in where they are compared."""
    return hash_constructs(docs)


def compared_hashes(values: NDArray[np.uint64], key: bytes) -> NDArray[np.uint64]:
    """63 bits of the hashes of constructs, given as rows of VALUES, under a key; the lowest bit is 0."""
    low, high = np.frombuffer(hashlib.blake2b(b"constructs", key=key, digest_size=16).digest(), "<u8") | np.uint64(1)
    compared: NDArray[np.uint64] = (values[:, LOW] * low + values[:, HIGH] * high) & ~np.uint64(1)
    return compared
