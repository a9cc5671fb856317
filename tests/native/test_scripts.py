"""One table of scripts written without spaces: it holds what Unicode's properties say, and everybody uses it."""

from itertools import pairwise

import pytest
import regex

from refinery.transforms.dedup.signatures import LETTER, SOLITARY, character_table
from refinery.transforms.filter.toxic.lexicon import WORD
from refinery.transforms.native import heuristics, scripts
from tests.native.unicode_scripts import is_unspaced

PLANES_OF_HAN = range(0x20000, 0x40000)  # whatever Unicode adds there
UNASSIGNED = regex.compile(r"\p{Cn}")
RANGES = scripts.unspaced()


def is_listed(code: int) -> bool:
    return any(first <= code <= last for first, last in RANGES)


def test_the_table_is_what_the_properties_say() -> None:
    listed = {code for first, last in RANGES for code in range(first, last + 1)}
    for code in (*range(0xD800), *range(0xE000, 0x20000), *range(0xE0000, 0xE0200)):
        character = chr(code)
        if not UNASSIGNED.match(character):
            assert (code in listed) == is_unspaced(character), hex(code)
    assert listed.issuperset(PLANES_OF_HAN)


def test_ranges_ascend_and_do_not_touch() -> None:
    assert all(first <= last for first, last in RANGES)
    assert all(last + 1 < first for (_, last), (first, _) in pairwise(RANGES))


@pytest.mark.parametrize("code", [code for first, last in RANGES for code in {first, last}], ids=hex)
def test_its_letters_are_words_of_their_own_everywhere(code: int) -> None:
    character = chr(code)
    if not character.isalpha():
        return
    assert heuristics.measure(character * 3, (), 0, 0, 0, 0, 0)[:1] == (3,)
    assert character_table()[code] >> 24 == SOLITARY
    assert WORD.findall(character * 3) == [character] * 3


@pytest.mark.parametrize("text", ["the", "слово", "ㄅㄆㄇ", "한국어", "ᮃᮊ", "ꦲꦤ"])
def test_other_scripts_have_longer_words(text: str) -> None:
    assert heuristics.measure(text, (), 0, 0, 0, 0, 0)[:1] == (1,)
    assert all(character_table()[ord(letter)] >> 24 == LETTER for letter in text)
    assert WORD.findall(text) == [text]
