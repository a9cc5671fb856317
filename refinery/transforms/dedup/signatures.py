"""MinHash signatures of documents, and the signatures/ part files that hold them beside id, rank and size.

From text to signature (`scheme_of` names this recipe in the manifest; any change of a value changes the name):

1. Characters. A word is a run of letters and digits (`str.isalnum`) with the combining marks that follow them,
   lower-cased one by one. In scripts written without spaces (native/include/scripts.h) every character, with its
   marks, is a word. Everything else is a separator. With unit "character" every such character is a unit, and any
   separators between two of them count as one space. With unit "code" a word may have underscores and keeps its case,
   and every other ASCII character that is printed is a unit. Comments and strings are read like all else, but not the
   head of a text: comments (lines from // or #, blocks from /*), and before or between them an include guard, #pragma
   once, <?php, or <?xml ... ?>. Without anything else, a text is read from behind its first comments; without
   anything there, from its beginning. A licence makes small files alike that have nothing else in common.
2. Word hash, 64 bits: h = SEED; per character h = (h ^ code point) * PRIME mod 2^64; then fmix64 of MurmurHash3.
3. Shingle of n units: S = sum of word hash[i] * ROLL^(n-1-i) mod 2^64; its hash is the upper half of fmix64(S).
   Fewer than n units make one shingle of them all; a text without any unit makes one of its characters as they are.
   Where all shingles are one and the same, the lower half of fmix64(S) counts as a second one, so two short texts
   collide by chance once in 2^64, not once in 2^32.
4. Signature: for each permutation k the minimum over shingles of a[k] * fmix32(hash) + b[k] mod 2^32, the `affine32`
   scheme of datasketch 2, with its a and b for the seed. The empty text, and no other, has 2^32 - 1 everywhere.

With a secret key (`SignatureParams.key`), in step 2: three numbers of 64 bits, little-endian, are the first 24 bytes of
HMAC-SHA-256 of "refinery signature words" under it: s mod P, 2 + m mod (P - 2), and x, where P = 2^61 - 1. Then h = s;
per character h = (h + code point + 1) * m mod P; then fmix64(h ^ x).
"""

import hashlib
import hmac
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import Field, model_validator

from refinery.loader.storage.open_store import open_store
from refinery.transforms.core.document import ID_BYTES
from refinery.transforms.core.params import Params
from refinery.transforms.core.part_errors import naming
from refinery.transforms.core.resources import read_key
from refinery.transforms.dedup.records.rank import RANK_BYTES
from refinery.transforms.dedup.records.record_batch import (
    starts_of,
)
from refinery.transforms.native import minhash, scripts

SIGNATURE_SCHEME = "affine32/words-2"
CODE_SCHEME = "affine32/code-3"  # of unit "code": its heads have guards

WORD_KEY_BYTES = 24  # of a key as the kernel takes it
PUBLIC = b""  # no key: the fixed hashes
Key = Callable[[], bytes]  # gives the key of what is compared, where it is needed: workers have secrets, graphs do not
no_key: Key = bytes

SPACELESS = scripts.unspaced()
BORDER, LETTER, SOLITARY, MARK = range(4)
UNITS = ("word", "character", "code")  # by the numbers that the kernel knows
# Code points that may be letters or marks; everything else is a separator.
ASSIGNED = (range(0x40000), range(0xE0000, 0xE1000))


class SignatureParams(Params):
    """How documents are sketched."""

    LATER: ClassVar[tuple[str, ...]] = ("key_id",)
    PLACES: ClassVar[tuple[str, ...]] = ("key",)

    permutations: Annotated[int, Field(ge=1, le=4096)] = 112  # 14 bands of 8 rows: FineWeb, Penedo et al. 2024, 3.4
    """number of values in a signature; the error of a similarity estimate is about 0.5 / sqrt(permutations)"""
    ngram: Annotated[int, Field(ge=1, le=256)] = 5
    """units in a shingle"""
    unit: Literal["word", "character", "code"] = "word"
    """what a shingle is made of; `code`: identifiers, numbers and every sign, for source code"""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 1
    """chooses the permutations, as in datasketch"""
    key: str = ""
    """where to find the secret key of the hashes, never the key itself: `env:NAME` (the worker's environment) or a
    file, local or remote; 16 bytes or more. Without a key, anybody can write a page with the signature of another
    page"""
    key_id: str = ""
    """eight hexadecimal digits that identify the secret; if they are missing, the error message gives them"""

    @model_validator(mode="after")
    def _check_key_id(self) -> "SignatureParams":
        if self.key_id and not self.key:
            raise ValueError(f"key_id: {self.key_id!r} given, only with key is it allowed")
        return self


def scheme_of(params: SignatureParams) -> str:
    """The name of the recipe by which signatures are made."""
    return CODE_SCHEME if params.unit == "code" else SIGNATURE_SCHEME


def compute_signatures(texts: Sequence[str], params: SignatureParams) -> NDArray[np.uint32]:
    """Signatures, uint32 of shape (len(texts), permutations). Lone surrogates are separators.

    Cost: one pass in C without the GIL and without copying the texts, time linear in characters, constant memory.
    """
    a, b = permutation_parameters(params.permutations, params.seed)
    out = np.empty((len(texts), params.permutations), np.uint32)
    if len(texts):
        unit = UNITS.index(params.unit)
        minhash.signatures(texts, character_table(), params.ngram, unit, a, b, out, word_key(params))
    return out


def shingle_hashes(text: str, params: SignatureParams, key: bytes = PUBLIC) -> NDArray[np.uint32]:
    """The 32-bit shingle hashes of a text, in text order, repeats included, under a key that `word_key` or `run_key`
    gave. The signature is the minimum over them, under the key of `params`."""
    found = minhash.shingles(text, character_table(), params.ngram, UNITS.index(params.unit), key)
    return np.frombuffer(found, np.uint32)


@cache
def word_key(params: SignatureParams) -> bytes:
    """What the kernel takes of the secret that `params` name, once per process; PUBLIC without one.

    Raises ValueError for a short or missing secret and for one with another id, OSError for a missing file.
    """
    if not params.key:
        return PUBLIC
    secret = read_key(params.key, params.key_id, "key", "signature")
    return hmac.digest(secret, b"refinery signature words", "sha256")[:WORD_KEY_BYTES]


def run_key(salt: str) -> bytes:
    """A key that is not secret, but cannot be predicted without knowing `salt`; PUBLIC without one."""
    return hashlib.blake2b(salt.encode(), digest_size=WORD_KEY_BYTES).digest() if salt else PUBLIC


def compare_key(params: SignatureParams, salt: str) -> bytes:
    """What deduplication compares texts under: the secret that `params` name, else what comes of `salt`. Raises the
    same errors as `word_key`."""
    return word_key(params) or run_key(salt)


@cache
def permutation_parameters(permutations: int, seed: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """a (odd) and b of datasketch 2's affine32 permutations; RandomState's stream is frozen by numpy."""
    generator = np.random.RandomState(seed)
    a = generator.randint(0, 1 << 31, permutations, dtype=np.uint32) * np.uint32(2) + np.uint32(1)
    return a, generator.randint(0, 1 << 32, permutations, dtype=np.uint32)


@cache
def character_table() -> NDArray[np.uint32]:
    """Code point -> kind << 24 | lower-case code point, uint32 of shape (0x110000,). Built once per process, 0.1 s."""
    table = np.arange(sys.maxunicode + 1, dtype=np.uint32)
    for code in chain(*ASSIGNED):
        character = chr(code)
        if character.isalnum():
            table[code] = LETTER << 24 | ord(character.lower()[0])
        elif unicodedata.category(character)[0] == "M":
            table[code] = MARK << 24 | code
    for first, last in SPACELESS:
        letters = table[first : last + 1]
        letters[letters >> 24 == LETTER] += np.uint32((SOLITARY - LETTER) << 24)
    table.flags.writeable = False
    return table


# --- signatures/ part files -----------------------------------------------------------------------------------------

NO_COLUMNS: Mapping[str, pa.Array] = MappingProxyType({})


def signature_table(
    ids: Sequence[bytes],
    ranks: Sequence[bytes],
    sources: Sequence[str],
    domains: Sequence[str],
    sizes: Sequence[int],
    signatures: NDArray[np.uint32],
    more: Mapping[str, pa.Array] = NO_COLUMNS,
) -> pa.Table:
    """Rows of a signatures/ part, aligned with the documents/ part of the same name. Write it uncompressed.

    Columns: id binary(16), rank binary(24), source and domain (dictionary of strings), bytes int64 (UTF-8 size of the
    text), signature binary(4 * permutations), little-endian; then `more`: what stages that are on have hashed
    (`cutting_pass.Hashed`). Raises ValueError for one with the name of a column before it.
    """
    count, permutations = signatures.shape
    packed = np.ascontiguousarray(signatures, "<u4")
    width = 4 * permutations
    table = pa.table(
        {
            "id": pa.array(ids, pa.binary(ID_BYTES)),
            "rank": pa.array(ranks, pa.binary(RANK_BYTES)),
            "source": pa.array(sources, pa.string()).dictionary_encode(),
            "domain": pa.array(domains, pa.string()).dictionary_encode(),
            "bytes": pa.array(sizes, pa.int64()),
            "signature": pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), count, [None, pa.py_buffer(packed)]),
        }
    )
    for name, column in more.items():
        if name in table.column_names:
            raise ValueError(f"column {name}: signatures/ have another column of that name")
        table = table.append_column(name, column)
    return table


def read_signature_part(
    url: str, rows: int, columns: Sequence[str], wanted: NDArray[np.int64] | None = None
) -> Iterator[tuple[int, pa.Table]]:
    """Row groups of a signatures/ part as (number of the first row, table of `columns`).

    wanted: ascending row numbers; row groups without any of them are not read. Memory: one row group.
    Raises ValueError when the part does not hold `rows` rows; FileNotFoundError when it is missing, UnreadablePart when
    it is damaged.
    """
    folder, _, name = url.rpartition("/")
    with open_store(folder).open(name) as stream:
        with naming(url):
            part = pq.ParquetFile(stream, page_checksum_verification=True)
        if part.metadata.num_rows != rows:
            raise ValueError(f"{url}: {part.metadata.num_rows} rows found, {rows} expected")
        first = 0
        for group in range(part.num_row_groups):
            size = part.metadata.row_group(group).num_rows
            if wanted is None or np.searchsorted(wanted, first) < np.searchsorted(wanted, first + size):
                with naming(url):
                    table = part.read_row_group(group, columns=list(columns), use_threads=False)
                yield first, table
            first += size


def fixed_width(column: pa.ChunkedArray, width: int) -> NDArray[np.uint8]:
    """A fixed_size_binary column as bytes of shape (rows, width). Raises ValueError for another width or for nulls."""
    if column.type != pa.binary(width) or column.null_count:
        raise ValueError(f"column of {column.type} with {column.null_count} nulls found, binary({width}) expected")
    pieces: list[NDArray[np.uint8]] = [
        np.frombuffer(chunk.buffers()[1], np.uint8, len(chunk) * width, chunk.offset * width).reshape(-1, width)
        for chunk in column.chunks
        if len(chunk)
    ]
    return pieces[0] if len(pieces) == 1 else np.concatenate([np.empty((0, width), np.uint8), *pieces])


def signature_values(column: pa.ChunkedArray, permutations: int) -> NDArray[np.uint32]:
    """The first values of the signatures of a column, uint32 of shape (rows, permutations), without a copy.

    Raises ValueError for signatures of fewer values, and for nulls.
    """
    width = column.type.byte_width if pa.types.is_fixed_size_binary(column.type) else 0
    values = fixed_width(column, max(width, 4 * permutations)).view("<u4")
    return values[:, :permutations]


def name_codes(column: pa.ChunkedArray, names: Sequence[str]) -> NDArray[np.uint32]:
    """A column of strings (dictionary or not) as positions in `names`. Raises ValueError for one that is not there."""
    codes = {name: code for code, name in enumerate(names)}
    pieces = [np.empty(0, np.uint32)]
    for chunk in column.chunks:
        encoded = chunk if isinstance(chunk, pa.DictionaryArray) else chunk.dictionary_encode()
        local = encoded.dictionary.to_pylist()
        unknown = [name for name in local if name not in codes]
        if unknown or encoded.null_count:
            raise ValueError(f"{unknown[0] if unknown else None!r} found, one of {list(names)} is allowed")
        places = np.array([codes[name] for name in local], np.uint32)
        pieces.append(places[encoded.indices.to_numpy(zero_copy_only=False)])
    return np.concatenate(pieces)


def shingle_set(text: str, params: SignatureParams, key: bytes = PUBLIC) -> NDArray[np.uint32]:
    """The distinct shingle hashes of a text under that key, ascending."""
    values = np.sort(shingle_hashes(text, params, key))
    return values[starts_of(values)]
