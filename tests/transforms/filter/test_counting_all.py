"""heuristics.counting: dclm and dolma. Expectations are worked out by hand from what docs/conformance.md says."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.filter.heuristics_rules import BasicParams, C4Params, HeuristicsParams
from refinery.transforms.native.counting import words_of
from tests.transforms.filter.test_counting import OFF, answer, params


def drops(text: str, counting: str, section: str, **on: Any) -> bool:
    return answer(text, params(counting, section, **on)) != text


@pytest.mark.parametrize(
    ("section", "text", "on", "own", "dclm", "dolma"),
    [
        # DCLM counts words that begin with a letter or a digit, dolma all.
        ("gopher", "one (two) three → four", {"min_words": 4}, False, True, False),
        ("gopher", "one (two) three → four", {"min_words": 5}, True, True, False),
        ("gopher", "one\u00a0two three", {"min_words": 3}, False, True, False),  # no white space of ASCII's there
        # Lengths 1, 1, 1, 9: the mean is 3, the median 1.
        ("gopher", "a b c ninechars", {"min_mean_word_chars": 2}, False, False, True),
        ("gopher", "a b → nine→chars", {"max_mean_word_chars": 3.5}, True, False, False),  # 12 of 3, 13 of 4 words
        ("gopher", "# a b c ... d e f g h", {"max_hash_ratio": 0.1}, False, True, False),  # # and ... share a limit
        ("gopher", "a## b c d e f g h i j k l m n o", {"max_hash_ratio": 0.1}, True, True, False),  # a word once
        ("gopher", "\n".join([" - a"] * 19 + ["", "b"]), {"max_bullet_lines": 0.9}, True, True, False),
        ("gopher", "a. . .\nb…\nc\nd", {"max_ellipsis_lines": 0.3}, False, True, False),  # 1 of 4, 2 of 4, 1 of 4
        ("gopher", "the cat the dog", {"min_stop_words": 2}, True, False, False),  # as often as they occur
        ("gopher", "The cat The dog", {"min_stop_words": 2}, True, False, True),  # as they are written
        # 2 of 5 lines are equal: one was met before, two are repeated.
        ("repetition", "aa\nbb\naa\ncc\ndd", {"max_duplicate_lines": 0.3}, False, True, True),
        ("repetition", "aa\n aa\nbb", {"max_duplicate_lines": 0.3}, False, True, False),  # white space around lines
        ("repetition", "a\n\nb\n\nc", {"max_duplicate_lines": 0.3}, False, False, True),  # blank lines are lines
        ("repetition", "aa\n\nbb\n\naa\n\ncc", {"max_duplicate_paragraphs": 0.3}, False, True, False),
        ("repetition", "aa bb\ncc\naa bb", {"max_duplicate_line_chars": 0.8}, False, True, True),  # 10 of 12, of 10
        ("repetition", "a, b. a-b!", {"max_top_2_gram": 0.9}, False, True, False),  # annex 29: a b a b
        ("repetition", "ab cd ef", {"max_top_2_gram": 0.5}, False, False, True),  # 4 of 6: one that occurs once
        ("repetition", "one two three", {"max_top_3_gram": 0.9}, False, False, True),
        # "a b c d e" twice, then five words: 10 of 15 words; of the 11 5-grams 2.
        ("repetition", "a b c d e a b c d e f g h i j", {"max_duplicate_5_grams": 0.5}, False, True, False),
        ("repetition", "a b c d e a b c d e f g h i j", {"max_duplicate_5_grams": 0.15}, True, True, True),
    ],
)  # fmt: skip
def test_units(section: str, text: str, on: dict[str, Any], own: bool, dclm: bool, dolma: bool) -> None:
    assert [drops(text, each, section, **on) for each in ("own", "dclm", "dolma")] == [own, dclm, dolma]


def test_a_single_line_is_no_repetition_for_dclm_and_none_is() -> None:
    on = {"max_duplicate_lines": 0.3}
    assert [drops(text, "dclm", "repetition", **on) for text in ("aa", " \n ")] == [False, True]


def test_a_mean_is_not_rounded_beside_a_bound() -> None:
    """31 characters in 10 words are less than the float 3.1, though their quotient rounds to it."""
    text = " ".join(["abc"] * 9 + ["abcd"])
    assert drops(text, "dclm", "gopher", min_mean_word_chars=3.1)
    assert not drops(text, "dclm", "gopher", max_mean_word_chars=3.1)
    assert not drops(text, "dclm", "gopher", min_mean_word_chars=3.0)


def test_the_other_kernel_counts_only_for_rules_and_columns_that_ask() -> None:
    chosen = params("dclm", "gopher", min_words=3)
    assert not chosen.measured
    ratios: dict[str, Any] = dict.fromkeys(("min_unique_word_ratio", "max_punctuation_ratio", "max_code_line_ratio"))
    length = BasicParams(min_chars=3, **ratios)  # compares len(text)
    lines = BasicParams(**ratios | {"max_code_line_ratio": 0.5})
    changes: list[tuple[dict[str, Any], bool]] = [
        ({"basic": length}, False),
        ({"basic": lines}, True),
        ({"c4": C4Params()}, True),
        ({"columns": ("duplicate_lines",)}, True),
        ({"counting": "own"}, True),
    ]
    for more, asks in changes:
        given = {**OFF, "gopher": chosen.gopher, "counting": "dclm", **more}
        assert HeuristicsParams(**given).measured is asks


@pytest.mark.parametrize(
    ("text", "on", "own", "dolma"),
    [
        ("one。\ntwo.\nfour...", {"require_terminal_punctuation": True}, "one。\ntwo.", "two.\nfour..."),
        ("a b c\n\n一二三四 d\ne f", {"min_words_per_line": 3}, "a b c\n\n一二三四 d", "a b c"),
        ("a b c\n{", {"min_words_per_line": 3, "drop_curly_brackets": True}, "a b c", "c4-curly-bracket"),
        ("a b c\nLorem ipsum", {"min_words_per_line": 3}, "a b c", "c4-lorem-ipsum"),
        ("a b [1]\nc d e", {"min_words_per_line": 3, "remove_citations": True}, "c d e", "c d e"),
    ],
)
def test_c4_as_dolma(text: str, on: dict[str, Any], own: str, dolma: str) -> None:
    off = {"min_words_per_line": None, "max_word_chars": None, "remove_javascript_lines": False, "min_sentences": None}
    c4 = C4Params(**{**off, "remove_policy_lines": False, **on})
    chosen = [HeuristicsParams(**{**OFF, "c4": c4, "counting": counting}) for counting in ("own", "dolma")]
    assert [answer(text, each) for each in chosen] == [own, dolma]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("don't a:b 3.14 1,000 5:30 U.S.A. x's'", ["don't", "a:b", "3.14", "1,000", "5", "30", "U.S.A", "x's"]),
        ("foo_bar _foo foo-bar @x", ["foo_bar", "foo", "bar", "x"]),
        ("e\u0301te\u0301 پیش\u200cبینی", ["e\u0301te\u0301", "پیش\u200cبینی"]),
        ("漢字かなカタカナ ไทย x²", ["漢", "字", "か", "な", "カタカナ", "ไ", "ท", "ย", "x", "²"]),
    ],
)
def test_words_of_annex_29(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@given(st.lists(st.sampled_from("abc"), min_size=2, max_size=40))
def test_covered_words_are_those_of_repeated_n_grams(words: list[str]) -> None:
    """Of words of one letter the share of characters is that of words, by brute force."""
    grams = [tuple(words[i : i + 5]) for i in range(len(words) - 4)]
    inside = {i + k for i, gram in enumerate(grams) if grams.count(gram) > 1 for k in range(5)}
    for limit in (0.0, 0.3, 0.8):
        expected = len(inside) / len(words) > limit
        assert drops(" ".join(words), "dclm", "repetition", max_duplicate_5_grams=limit) == expected
