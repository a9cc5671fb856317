"""Words of blocks and what a lexicon says of them, against a plain implementation."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.extract.blocks.page import parse_page
from refinery.transforms.native import htmlblocks

BORDER = re.compile("[^a-zA-Z0-9\u0080-\U0010ffff]|[\u0080-\u00bf]|[\u2000-\u203f]")


def fnv(word: str) -> int:
    value = 2166136261
    for byte in re.sub("[A-Z]", lambda found: found[0].lower(), re.sub("[0-9]", "0", word)).encode():
        value = (value ^ byte) * 16777619 % 2**32
    return value or 1


def words(text: str) -> list[int]:
    return [fnv(word) for word in BORDER.split(text) if word]


@given(st.lists(st.text(max_size=30), max_size=5))
def test_words_of_blocks(texts: list[str]) -> None:
    html = "".join(f"<p>{text.encode('utf-8', 'ignore').decode()}" for text in texts)
    page = parse_page(html, "")
    hashes, counts = (np.frombuffer(part, np.uint32) for part in htmlblocks.words(page.text, page.arrays.blocks))
    expected = [words(page.block_text(number)) for number in range(len(page.blocks))]
    assert counts.tolist() == [len(block) for block in expected]
    assert hashes.tolist() == [word for block in expected for word in block]


def test_a_lexicon_is_looked_up() -> None:
    page = parse_page("<p>Reply, reply 2024!<p>\u00c9t\u00e9 unknown<p>...", "")
    lexicon = np.zeros(256, np.uint32)
    for word, weight in (("reply", -100), ("0000", 7), ("\u00c9t\u00e9", 20)):
        value = fnv(word)
        lexicon[(value + 1) % 256] = value & ~0xFF | weight & 0xFF
        lexicon[value % 256] = lexicon[value % 256] or 0x12345600
    said = np.frombuffer(htmlblocks.say(page.text, page.arrays.blocks, lexicon.view(np.int32)), np.int32)
    assert said.reshape(-1, 4).tolist() == [[-193, 3, -100, 3], [20, 2, 0, 1], [0, 0, 0, 0]]


@pytest.mark.parametrize("slots", [0, 128, 257])
def test_other_tables_are_refused(slots: int) -> None:
    page = parse_page("<p>x", "")
    with pytest.raises(ValueError, match="lexicon: "):
        htmlblocks.say(page.text, page.arrays.blocks, np.zeros(slots, np.int32))
    with pytest.raises(ValueError, match="text, blocks: "):
        htmlblocks.words(b"", page.arrays.blocks)
