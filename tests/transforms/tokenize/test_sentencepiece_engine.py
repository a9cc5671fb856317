"""The engine for SentencePiece models against the library, over models trained here and models made to have ties."""

import functools
import io
import random
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.transforms.native import pieces
from refinery.transforms.tokenize import sentencepiece_engine as engine_module
from refinery.transforms.tokenize.sentencepiece_engine import (
    ADD_DUMMY_PREFIX,
    BPE,
    BYTE_FALLBACK,
    CHARSMAP,
    ESCAPE_WHITESPACES,
    MODEL_TYPE,
    NORMAL,
    NORMALIZER,
    PIECES,
    REMOVE_EXTRA_WHITESPACES,
    TRAINER,
    TREAT_WHITESPACE_AS_SUFFIX,
    UNIGRAM,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    engine,
    read_model,
)
from refinery.transforms.tokenize.sentencepiece_model import SentencePieceTokenizer
from tests.sampling import examples, scaled, spread

CORPUS = [
    "the cat sat on the mat, and the dog on the log!",
    "  a cat and  a dog    walk\tto town (in 1999) for $3.50 ",
    "naïve café Ελληνικά русский текст हिन्दी ไทย 한국어",
    "日本語の文章は空白なしで書かれる。中文也一样，没有空格。",
    "ﬁne ligatures, Ｆｕｌｌ ｗｉｄｔｈ, ½ ² ™ and ﷺ",
    "aaaa aaa aa a abab abba baab",
    "don't won't can't it's we'll they're",
] * 12
# What normalisation changes, what pieces hold, and U+2581, which stands for a space.
UNITS = [
    *"the cat sat on mat dog aab ab",
    " ",
    "  ",
    "▁",
    "▁▁",
    "\n",
    "\n\n",
    "\t",
    "\u3000",
    "\u00a0",
    "\u00ad",
    "\x00",
    "\x07",
    "é",
    "e\u0301",
    "ﬁ",
    "Ｆ",
    "ﷺ",
    "½",
    "日本",
    "中",
    "。",
    "русский",
    "한국",
    "각",
    "😀",
    "\ufffd",
    "\U0010ffff",
    "'ll",
    "1999",
    "<s>",
    "<unk>",
    "<0x41>",
]
TEXTS = st.lists(st.sampled_from(UNITS), max_size=60).map("".join) | st.text(max_size=60)

TRAINED: dict[str, dict[str, Any]] = {
    "bpe": {},
    "bpe identity bytes": {"normalization_rule_name": "identity", "byte_fallback": True},
    "bpe plain spaces": {
        "normalization_rule_name": "identity",
        "byte_fallback": True,
        "add_dummy_prefix": False,
        "remove_extra_whitespaces": False,
        "allow_whitespace_only_pieces": True,
        "user_defined_symbols": ["\n\n", "\t", "▁▁▁", "▁▁▁▁▁", "<im>"],
    },
    "bpe nfkc_cf": {"normalization_rule_name": "nfkc_cf", "remove_extra_whitespaces": False},
    "bpe across words": {"split_by_whitespace": False, "max_sentencepiece_length": 30},
    "unigram": {"model_type": "unigram"},
    "unigram bytes": {"model_type": "unigram", "byte_fallback": True, "split_digits": True},
    "unigram identity": {
        "model_type": "unigram",
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "user_defined_symbols": ["\n\n", "▁▁▁", "<im>"],
    },
    "unigram nfkc_cf": {"model_type": "unigram", "normalization_rule_name": "nfkc_cf", "add_dummy_prefix": False},
    "unigram across words": {"model_type": "unigram", "split_by_whitespace": False},
}


@functools.cache
def trained(name: str) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS),
        model_writer=model,
        **{"model_type": "bpe", "vocab_size": 420, "hard_vocab_limit": False, "minloglevel": 2, **TRAINED[name]},
    )
    return model.getvalue()


def message(fields: Sequence[tuple[int, Any]]) -> bytes:
    """A protobuf message of these fields: int, float and bytes."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        elif isinstance(value, float):
            out += varint(number << 3 | 5) + struct.pack("<f", value)
        else:
            out += varint(number << 3 | 2) + varint(len(value)) + value
    return out


def varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def made(
    entries: Sequence[tuple[str, float, int]],
    trainer: Mapping[int, int],
    normalizer: Mapping[int, Any] | None = None,
) -> bytes:
    """A model of `entries` (text, score, type) behind an unknown entry of id 0."""
    plain = {ADD_DUMMY_PREFIX: 0, REMOVE_EXTRA_WHITESPACES: 0}
    rows = [("<unk>", 0.0, UNKNOWN), *entries]
    parts = [(PIECES, message([(1, text.encode()), (2, score), (3, type_)])) for text, score, type_ in rows]
    parts += [(TRAINER, message(list(trainer.items())))]
    parts += [(NORMALIZER, message(list((plain | dict(normalizer or {})).items())))]
    return message(parts)


class Both:
    """The engine and the library for one model."""

    def __init__(self, data: bytes) -> None:
        tokenizer = SentencePieceTokenizer(data)
        assert tokenizer._fast is not None
        self.fast, self.reference = tokenizer._fast, tokenizer._reference

    def check(self, text: str) -> None:
        for _ in range(2):  # from the cache, too
            np.testing.assert_array_equal(np.frombuffer(self.fast.encode(text), np.uint32), self.reference(text))


@functools.cache
def both(name: str) -> Both:
    return Both(trained(name))


@pytest.mark.parametrize("name", TRAINED)
@given(text=TEXTS)
@settings(max_examples=examples(300))
def test_equal_on_any_text(name: str, text: str) -> None:
    both(name).check(text)


@pytest.mark.parametrize("name", TRAINED)
def test_equal_on_long_texts(name: str) -> None:
    engines, chance = both(name), random.Random(name)
    for unit in ("a", "ab", " ", "  ", "▁", "日本語", "\n", "x y", "cat ", "русский", "ﷺ", "\u3000", "\x00"):
        for times in (29, 30, 31, 32, 33, 64, 65, 3000):
            engines.check(unit * times)
    engines.check("".join(chance.choices(UNITS, k=scaled(200_000, 30_000))))
    engines.check(" ".join(CORPUS) * 20)


@pytest.mark.parametrize("template", ["{}", "a{}b", " {} "])
@pytest.mark.parametrize("name", ["bpe", "unigram identity", "bpe nfkc_cf"])
def test_equal_on_every_code_point_of_the_first_planes(name: str, template: str) -> None:
    engines = both(name)
    every = [point for point in range(0x20000) if not 0xD800 <= point < 0xE000]
    points = spread("code points of pieces", every, 4_000)
    for start in range(0, len(points), 500):
        engines.check("|".join(template.format(chr(point)) for point in points[start : start + 500]))


LETTERS = "ab▁"
PIECE = st.text(LETTERS, min_size=1, max_size=5)
ENTRIES = st.dictionaries(PIECE, st.integers(-12, 4), min_size=1, max_size=25)


def entries_of(scores: Mapping[str, int], scale: float) -> list[tuple[str, float, int]]:
    return [(text, score * scale, NORMAL) for text, score in scores.items()]


@given(
    scores=ENTRIES,
    kind=st.sampled_from([BPE, UNIGRAM]),
    scale=st.sampled_from([0.25, 0.1, 1.7, 1000.3, 7000.0]),
    texts=st.lists(st.text("ab c", max_size=120), max_size=4),
    times=st.integers(1, 60),
    trim=st.integers(0, 1),
)
@settings(max_examples=examples(1500))
def test_ties_are_broken_as_the_library_does(
    scores: dict[str, int], kind: int, scale: float, texts: list[str], times: int, trim: int
) -> None:
    """Few different scores, so that many splits are equally good or differ by rounding alone; with large ones the
    library sets its sums back to 0 now and then."""
    flags = {ADD_DUMMY_PREFIX: trim, REMOVE_EXTRA_WHITESPACES: trim}
    engines = Both(made(entries_of(scores, scale), {MODEL_TYPE: kind}, flags))
    for text in texts:
        engines.check(text)
    engines.check(" ".join(texts * times))


def test_rounding_decides_and_is_followed() -> None:
    """ "ab" is as good as "a" and "b" but for 2^-10; behind a sum of some thousands float32 cannot tell them apart, so
    what came before decides. Both splits occur, and the cache is not trusted where it must not be."""
    near = -4.0 + 2.0**-10
    entries = [("a", -2.0, NORMAL), ("b", near + 2.0, NORMAL), ("ab", -4.0, NORMAL), ("▁", -3.3, NORMAL)]
    entries.append(("c", -2.7001, NORMAL))
    engines = Both(made(entries, {MODEL_TYPE: UNIGRAM}))
    text = " ".join(["ab", "cc ab", "c"] * 3000)
    engines.check(text)
    ids = engines.reference(text)
    assert {1, 3} <= set(ids.tolist())
    assert engines.fast.work()[1] > 100


@given(st.lists(st.sampled_from(["a", "b", " ", "\n", "\n\n", "\n\n\n", "▁", "▁▁"]), max_size=40).map("".join))
def test_user_defined_whitespace_is_taken_whole(text: str) -> None:
    entries = [("\n\n", 0.0, USER_DEFINED), ("▁▁", 0.0, USER_DEFINED), ("\n▁", -1.0, NORMAL), ("a▁", -2.0, NORMAL)]
    entries += [("▁a", -3.0, NORMAL), ("a", -4.0, NORMAL), ("\n", -5.0, NORMAL), ("▁", -6.0, NORMAL)]
    for kind in (BPE, UNIGRAM):
        Both(made(entries, {MODEL_TYPE: kind})).check(text)


def not_run() -> dict[str, bytes]:
    entries = [("a", -1.0, NORMAL), ("b", -2.0, NORMAL), ("▁", -2.0, NORMAL)]
    bpe = {MODEL_TYPE: BPE}
    charsmap = dict(engine_fields(trained("unigram")))[CHARSMAP]
    return {
        "whitespace behind words": made(entries, {MODEL_TYPE: UNIGRAM, TREAT_WHITESPACE_AS_SUFFIX: 1}),
        "spaces as they are": made(entries, bpe, {ESCAPE_WHITESPACES: 0}),
        "words": made(entries, {MODEL_TYPE: 3}),
        "characters": made(entries, {MODEL_TYPE: 4}),
        "pieces that are not used": made([*entries, ("ab", -1.0, UNUSED)], bpe),
        "a piece with a space": made([*entries, ("a b", -1.0, NORMAL)], bpe),
        "a long piece": made([*entries, ("ab" * 300, -1.0, NORMAL)], bpe),
        "scores that are none": made([*entries, ("ab", float("inf"), NORMAL)], bpe),
        "a scores beyond bounds": made([*entries, ("ab", -3e38, NORMAL)], {MODEL_TYPE: UNIGRAM}),
        "user-defined whitespace and a map": made([*entries, ("\n", 0.0, USER_DEFINED)], bpe, {CHARSMAP: charsmap}),
    }


def engine_fields(data: bytes) -> list[tuple[int, bytes]]:
    [(start, stop)] = [(a, b) for n, _, a, b in engine_module.fields(data, 0, len(data)) if n == NORMALIZER]
    return [(number, data[a:b]) for number, _, a, b in engine_module.fields(data, start, stop)]


@pytest.mark.parametrize("name", not_run())
def test_other_models_run_on_the_library(name: str) -> None:
    data = not_run()[name]
    assert engine(read_model(data)) is None
    tokenizer = SentencePieceTokenizer(data)
    assert tokenizer.encode("a b a ab").tolist() == tokenizer._reference("a b a ab").tolist()


def test_a_difference_leads_to_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong:
        def encode(self, text: str) -> bytes:
            return b""

    monkeypatch.setattr("refinery.transforms.tokenize.sentencepiece_model.engine", lambda model: Wrong())
    tokenizer = SentencePieceTokenizer(trained("bpe"))
    assert tokenizer._fast is None
    assert len(tokenizer.encode("the cat"))


def outcome(data: bytes, text: str) -> str:
    try:
        tokenizer = SentencePieceTokenizer(data)
    except ValueError as error:
        return f"{error}"
    assert tokenizer.encode(text).tolist() == tokenizer._reference(text).tolist()
    return "fast" if tokenizer._fast else "library"


@pytest.mark.parametrize("name", ["bpe", "unigram bytes"])
def test_damaged_files_are_an_error_or_a_model(name: str) -> None:
    """Bytes changed anywhere, a quarter of them in the map of characters: the library's ids, or one line of error."""
    data, chance, seen = trained(name), random.Random(7), set()
    charsmap = data.index(dict(engine_fields(data))[CHARSMAP])
    text = "".join(UNITS) + " ".join(CORPUS[:7])
    for number in range(scaled(600, 120)):
        changed = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(charsmap, charsmap + 2000) if number % 4 == 0 else chance.randrange(len(data))
            changed[at] = chance.randrange(256)
        cut = chance.randrange(len(data)) if number % 10 == 9 else len(data)
        seen.add(outcome(bytes(changed[:cut]), text).split(":")[0])
    assert {"fast", "not a SentencePiece model"} <= seen <= {"fast", "library", "not a SentencePiece model"}


@given(
    changes=st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 2**32 - 1)), max_size=6),
    keep=st.floats(0, 1),
)
def test_a_map_of_characters_is_checked(changes: list[tuple[int, int]], keep: float) -> None:
    """Whatever stands in the map: refused, or every step stays inside."""
    blob = dict(engine_fields(trained("bpe")))[CHARSMAP]
    changed = bytearray(blob)
    for at, value in changes:
        struct.pack_into("<I", changed, 4 * at, value)
    one = np.ones(1, np.uint32)
    try:
        encoder = pieces.Encoder(
            False, b"a", one, one, one, b"\0", b"", 0, 0.0, bytes(changed[: int(keep * len(changed))]), True, True, b""
        )
    except ValueError:
        return
    encoder.encode("".join(UNITS) * 3)


def test_sequences_of_the_map_that_end_inside_a_character() -> None:
    """A rule for the first byte of "é" alone: the rest is U+FFFD, byte by byte."""
    size = 512
    units = [0x80000000] * size  # leaves: no byte leads here
    units[0] = 256 << 10
    units[256 ^ 0xC3] = 0xC3 | 1 << 8 | ((256 ^ 0xC3) ^ 256) << 10
    units[256] = 1 << 31
    blob = struct.pack(f"<I{size}I", 4 * size, *units) + b"x\0"
    entries = [("a", -1.0, NORMAL), ("x", -2.0, NORMAL), ("\ufffd", -2.0, NORMAL), ("x\ufffd", -1.0, NORMAL)]
    for kind in (BPE, UNIGRAM):
        engines = Both(made(entries, {MODEL_TYPE: kind}, {CHARSMAP: blob}))
        engines.check("aéa é ÃÿĀa")
        assert 4 in engines.reference("aéa")


def test_memory_does_not_grow_with_the_text() -> None:
    engines = both("unigram")
    before = engines.fast.encode("a cat")
    for number in range(3):
        assert engines.fast.encode(f"{number}" + "abc" * 300_000)
    assert engines.fast.encode("a cat") == before


def test_byte_fallback_needs_all_bytes() -> None:
    data = made([("a", -1.0, NORMAL)], {MODEL_TYPE: BPE, BYTE_FALLBACK: 1})
    assert engine(read_model(data)) is None
    with pytest.raises(ValueError, match="not a SentencePiece model"):
        SentencePieceTokenizer(data)
