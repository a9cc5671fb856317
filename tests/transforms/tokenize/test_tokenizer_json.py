"""The reference engine: every kind of tokenizer.json that the fast engine leaves alone."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Library

from refinery.transforms.tokenize.byte_level_bpe import byte_alphabet
from refinery.transforms.tokenize.tokenizer_json import HuggingFaceTokenizer, as_value_error, load_tokenizer_json
from tests.transforms.tokenizer_files import BYTE_LEVEL, END, added, byte_level_spec, split_by


def load(spec: dict[str, Any]) -> HuggingFaceTokenizer:
    tokenizer = load_tokenizer_json(json.dumps(spec).encode())
    assert isinstance(tokenizer, HuggingFaceTokenizer)
    return tokenizer


def other_spec(model: dict[str, Any], tokens: list[dict[str, Any]], pre_tokenizer: str) -> dict[str, Any]:
    spec = byte_level_spec([], added_tokens=tokens, decoder=None)
    spec["pre_tokenizer"] = {"type": pre_tokenizer}
    return {**spec, "model": model}


WORD_PIECE = other_spec(
    {
        "type": "WordPiece",
        "unk_token": "[UNK]",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
        "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3, "##b": 4, "[": 5, "]": 6},
    },
    [added(0, "[UNK]"), added(1, "[CLS]"), added(2, "[SEP]")],
    "WhitespaceSplit",
)
UNIGRAM = other_spec(
    {
        "type": "Unigram",
        "unk_id": 0,
        "byte_fallback": False,
        "vocab": [["<unk>", 0.0], ["<s>", 0.0], ["</s>", 0.0], *([char, -3.0] for char in "<>/sab "), ["ab", -2.0]],
    },
    [added(0, "<unk>"), added(1, "<s>"), added(2, "</s>")],
    "Bert",
)
UNIGRAM["pre_tokenizer"] = None


def test_word_piece_never_gives_its_special_tokens() -> None:
    tokenizer = load(WORD_PIECE)
    assert (tokenizer.vocab_size, tokenizer.bos_id(), tokenizer.eos_id()) == (7, 1, 2)
    assert tokenizer.encode("ab a [CLS] zz").tolist() == [3, 4, 3, 0, 0]
    assert not tokenizer.lossless


def test_unigram_never_gives_its_special_tokens() -> None:
    tokenizer = load(UNIGRAM)
    assert tokenizer.encode("ab").tolist() == [10]
    assert [tokenizer.token_id(char) for char in "<s>"] == tokenizer.encode("<s>").tolist()
    assert not {1, 2} & set(tokenizer.encode("a<s></s>b<s>").tolist())
    assert tokenizer.encode("z").tolist() == [0]
    assert (tokenizer.bos_id(), tokenizer.eos_id()) == (1, 2)


def test_whitespace_tokens_stay_text_with_their_own_ids() -> None:
    tokens = [added(0, END), added(257, "<tool>", special=False), added(258, "   ", special=False)]
    spec = byte_level_spec([], added_tokens=tokens)
    tokenizer = load(spec)
    assert tokenizer.encode("a   b").tolist() == [1 + ord("a"), 258, 1 + ord("b")]
    assert tokenizer.encode("<tool>").tolist() == [1 + byte for byte in b"<tool>"]
    assert tokenizer.decode(tokenizer.encode("a   b<tool>")) == "a   b<tool>"
    assert tokenizer.lossless


@given(st.text(max_size=40))
def test_another_splitting_is_still_lossless(text: str) -> None:
    assert OTHER_SPLIT.lossless
    assert OTHER_SPLIT.decode(OTHER_SPLIT.encode(text)) == text


OTHER_SPLIT = load(byte_level_spec([("a", "b")], pre_tokenizer=split_by(r"\w+|\W")))


@pytest.mark.parametrize(
    "changes",
    [
        {"pre_tokenizer": {**BYTE_LEVEL, "add_prefix_space": True}},
        {"normalizer": {"type": "Lowercase"}},
        {"decoder": None},
        {"pre_tokenizer": None},
        {"model": {"vocab": {char: i for i, char in enumerate(byte_alphabet()[:200])}}, "added_tokens": []},
    ],
)
def test_what_changes_text_is_not_lossless(changes: dict[str, Any]) -> None:
    assert not HuggingFaceTokenizer(byte_level_spec([], **changes)).lossless


def test_truncation_padding_dropout_and_templates_are_switched_off() -> None:
    processor = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": END, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {END: {"id": END, "ids": [0], "tokens": [END]}},
    }
    truncation = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
    padding = {
        "strategy": {"Fixed": 9},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": END,
    }
    spec = byte_level_spec([("a", "b")], post_processor=processor, truncation=truncation, padding=padding)
    spec["model"]["dropout"] = 1.0
    assert Library.from_str(json.dumps(spec)).encode("abababab").ids != [257] * 4
    assert load(spec).encode("abababab").tolist() == [257] * 4


def test_a_special_token_that_letters_reach_is_refused_when_it_comes() -> None:
    spec = byte_level_spec([("<", ">")], added_tokens=[added(0, END), added(257, "<>")])
    tokenizer = load(spec)
    signs = byte_alphabet()
    assert tokenizer.encode("><").tolist() == [1 + signs.index(">"), 1 + signs.index("<")]
    with pytest.raises(ValueError, match="special token"):
        tokenizer.encode("<>")


def test_panics_become_value_errors() -> None:
    class PanicException(BaseException):
        pass

    assert isinstance(as_value_error(PanicException("two\nlines")), ValueError)
    assert str(as_value_error(PanicException("two\nlines"))) == "two lines"
    assert isinstance(as_value_error(KeyboardInterrupt()), KeyboardInterrupt)
    assert isinstance(as_value_error(MemoryError()), MemoryError)
