"""A trigram language model over words: how surprising a text is, in bits for each word.

Words are the project's own (runs of letters and digits with their marks, lower-cased; each character of scripts written
without spaces), so one model file fits any language and no tokenizer has to be named. Modified Kneser-Ney (Chen
and Goodman 1998, section 3), interpolated, in the backoff form of ARPA files: an n-gram's cost, and what its absence
adds behind its context. `refinery train-perplexity` makes the file:

    b"refinery-ngrams 1\\n" | length of the JSON line, 8 digits | JSON line | keys | costs
    keys: int64[slots], 0 for an empty slot, slots a power of two; costs: int32[slots, 2] (cost, backoff), 1/65536 bit

Nothing in it is executed. All of it is checked when it is read: kinds, sizes, a SHA-256 over both arrays, and that no
probe takes more than LONGEST_RUN steps.
"""

import hashlib
import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from refinery.transforms.core.resources import read_resource
from refinery.transforms.dedup.signatures import character_table
from refinery.transforms.native import ngram_costs

MAGIC = b"refinery-ngrams 1\n"
DIGITS = 8
UNIT = 65536  # costs are in 1 / UNIT bit
SLOT_BYTES = 16
MOST_SLOTS = 1 << 30  # 16 GB
LONGEST_HEADER = 1 << 20
LONGEST_RUN = 4096  # a table at most 70 % full has runs of some hundred slots
LARGEST_PERPLEXITY = 1e9
UNKNOWN, START = 1, 2  # keys of the kernel

Keys = NDArray[np.int64]
Costs = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class NgramModel:
    """keys, costs: the table. percentiles: 101 ascending perplexities, of the 0 % to the 100 % most surprising of the
    texts it was measured on. facts: what its training noted about it."""

    keys: Keys
    costs: Costs
    percentiles: tuple[float, ...]
    facts: dict[str, Any]

    def perplexity(self, text: str) -> float | None:
        """2^(mean bits for each word), 2 digits, LARGEST_PERPLEXITY at most; None for a text without words.

        The sum is of integers, so it is the same on every machine. Linear; About 35 MB/s of English.
        """
        cost, words = ngram_costs.score(text, character_table(), self.keys, self.costs)
        return perplexity_of(cost, words) if words else None

    def at(self, percent: float) -> float:
        """The perplexity below which that percentage of the measured texts lies, between two percentiles linearly."""
        low = min(99, int(percent))
        return self.percentiles[low] + (self.percentiles[low + 1] - self.percentiles[low]) * (percent - low)


def perplexity_of(cost: int, words: int) -> float:
    """From a sum of costs; within 1 and LARGEST_PERPLEXITY."""
    bits = cost / UNIT / words
    return round(min(LARGEST_PERPLEXITY, math.exp2(max(0.0, min(bits, 64.0)))), 2)


def model_bytes(model: NgramModel) -> bytes:
    """The file of a model."""
    arrays = model.keys.tobytes() + model.costs.tobytes()
    header = {
        "facts": model.facts,
        "percentiles": list(model.percentiles),
        "sha256": hashlib.sha256(arrays).hexdigest(),
        "slots": len(model.keys),
    }
    line = orjson.dumps(header, option=orjson.OPT_SORT_KEYS) + b"\n"
    return MAGIC + b"%0*d" % (DIGITS, len(line)) + line + arrays


def parse_model(data: bytes) -> NgramModel:
    """The model in a file's bytes. Raises ValueError, one line, for anything that `model_bytes` would not write."""
    start = len(MAGIC) + DIGITS
    digits = data[len(MAGIC) : start]
    if not data.startswith(MAGIC) or len(digits) != DIGITS or not digits.isdigit() or int(digits) > LONGEST_HEADER:
        raise ValueError("not a model of `refinery train-perplexity`")
    end = start + int(digits)
    try:
        header = orjson.loads(data[start:end])
        percentiles, slots, facts = header["percentiles"], header["slots"], header["facts"]
        sha256 = header["sha256"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise ValueError("its header is damaged") from None
    if not isinstance(slots, int) or not 2 <= slots <= MOST_SLOTS or slots & (slots - 1):
        raise ValueError("its number of slots is not a power of two")
    if not isinstance(facts, dict) or not _ascending(percentiles):
        raise ValueError("its percentiles are not 101 ascending numbers")
    if len(data) - end != slots * SLOT_BYTES:
        raise ValueError(f"{slots * SLOT_BYTES:,} bytes of n-grams are needed, it has {len(data) - end:,}")
    if hashlib.sha256(memoryview(data)[end:]).hexdigest() != sha256:
        raise ValueError("its n-grams are damaged; their SHA-256 is not that of its header")
    keys = np.frombuffer(data, "<i8", slots, end).copy()
    costs = np.frombuffer(data, "<i4", 2 * slots, end + 8 * slots).copy()
    if _longest_run(keys) > LONGEST_RUN:
        raise ValueError(f"more than {LONGEST_RUN:,} slots in a row are taken")
    if UNKNOWN not in keys[:LONGEST_RUN]:
        raise ValueError("it has no cost for unknown words")
    return NgramModel(keys, costs, tuple(map(float, percentiles)), facts)


def _ascending(values: Any) -> bool:
    return (
        isinstance(values, list)
        and len(values) == 101
        and all(isinstance(value, (int, float)) and 0 <= value <= LARGEST_PERPLEXITY for value in values)
        and all(low <= high for low, high in pairwise(values))
    )


def _longest_run(keys: Keys) -> int:
    """Most slots in a row that are taken, round the end; the number of slots if all are."""
    empty = np.flatnonzero(keys == 0)
    if not len(empty):
        return len(keys)
    gaps = np.diff(np.append(empty, empty[0] + len(keys)))
    return int(gaps.max()) - 1


def build_table(given: Keys, found: Costs) -> tuple[Keys, Costs]:
    """The open-addressing table of n-grams, at most 70 % full. given: keys; found: (cost, backoff) of each, flat."""
    slots = 2
    while slots * 7 < len(given) * 10 or slots <= len(given):
        slots *= 2
    if slots > MOST_SLOTS:
        raise ValueError(f"{len(given):,} n-grams given, {MOST_SLOTS * 7 // 10:,} are allowed: give less text")
    keys, costs = np.zeros(slots, np.int64), np.zeros(2 * slots, np.int32)
    ngram_costs.insert(given, found, keys, costs)
    return keys, costs


def word_keys(text: str) -> Keys:
    """Key of each word of a text, in order."""
    return np.frombuffer(ngram_costs.word_keys(text, character_table()), np.int64)


def as_cost(probability: float) -> int:
    """-log2 in 1 / UNIT bit; a probability of 0 costs 64 bits."""
    return round(-math.log2(probability) * UNIT) if probability > 2**-64 else 64 * UNIT


@lru_cache(maxsize=256)
def load_model(path: str) -> NgramModel:
    """The model at `path`, local or remote, once per process. Raises ValueError, one line, OSError where it cannot be
    read."""
    return parse_model(read_resource(path))
