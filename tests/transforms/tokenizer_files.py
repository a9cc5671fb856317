"""Small tokenizer files for tests."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sentencepiece

from refinery.transforms.tokenize.byte_level_bpe import byte_alphabet

END = "<|endoftext|>"
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
SENTENCES = ["the cat sat on the mat", "the dog sat on the log", "a cat and a dog", "hello world"] * 20


def added(id_: int, content: str, special: bool = True) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": id_, "content": content, "special": special, **flags}


def split_by(*patterns: str) -> dict[str, Any]:
    """The pre-tokenizer of Llama 3 and others: a Split of its own, or several in a row, then ByteLevel without one."""
    splits = [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
        for pattern in patterns
    ]
    return {"type": "Sequence", "pretokenizers": [*splits, {**BYTE_LEVEL, "use_regex": False}]}


def byte_level_spec(merges: Sequence[tuple[str, str]], **changes: Any) -> dict[str, Any]:
    """A parsed tokenizer.json of byte-level BPE, END is id 0; `changes` replaces parts, "model" updates the model."""
    vocab = {END: 0, **{char: i + 1 for i, char in enumerate(byte_alphabet())}}
    for left, right in merges:
        vocab.setdefault(left + right, len(vocab))
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": vocab,
        "merges": [list(pair) for pair in merges],
    }
    model.update(changes.pop("model", {}))
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [added(0, END)],
        "normalizer": None,
        "pre_tokenizer": BYTE_LEVEL,
        "post_processor": None,
        "decoder": BYTE_LEVEL,
        "model": model,
        **changes,
    }


def all_pairs(characters: str) -> list[tuple[str, str]]:
    """Merges for every pair of the bytes of `characters`: any two neighbours in a piece join, so wrong pieces show."""
    alphabet = byte_alphabet()
    units = [alphabet[byte] for byte in sorted(set(characters.encode()))]
    pairs = [(left, right) for left in units for right in units]
    pairs.sort(key=lambda pair: (sum(map(ord, pair)) * 7919 % 1009, pair))  # some order that is not the alphabet's
    return [*pairs, *((a + b, b + a) for a, b in pairs if a != b), *((a + a, a + a) for a in units)]


def write(path: Path, spec: dict[str, Any]) -> str:
    path.write_text(json.dumps(spec), encoding="utf-8")
    return str(path)


def sentencepiece_model(**options: Any) -> bytes:
    model = io.BytesIO()
    settings = {"vocab_size": 320, "model_type": "bpe", "byte_fallback": True, "minloglevel": 2, **options}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(SENTENCES), model_writer=model, **settings)
    return model.getvalue()
