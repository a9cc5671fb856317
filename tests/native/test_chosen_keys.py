"""Words, names and values chosen against a fixed hash cost a kernel what others do, and change nothing that it returns.

Work is counted by the kernels themselves: no test here looks at a clock.
"""

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from refinery.transforms.native import bpe, clusters, heuristics, jaccard
from tests.native import chosen
from tests.sampling import one_commit_in_four

ALL = heuristics.WORDS | heuristics.LINES | heuristics.PARAGRAPHS


def measure(text: str, max_ngram: int = 0) -> tuple[heuristics.Features, int]:
    features = heuristics.measure(text, (), max_ngram, 0, 0, 0, ALL)
    return features, heuristics.probe_steps()


# --- heuristics ------------------------------------------------------------------------------------------------------


@one_commit_in_four
@pytest.mark.parametrize("separator", [" ", "\n", "\n\n"], ids=["words", "lines", "paragraphs"])
def test_words_and_lines_of_one_slot_cost_what_others_do(separator: str) -> None:
    words = chosen.words_in_one_slot(chosen.WORD_PRIME if separator == " " else chosen.LINE_PRIME, 12)
    assert len(set(words)) == len(words) > 2500
    features, steps = measure(separator.join(words))
    assert features.words == len(words)
    assert features.duplicate_lines == features.duplicate_paragraphs == 0
    assert steps < 12 * len(words) < chosen.steps_of_one_slot(len(words)) // 50  # three tables, half full at most


def test_pairs_of_words_of_one_slot_cost_what_others_do() -> None:
    pairs = chosen.pairs_in_one_slot(2500, 12, chosen.mix, 1200)
    names = [f"w{number}" for number in range(2500)]
    text = " ".join([*names, *names[::-1], *(f"{names[left]} {names[right]}" for left, right in pairs)])
    features, steps = measure(text, max_ngram=2)
    assert features.words == 5000 + 2 * len(pairs)
    assert steps < 12 * features.words < chosen.steps_of_one_slot(len(pairs)) // 5


# --- bpe -------------------------------------------------------------------------------------------------------------


def encoder(pairs: list[tuple[int, int]]) -> bpe.Encoder:
    rows = np.array([(left, right, 5000 + i) for i, (left, right) in enumerate(pairs)], np.uint32).reshape(-1, 3)
    classes = np.zeros(0x110000, np.uint8)
    classes[[*range(97, 123)]], classes[32] = 1, 3
    return bpe.Encoder("gpt2", np.arange(256, dtype=np.uint32), rows, classes.tobytes())


def test_merges_of_one_slot_cost_what_others_do() -> None:
    pairs = chosen.pairs_in_one_slot(4000, 12, chosen.mix_of_merges, 2000)
    assert len(pairs) == 2000
    assert encoder(pairs).work()[1] < 8 * len(pairs) < chosen.steps_of_one_slot(len(pairs)) // 100


def test_pieces_of_one_slot_cost_at_most_their_merges() -> None:
    pieces = chosen.pieces_in_one_slot(8)
    assert len(set(pieces)) == 8
    many, one = encoder([(97, 98)]), encoder([(97, 98)])
    assert many.encode("".join(pieces * 100)) == b"".join(one.encode(piece) or b"" for piece in pieces) * 100
    merged, steps, _ = many.work()
    assert merged == 800  # none is found again in the cache: as if each were new
    assert steps < 7 * merged


# --- jaccard ---------------------------------------------------------------------------------------------------------


def cluster(values: Any, offsets: Any, threshold: float = 0.5) -> tuple[list[int], int]:
    sets = len(offsets) - 1
    representative, shared = np.empty(sets, np.uint32), np.empty(sets, np.uint32)
    jaccard.cluster(values, offsets, np.array([0, sets]), threshold, representative, shared)
    return representative.tolist(), jaccard.merge_steps()


def test_values_of_one_bit_are_told_apart_by_bitmaps() -> None:
    """Multiples of 64 below 2^26 all had the same bit: bitmaps of different sets were equal, each pair was merged."""
    sets, size = 60, 500
    values = np.arange(sets * size, dtype=np.uint32).reshape(size, sets).T.ravel() * 64  # sets that alternate
    assert values.max() < 2**26
    found, steps = cluster(values, np.arange(sets + 1) * size)
    assert found == list(range(sets))
    assert steps < sets * sets // 2 * size // 20  # most pairs are not merged at all


# --- clusters: bounded, not keyed, since who is compared decides the result ------------------------------------------


def test_rows_of_one_slot_are_compared_with_few_others() -> None:
    members, permutations, always, ways = 3000, 32, 16, 4
    generator = np.random.default_rng(3)
    pool = chosen.quadruples_in_one_slot(200, 12, generator)  # 3,000 members: 2^12 slots
    rows = pool[generator.integers(0, len(pool), (members, permutations // 4))].reshape(members, permutations)
    bounds, free = np.array([0, members]), np.zeros(members, np.uint8)
    representative, matches = np.empty(members, np.uint32), np.empty(members, np.uint32)
    clusters.assign(rows, bounds, permutations, 31, 32, always, free, representative, matches)
    most = members * (always + permutations // 4 * ways)
    assert members <= clusters.comparisons() <= most < members * members // 20
    assert np.unique(representative).size > members // 2
    sketches = np.ascontiguousarray(rows[:, ::2] & 0xFF).astype(np.uint8)
    clusters.link(sketches, bounds, permutations, 31, always)
    assert clusters.comparisons() <= most


# --- results do not depend on the key --------------------------------------------------------------------------------

SCRIPT = """
import json, sys
import numpy as np
from tests.native.test_chosen_keys import cluster, encoder, measure
words = [f"{a}{b}" for a in "abcdefghij" for b in range(200)]
text = " ".join(words[i * i % 2000] for i in range(6000)) + "\\n" + "\\n".join(words[:300] * 2)
sets = np.sort(np.random.default_rng(5).integers(0, 9000, (80, 400)).astype(np.uint32), axis=1)
print(json.dumps([
    list(measure(text, 10)[0]), encoder([(97, 98), (98, 99), (5000, 99)]).encode(text.replace("h", "abc")).hex(),
    cluster(sets.ravel(), np.arange(81) * 400, 0.05)[0],
]))
"""


@one_commit_in_four
def test_every_process_has_its_own_key_and_the_same_results() -> None:
    found = {
        subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, check=True, text=True).stdout
        for _ in range(3)
    }
    (same,) = found
    assert len(json.loads(same)) == 3
