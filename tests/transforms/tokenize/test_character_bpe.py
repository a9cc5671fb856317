"""The engine for BPE over characters (Llama 2, Gemma) against Hugging Face's library."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refinery.transforms.tokenize.character_bpe import BYTE_NAMES, PREPEND, REPLACE
from refinery.transforms.tokenize.tokenizer_json import HuggingFaceTokenizer, load_tokenizer_json
from tests.sampling import examples, one_commit_in_four
from tests.transforms.tokenizer_files import added

LLAMA = {"type": "Sequence", "normalizers": [PREPEND, REPLACE]}
AT_SPACES = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
UNITS = [
    *"ab▁ é中\n\t.",
    "  ",
    "▁▁",
    "\n\n",
    "<s>",
    "<unk>",
    "<0x41>",
    "\x00",
    "😀",
    "ab",
    "ba",
    "b a",
    "the",
    "\U0010ffff",
]
PAIRS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=30)


def spec_of(pairs: Sequence[tuple[int, int]], **changes: Any) -> dict[str, Any]:
    """A parsed tokenizer.json: bytes, some letters, and a token for each pair of the tokens so far."""
    vocab = {name: i for i, name in enumerate(["<unk>", "<s>", *BYTE_NAMES, *"ab▁é."])}
    names, merges = list("ab▁é."), []
    for left, right in pairs:
        pair = [names[left % len(names)], names[right % len(names)]]
        vocab.setdefault("".join(pair), len(vocab))
        names.append("".join(pair))
        merges.append(pair)
    model = {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True}
    model |= {"vocab": vocab, "merges": merges, **changes.pop("model", {})}
    tokens = [added(0, "<unk>"), added(1, "<s>"), *changes.pop("tokens", [])]
    for token in tokens[2:]:
        token["id"] = vocab.setdefault(token["content"], len(vocab))
    return {"added_tokens": tokens, "normalizer": LLAMA, "pre_tokenizer": None, "model": model, **changes}


def check(spec: dict[str, Any], texts: Sequence[str], runs: bool = True) -> None:
    tokenizer, reference = load_tokenizer_json(json.dumps(spec).encode()), HuggingFaceTokenizer(spec)
    assert isinstance(tokenizer, HuggingFaceTokenizer)
    assert (tokenizer._fast is not None) is runs
    for text in [*texts, " ".join(texts)] * 2:
        np.testing.assert_array_equal(tokenizer.encode(text), reference.encode(text))


TEXTS = st.lists(st.lists(st.sampled_from(UNITS), max_size=50).map("".join) | st.text(max_size=30), max_size=4)


@one_commit_in_four
@given(pairs=PAIRS, texts=TEXTS)
@settings(max_examples=examples(300))
def test_equal_with_a_space_in_front(pairs: list[tuple[int, int]], texts: list[str]) -> None:
    check(spec_of(pairs), [*texts, "ab" * 200])


def whitespace(*contents: str) -> list[dict[str, Any]]:
    return [added(0, content, special=False) for content in contents]


@one_commit_in_four
@given(pairs=PAIRS, texts=TEXTS)
@settings(max_examples=examples(300))
def test_equal_with_whitespace_among_the_added_tokens(pairs: list[tuple[int, int]], texts: list[str]) -> None:
    """As in Gemma: line ends and runs of spaces are added tokens, and merges lead to the runs, too."""
    tokens = whitespace("\n", "\n\n", "\t\t", "▁▁", "▁▁▁")
    spec = spec_of([(2, 2), (5, 2), *pairs], tokens=tokens, normalizer=REPLACE, pre_tokenizer=AT_SPACES)
    check(spec, [*texts, "a  b   a\n\n\nb"])


NOT_RUN: dict[str, dict[str, Any]] = {
    "no byte fallback": {"model": {"byte_fallback": False}},
    "whole tokens first": {"model": {"ignore_merges": True}},
    "a suffix": {"model": {"end_of_word_suffix": "</w>"}},
    "no normalizer": {"normalizer": None},
    "another normalizer": {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, REPLACE]}},
    "another pre-tokenizer": {"pre_tokenizer": {"type": "Whitespace"}},
    "a space in front of each part": {"tokens": whitespace("\n")},
    "whitespace that takes its neighbours": {
        "normalizer": REPLACE,
        "tokens": [{**token, "lstrip": True} for token in whitespace("\n")],
    },
    "whitespace after normalisation": {
        "normalizer": REPLACE,
        "tokens": [{**token, "normalized": True} for token in whitespace("\n")],
    },
}


@pytest.mark.parametrize("name", NOT_RUN)
def test_anything_else_is_left_to_the_library(name: str) -> None:
    check(spec_of([(0, 1)], **NOT_RUN[name]), ["a.b b a"], runs=False)


def test_a_special_token_that_merges_lead_to_is_left_to_the_library() -> None:
    check(spec_of([(1, 4)], tokens=[added(0, "b.")]), ["a b a."], runs=False)


def test_a_missing_byte_is_left_to_the_library() -> None:
    spec = spec_of([(0, 1)])
    del spec["model"]["vocab"]["<0x7F>"]
    check(spec, ["ab \x7f"], runs=False)


def test_names_of_added_tokens_are_spelt() -> None:
    spec = spec_of([(0, 1)], tokens=[added(0, "b"), added(0, "<x>", special=False)])
    tokenizer = load_tokenizer_json(json.dumps(spec).encode())
    for engine in (tokenizer, HuggingFaceTokenizer(spec)):
        with pytest.raises(UnicodeEncodeError):
            engine.encode("\ud800")
    check(spec_of([], tokens=[added(0, "b"), added(0, "<x>", special=False)]), ["b<x>a<s>", "<unk>b"])
