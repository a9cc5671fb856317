"""Pieces of 64 bytes of ASCII at once against pieces one by one: the two splitters of the kernel say the same."""

import functools
import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.transforms.native import bpe
from refinery.transforms.tokenize.byte_level_bpe import DETAILED, PATTERNS, UNSTABLE, character_classes
from tests.sampling import examples
from tests.transforms.tokenize.test_byte_level_bpe import both, engines

NAMES = [*dict.fromkeys(PATTERNS.values()), "deepseek"]
KINDS = "aetrsTLVm", "09", " ", "\n\r", "\t\x0b\f", "'", "/", '.-("', "\x01\x1c", "é’Ⅷ\u00a0\u0301中ſ"
WEIGHTS = 12, 4, 8, 3, 1, 4, 2, 4, 1, 1


@functools.lru_cache(maxsize=1)  # 50 MB
def encoders(name: str) -> tuple[bpe.Encoder, bpe.Encoder]:
    """The kernel as it is, and one for which NUL is unlike the published class: it cuts piece by piece.

    Any two bytes of the alphabet are a token, and tokens join again: a piece cut elsewhere has other ids.
    """
    alphabet = [byte for kind in KINDS for byte in kind.encode()]
    rows = [(left, right) for left in dict.fromkeys(alphabet) for right in dict.fromkeys(alphabet)]
    rows += [(256 + i, 256 + i * 7 % len(rows)) for i in range(0, len(rows), 3)]
    merges = np.array([(left, right, 256 + i) for i, (left, right) in enumerate(rows)], np.uint32)
    classes = np.frombuffer(character_classes(False, name in DETAILED), np.uint8)
    odd = classes.copy()
    odd[0] |= UNSTABLE
    ids = np.arange(256, dtype=np.uint32)
    return bpe.Encoder(name, ids, merges, classes.tobytes()), bpe.Encoder(name, ids, merges, odd.tobytes())


def made_text(seed: int, size: int, weights: Sequence[int]) -> str:
    """Runs of a few characters of one kind each."""
    chance = random.Random(seed)
    runs = chance.choices(KINDS, weights, k=size)
    return "".join("".join(chance.choices(kind, k=min(chance.randint(1, 9), chance.randint(1, 9)))) for kind in runs)


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 2**32), weights=st.permutations(WEIGHTS) | st.just(WEIGHTS))
@settings(max_examples=examples(300))
def test_blocks_are_cut_as_single_pieces_are(name: str, seed: int, weights: Sequence[int]) -> None:
    at_once, one_by_one = encoders(name)
    text = made_text(seed, 120, weights)
    assert at_once.encode(text) == one_by_one.encode(text)


@pytest.mark.parametrize("name", NAMES)
def test_every_start_in_a_block(name: str) -> None:
    """What decides over a start lies anywhere: before, across and behind the end of a block."""
    at_once, one_by_one = encoders(name)
    for unit in (
        "don't ",
        "'re's",
        "x'LL",
        "\n\n  a",
        ".\r\n/",
        "  \n\t\n 12345",
        "aB'sC",
        ' "a',
        "\x01a",
        "é",
        "'ſ",
        "  7",
    ):
        for lead in range(70):
            text = "b" * lead + unit + " c" * 60
            assert at_once.encode(text) == one_by_one.encode(text), (unit, lead)


@pytest.mark.parametrize("name", NAMES)
def test_blocks_are_used(name: str) -> None:
    """Of ASCII prose all but the last 80 bytes are cut at once, and a character outside ASCII costs a piece or two."""
    encoder, one_by_one = encoders(name)
    prose = "It isn't so: 1984 words, (some) of\nthem\n\n    indented. " * 100
    before = encoder.work()[2]
    encoder.encode(prose)
    assert encoder.work()[2] - before < 80
    encoder.encode(prose.replace("words", "wörds"))
    assert encoder.work()[2] - before < 80 + 400
    encoder.encode("Слово за словом " * 100)
    assert 300 <= encoder.work()[2] - before < 80 + 400 + 400
    one_by_one.encode(prose)
    assert one_by_one.work()[2] > 1000


@pytest.mark.parametrize("name", ["gpt2", "llama3", "qwen2", "cl100k", "o200k", "tekken", "deepseek"])
def test_blocks_equal_the_reference(name: str) -> None:
    """The same long texts through Hugging Face's library."""
    fast, reference = engines(name)
    for seed in range(40):
        text = made_text(seed, 150, WEIGHTS)
        np.testing.assert_array_equal(fast.encode(text), reference.encode(text))


def test_many_ids_come_out_of_every_place() -> None:
    """Pieces of up to 3, 7 and more ids, of up to 15, 31 and more bytes, new and seen before, in any order."""
    fast, reference = both(merges=[("a", "b"), ("ab", "ab"), ("c", "d"), ("e", "e"), ("ee", "ee")])
    chance = random.Random(7)
    words = [
        "".join(chance.choices("abcdee", k=chance.choice((1, 3, 7, 8, 14, 15, 16, 30, 31, 32, 70)))) for _ in range(300)
    ]
    for _ in range(3):
        text = " ".join(chance.choices(words, k=2000))
        np.testing.assert_array_equal(fast.encode(text), reference.encode(text))
