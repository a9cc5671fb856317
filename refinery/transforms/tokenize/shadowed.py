"""Added tokens that name an entry of the model which ordinary text needs: a byte, a character, what merges lead to.

`add_tokens(["ä"])` gives no new id where the vocabulary has that name: the added token is that entry. In byte-level BPE
"ä" is how byte E4 is spelt, which every second Chinese character has. Such an entry stays what the model learned: text
leads to it as it does in Hugging Face's library without the added token. A special token may not be one: text could not
be distinguished from it.
"""

import operator
from collections.abc import Mapping
from typing import Any

from refinery.transforms.tokenize.byte_level_bpe import byte_alphabet, normalizer_steps
from refinery.transforms.tokenize.merge_table import halves

BYTE_NAMES = [f"<0x{byte:02X}>" for byte in range(256)]


def learned(spec: Mapping[str, Any]) -> frozenset[str]:
    """The added tokens that are entries of a BPE model which ordinary text leads to: signs of bytes, single characters
    and results of merges that are not special, and, special or not, the 256 names of byte fallback, which stand for
    bytes of text and nothing else.

    Raises ValueError where a special token is the sign of a byte, or a word that merges lead to. (One that has other
    characters, as `<s>`, is refused in the texts that have it.) Cost: 0.2 s for 450,000 merges, where an added token
    that is not special is in the vocabulary; else none.
    """
    model, added = spec["model"], spec.get("added_tokens") or []
    vocab = model.get("vocab")
    if not isinstance(vocab, dict) or not isinstance(model.get("merges"), list):
        return frozenset()
    special = {token["content"] for token in added if token.get("special")} & vocab.keys()
    ordinary = ({token["content"] for token in added} & vocab.keys()) - special
    bytes_ = frozenset(BYTE_NAMES) & vocab.keys() if model.get("byte_fallback") else frozenset()
    alphabet = frozenset(byte_alphabet()) if is_byte_level(spec) else None
    if alphabet is not None and (shadowing := sorted(special & alphabet)):
        byte = byte_alphabet().index(shadowing[0])
        raise ValueError(
            f"the special token {shadowing[0]!r} is how byte {byte:02X} is spelt in a byte-level vocabulary, so text "
            "cannot be distinguished from it; give it another name"
        )
    suffix, prefix = model.get("end_of_word_suffix") or "", model.get("continuing_subword_prefix") or ""
    signs = {name for name in ordinary if len(name.removesuffix(suffix).removeprefix(prefix)) == 1}
    signs = signs if alphabet is None or suffix or prefix else signs & alphabet
    words = {name for name in special if name.strip("\u0120\u2581").isalpha()}
    longer = (ordinary - signs) | words
    merged = longer & _results(model["merges"], prefix) if longer else set()
    if clashing := sorted(merged & words):
        raise ValueError(
            f"merges lead to the special token {clashing[0]!r}, which is spelt like a word, so text cannot be "
            "distinguished from it; give it another name"
        )
    return frozenset(signs | merged | ((ordinary | special) & bytes_))


def is_byte_level(spec: Mapping[str, Any]) -> bool:
    """Whether a file spells bytes as the characters of `byte_alphabet`."""
    before = spec.get("pre_tokenizer") or {}
    steps = [*before.get("pretokenizers", [before]), *normalizer_steps(spec.get("normalizer") or None)]
    return any(step.get("type") == "ByteLevel" for step in steps)


def _results(merges: list[Any], prefix: str) -> set[str]:
    lefts, rights = halves(merges)
    if lefts is None or rights is None:
        return set()
    if prefix:
        rights = [right.removeprefix(prefix) for right in rights]
    return set(map(operator.add, lefts, rights))
