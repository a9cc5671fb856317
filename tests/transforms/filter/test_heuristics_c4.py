"""C4's rules: those that remove lines, and what the rules after them see."""

from typing import Any

import pytest

from refinery.transforms.core.document import Drop
from refinery.transforms.filter.heuristics import (
    BasicParams,
    C4Params,
    FineWebParams,
    judge_heuristics,
)
from tests.transforms.filter.heuristics_texts import PROSE, document, only


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("A b c.\nMenu\nD e f.", "A b c.\nD e f."),
        ("A b c.\n\nMenu\n\n\nD e f.", "A b c.\n\nD e f."),
        ("Menu\n\nA b c.\n\n\nD e f.\n", "A b c.\n\n\nD e f.\n"),
        ("A b c.\r\nD e f.\n\nEnable JavaScript to read this.\n", "A b c.\r\nD e f."),
        ("A b c.\nThis site uses cookies for you.\u2028D e f.", "A b c.\nD e f."),
        ("A b c.\nAccept our PRIVACY POLICY now.\nD e f.", "A b c.\nD e f."),
        ("\n A b c.\nlong " + "x" * 1001 + " word\nD e f.", "\n A b c.\nD e f."),
    ],
)
def test_c4_removes_lines(text: str, kept: str) -> None:
    result = judge_heuristics(document(text), only(c4=C4Params(min_sentences=None)))
    assert result == document(kept)


def test_c4_options_change_lines() -> None:
    text = "It has no end\nIt has one.\nIt trails off...\nHe said \u201cyes.\u201d"
    strict = only(c4=C4Params(require_terminal_punctuation=True, min_sentences=None))
    assert judge_heuristics(document(text), strict) == document("It has one.\nHe said \u201cyes.\u201d")
    cited = only(c4=C4Params(remove_citations=True, min_sentences=None))
    text = "The mill[12] is old[citation needed] and[edit] small.[]\nMenu"
    assert judge_heuristics(document(text), cited) == document("The mill is old and small.")
    hints = {name: field.annotation for name, field in C4Params.model_fields.items()}
    lax = C4Params(**{name: False if hint is bool else None for name, hint in hints.items()})
    odd = "x\nlorem ipsum\njavascript {cookie policy}\n" + "y" * 2000
    assert judge_heuristics(document(odd), only(c4=lax)) == document(odd)


@pytest.mark.parametrize(
    ("line", "fields", "reason"),
    [
        # removed by a rule before both of C4's page rules
        ("{menu} {item}", {}, None),
        ("Lorem ipsum", {}, None),
        ("Some {x} " + "y" * 1001 + " word.", {}, None),
        ("Some lorem ipsum " + "y" * 1001 + " word.", {}, None),
        ("The set {1, 2} has no end", {"require_terminal_punctuation": True}, None),
        ("Some lorem ipsum has no end", {"require_terminal_punctuation": True}, None),
        ("The set {1, 2} trails off...", {"require_terminal_punctuation": True}, None),
        ("Some lorem ipsum trails off...", {"require_terminal_punctuation": True}, None),
        # by the one between them, and by the one behind both
        ("Enable JavaScript {now} to read.", {}, None),
        ("Enable JavaScript for lorem ipsum.", {}, "c4-lorem-ipsum"),
        ("This {site} uses cookies.", {}, "c4-curly-bracket"),
        ("Lorem ipsum uses cookies.", {}, "c4-lorem-ipsum"),
        ("This {site} uses cookies and JavaScript.", {}, None),
        # by none
        ("The set {1, 2} is small.", {"require_terminal_punctuation": True}, "c4-curly-bracket"),
        ("Some lorem ipsum follows.", {"require_terminal_punctuation": True}, "c4-lorem-ipsum"),
        # a rule that is off removes no line
        ("{menu} {item}", {"min_words_per_line": None}, "c4-curly-bracket"),
        ("Lorem ipsum", {"min_words_per_line": None}, "c4-lorem-ipsum"),
        ("Some {x} " + "y" * 1001 + " word.", {"max_word_chars": None}, "c4-curly-bracket"),
        ("The set {1, 2} has no end", {}, "c4-curly-bracket"),
        ("Enable JavaScript {now} to read.", {"remove_javascript_lines": False}, "c4-curly-bracket"),
        ("This {site} uses cookies.", {"remove_policy_lines": False}, "c4-curly-bracket"),
        ("This {site} uses cookies and JavaScript.", {"remove_policy_lines": False}, None),
        # citations are cut behind the rule on long words, before all others
        ("Some {x} " + "y" * 999 + "[12] word.", {"remove_citations": True}, None),
        ("Some {x} " + "y" * 996 + "[12] word.", {"remove_citations": True}, "c4-curly-bracket"),
        ("The {set} [1]", {"remove_citations": True}, None),
        ("The {set} [1]", {}, "c4-curly-bracket"),
        (
            "The set {1, 2} is small.[1]",
            {"remove_citations": True, "require_terminal_punctuation": True},
            "c4-curly-bracket",
        ),
        ("The set {1, 2} is small.[1]", {"require_terminal_punctuation": True}, None),
    ],
)
@pytest.mark.parametrize("form", ["{prose}\n{line}", "{line}\r\n\n{prose}"])
def test_page_rules_count_lines_that_rules_before_them_left(
    line: str, fields: dict[str, Any], reason: str | None, form: str
) -> None:
    text = form.replace("{prose}", PROSE).replace("{line}", line)
    expected = Drop(reason) if reason else document(PROSE)
    assert judge_heuristics(document(text), only(c4=C4Params(**fields))) == expected


def test_lines_with_a_long_word_keep_their_citations_until_they_go() -> None:
    cited = C4Params(remove_citations=True, max_word_chars=9, min_words_per_line=None, min_sentences=None)
    text = "A b[1] c.\u2028Its words[123] are long.\r\n\nD[edit] e f.\n的的的的的的的的的的[3]的。"
    assert judge_heuristics(document(text), only(c4=cited)) == document("A b c.\n\nD e f.\n的的的的的的的的的的的。")
    anything = cited.replace(max_word_chars=None)
    whole = document("A b c.\u2028Its words are long.\r\n\nD e f.\n的的的的的的的的的的的。")
    assert judge_heuristics(document(text), only(c4=anything)) == whole


def test_later_rules_see_the_text_that_is_left() -> None:
    text = PROSE + "\nRead on" * 30
    assert judge_heuristics(document(text), only(fineweb=FineWebParams())) == Drop("fineweb-short-lines")
    assert judge_heuristics(document(text), only(c4=C4Params(), fineweb=FineWebParams())) == document(PROSE)
    short = only(basic=BasicParams(), c4=C4Params(min_sentences=None))
    assert judge_heuristics(document("Read on\n" * 60 + "It is so."), short) == Drop("basic-low-unique-word-ratio")
    short = only(basic=BasicParams(min_unique_word_ratio=None), c4=C4Params(min_sentences=None))
    assert judge_heuristics(document("Read on\n" * 60 + "It is so."), short) == Drop("basic-too-few-characters")
