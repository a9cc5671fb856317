"""heuristics.counting: datatrove. Expectations are worked out by hand from what docs/conformance.md says it counts."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.core.document import Document, Drop, document_id
from refinery.transforms.filter.heuristics import judge_heuristics
from refinery.transforms.filter.heuristics_rules import (
    C4Params,
    FineWebParams,
    GopherParams,
    HeuristicsParams,
    RepetitionParams,
)

OFF: dict[str, Any] = dict.fromkeys(("basic", "gopher", "repetition", "c4", "fineweb"))
SETS: dict[str, Any] = {"gopher": GopherParams, "repetition": RepetitionParams, "fineweb": FineWebParams}


def params(counting: str, section: str, **on: Any) -> HeuristicsParams:
    """One set with these rules, and no others, on."""
    kind = SETS[section]
    off = {name: None for name in kind.model_fields if name.startswith(("min_", "max_"))}
    return HeuristicsParams(**{**OFF, section: kind(**{**off, **on}), "counting": counting})


def answer(text: str, chosen: HeuristicsParams) -> str:
    """The reason, or the text that is left."""
    found = judge_heuristics(Document(document_id(text), text, "", "", "", 0, {"language": "en"}), chosen)
    return found.reason if isinstance(found, Drop) else found.text


def both(text: str, section: str, **on: Any) -> tuple[bool, bool]:
    """Whether it is dropped: as we count, as datatrove counts."""
    own, theirs = (answer(text, params(counting, section, **on)) != text for counting in ("own", "datatrove"))
    return own, theirs


WORD = "lorem"


@pytest.mark.parametrize(
    ("section", "text", "on", "own", "theirs"),
    [
        # 19 of 20 lines begin with a bullet; blank lines between them are lines there: 19 of 39.
        ("gopher", "\n\n".join(["- a"] * 19 + ["b"]), {"max_bullet_lines": 0.9}, True, False),
        ("gopher", "\n".join(["- a"] * 19 + ["b"]), {"max_bullet_lines": 0.9}, True, True),
        ("gopher", "\n".join(["• a"] * 20), {"max_bullet_lines": 0.9}, True, True),
        ("gopher", "\n".join(["* a"] * 20), {"max_bullet_lines": 0.9}, True, False),  # two bullets there
        ("gopher", "a...\n\nb...\n\nc\n\nd\n\ne", {"max_ellipsis_lines": 0.3}, True, False),  # 2 of 5, of 9
        # An arrow is a word there, a dash is none.
        ("gopher", "one → two → three", {"min_words": 5}, True, False),
        ("gopher", "one — two — three", {"min_words": 5}, True, True),
        ("gopher", "→ → → abc", {"min_mean_word_chars": 3}, False, True),
        ("gopher", "一二三四", {"min_mean_word_chars": 3}, False, True),  # letters are judged as words
        # Of "a\n" the piece behind the line break is a line: 1 of 4 repeated, not 1 of 3.
        ("repetition", "aa\nbb\naa\n", {"max_duplicate_lines": 0.3}, True, False),
        ("repetition", "aa\nbb\naa", {"max_duplicate_lines": 0.3}, True, True),
        ("repetition", "\naa\nbb\n", {"max_duplicate_lines": 0.2}, False, True),  # both empty pieces are one line
        ("repetition", "aa\n  \nbb\n  \ncc", {"max_duplicate_lines": 0.15}, False, True),  # so are lines of spaces
        # A line of spaces parts no paragraphs there.
        ("repetition", "aa\n \naa\n \naa", {"max_duplicate_paragraphs": 0.3}, True, False),
        ("repetition", "aa\n\naa\n\naa", {"max_duplicate_paragraphs": 0.3}, True, True),
        # The most frequent n-gram may occur once: "ab cd" is 5 of 11 characters.
        ("repetition", "ab cd ef gh", {"max_top_2_gram": 0.4}, False, True),
        ("repetition", "ab cd ef gh", {"max_top_2_gram": 0.5}, False, False),
        ("repetition", "一二三四五六七八九十", {"max_top_2_gram": 0.25}, False, True),  # "一 二": 3 of 10
        ("repetition", "ab cd ef ab cd", {"max_top_2_gram": 0.5}, True, True),
        # White space behind the last mark hides it; \f ends no line.
        ("fineweb", "one.  \ntwo.  \nthree", {"min_terminal_lines": 0.5}, False, True),
        ("fineweb", "one.\ntwo.\nthree", {"min_terminal_lines": 0.5}, False, False),
        ("fineweb", "a long line of words\fand its other half", {"max_short_lines": 0.5}, True, False),
    ],
)  # fmt: skip
def test_units(section: str, text: str, on: dict[str, Any], own: bool, theirs: bool) -> None:
    assert both(text, section, **on) == (own, theirs)


def c4(counting: str, **on: Any) -> HeuristicsParams:
    off = {"min_words_per_line": None, "max_word_chars": None, "remove_javascript_lines": False, "min_sentences": None}
    return HeuristicsParams(
        **{**OFF, "c4": C4Params(**{**off, "remove_policy_lines": False, **on}), "counting": counting}
    )


@pytest.mark.parametrize(
    ("text", "on", "own", "theirs"),
    [
        ("  ab cd \n\n ef gh\n", {}, "  ab cd \n\n ef gh\n", "ab cd\nef gh"),
        ("a b c\n一二三四", {"min_words_per_line": 3}, "a b c\n一二三四", "a b c"),  # words between spaces
        ("a b [1]\nc d e", {"min_words_per_line": 3, "remove_citations": True}, "c d e", "a b \nc d e"),
        ("one。\ntwo.\nthree”", {"require_terminal_punctuation": True}, "one。\ntwo.\nthree”", "two."),
        ("one...\ntwo!", {"require_terminal_punctuation": True}, "two!", "two!"),
        ("ab { cd\nef", {"min_words_per_line": 4}, "c4-no-lines-left", "c4-no-lines-left"),
    ],
)  # fmt: skip
def test_c4(text: str, on: dict[str, Any], own: str, theirs: str) -> None:
    assert (answer(text, c4("own", **on)), answer(text, c4("datatrove", **on))) == (own, theirs)


def test_fineweb_judges_what_c4_left_without_blank_lines() -> None:
    """Three line breaks in ten words are too many, one and a half are not."""
    text = "one two three four five.\n\n\nsix seven eight nine ten."
    on = {"c4": C4Params(min_sentences=None), "fineweb": params("own", "fineweb", max_newline_ratio=0.2).fineweb}
    reasons = [
        answer(text, HeuristicsParams(**{**OFF, **on, "counting": counting})) for counting in ("own", "datatrove")
    ]
    assert reasons == ["fineweb-newline-ratio", text.replace("\n\n\n", "\n")]


def test_lengths_of_words_by_language_are_our_own() -> None:
    """Finnish words may be 15.5 characters long here; there 10, unless the recipe says so."""
    text, chosen = "pitkäsanainen " * 60, params("datatrove", "gopher", max_mean_word_chars=10.0)
    doc = Document(document_id(text), text, "", "", "", 0, {"language": "fi"})
    assert judge_heuristics(doc, params("own", "gopher", max_mean_word_chars=10.0)) == doc
    assert judge_heuristics(doc, chosen) == Drop("gopher-long-words")
    assert (
        judge_heuristics(doc, params("datatrove", "gopher", max_mean_word_chars=10.0, word_lengths={"fi": 1.55})) == doc
    )


@given(st.lists(st.text(st.sampled_from("ab. •-…"), max_size=12), max_size=12), st.booleans())
def test_texts_of_stripped_lines_differ_by_bullets_and_symbols_alone(lines: list[str], lists: bool) -> None:
    """Where no line has white space around it, none is blank and no n-gram is lone, lines are the same."""
    text = "\n".join(line for each in lines if (line := each.strip()))
    on = {"max_duplicate_lines": 0.3, "max_duplicate_line_chars": 0.2, "max_duplicate_paragraphs": 0.3}
    assert len(set(both(text, "repetition", **on))) == 1
    assert len(set(both(text, "fineweb", min_terminal_lines=0.12, max_short_lines=0.67, max_newline_ratio=0.3))) == 1


def test_documents_keep_what_is_no_text() -> None:
    doc = Document(document_id(" a"), " a", "u", "s", "o", 3, {"language": "en"})
    found = judge_heuristics(doc, c4("datatrove"))
    assert found == replace(doc, text="a", id=document_id("a"))
