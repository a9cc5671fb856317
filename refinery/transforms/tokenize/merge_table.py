"""What a file's vocabulary and merges are to the fast engine, and as little of them as a proof needs."""

import functools
import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from tokenizers import normalizers

from refinery.transforms.tokenize.byte_level_bpe import BATTERY, byte_alphabet

SHORT = 16  # tokens up to this length are looked up in a set, which is faster


class MergeTable(NamedTuple):
    """The merges of a BPE model in rank order: both tokens of each, and the ids of left, right and joint token."""

    lefts: Sequence[str]
    rights: Sequence[str]
    rows: npt.NDArray[np.uint32]
    """shape (merges, 3)"""


def merge_table(model: Mapping[str, Any]) -> MergeTable | None:
    """The merges of a BPE model, None where something about them or the vocabulary is not as it should be.

    Cost: 0.25 s for 450,000 merges.
    """
    vocab, merges = model.get("vocab"), model.get("merges")
    if type(vocab) is not dict or type(merges) is not list or set(map(type, vocab.values())) != {int}:
        return None
    if not 0 <= min(vocab.values()) <= max(vocab.values()) < 2**32 - 1:
        return None
    lefts, rights = halves(merges)
    if lefts is None or rights is None:
        return None
    try:
        joint = map(vocab.__getitem__, map(operator.add, lefts, rights))
        columns = map(vocab.__getitem__, lefts), map(vocab.__getitem__, rights), joint
        rows = np.stack([np.fromiter(column, np.uint32, len(lefts)) for column in columns], axis=1)
    except (KeyError, TypeError):
        return None
    return MergeTable(lefts, rights, rows)


def halves(merges: list[Any]) -> tuple[Sequence[str], Sequence[str]] | tuple[None, None]:
    """The left and the right token of each merge, written "left right" or as a pair; None where one is neither."""
    kinds = set(map(type, merges))
    if kinds == {str}:
        if set(map(operator.methodcaller("count", " "), merges)) != {1}:
            return None, None
        parts = " ".join(merges).split(" ")
        return parts[::2], parts[1::2]
    if not kinds <= {list} or not set(map(len, merges)) <= {2}:
        return None, None
    lefts, rights = zip(*merges, strict=True) if merges else ((), ())
    return lefts, rights


def added_ids(added: Sequence[Mapping[str, Any]], vocab: Mapping[str, int]) -> dict[str, int] | None:
    """Id of each added token as the library numbers them, which may not be what the file says: the vocabulary's, else
    the next behind it. None where that is not certain, since the vocabulary has gaps."""
    names = dict.fromkeys(token["content"] for token in added)
    inside = {name: vocab[name] for name in names if name in vocab}
    outside = [name for name in names if name not in vocab]
    if outside and max(inside.values(), default=0) >= len(vocab):
        return None
    return inside | {name: len(vocab) + number for number, name in enumerate(outside)}


@functools.cache
def battery_pieces() -> tuple[str, frozenset[str]]:
    """The texts of `BATTERY` as vocabularies spell them, and all of their pieces of up to SHORT characters."""
    alphabet = byte_alphabet()
    texts = [*BATTERY, *map(normalizers.NFC().normalize_str, BATTERY)]
    spelt = "\n".join("".join([alphabet[byte] for byte in text.encode()]) for text in texts)
    return spelt, frozenset(spelt[i : i + size] for size in range(1, SHORT + 1) for i in range(len(spelt)))


def reduced(spec: Mapping[str, Any], table: MergeTable) -> dict[str, Any]:
    """`spec` with the tokens that the texts of `BATTERY` can hold, their merges, and what the file names elsewhere.

    Whatever is made on the way from a text's bytes to its tokens is a part of the text's spelling, so the ids of
    those texts are the same. Cost: 0.1 s for 200,000 tokens.
    """
    spelt, short = battery_pieces()
    model = spec["model"]
    named = {token["content"] for token in spec.get("added_tokens") or []} | {model.get("unk_token")}
    vocab = model["vocab"]
    others = {token for token in vocab if len(token) == 1 or (len(token) > SHORT and token in spelt)}
    kept = {token: vocab[token] for token in sorted((short | named) & vocab.keys() | others)}
    ranks = np.flatnonzero(np.isin(table.rows, list(kept.values())).all(axis=1)).tolist()
    near = [(table.lefts[rank], table.rights[rank]) for rank in ranks]
    merges = [[left, right] for left, right in near if {left, right, left + right} <= kept.keys()]
    return {**spec, "model": {**model, "vocab": kept, "merges": merges}}
