"""The fast engine for BPE over characters in a tokenizer.json (Llama 2, Mistral 7B, Gemma): what the kernel is given.

Why its ids equal those of Hugging Face tokenizers, which stay the reference:

- Text. Spaces become U+2581, with one in front where the file says so. Added tokens that are text are taken first, the
  longest at each place; no other added token comes out of a text.
- Words. The text is cut only between characters that no token holds side by side, so no merge reaches over a cut.
- Merges. The file's own, pair by pair, lowest rank first, then leftmost.
- Characters outside the vocabulary are written byte by byte; all 256 bytes must be in it.
- Everything else in the file that could change the result makes `character_engine` answer None. The reference also runs
  when a battery of strings, encoded by both at load, shows any difference.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from refinery.transforms.native import pieces
from refinery.transforms.tokenize.byte_level_bpe import normalizer_steps
from refinery.transforms.tokenize.merge_table import MergeTable
from refinery.transforms.tokenize.sentencepiece_engine import LONGEST_PIECE, SPACE, sorted_pieces
from refinery.transforms.tokenize.shadowed import BYTE_NAMES, learned

PREPEND = {"type": "Prepend", "prepend": SPACE}
REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
CHANGES = ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "ignore_merges")


def character_engine(
    spec: Mapping[str, Any], table: MergeTable, kept: Sequence[Mapping[str, Any]]
) -> pieces.Encoder | None:
    """The kernel for a parsed tokenizer.json, or None where it must not run; not yet compared with the reference.

    table: its merges. kept: the added tokens that are text, except runs of U+2581, which merges lead to. Cost: 0.1 s
    for 32,000 tokens.
    """
    model, steps = spec["model"], normalizer_steps(spec.get("normalizer") or None)
    vocab, added = model["vocab"], {token["content"] for token in spec.get("added_tokens") or []}
    whole = {token["content"] for token in kept}
    prefix = steps == [PREPEND, REPLACE]
    if (
        model.get("type", "BPE") != "BPE"
        or any(model.get(key) for key in CHANGES)
        or not model.get("byte_fallback")
        or not (prefix or steps == [REPLACE])
        or not splits_nothing(spec.get("pre_tokenizer"))
        or (prefix and whole)  # the library prepends behind each of them, too
        or not all(taken_as_it_stands(token) for token in kept)
        or not (whole | set(BYTE_NAMES)) <= vocab.keys()
    ):
        return None
    hidden = (
        {*BYTE_NAMES, *(added - learned(spec))} - whole - {name for name in added if name and not name.strip(SPACE)}
    )
    if np.isin(table.rows, [vocab[name] for name in hidden if name in vocab]).any():
        return None  # an added token or a byte that ordinary text reaches by merges
    names = [name for name in vocab if name not in hidden and " " not in name and name]
    if not names:
        return None
    spelt = [name.encode("utf-8", "surrogatepass") for name in names]
    if max(map(len, spelt)) > LONGEST_PIECE:
        return None
    order, data, ends = sorted_pieces(spelt)
    ids = np.array([vocab[name] for name in names], np.uint32)[order]
    try:
        return pieces.Encoder(
            False,
            data,
            ends,
            ids,
            np.zeros(len(ids), np.uint32),
            np.array([name in whole for name in names])[order],
            np.array([vocab[name] for name in BYTE_NAMES], np.uint32),
            0,
            0.0,
            b"",
            prefix,
            False,
            np.ascontiguousarray(table.rows),
        )
    except ValueError:  # a token that is not UTF-8, an id that is too high
        return None


def splits_nothing(pre_tokenizer: Mapping[str, Any] | None) -> bool:
    """Whether a pre-tokenizer leaves a text without spaces in one piece."""
    if pre_tokenizer is None:
        return True
    at_spaces = pre_tokenizer.get("pattern") == {"String": " "} and not pre_tokenizer.get("invert")
    return pre_tokenizer.get("type") == "Split" and at_spaces


def taken_as_it_stands(token: Mapping[str, Any]) -> bool:
    """Whether an added token is found in the text before it is normalised, wherever it stands, and nothing else is."""
    flags = ("single_word", "lstrip", "rstrip", "normalized")
    return not any(token.get(flag) for flag in flags) and not set(token["content"]) & {" ", SPACE}
