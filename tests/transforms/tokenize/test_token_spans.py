"""Characters of tokens, against a plain reading of the rule, for every engine; what cannot be proved has none."""

import base64
import json
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from refinery.transforms.tokenize.load_tokenizer import load_tokenizer_bytes
from refinery.transforms.tokenize.sentencepiece_model import SentencePieceTokenizer
from refinery.transforms.tokenize.token_spans import Spans, Spelling, offset_spans, spelt_spans
from refinery.transforms.tokenize.tokenizer_json import build
from tests.transforms.tokenizer_files import added, all_pairs, byte_level_spec, sentencepiece_model

LETTERS = "abcde rst"
MARK = "\u2581"


def character_spec(**changes: Any) -> dict[str, Any]:
    """BPE over characters with a space in front and bytes for what it does not know, as Llama 2 has it."""
    merges = [(MARK, "a"), ("a", "b"), (MARK, MARK), (MARK, "c"), ("s", "t")]
    names = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), *LETTERS.replace(" ", MARK)]
    names += [left + right for left, right in merges]
    steps = [{"type": "Prepend", "prepend": MARK}, {"type": "Replace", "pattern": {"String": " "}, "content": MARK}]
    model = {"vocab": {name: id_ for id_, name in enumerate(names)}, "unk_token": "<unk>", "byte_fallback": True}
    parts = {"added_tokens": [added(0, "<unk>")], "pre_tokenizer": None, "decoder": None}
    parts |= {"normalizer": {"type": "Sequence", "normalizers": steps}, **changes}
    return byte_level_spec([], model={**model, "fuse_unk": True, "merges": [list(pair) for pair in merges]}, **parts)


def unigram_spec() -> dict[str, Any]:
    """Pieces with scores, and an unknown token, on the library alone."""
    vocab = [["<unk>", 0.0], *([char, -5.0 - i] for i, char in enumerate(f"{MARK}abcderst")), [f"{MARK}a", -3.0]]
    model = {"type": "Unigram", "unk_id": 0, "vocab": vocab, "byte_fallback": False}
    metaspace = {"type": "Metaspace", "replacement": MARK, "prepend_scheme": "never", "split": True}
    spec = byte_level_spec([], normalizer={"type": "NFKC"}, pre_tokenizer=metaspace, decoder=metaspace)
    return {**spec, "model": model, "added_tokens": [added(0, "<unk>")]}


def rank_file() -> bytes:
    tokens = [bytes([byte]) for byte in range(256)] + [b"ab", b" a", b"st", "é".encode(), "😀".encode()[:2]]
    return b"\n".join(base64.b64encode(token) + f" {rank}".encode() for rank, token in enumerate(tokens))


class Made:
    """The tokenizers, made once."""

    @cached_property
    def byte_level(self) -> Any:
        return self._load(byte_level_spec(all_pairs(LETTERS + "é")))

    @cached_property
    def library(self) -> Any:
        return build(byte_level_spec(all_pairs(LETTERS + "é")))

    @cached_property
    def byte_level_nfc(self) -> Any:
        return self._load(byte_level_spec(all_pairs(LETTERS), normalizer={"type": "NFC"}))

    @cached_property
    def tiktoken(self) -> Any:
        return load_tokenizer_bytes(rank_file(), "r50k_base.tiktoken")

    @cached_property
    def characters(self) -> Any:
        return self._load(character_spec())

    @cached_property
    def prefixed_bytes(self) -> Any:
        """Byte-level with a space put in front: the library runs it."""
        level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
        return self._load(byte_level_spec(all_pairs(LETTERS), pre_tokenizer=level))

    @cached_property
    def unigram(self) -> Any:
        return self._load(unigram_spec())

    @cached_property
    def pieces(self) -> Any:
        """As Llama's model: nothing is normalised."""
        plain = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False}
        return SentencePieceTokenizer(sentencepiece_model(**plain))

    @cached_property
    def normalizing_pieces(self) -> Any:
        return SentencePieceTokenizer(sentencepiece_model())

    def _load(self, spec: dict[str, Any]) -> Any:
        return load_tokenizer_bytes(json.dumps(spec).encode(), "tokenizer.json")


MADE = Made()
SPELT = ("byte_level", "byte_level_nfc", "tiktoken", "characters", "pieces")
BY_LIBRARY = ("prefixed_bytes", "unigram", "normalizing_pieces")
texts = st.text(
    st.one_of(st.sampled_from(LETTERS + "\n\té\u0301😀中ﬁ\u2581\u00a0"), st.characters(codec="utf-8")), max_size=40
)
EXAMPLES = ("", " ", "  ab", "the cat \n", "é😀 st", "e\u0301", f"a{MARK}b", "\ufeffa\x00b", "ﬁ½ a", " a  b ")


def oracle(text: str, tokens: Sequence[bytes]) -> list[tuple[int, int]] | None:
    """The rule, byte for byte."""
    owners = [number for number, char in enumerate(text) for _ in char.encode()]
    joined = b"".join(tokens)
    if joined not in (text.encode(), b" " + text.encode()):
        return None
    at, found = len(owners) - len(joined), []
    for token in tokens:
        touched = [owners[place] for place in range(at, at + len(token)) if place >= 0]
        found.append((touched[0], touched[-1] + 1) if touched else (0, 0))
        at += len(token)
    return found


def pairs(spans: Spans | None) -> list[tuple[int, int]] | None:
    return None if spans is None else list(zip(spans.starts.tolist(), spans.ends.tolist(), strict=True))


@pytest.mark.parametrize("name", SPELT)
@given(text=texts)
def test_spelt(name: str, text: str) -> None:
    """Tokens tile the text; a text that the tokenizer changes has spans from its library, or none."""
    tokenizer = getattr(MADE, name)
    for each in (text, *EXAMPLES):
        ids = tokenizer.encode(each)
        found = tokenizer.spans(each, ids)
        expected = oracle(each, [tokenizer._spelling.table[id_] for id_ in ids.tolist()])
        if expected is not None:
            assert pairs(found) == expected
        elif found is not None:
            check(each, found)
        assert expected is not None or (MARK in each or "nfc" in name)  # U+2581 comes out as a space


def check(text: str, spans: Spans) -> None:
    """What holds for every tokenizer: in range, never back, and what is left out is whitespace."""
    at = reach = 0
    for start, end in zip(spans.starts.tolist(), spans.ends.tolist(), strict=True):
        assert at <= start <= end <= len(text) and end >= reach
        assert not text[reach:start].strip()
        at, reach = start, end
    assert not text[reach:].strip()


@pytest.mark.parametrize("name", BY_LIBRARY)
@given(text=texts)
def test_by_the_library(name: str, text: str) -> None:
    tokenizer = getattr(MADE, name)
    for each in (text, *EXAMPLES):
        found = tokenizer.spans(each, tokenizer.encode(each))
        if found is not None:
            check(each, found)


@pytest.mark.parametrize("name", BY_LIBRARY)
def test_normalised_words_have_their_places(name: str) -> None:
    tokenizer = getattr(MADE, name)
    text = "a cat\nsat"
    ids = tokenizer.encode(text)
    found = pairs(tokenizer.spans(text, ids))
    assert found is not None and found[0][0] == 0 and found[-1][1] == len(text)
    assert {text[a:b].strip() for a, b in found} <= {"", *(text[a:b] for a in range(9) for b in range(a, 10))}


@given(texts)
@example("e\u0301 ab")
def test_bytes_agree_with_the_library(text: str) -> None:
    """The reference implementation's own offsets, for the same file."""
    tokenizer = MADE.byte_level
    encoding = MADE.library.encode(text, add_special_tokens=False)
    ids = tokenizer.encode(text)
    assert encoding.ids == ids.tolist()
    assert pairs(tokenizer.spans(text, ids)) == encoding.offsets


@given(texts)
def test_both_ways_agree(text: str) -> None:
    """Where nothing is normalised, the library's offsets are what the pieces spell."""
    tokenizer = MADE.pieces
    ids = tokenizer.encode(text)
    spelt = spelt_spans(text, ids, tokenizer._spelling)
    other = SentencePieceTokenizer.__new__(SentencePieceTokenizer)
    other.__dict__.update(tokenizer.__dict__, _spelling=Spelling([b""] * tokenizer.vocab_size))
    if spelt is not None and len(ids):
        assert pairs(other.spans(text, ids)) == pairs(spelt)


def test_nfc_is_noticed() -> None:
    """What is composed before it is encoded has other bytes."""
    tokenizer = MADE.byte_level_nfc
    for text, known in (("café", True), ("cafe\u0301", False)):
        assert (tokenizer.spans(text, tokenizer.encode(text)) is not None) is known


@pytest.mark.parametrize(
    ("found", "offsets"),
    [
        ([1, 3], [(0, 1), (1, 3)]),  # other ids
        ([1, 2], [(0, 1), (1, 4)]),  # beyond the text
        ([1, 2], [(-1, 1), (1, 3)]),
        ([1, 2], [(1, 3), (0, 1)]),  # back
        ([1, 2], [(0, 2), (1, 1)]),
        ([1, 2], [(0, 3), (2, 2)]),
        ([1, 2], [(0, 1), (2, 3)]),  # b is left out
        ([1, 2], [(0, 1), (1, 2)]),
        ([], []),
    ],
)
def test_offsets_that_prove_nothing(found: list[int], offsets: list[tuple[int, int]]) -> None:
    assert offset_spans("abc", np.array([1, 2] if found else [], np.uint32), found, offsets) is None


def test_wrong_spelling_proves_nothing() -> None:
    spelt = Spelling([b"a", b"b", b"ab", b""])
    assert pairs(spelt_spans("ab", np.array([0, 1], np.uint32), spelt)) == [(0, 1), (1, 2)]
    for ids in ([1, 0], [0], [0, 0], [2, 1], [3], [1, 2]):
        assert spelt_spans("ab", np.array(ids, np.uint32), spelt) is None


def test_long_texts_in_blocks() -> None:
    """More tokens than are spelt at once."""
    text = "ab é" * 40_000
    ids = MADE.byte_level.encode(text)
    assert len(ids) > 1 << 16
    found = MADE.byte_level.spans(text, ids)
    assert found.ends[-1] == len(text) and (found.starts[1:] <= found.ends[:-1]).all()
    ids = ids.copy()
    ids[-1] ^= 1
    assert MADE.byte_level.spans(text, ids) is None
