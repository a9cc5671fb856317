import re

import pytest

import refinery.transforms.filter.toxic.words as data
from refinery.transforms.filter.toxic.lexicon import WEIGHTS, built_in, find_hits, inflected, make_lexicon, own_entries
from tests.sampling import one_commit_in_four, sampled

LANGUAGES = sorted({language for lists, _ in WEIGHTS for language in lists})


def test_no_list_names_a_group() -> None:
    names = set(data.GROUP_NAMES.split())
    for language in LANGUAGES:
        assert not names & set(own_entries(language)), language


@one_commit_in_four
@pytest.mark.parametrize("language", sampled("lists of toxic words", LANGUAGES, 8))
def test_lists_are_case_folded_and_without_repetition(language: str) -> None:
    for lists, _ in WEIGHTS:
        entries = lists.get(language, "").split()
        assert len(entries) == len(set(entries))
    for entry, weight in own_entries(language).items():
        assert entry == entry.lower() and len(entry) > 1
        found = find_hits(entry.casefold(), make_lexicon(own_entries(language).items()))
        assert [hit.end for hit in found] == ([len(entry)] if weight else [])


def test_what_counts_only_elsewhere_is_listed_somewhere() -> None:
    english = own_entries("en")
    for language, ordinary in data.ORDINARY.items():
        assert set(ordinary.split()) <= set(english), language


def test_inflections_follow_rules() -> None:
    assert list(inflected("fool/n wank/v mad_cow/n", "en")) == [
        "fool", "fools", "wank", "wanks", "wanked", "wanker", "wankers", "wanking", "wankin", "wankings", "mad cow",
        "mad cows",
    ]  # fmt: skip
    assert "idioten" in built_in("de") and "идиотами" in built_in("ru")


def test_harmless_phrases_hide_what_they_hold() -> None:
    lexicon = make_lexicon(built_in("en").items())
    assert find_hits("two maine coons, spick and span", lexicon) == []
    assert len(find_hits("coons", lexicon)) == 1


def test_endings_are_known() -> None:
    for lists, _ in WEIGHTS:
        for language, listed in lists.items():
            for rule in re.findall(r"/(\w+)", listed):
                assert rule in data.ENDINGS[""] | data.ENDINGS.get(language, {})


def test_phrases_and_words_inside_of_them_are_found() -> None:
    """The hint asks for the second word of a phrase; what begins behind the first word of one is still found."""
    lexicon = make_lexicon([("to retard", 0.0), ("retard", 3.0), ("go to hell", 1.0), ("hell", 0.5), ("漢字", 1.0)])
    for text, hits in {
        "go to the retard": ["retard"],
        "to retard": [],
        "go to, well, hell": ["hell"],
        "go to\n\n hell": ["go to hell".replace(" hell", "\n\n hell")],
        "to to retard retard": ["retard"],
        "goto hell": ["hell"],
        "a漢字": ["漢字"],
    }.items():
        assert [text[hit.start : hit.end] for hit in find_hits(text, lexicon)] == hits, text
