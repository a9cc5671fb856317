"""Added tokens that have the name of a byte, a character or a merge's result: the model's entry stays reachable."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Library

from refinery.transforms.tokenize.byte_level_bpe import BATTERY, byte_alphabet
from refinery.transforms.tokenize.shadowed import BYTE_NAMES
from refinery.transforms.tokenize.tokenizer import Tokenizer
from refinery.transforms.tokenize.tokenizer_json import HuggingFaceTokenizer, load_tokenizer_json
from tests.sampling import examples, one_commit_in_four
from tests.transforms.tokenizer_files import END, added, byte_level_spec

MERGES = [("t", "h"), ("Ġ", "th"), ("th", "e"), ("Ġ", "the"), ("ä", "¸"), ("ä¸", "Ń"), ("Ã", "¤")]
TEXTS = ["中国 世界 the\r\n other", "Bär", "naïve Ġ č \t\x00\x7f", "a\r\nb"]


def with_added(names: Sequence[str], special: bool = False, **changes: Any) -> dict[str, Any]:
    """A file to which these names were added, as `add_tokens` of the library does."""
    library = Library.from_str(json.dumps(byte_level_spec(MERGES, **changes)))
    (library.add_special_tokens if special else library.add_tokens)(list(names))
    spec: dict[str, Any] = json.loads(library.to_str())
    return spec


def load(spec: dict[str, Any]) -> Tokenizer:
    return load_tokenizer_json(json.dumps(spec).encode())


def ids_without(spec: dict[str, Any], text: str) -> list[int]:
    """The ids of the library for the file without added tokens: independent of how added ones are closed."""
    library = Library.from_str(json.dumps({**spec, "added_tokens": []}))
    return list(library.encode(text, add_special_tokens=False).ids)


def test_the_battery_has_every_byte_of_utf8() -> None:
    found = set("".join(BATTERY).encode())
    assert set(range(256)) - found == {0xC0, 0xC1, *range(0xF5, 0x100)}


@one_commit_in_four
@pytest.mark.parametrize("name", [*"äčéĠÃĉ", "Ġthe", "th", "ä¸Ń", "the"])
@pytest.mark.parametrize("whole", [False, True])
def test_what_an_added_token_shadows_stays_reachable(name: str, whole: bool) -> None:
    spec = with_added([name, "ilÖveyou"], model={"ignore_merges": whole})
    assert name in spec["model"]["vocab"]
    for tokenizer in (load(spec), HuggingFaceTokenizer(spec)):
        assert tokenizer.lossless
        for text in (*TEXTS, *BATTERY):
            assert tokenizer.encode(text).tolist() == ids_without(spec, text)
            assert tokenizer.decode(tokenizer.encode(text)) == text
    assert load(spec).engine == "byte-level-bpe"


@settings(max_examples=examples(60))
@given(st.lists(st.sampled_from([*byte_alphabet(), *("".join(pair) for pair in MERGES)]), max_size=4), st.text())
def test_no_added_name_costs_a_byte(names: list[str], text: str) -> None:
    spec = with_added(names)
    tokenizer = HuggingFaceTokenizer(spec)
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.encode(text).tolist() == ids_without(spec, text)


@pytest.mark.parametrize(("name", "byte"), [("ä", "E4"), ("A", "41"), ("č", "0D")])
def test_a_special_token_may_not_be_a_byte(name: str, byte: str) -> None:
    with pytest.raises(ValueError, match=f"special token '{name}' is how byte {byte} is spelt"):
        load(with_added([name], special=True))


@pytest.mark.parametrize("name", ["Ġthe", "the"])
def test_a_special_token_may_not_be_a_word_that_merges_lead_to(name: str) -> None:
    with pytest.raises(ValueError, match=f"merges lead to the special token '{name}'"):
        load(with_added([name], special=True))


def test_names_of_added_tokens_outside_the_vocabulary_are_text() -> None:
    spec = with_added(["hello", "the cat"])
    tokenizer = load(spec)
    for text in ("hello the cat", "the hello"):
        assert tokenizer.encode(text).tolist() == ids_without(spec, text)


def character_spec(names: Sequence[str], special: bool) -> dict[str, Any]:
    """BPE over characters with byte fallback, to which these names were added."""
    vocab = {name: number for number, name in enumerate(["<unk>", *BYTE_NAMES, *"▁abcé", "ab"])}
    return {
        "version": "1.0",
        "added_tokens": [added(0, "<unk>"), *(added(vocab[name], name, special) for name in names)],
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
            ],
        },
        "model": {
            "type": "BPE",
            "unk_token": "<unk>",
            "fuse_unk": True,
            "byte_fallback": True,
            "vocab": vocab,
            "merges": [["a", "b"]],
        },
    }


@pytest.mark.parametrize(
    ("names", "special"), [(BYTE_NAMES, True), (BYTE_NAMES, False), (["é", "ab"], False), (["<0xE4>"], True)]
)
def test_bytes_of_fallback_and_characters_stay_reachable(names: list[str], special: bool) -> None:
    spec = character_spec(names, special)
    for tokenizer in (load(spec), HuggingFaceTokenizer(spec)):
        for text in ("ab 中国 é", "caé\n", "äb"):
            assert tokenizer.encode(text).tolist() == ids_without(spec, text)
            assert tokenizer.decode(tokenizer.encode(text)) == text
        assert "<" not in tokenizer.decode(tokenizer.encode("\x9b"))


def test_two_names_for_one_id_are_not_lossless() -> None:
    spec = byte_level_spec([])
    spec["model"]["vocab"]["b"] = spec["model"]["vocab"]["a"]
    assert not load(spec).lossless


def test_added_white_space_that_eats_its_neighbours_is_not_lossless() -> None:
    eating = {**added(300, "\n\n", special=False), "lstrip": True, "rstrip": True}
    for flags, is_lossless in (({}, True), ({"lstrip": True, "rstrip": True}, False)):
        spec = byte_level_spec([], added_tokens=[added(0, END), {**eating, "lstrip": False, "rstrip": False, **flags}])
        assert load(spec).lossless is is_lossless


def test_tekken_is_refused_by_its_name() -> None:
    data = json.dumps({"config": {"pattern": "x"}, "vocab": [{"rank": 0, "token_bytes": "AA=="}]}).encode()
    with pytest.raises(ValueError, match=r"tekken\.json"):
        load_tokenizer_json(data)
