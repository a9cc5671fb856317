import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from refinery.transforms.dedup.cut_lines import hash_lines, word_counts
from refinery.transforms.dedup.signatures import character_table
from refinery.transforms.native import lines
from tests.sampling import examples
from tests.transforms.dedup.test_signatures import MASK, ROLL, fmix64, hash_characters, split

LINES = st.text(
    st.one_of(st.sampled_from("aB c,\n\r\n\u0301\u0e01\u0e34日カーıİß'😀\u2028\ud800\0"), st.characters()), max_size=60
)


def reference_hash(line: str) -> int:
    """A line's hash once more, in plain Python, from the module's description."""
    words = split(line)
    total = 0
    for word in words:
        total = (total * ROLL + hash_characters(word)) & MASK
    return fmix64(total) >> 4 << 4 | min(len(words), 15) if words else 0


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(LINES, max_size=5))
@example([""])
@example(["\n\n\n", "", "a"])
@example(["\u0301a\n\u0301"])
@example(["one\r\ntwo\r\n"])
@example(["a " * 14 + "\n" + "a " * 15 + "\n" + "a " * 16])
def test_kernel_equals_plain_python(texts):
    column = hash_lines(texts)
    assert column.type == pa.list_(pa.uint64())
    assert column.to_pylist() == [[reference_hash(line) for line in text.split("\n")] for text in texts]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Share this page!", "share  THIS — page", True),
        ("• Home", "Home", True),
        ("日 本", "日本", True),
        ("Home\r", "home", True),
        ("don't", "don t", True),
        ("dont", "don't", False),
        ("a b", "b a", False),
        ("page 1", "page 2", False),
        ("ab c", "a bc", False),
        ("a", "a a", False),
        ("\ud800a", "a", True),
        ("***", "", True),
    ],
)
def test_lines_are_their_words(one, other, same):
    first, second = hash_lines([one, other]).to_pylist()
    assert (first == second) is same


def test_golden_values():
    """Signature parts of finished phases hold these."""
    column = hash_lines(["The quick brown fox\n\n日本語\n--", "x"])
    assert column.to_pylist() == [[10607609516192295556, 0, 2057328558261470499, 0], [15722879802400851041]]


def test_words_are_counted_up_to_fifteen():
    text = "\n".join(" ".join("w" * n for n in range(1, words + 1)) for words in range(18))
    counts = word_counts(hash_lines([text]).values.to_numpy())
    assert counts.tolist() == [*range(16), 15, 15]


def test_wide_and_narrow_strings_hash_alike():
    text = "the quick\nbrown fox"
    column = hash_lines([text, text + " …", text + " 😀"]).to_pylist()
    assert column[0] == column[1] == column[2]


@pytest.mark.parametrize("ending", ["", "…", "😀"])
def test_extreme_texts_are_plain_work(ending):
    many = hash_lines(["line\n" * 1_000_000 + ending])[0].values
    assert len(many) == 1_000_001
    assert len(many[:-1].unique()) == 1
    assert len(hash_lines(["\n" * 100_000 + ending]).values.unique()) == 1
    (long,) = hash_lines(["word " * 2_000_000 + ending]).to_pylist()
    assert len(long) == 1
    assert long[0] & 15 == 15


def test_no_texts():
    assert hash_lines([]).to_pylist() == []
    assert hash_lines(["", ""]).to_pylist() == [[0], [0]]


def test_kernel_refuses_what_it_cannot_read():
    with pytest.raises(TypeError, match=r"texts\[1\]: str is needed, bytes given"):
        lines.hash_lines(["a", b"b"], character_table())
    with pytest.raises(ValueError, match="table: 0x110000 uint32 entries are needed"):
        lines.hash_lines(["a"], np.zeros(3, np.uint32))
    askew = np.zeros(4 * 0x110000 + 1, np.uint8)[1:].view(np.uint32)
    with pytest.raises(ValueError, match="aligned"):
        lines.hash_lines(["a"], askew)
    with pytest.raises(TypeError):
        lines.hash_lines(3, character_table())


def test_different_lines_have_different_hashes():
    distinct = {f"{a} {b}" for a in range(300) for b in range(300)}
    assert len(set(hash_lines(["\n".join(distinct)]).values.to_pylist())) == len(distinct)
