import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from refinery.transforms.dedup.signatures import character_table
from refinery.transforms.dedup.substring_hashes import GRAM, GUARD, SPAN_WORDS, hash_anchors, hash_windows
from refinery.transforms.native import substrings
from tests.sampling import examples, scaled
from tests.transforms.dedup.test_signatures import MASK, ROLL, fmix64, hash_characters, split

BASE, PRIME = 0x0DF1E4A9C35B7D21, 2**61 - 1
WORDS = st.lists(
    st.sampled_from(["a", "B", "b,", "c\n", "d\r\n", "日本", "e\u0301", "\u0301f", "…", "😀", "\ud800g", "naïve-té"]),
    max_size=150,
)


def rolling(hashes: list[int], base: int, modulus: int) -> int:
    total = 0
    for value in hashes:
        total = (total * base + value) % modulus
    return fmix64(total)


def least_of(words: list[int], begin: int) -> tuple[int, int]:
    """(hash, place) of the least of the GUARD hashes of the SPAN_WORDS words from `begin`, the leftmost of several."""
    grams = [(rolling(words[i : i + GRAM], ROLL, MASK + 1), i) for i in range(begin, begin + GUARD)]
    return min(grams)


def reference_anchors(text: str) -> list[int]:
    """A text's anchors once more, in plain Python, from the module's description."""
    words = [hash_characters(word) for word in split(text)]
    chosen = [least_of(words, begin) for begin in range(len(words) - SPAN_WORDS + 1)]
    return [fmix64(value) & ~1 for value, _ in dict.fromkeys(chosen)]


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(WORDS.map(" ".join), max_size=3))
@example(["a " * 49, "a " * 50, "a " * 51, ""])
def test_anchors_equal_plain_python(texts):
    column = hash_anchors(texts)
    assert column.type == pa.list_(pa.uint64())
    assert column.to_pylist() == [reference_anchors(text) for text in texts]


@settings(max_examples=examples(60), deadline=None)
@given(WORDS.map(" ".join), st.integers(SPAN_WORDS, 70))
@example("a b " * 40, 64)
def test_windows_equal_plain_python(text, size):
    windows = hash_windows(text, size)
    words = [hash_characters(word) for word in split(text)]
    count = max(0, len(words) - size + 1)
    assert windows.anchors.tolist() == [fmix64(least_of(words, i)[0]) & ~1 for i in range(count)]
    expected = [rolling([w % PRIME for w in words[i : i + size]], BASE, PRIME) & ~1 for i in range(count)]
    assert windows.hashes.tolist() == expected
    assert [split(text[begin:end])[0] for begin, end in windows.places.tolist()] == split(text)
    assert all(len(split(text[begin:end])) == 1 for begin, end in windows.places.tolist())


def test_golden_values():
    """Signature parts of finished phases hold these."""
    text = " ".join(str(n * n) for n in range(90))
    assert hash_anchors([text, "x"]).to_pylist() == [
        [9529802410163602006, 8914919565357922984, 3258048169359906838],
        [],
    ]


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(SPAN_WORDS, 60), st.integers(0, 30), st.integers(0, 30), st.integers(0, 2**32))
def test_every_shared_run_shares_an_anchor(shared, before, after, seed):
    rng = random.Random(seed)
    own = iter(range(1000))
    run = " ".join(f"s{rng.randrange(3)}" for _ in range(shared))
    texts = [
        " ".join([*(f"o{next(own)}" for _ in range(before)), run, *(f"o{next(own)}" for _ in range(after))])
        for _ in range(2)
    ]
    one, other = (set(anchors) for anchors in hash_anchors(texts).to_pylist())
    assert one & other


def test_a_repeat_inside_a_text_has_anchors_at_two_places():
    rng = random.Random(1)
    run = " ".join(f"w{rng.randrange(999)}" for _ in range(SPAN_WORDS))
    anchors = hash_anchors([f"{run} between {run}", "a " * (SPAN_WORDS + 1)]).to_pylist()
    assert all(len(set(found)) < len(found) for found in anchors)


def test_anchors_are_few_and_spread_evenly():
    rng = random.Random(2)
    words = scaled(1_000_000, 200_000)
    anchors = hash_anchors([" ".join(str(rng.getrandbits(40)) for _ in range(words))]).values.to_numpy()
    assert len(anchors) * (GUARD + 1) / 2 == pytest.approx(words, rel=0.05)
    quarters = np.bincount((anchors >> np.uint64(62)).astype(np.int64), minlength=4)
    assert quarters.max() < 1.1 * quarters.min()


@pytest.mark.parametrize("ending", ["", "…", "😀"])
def test_extreme_texts_are_plain_work(ending):
    many = scaled(2_000_000, 300_000)
    for text in ("a " * many, "日" * many, "word" * many, "\n" * many, "\u0301" * many, "a\u0301" * many):
        windows = hash_windows(text + ending, SPAN_WORDS)
        assert len(windows.hashes) == len(windows.anchors) == max(0, len(windows.places) - SPAN_WORDS + 1)
        assert len(hash_anchors([text + ending]).values) <= many


def test_wide_and_narrow_strings_hash_alike():
    text = " ".join(str(n) for n in range(60))
    one, *others = hash_anchors([text, text + " …", text + " 😀"]).to_pylist()
    assert others == [one, one]


def test_no_texts():
    assert hash_anchors([]).to_pylist() == []
    assert hash_anchors(["", "a b"]).to_pylist() == [[], []]
    assert hash_windows("", SPAN_WORDS).hashes.tolist() == []


def test_kernel_refuses_what_it_cannot_read():
    for size in (0, SPAN_WORDS - 1, 65537):
        with pytest.raises(ValueError, match=f"size: {size} given, 50 to 65536 is allowed"):
            substrings.windows("a", character_table(), size)
    with pytest.raises(ValueError, match="table: 0x110000 uint32 entries are needed"):
        substrings.windows("a", np.zeros(3, np.uint32), SPAN_WORDS)
