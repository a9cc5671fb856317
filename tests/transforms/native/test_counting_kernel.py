"""The kernel that counts with the units of DCLM and dolma, against the same counts in plain Python."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.transforms.native import counting
from tests.native import chosen
from tests.native.kernel_calls import call
from tests.sampling import examples, one_commit_in_four
from tests.transforms import dclm_oracle, dolma_oracle
from tests.transforms.heuristics_oracle import TEXTS

UNITS = [(counting.DCLM, dclm_oracle), (counting.DOLMA, dolma_oracle)]
BY_UNITS = pytest.mark.parametrize(("units", "oracle"), UNITS, ids=["dclm", "dolma"])
# Lists with a word twice, with words that no text in small letters has, and with a final sigma.
STOP_WORDS = (("the", "of", "The"), ("a", "a", "ab", "όσος", "i̇"), ("…", "σ", "ς"), ())

SIGNS = list("ab1_.#-*…'’:·‧,;،٬²Σσİıß\0\t\x1c\x1f\x85\u00a0\u2028カｶ漢é\"?!\u0301\u200d\u200c\u3099")
PARTS = [". . .", "...", ".. .", "\n", "\n\n", " ", "the ", "The ", "ΌΣΟΣ ", "ab cd ", *"𐐀𠀀\ud800\U000e0100"]


@st.composite
def sign_texts(draw: st.DrawFn) -> str:
    """Texts of few different signs, so that much repeats."""
    few = draw(st.lists(st.sampled_from([*SIGNS, *PARTS]), min_size=1, max_size=8))
    return "".join(draw(st.lists(st.sampled_from(few), max_size=60)))


ANY_TEXTS = st.one_of(TEXTS, sign_texts())


def as_dict(found: Any) -> dict[str, Any]:
    return {name: getattr(found, name) for name in type(found).__match_args__}


def shares(text: str, units: int, most: int = counting.MAX_NGRAM) -> dict[str, float]:
    """All figures of the repetition rules."""
    ngrams = counting.repeated_ngrams(text, most, units)
    named = {f"top_{n}_gram" if n < 5 else f"duplicate_{n}_grams": share for n, share in enumerate(ngrams, 2)}
    return as_dict(counting.repeated_pieces(text, units)) | named


def check(text: str, units: int, oracle: ModuleType) -> None:
    assert as_dict(counting.quality(text, STOP_WORDS, units)) == oracle.gopher_counts(text, STOP_WORDS)
    assert shares(text, units) == {name: share() for name, share in oracle.repetition_shares(text).items()}


@BY_UNITS
@given(text=ANY_TEXTS)
@settings(max_examples=examples(1500), deadline=None)
def test_kernel_equals_plain_python(units: int, oracle: ModuleType, text: str) -> None:
    check(text, units, oracle)


@given(ANY_TEXTS, st.booleans(), st.integers(0, 4))
@settings(max_examples=examples(600), deadline=None)
def test_lines_and_words_equal_plain_python(text: str, ends_alone: bool, min_words: int) -> None:
    assert counting.c4_lines(text, ends_alone, min_words) == dolma_oracle.c4_lines(text, ends_alone, min_words)
    assert counting.words_of(text) == dclm_oracle.words_of(text)


@given(ANY_TEXTS, st.integers(2, counting.MAX_NGRAM), st.sampled_from([counting.DCLM, counting.DOLMA]))
@settings(max_examples=examples(200), deadline=None)
def test_fewer_n_grams_are_the_same_ones(text: str, most: int, units: int) -> None:
    found = counting.repeated_ngrams(text, most, units)
    assert found == counting.repeated_ngrams(text, counting.MAX_NGRAM, units)[: most - 1]


def blocks() -> Iterator[list[str]]:
    """Characters of all planes, some at a time."""
    codes = [*range(0x20000), *range(0x20000, 0x110000, 61), *range(0xE0000, 0xE0200)]
    yield from ([*map(chr, codes[start : start + 64])] for start in range(0, len(codes), 64))


@one_commit_in_four
def test_kernel_knows_every_character() -> None:
    """White space, letters, digits, marks and cases in all planes: alone, beside letters and beside digits."""
    for block in blocks():
        text = " ".join(f"{c} a{c}a1{c}1{c}{c} {c}a" for c in block)
        assert counting.words_of(text) == dclm_oracle.words_of(text), hex(ord(block[0]))
        text = "".join(f"A{c}A {c}{c.upper()}1 1{c}\n{c}\n" for c in block)
        lists = (tuple(f"A{c}A".lower() for c in block), tuple(block))
        for units, oracle in UNITS:
            found = as_dict(counting.quality(text, lists, units))
            assert found == oracle.gopher_counts(text, lists), hex(ord(block[0]))


@contextmanager
def few_hashes() -> Iterator[None]:
    counting.probe_hash_bits(2)
    try:
        yield
    finally:
        counting.probe_hash_bits(64)


@BY_UNITS
@given(text=ANY_TEXTS)
@settings(max_examples=examples(300), deadline=None)
def test_equal_hashes_are_no_equal_words(units: int, oracle: ModuleType, text: str) -> None:
    """Four hashes for all words and lines."""
    with few_hashes():
        check(text, units, oracle)


def test_looking_at_fewer_bits_makes_hashes_equal() -> None:
    text = " ".join(f"word{number}" for number in range(300))
    counting.repeated_ngrams(text, 2, counting.DCLM)
    before = counting.probe_steps()
    with few_hashes():
        assert counting.repeated_ngrams(text, 2, counting.DCLM) == (0.0,)
        assert counting.repeated_pieces("\n".join(text.split()), counting.DCLM) == (0.0,) * 4
        counting.repeated_ngrams(text, 2, counting.DCLM)
        assert counting.probe_steps() > before
    assert before < 12 * 300


@BY_UNITS
@pytest.mark.parametrize("letter", ["a", "ă", "𐐨"])
def test_long_texts_are_the_same(units: int, oracle: ModuleType, letter: str) -> None:
    """Read without the GIL, with words that str.lower has to lower, and with lengths that are kept one by one."""
    part = f"The {letter}b ΌΣΟΣ c{letter} {letter * 300} {letter * 299} # ... . . .\n\n- c{letter} b, ΣΟΣ{letter}…\n"
    text = part * 9 + " ".join(f"{letter}{number % 5000}" for number in range(12_000)) + "\n" + part
    assert len(text) > 1 << 16
    check(text, units, oracle)
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(lambda _: (shares(text, units), counting.quality(text, STOP_WORDS, units)), range(4)))
    assert found == [found[0]] * 4


def test_words_chosen_against_fixed_hashes_cost_what_others_do() -> None:
    words = chosen.words_in_one_slot(chosen.WORD_PRIME, 10)[:2500]
    for separator, count in ((" ", counting.repeated_ngrams), ("\n", counting.repeated_pieces)):
        rest = (2, counting.DCLM) if count is counting.repeated_ngrams else (counting.DCLM,)
        count(separator.join(words), *rest)
        assert counting.probe_steps() < 12 * len(words) < chosen.steps_of_one_slot(len(words)) // 50


@pytest.mark.parametrize("word", ["Σ", "İ", "a" * 70, "…" * 70])
def test_many_odd_words(word: str) -> None:
    """More words than a buffer first has, that are lowered one by one or longer than any filter."""
    text = f"{word} " * 3000
    for units, _ in UNITS:
        hits = counting.quality(text, ((word, word.lower()), ("the",)), units).stop_words
        assert hits == (3000 if word != word.lower() else 6000)


@pytest.mark.parametrize(
    ("function", "changed", "sentence"),
    [
        (counting.quality, {"units": 2}, "units: 2 given, 0 to 1 is allowed"),
        (counting.repeated_pieces, {"units": -1}, "units: -1 given"),
        (counting.repeated_ngrams, {"most": 1}, "most: 1 given, 2 to 10"),
        (counting.repeated_ngrams, {"most": 11}, "most: 11 given"),
        (counting.repeated_ngrams, {"units": 2**64}, "units: a number above"),
        (counting.c4_lines, {"min_words": -1}, "min_words: -1 given"),
    ],
)
def test_values_out_of_bounds_are_refused(function: Any, changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        call(function, changed)


@pytest.mark.parametrize("stop_words", [((1,),), (["the"],), ("the",), [("the",)], ((b"the",),)])
def test_stop_words_are_tuples_of_strings(stop_words: Any) -> None:
    with pytest.raises(TypeError):
        call(counting.quality, {"stop_words": stop_words})
