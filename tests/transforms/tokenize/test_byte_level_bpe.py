"""The fast engine against Hugging Face's, over every code point and over texts made to split in odd places."""

import functools
import os
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, pre_tokenizers

from refinery.transforms.native import bpe
from refinery.transforms.tokenize.byte_level_bpe import (
    CL100K,
    CODE_POINTS,
    DEEPSEEK,
    DETAIL,
    GPT2,
    GPT2_GROUPED,
    LETTER,
    LLAMA3,
    NUMBER,
    O200K,
    PROBED,
    QWEN2,
    SPACE,
    TAGS,
    TEKKEN,
    ByteLevelTokenizer,
    byte_alphabet,
    character_classes,
    recognise,
)
from refinery.transforms.tokenize.tokenizer_json import HuggingFaceTokenizer, load_tokenizer_json
from tests.native.kernel_calls import CLASSES
from tests.sampling import examples, one_commit_in_four, scaled
from tests.transforms.tokenizer_files import BYTE_LEVEL, END, added, all_pairs, byte_level_spec, split_by

# Every class, one to four bytes each, and what contractions and line rules look at.
ODD = "ǅªʰー々ヶ゠・゛ぁア丂龦Àß$+/\u1ab0\U000e0101"
ODD += "aAsStTrRevlLmMdD'’ \n\r\t\x0b\x1c\x85\u00a0\u2003\u3000\u200b012²Ⅷ١é\u0301ſK中한😀!-_.\x00\U000e0061\U0010ffff"
UNITS = [
    *ODD,
    "'s",
    "'t",
    "'re",
    "'ve",
    "'m",
    "'ll",
    "'d",
    "'S",
    "'T",
    "'RE",
    "'vE",
    "'LL",
    "'ſ",
    "  ",
    "\r\n",
    "123",
    "aa",
]
PRE_TOKENIZERS = {
    "gpt2": BYTE_LEVEL,
    "gpt2-split": split_by(GPT2),
    "gpt2-grouped": split_by(GPT2_GROUPED),
    "llama3": split_by(LLAMA3),
    "qwen2": split_by(QWEN2),
    "cl100k": split_by(CL100K),
    "o200k": split_by(O200K),
    "tekken": split_by(TEKKEN),
    "deepseek": split_by(*DEEPSEEK),
}
MERGES = all_pairs(ODD)


def both(**changes: Any) -> tuple[ByteLevelTokenizer, HuggingFaceTokenizer]:
    import json

    spec = byte_level_spec(changes.pop("merges", MERGES), **changes)
    fast = load_tokenizer_json(json.dumps(spec).encode())
    assert isinstance(fast, ByteLevelTokenizer)
    return fast, HuggingFaceTokenizer(spec)


@functools.lru_cache(maxsize=3)  # 30 MB each
def engines(name: str) -> tuple[ByteLevelTokenizer, HuggingFaceTokenizer]:
    """Both engines with one of the pre-tokenizers: they take half a second to make."""
    return both(pre_tokenizer=PRE_TOKENIZERS[name])


@pytest.fixture(scope="module", params=PRE_TOKENIZERS)
def name(request: pytest.FixtureRequest) -> str:
    """A pre-tokenizer. Of the scope of the file, so that all tests of one come before those of the next."""
    return str(request.param)


@one_commit_in_four
@given(text=st.lists(st.sampled_from(UNITS), max_size=60).map("".join))
@settings(max_examples=examples(400))
def test_equal_on_odd_characters(name: str, text: str) -> None:
    fast, reference = engines(name)
    np.testing.assert_array_equal(fast.encode(text), reference.encode(text))


@given(text=st.text(max_size=80))
def test_equal_and_lossless_on_any_text(name: str, text: str) -> None:
    fast, reference = engines(name)
    ids = fast.encode(text)
    np.testing.assert_array_equal(ids, reference.encode(text))
    assert fast.decode(ids) == text == reference.decode(ids)


@pytest.mark.parametrize("name", ["gpt2", "llama3"])
@given(
    parts=st.lists(
        st.tuples(st.sampled_from(["a", "ab", "é", " ", "\n", "7", "!", "aé!"]), st.integers(1, 150)), max_size=6
    )
)
def test_equal_on_long_runs(name: str, parts: list[tuple[str, int]]) -> None:
    fast, reference = engines(name)
    text = "".join(unit * times for unit, times in parts)
    np.testing.assert_array_equal(fast.encode(text), reference.encode(text))


@pytest.mark.parametrize("template", ["'{}", "'{}x", "a{}b", " {}", "{} ", "!{}", "\n{}\n", "1{}2"])
def test_equal_on_every_code_point_of_the_first_planes(template: str) -> None:
    fast, reference = engines("llama3" if template.startswith("'") else "gpt2")
    step = scaled(1, 7) if template == "'{}" else 61
    points = [point for point in range(0, 0x20000, step) if not 0xD800 <= point < 0xE000]
    text = " |".join(template.format(chr(point)) for point in points)
    np.testing.assert_array_equal(fast.encode(text), reference.encode(text))


@one_commit_in_four
def test_classes_are_those_of_the_reference_for_every_code_point() -> None:
    classes = np.frombuffer(character_classes(unstable=False), np.uint8)
    for first in range(0, CODE_POINTS, 1 << 16):  # plane by plane: the reference's pieces are large
        points = np.array([point for point in range(first, first + (1 << 16)) if not 0xD800 <= point < 0xE000])
        characters = "".join(map(chr, points))
        for class_, pattern in ((LETTER, r"\p{L}"), (NUMBER, r"\p{N}"), (SPACE, r"\s")):
            found = np.zeros(CODE_POINTS, bool)
            splitter = pre_tokenizers.Split(Regex(pattern + "+"), "removed", invert=True)
            for _, (start, stop) in splitter.pre_tokenize_str(characters):
                found[points[start:stop]] = True
            np.testing.assert_array_equal(found[points], classes[points] == class_)
            assert not found[PROBED:].any()


@given(text=st.text(alphabet="e\u0301\u0327éaA\u030a\u212b 가\u1100\u1161\u2000중", max_size=30) | st.text(max_size=30))
def test_nfc_is_applied_where_it_matters(text: str) -> None:
    fast, reference = both(normalizer={"type": "NFC"}, merges=[("e", "Ì"), ("Ì", "ģ"), ("Ã", "©")])
    np.testing.assert_array_equal(fast.encode(text), reference.encode(text))
    assert not fast.lossless


@given(st.text(max_size=20))
def test_text_of_stable_characters_is_nfc(text: str) -> None:
    classes = character_classes(unstable=True)
    if all(classes[ord(char)] < 4 for char in text):
        assert unicodedata.normalize("NFC", text) == text


@pytest.mark.parametrize("whole", [False, True])
def test_a_piece_that_is_a_token_may_skip_merges(whole: bool) -> None:
    """ "abc" is in the vocabulary but no merges lead to it: only ignore_merges finds it."""
    vocab = byte_level_spec([("b", "c")])["model"]["vocab"]
    model = {"ignore_merges": whole, "vocab": {**vocab, "abc": len(vocab)}}
    fast, reference = both(merges=[("b", "c")], model=model)
    for text in ("abc", " abc", "abcabc abc!"):
        np.testing.assert_array_equal(fast.encode(text), reference.encode(text))
    assert (len(fast.encode("abc")) == 1) is whole


def test_merges_follow_rank_then_position() -> None:
    fast, reference = both(merges=[("b", "c"), ("a", "b"), ("a", "a"), ("aa", "aa")])
    assert fast.encode("abc").tolist() == [1 + ord("a"), 257]
    assert fast.encode("aaa").tolist() == [259, 1 + ord("a")]
    for size in (*range(60, 70), 1000, 20_000):
        np.testing.assert_array_equal(fast.encode("a" * size), reference.encode("a" * size))
        np.testing.assert_array_equal(fast.encode("abcca" * size), reference.encode("abcca" * size))


@one_commit_in_four
def test_millions_of_characters_in_one_piece() -> None:
    fast, _ = engines("gpt2")
    for text in ("a" * 3_000_000, " " * 1_000_000, "\n" * 1_000_000, "中" * 500_000, "!a" * 500_000):
        assert fast.decode(fast.encode(text)) == text


@pytest.mark.parametrize("prefix", ["", "x" * 8, "x" * 16, "x" * 24])
def test_the_cache_compares_whole_pieces(prefix: str) -> None:
    """10,000 pieces of at most 7 ids that differ in one part of the key, in 131,072 slots: hundreds collide."""
    text = "".join(f" {prefix}{i * 7919 % 10_000:04}" for i in range(10_000))
    text = text.translate({ord("0") + i: letter for i, letter in enumerate("abcdefghij")})  # digits would split
    fast, reference = both(merges=[("x", "x"), ("xx", "xx"), ("xxxx", "xxxx"), ("xxxxxxxx", "xxxxxxxx"), ("b", "c")])
    expected = reference.encode(text)
    for _ in range(2):
        np.testing.assert_array_equal(fast.encode(text), expected)


NOT_PLAIN: dict[str, dict[str, Any]] = {
    "prefix space": {"pre_tokenizer": {**BYTE_LEVEL, "add_prefix_space": True}},
    "no pre-tokenizer": {"pre_tokenizer": None},
    "another pattern": {"pre_tokenizer": split_by(r"\w+|\W")},
    "removed": {
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {**split_by(GPT2)["pretokenizers"][0], "behavior": "Removed"},
                {**BYTE_LEVEL, "use_regex": False},
            ],
        }
    },
    "lower case": {"normalizer": {"type": "Lowercase"}},
    "suffix": {"model": {"end_of_word_suffix": "</w>"}},
    "prefix": {"model": {"continuing_subword_prefix": "##"}},
    "dropout": {"model": {"dropout": 0.5}},
    "byte fallback": {"model": {"byte_fallback": True}},
    "not all bytes": {"model": {"vocab": {char: i for i, char in enumerate(byte_alphabet()[:-1])}}},
}


@pytest.mark.parametrize("name", NOT_PLAIN)
def test_anything_else_is_left_to_the_reference(name: str) -> None:
    assert recognise(byte_level_spec([], **NOT_PLAIN[name])) is None


def test_what_no_match_holds_may_be_removed_as_there_is_none() -> None:
    """So do some published copies say it. Not where splits follow each other: each leaves text to the next."""
    for name in ("llama3", "o200k", "deepseek"):
        *splits, last = PRE_TOKENIZERS[name]["pretokenizers"]
        removing = [{**split, "behavior": "Removed", "invert": True} for split in splits]
        spec = byte_level_spec([], pre_tokenizer={"type": "Sequence", "pretokenizers": [*removing, last]})
        assert recognise(spec) == (None if name == "deepseek" else name)


def test_plain_files_are_recognised() -> None:
    found = [recognise(byte_level_spec([], pre_tokenizer=each)) for each in PRE_TOKENIZERS.values()]
    assert found == ["gpt2", "gpt2", "gpt2", "llama3", "qwen2", "cl100k", "o200k", "tekken", "deepseek"]


SPECIALS = ["<|endoftext|>", "<s>", "[CLS]", "<tool>", "word"]


@pytest.mark.parametrize("text", [*SPECIALS, *(f"a{s}b {s} {s}{s}\n" for s in SPECIALS), " ".join(SPECIALS)])
@pytest.mark.parametrize("whole", [False, True])
def test_names_of_added_tokens_in_text_are_text(text: str, whole: bool) -> None:
    """Special or not, in the model's vocabulary or not: only their letters come out, on both engines."""
    vocab = byte_level_spec([])["model"]["vocab"] | {"<s>": 257, "word": 258}
    tokens = [
        added(0, END),
        added(257, "<s>"),
        added(258, "word"),
        added(259, "[CLS]"),
        added(260, "<tool>", special=False),
    ]
    fast, reference = both(merges=[], model={"vocab": vocab, "ignore_merges": whole}, added_tokens=tokens)
    assert fast.vocab_size == reference.vocab_size == 261
    for engine in (fast, reference):
        assert [engine.token_id(name) for name in SPECIALS] == [0, 257, 259, 260, 258]
        assert engine.encode(text).tolist() == [1 + byte for byte in text.encode()]
        assert engine.decode([0, 1 + ord("a"), 257]) == "a"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pattern": "gpt4"}, "pattern: gpt4 given"),
        ({"byte_ids": b"\0" * 8}, "byte_ids"),
        ({"merges": b"\0" * 8}, "merges"),
        ({"classes": b"\0"}, "classes"),
    ],
)
def test_the_kernel_checks_what_it_is_given(changes: dict[str, Any], message: str) -> None:
    values = {"pattern": "gpt2", "byte_ids": b"\0" * 1024, "merges": b"", "classes": CLASSES, **changes}
    with pytest.raises(ValueError, match=message):
        bpe.Encoder(**values)
    with pytest.raises(TypeError):
        bpe.Encoder("gpt2", b"\0" * 1024, b"", CLASSES, [])  # type: ignore[arg-type]


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux alone says how much memory a process has")
def test_memory_does_not_grow_with_the_text() -> None:
    """Words that never come twice: 52 MB, 10 MB in `make test`, where a cache that keeps all grows by 70 MB."""
    fast, _ = engines("llama3")
    letters = np.frombuffer(b"abcdefghijklmnop", np.uint8)

    def text(number: int) -> str:
        """1 MB: 111,111 words of eight letters, counted up."""
        counted = (np.arange(111_111, dtype=np.uint32) + number * 111_111) * np.uint32(2_654_435_761)  # odd: all differ
        digits = counted[:, None] >> np.arange(0, 32, 4, dtype=np.uint32) & 15
        return np.hstack([letters[digits], np.full((111_111, 1), ord(" "), np.uint8)]).tobytes().decode()

    for number in range(3):
        fast.encode(text(number))
    before = resident()
    for number in range(3, scaled(52, 10)):
        assert fast.decode(fast.encode(text(number))[:100]) == fast.decode(fast.encode(text(number)[:400])[:100])
    assert resident() - before < 16 << 20


def test_ids_stay_below_the_size_of_the_vocabulary(name: str) -> None:
    fast, _ = engines(name)
    ids = fast.encode("".join(UNITS) * 50)
    assert int(ids.max()) < fast.vocab_size


@one_commit_in_four
def test_details_of_classes_are_those_of_the_reference_for_every_code_point() -> None:
    characters = "".join(map(chr, [*range(0xD800), *range(0xE000, CODE_POINTS)]))
    points = np.array([ord(char) for char in characters])
    classes = np.frombuffer(character_classes(unstable=False, detail=True), np.uint8)
    for bit, pattern in DETAIL.items():
        found = np.zeros(CODE_POINTS, bool)
        for _, (start, stop) in pre_tokenizers.Split(Regex(pattern), "removed", invert=True).pre_tokenize_str(
            characters
        ):
            found[points[start:stop]] = True
        np.testing.assert_array_equal(found, (classes & bit) != 0)
        assert not found[PROBED : TAGS.start].any() and not found[TAGS.stop :].any()
    np.testing.assert_array_equal(classes & 3, np.frombuffer(character_classes(unstable=False), np.uint8))


def test_what_merges_do_not_lead_to_alone_is_looked_up() -> None:
    """ignore_merges costs a look-up only for tokens that merges spell otherwise."""
    vocab = byte_level_spec([("a", "b"), ("b", "c"), ("ab", "c")])["model"]["vocab"]
    fast, reference = both(merges=[("a", "b"), ("b", "c"), ("ab", "c")], model={"ignore_merges": True, "vocab": vocab})
    assert fast._encoder.merge(b"abc") == np.uint32(vocab["abc"]).tobytes()
    assert fast.encode("abc bc").tolist() == reference.encode("abc bc").tolist()
