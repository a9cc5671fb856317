import random
import re
import time
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.toxicity import DISGUISES, WORDS
from refinery.transforms.filter.toxic.folding import (
    UNFOLDED,
    VISIBLE,
    find_obfuscated,
    fold,
    make_skeletons,
    skeleton,
    unfold,
)
from refinery.transforms.filter.toxic.lexicon import built_in, find_hits, make_lexicon
from tests.sampling import one_commit_in_four, scaled, spread

LEXICON = make_lexicon(built_in("en").items())
SKELETONS = make_skeletons(LEXICON)


def found(text: str, language: str = "en") -> list[str]:
    folded = unfold(text.casefold())
    plain = find_hits(folded, LEXICON)
    hits = [*plain, *find_obfuscated(folded, SKELETONS, language, plain)]
    assert all(0 <= hit.start < hit.end <= len(folded) for hit in hits)
    return [folded[hit.start : hit.end] for hit in hits]


@pytest.mark.parametrize("sentence", ["{}", "You are a {} and more", "This is {}, really", "({}) or “{}”, once"])
@pytest.mark.parametrize("way", DISGUISES)
def test_words_in_disguise(way: str, sentence: str) -> None:
    for word in WORDS:
        assert len(found(sentence.format(DISGUISES[way](word), ""))) == 1, word


@pytest.mark.parametrize("way", [str.upper, lambda word: ". ".join(word), lambda word: "  ".join(word), "\u200d".join])
def test_other_ways(way: Callable[[str], str]) -> None:
    for word in WORDS:
        assert len(found(f"You are a {way(word)}")) == 1, word


@pytest.mark.parametrize(
    "text",
    [
        "The 2nd and 10th of 4th, mp3 and utf8, x86, 100s of 5s, i18n, k8s, a11y",
        "U.S.A. and e.g. the B.B.C., i.e. a b c d e f g h i j k l m n o p q r s t u v w x y z",
        "C L A S S  A S S E S S M E N T",
        "well-known mother-in-law, os.path.join(a_b, c_d), www.example.org, x@example.org",
        "vacuum skiing balloon bookkeeper aaah brrr hmmm zzz iii",
        "**bold** and *emphasis*, f** k, 5 * 4 * 3",
        "Добрый день, роса и сор, ухо, хор",
        "café über naïve façade Zürich Müller",
    ],
)
def test_ordinary_text_has_none(text: str) -> None:
    assert found(text) == []


def test_words_of_spaced_letters_are_told_apart() -> None:
    assert found("f u c k   y o u") == ["f u c k"]
    assert found("c l a s s y") == []


def test_russian_stretched_and_spaced() -> None:
    lexicon = make_lexicon(built_in("ru").items())
    skeletons = make_skeletons(lexicon)
    for text in ("суууука", "с у к а такая", "cука"):
        assert len(find_obfuscated(text, skeletons, "ru", [])) == 1, text


def test_skeletons() -> None:
    assert skeleton("F.Ü¢|<") == "fuci"
    assert skeleton("ｓｈ１ｔ") == "shit"
    assert unfold("plain text") == "plain text"
    assert unfold("می\u200cخواهم \u00ad") == "می\u200cخواهم "


@given(st.text(alphabet="fuck5$ .*-_|aiсѕ\u0336\u200bçß\n🅵", max_size=60))
def test_any_text_is_searched(text: str) -> None:
    found(text, "")


@one_commit_in_four
@pytest.mark.parametrize(
    "piece", ["f u c k ", "fuck.", "a*", "aaa", "4a", "аa", "a\u0336", "x.y-", "$", "é", "a1", "｡ａ", "'", "f**"]
)
def test_hostile_text_is_linear(piece: str) -> None:
    """Growth in one run: ten times the text, at most forty times the time."""
    times = []
    for count in (2_000, 20_000):
        text = piece * count
        start = time.process_time()
        found(text, "")
        times.append(time.process_time() - start)
    assert times[1] < 40 * max(times[0], 0.002)


def test_random_prose_is_clean() -> None:
    chosen = random.Random(1)
    listed = "the of river stone wheel carries 1990 winter, garden. it's 3rd co-op U.K. don't A4 r2d2"
    words = re.split(" ", listed)
    assert found(" ".join(chosen.choices(words, k=5_000))) == []


def fold_by_letter(text: str) -> str:
    """The definition: case folded, then letters unfolded, joiners only between Latin letters."""
    folded = text.casefold()
    made = []
    for at, letter in enumerate(folded):
        before, after = folded[at - 1 : at] if at else "", folded[at + 1 : at + 2]
        if letter in "\u200c\u200d":
            changes = "a" <= before <= "z" and "a" <= after <= "z"
        else:
            changes = bool(UNFOLDED.match(letter))
        made.append(unicodedata.normalize("NFKC", letter.translate(VISIBLE)).casefold() if changes else letter)
    return "".join(made)


def test_every_letter_is_folded_as_it_is_alone() -> None:
    """Letters of the first two planes and those of the others that fold, in turn; a few of the rest."""
    points = [point for point in range(0x20000) if not 0xD800 <= point < 0xE000]
    points = spread("letters that are folded", points, 20_000)
    points += [*range(0x2F800, 0x2FA1E, scaled(1, 3)), *range(0xE0000, 0xE0200)]
    points += range(0x20000, 0x110000, scaled(1, 997))
    for first in range(0, len(points), 5000):
        text = " ".join(map(chr, points[first : first + 5000]))
        expected = fold_by_letter(text)
        assert fold(text) == (expected, expected.encode())


@given(st.text(st.sampled_from("aZéÉßİ\u200c\u200d\u00adＦ𝐅🄵ｆ \ufeff漢")))
def test_folding_is_unfolding_of_the_folded_case(text: str) -> None:
    expected = fold_by_letter(text)
    assert fold(text) == (expected, expected.encode())
    assert unfold(text.casefold()) == expected


def test_weights_of_tokens_are_forgotten_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is remembered decides nothing, and does not grow with the corpus."""
    monkeypatch.setattr("refinery.transforms.filter.toxic.folding.MOST_WEIGHTS", 3)
    skeletons = make_skeletons(LEXICON)
    tokens = ["f4ck", "b4ck", "sh1t", "sh1p", "d0ck", "f4ck"]
    assert [skeletons.weight(token) for token in tokens] == [make_skeletons(LEXICON).weight(token) for token in tokens]
    assert len(skeletons.weights) <= 3
