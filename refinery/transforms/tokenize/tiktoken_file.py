"""tiktoken's rank files: what they leave out, and the tokenizer.json that gives the same ids.

A line of the file is a token's bytes in base64 and its rank. Which regular expression cuts the text, and which special
tokens there are, is in the code that publishes the file: `ENCODINGS` has it for those that are public, by file name.
"""

import binascii
import codecs
import functools
import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from refinery.transforms.native import pieces
from refinery.transforms.tokenize.byte_level_bpe import CL100K, GPT2, O200K, QWEN2, byte_alphabet
from refinery.transforms.tokenize.sentencepiece_engine import LONGEST_PIECE

END = "<|endoftext|>"


class Encoding(NamedTuple):
    """The regular expression, special tokens and their ids, and whether the text is brought to NFC first.

    Sources: tiktoken_ext/openai_public.py of tiktoken 0.14, tokenization_qwen.py of Qwen-7B.
    """

    pattern: str
    special: Mapping[str, int]
    nfc: bool = False


_FIM = {"<|fim_prefix|>": 100258, "<|fim_middle|>": 100259, "<|fim_suffix|>": 100260}
ENCODINGS = {
    "r50k_base": Encoding(GPT2, {END: 50256}),
    "cl100k_base": Encoding(CL100K, {END: 100257, **_FIM, "<|endofprompt|>": 100276}),
    "o200k_base": Encoding(O200K, {END: 199999, "<|endofprompt|>": 200018}),
    "qwen": Encoding(QWEN2, {END: 151643, "<|im_start|>": 151644, "<|im_end|>": 151645}, nfc=True),
}


def tokenizer_json(data: bytes, path: str) -> dict[str, Any]:
    """A parsed tokenizer.json with the ids of tiktoken for the rank file of that name.

    tiktoken joins the neighbours whose joint bytes have the lowest rank; a tokenizer.json lists the pairs. Before a
    token's own rank comes, its bytes are always in the same two parts, whatever surrounds them, so one pair for each
    token is enough; a file in which that does not hold is refused.

    Raises ValueError for bytes that are not a rank file, for a name that is not in `ENCODINGS`, and for ranks that no
    merges give. Cost: 2 s for 200,000 tokens.
    """
    name = path.rpartition("/")[2].removesuffix(".tiktoken")
    if name not in ENCODINGS:
        raise ValueError(
            f"a rank file does not say how text is cut, and only {', '.join(ENCODINGS)} are known; rename it if it is "
            "one of these, else use a tokenizer.json"
        )
    encoding, ranks = ENCODINGS[name], read_ranks(data)
    alphabet = byte_alphabet()
    spell = {token: codecs.charmap_decode(token, "strict", alphabet)[0] for token in ranks}
    merges = [[spell[left], spell[right]] for left, right in pairs(ranks)]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    split = {"type": "Split", "pattern": {"Regex": encoding.pattern}, "behavior": "Isolated", "invert": False}
    added = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": id_, "content": content, **added, "special": True} for content, id_ in encoding.special.items()
        ],
        "normalizer": {"type": "NFC"} if encoding.nfc else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, level]},
        "post_processor": None,
        "decoder": {**level, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": True,
            "vocab": {spell[token]: rank for token, rank in ranks.items()} | dict(encoding.special),
            "merges": merges,
        },
    }


def read_ranks(data: bytes) -> dict[bytes, int]:
    """Token -> rank, by rank. Raises ValueError for bytes that are not a rank file over all single bytes."""
    decode = functools.partial(binascii.a2b_base64, strict_mode=True)
    try:
        lines = [(decode(token), int(rank)) for token, rank in map(bytes.split, filter(None, data.splitlines()))]
    except (ValueError, binascii.Error):
        raise ValueError("not a tiktoken file: a line is not a token in base64 and its rank") from None
    found = dict(lines)
    if not all(bytes([byte]) in found for byte in range(256)):
        raise ValueError("not a tiktoken file: not all 256 bytes are tokens")
    if len(set(found.values())) != len(found) or min(found.values()) < 0:
        raise ValueError("not a tiktoken file: two tokens have one rank")
    return dict(sorted(found.items(), key=operator.itemgetter(1)))


def pairs(ranks: Mapping[bytes, int]) -> list[tuple[bytes, bytes]]:
    """The two parts that each longer token is joined from, in order of rank, as `ranks` is. Raises ValueError for one
    that its own bytes do not lead to. Cost: 0.3 s for 200,000 tokens.

    Two tokens stay two tokens, up to a rank, if no merge of lower rank crosses the border between them. Which merges
    could is known from how each of them was joined, from the outside in: undo the merges next to the border, latest
    first, and look whether what met there would have been joined before. Same as encoding both together, whose cost is
    that of all merges (is_valid_token_pair in github/rust-gems, crate bpe). The kernel does that, for the usual file:
    single bytes come first, and no token is very long.
    """
    tokens = list(ranks)
    if max(map(len, tokens[:256])) > 1 or max(map(len, tokens)) > LONGEST_PIECE:
        found = [(token, _parts(token, rank, ranks)) for token, rank in ranks.items() if len(token) > 1]
        odd = next((token for token, parts in found if len(parts) != 2), None)
        if odd is None:
            return [(parts[0], parts[1]) for _, parts in found]
    else:
        order = sorted(range(len(tokens)), key=tokens.__getitem__)
        spelt = [tokens[number] for number in order]
        ends = np.cumsum(list(map(len, spelt)), dtype=np.uint32)
        rows = pieces.joins(b"".join(spelt), ends, np.array(order, np.uint32))
        if not isinstance(rows, int):
            left, right, _ = np.frombuffer(rows, np.uint32).reshape(-1, 3).T.tolist()
            return list(zip(map(tokens.__getitem__, left), map(tokens.__getitem__, right), strict=True))
        odd = tokens[rows]
    raise ValueError(f"no merges lead to the token {odd!r} of rank {ranks[odd]}")


def _parts(token: bytes, rank: int, ranks: Mapping[bytes, int]) -> Sequence[bytes]:
    """The token's bytes, joined as far as lower ranks go."""
    parts = [token[i : i + 1] for i in range(len(token))]
    while True:
        joint = [ranks.get(parts[i] + parts[i + 1], rank) for i in range(len(parts) - 1)]
        best = min(joint, default=rank)
        if best >= rank:
            return parts
        at = joint.index(best)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
