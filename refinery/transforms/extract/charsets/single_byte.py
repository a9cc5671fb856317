"""The evidence of words under all single-byte encodings at once, by tables of bytes; the same as of decoded text.

Encodings that agree on the bytes of a text share its evidence. The few texts that a table of single bytes cannot fold
(a Turkish İ, a Greek Σ, marks that NFC moves or joins) are left to the caller.
"""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from refinery.transforms.extract.charsets.decoders import decode_as, table
from refinery.transforms.extract.charsets.labels import SINGLE_BYTE
from refinery.transforms.extract.charsets.letters import TURN_BITS, Vector, folded, load, turn_bits

NAMES = tuple(sorted(SINGLE_BYTE))
Evidence = dict[str, tuple[Vector, int, int]]


def single_byte_evidence(words: bytes) -> Evidence:
    """For encodings of NAMES: the logarithms of the probability of `words`, how often they are `turns`, and how many
    bytes have no character. Some encodings may be missing (see above).

    Cost: some 50 array operations for all, and one lookup and product for each different reading.
    """
    data = np.frombuffer(b" " + words + b" ", np.uint8)
    times = np.bincount(data, minlength=256)
    tables = _tables()
    used = tables.codes[:, np.nonzero(times[128:])[0] + 128]
    special, joined, undefined = (tables.odd @ times).tolist()
    readings: dict[bytes, list[int]] = {}
    for row, name in enumerate(NAMES):
        if special[row] or (joined[row] and not unicodedata.is_normalized("NFC", decode_as(words, name))):
            continue
        readings.setdefault(used[row].tobytes(), []).append(row)
    pairs, counts = np.unique(data[:-1].astype(np.int64) << 8 | data[1:], return_counts=True)
    counts = counts.astype(np.int32)
    plain = (pairs & 0x8080) == 0
    letters = load()
    shared = counts[plain] @ letters.byte_rows("ascii", _folded_signs("cp1252"), pairs[plain])
    pairs, counts = pairs[~plain], counts[~plain]
    found: Evidence = {}
    turned = _turns(data[1:-1], [rows[0] for rows in readings.values()])
    for rows, turns in zip(readings.values(), turned.tolist(), strict=True):
        name = NAMES[rows[0]]
        own = shared + counts @ letters.byte_rows(name, _folded_signs(name), pairs)
        found |= dict.fromkeys([NAMES[row] for row in rows], (own, turns, undefined[rows[0]]))
    return found


def _turns(data: NDArray[np.uint8], rows: list[int]) -> NDArray[np.int64]:
    """`letters.turns` of the text under each of some encodings."""
    bits = np.zeros((len(rows), len(data) + 3), np.uint16)
    bits[:, 1:-2] = _tables().bits[rows][:, data]
    before, sign, behind, second = bits[:, :-3], bits[:, 1:-2], bits[:, 2:-1], bits[:, 3:]

    def has(of: NDArray[np.uint16], bit: str) -> NDArray[np.bool_]:
        held: NDArray[np.bool_] = np.not_equal(of & TURN_BITS[bit], 0)
        return held

    outside = has(sign, "outside")
    letter = outside & has(sign, "letter")
    alphabets, alphabet = TURN_BITS["alphabets"], sign & TURN_BITS["alphabets"]
    between = has(before, "alpha") & has(behind, "alpha")
    count = outside & ~letter & (between | (has(behind, "lower") & has(sign, "no word before")))
    total = count.sum(1) + (outside & has(sign, "box") & (has(before, "alpha") | has(behind, "alpha"))).sum(1)
    ascii_capital = has(behind, "ASCII letter") & has(behind, "upper")
    upper, after_small = letter & has(sign, "upper"), has(before, "lower")
    total += (upper & after_small).sum(1) + (upper & after_small & has(behind, "lower")).sum(1)
    total += (upper & ~after_small & ~has(before, "alpha") & ascii_capital & has(second, "lower")).sum(1)
    total += (letter & has(sign, "lower") & ascii_capital).sum(1)
    stands = letter & (alphabet == 0) & ~has(sign, "no letter")
    total += (stands & has(before, "ASCII letter") & has(behind, "ASCII letter")).sum(1)
    mixes = [
        letter & (alphabet != 0) & ((other & alphabets) != 0) & ((other & alphabets) != alphabet)
        for other in (before, np.where(has(behind, "ASCII letter"), behind, 0))
    ]
    mixed = mixes[0].sum(1) + mixes[1].sum(1)
    return np.asarray(total + np.minimum(mixed, TURN_BITS["most mixed"]), np.int64)


@cache
def _folded_signs(name: str) -> str:
    return "".join(folded(sign)[1:-1] if len(folded(sign)) == 3 else "\ufffd" for sign in table(name))


@dataclass(frozen=True)
class _Tables:
    """By encoding and byte.

    codes: the character. bits: what `_turns` asks of it. odd: whether a table cannot fold it, whether NFC may move or
    join it, and whether it is none.
    """

    codes: NDArray[np.uint16]
    bits: NDArray[np.uint16]
    odd: NDArray[np.int64]


@cache
def _tables() -> _Tables:
    signs = [table(name) for name in NAMES]

    def holds(question: Callable[[str], bool]) -> list[list[bool]]:
        return [[question(sign) for sign in row] for row in signs]

    odd = [holds("İΣ".__contains__), holds(lambda sign: unicodedata.combining(sign) > 0), holds("\ufffd".__eq__)]
    codes = np.array([[ord(sign) for sign in row] for row in signs], np.uint16)
    return _Tables(
        codes, np.array([[turn_bits(sign) for sign in row] for row in signs], np.uint16), np.array(odd, np.int64)
    )
