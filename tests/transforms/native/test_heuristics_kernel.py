from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.transforms.native import heuristics as kernel
from tests.sampling import examples, one_commit_in_four
from tests.transforms import heuristics_oracle as oracle
from tests.transforms.heuristics_oracle import TEXTS

STOP_WORDS = (("the", "of", "的"), ("and",))
COUNT_ALL = kernel.WORDS | kernel.LINES | kernel.PARAGRAPHS
REMOVE_ALL = kernel.NEED_TERMINAL | kernel.NO_JAVASCRIPT | kernel.NO_POLICY


# --- the kernel against the plain Python

LIMITS = st.tuples(
    st.sampled_from([0, 1, 2, 4, 7, 10]),
    st.integers(0, 20),
    st.integers(0, 4),
    st.sampled_from([0, 3, 8]),
    st.integers(0, COUNT_ALL | REMOVE_ALL),
)


def as_dict(found: kernel.Features) -> dict[str, Any]:
    names = [name for name in dir(found) if not name.startswith(("_", "n_")) and name not in ("count", "index")]
    return {name: getattr(found, name) for name in names}


@given(TEXTS, LIMITS)
@settings(max_examples=examples(600), deadline=None)
def test_kernel_equals_plain_python(text: str, limits: tuple[int, int, int, int, int]) -> None:
    found = as_dict(kernel.measure(text, STOP_WORDS, *limits))
    assert found == oracle.measure(text, STOP_WORDS, *limits)


@given(TEXTS)
@settings(max_examples=examples(200), deadline=None)
def test_kernel_equals_plain_python_with_everything_on(text: str) -> None:
    limits = (10, 10, 3, 20, COUNT_ALL | kernel.NO_JAVASCRIPT | kernel.NO_POLICY)
    assert as_dict(kernel.measure(text, STOP_WORDS, *limits)) == oracle.measure(text, STOP_WORDS, *limits)


@one_commit_in_four
def test_kernel_knows_every_character() -> None:
    for code in (*range(0x30000), *range(0x30000, 0x110000, 61), *range(0xE0000, 0xE0200)):
        c = chr(code)
        found = kernel.measure("的" + c, (), 0, 0, 0, 0, 0)
        solid, letter = not c.isspace(), c.isalpha()
        ordinary = solid and not oracle.is_mark(c)
        assert found[:6] == (
            1 + ordinary,
            1 + c.isalnum(),
            1 + (c.isalnum() if ordinary else solid),
            1 + letter,
            1 + letter,
            1 + oracle.is_spaceless(c),
        ), hex(code)
        assert found.kept_terminal_lines == (c in oracle.TERMINALS), hex(code)
        assert kernel.measure(c, (), 0, 0, 0, 0, 0).kept_line_breaks == (c.splitlines() == [""]), hex(code)


# --- hostile input: each of these takes a fraction of a second, and would take hours in quadratic time


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a" * 10_000_000, {"words": 1, "alnum_word_chars": 10_000_000}),
        ("spam " * 1_000_000, {"words": 1_000_000, "window_unique_words": 1_000, "top_2_gram_chars": 9 * 999_999}),
        ("\n" * 1_000_000, {"lines": 0, "kept_line_breaks": 1_000_000, "text": None}),
        ("a b\n" * 500_000, {"lines": 500_000, "duplicate_line_chars": 3 * 499_999, "kept_lines": 0, "text": ""}),
        (" ".join(map(str, range(500_000))), {"words": 500_000, "window_unique_words": 500_000, "top_2_gram_chars": 0}),
        ("." * 3_000_000, {"ellipses": 1_000_000, "alnum_words": 0}),
        ("(.)" * 1_000_000 + "\n" + "\u0e01\u0e31" * 1_000_000, {"spaceless_letters": 1_000_000, "words": 1_000_001}),
        ("jkvm" * 500_000, {"words": 1}),
    ],
    ids=["one word", "one word often", "newlines", "lines", "distinct words", "dots", "quotes and marks", "triggers"],
)
def test_hostile_text_is_measured(text: str, expected: dict[str, Any]) -> None:
    found = kernel.measure(text, STOP_WORDS, 10, 30, 3, 1000, COUNT_ALL | kernel.NO_JAVASCRIPT | kernel.NO_POLICY)
    assert {name: getattr(found, name) for name in expected} == expected


def test_kernel_in_threads_equals_the_kernel_alone() -> None:
    texts = [
        f"The mill stands on the bank. It is old.\n\nRead on\n{i} " * 400 for i in range(8)
    ]  # long enough to release the GIL
    alone = [kernel.measure(text, STOP_WORDS, 10, 30, 3, 1000, COUNT_ALL) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda text: kernel.measure(text, STOP_WORDS, 10, 30, 3, 1000, COUNT_ALL), texts))
    assert together == alone


def test_kernel_refuses_bad_arguments() -> None:
    with pytest.raises(ValueError, match="max_ngram: 11 given, 0 to 10 is allowed"):
        kernel.measure("a", (), 11, 0, 0, 0, 0)
    with pytest.raises(ValueError, match="short_line_chars: -1 given"):
        kernel.measure("a", (), 0, -1, 0, 0, 0)
    with pytest.raises(TypeError):
        kernel.measure("a", ((1,),), 0, 0, 0, 0, kernel.WORDS)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        kernel.measure(b"a", (), 0, 0, 0, 0, 0)  # type: ignore[arg-type]
