"""Rank files: the ids of tiktoken itself, on texts made to split in odd places; files that are none."""

import base64
import itertools
import random
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from refinery.transforms.tokenize.load_tokenizer import load_tokenizer
from refinery.transforms.tokenize.tiktoken_file import ENCODINGS, _parts, pairs, read_ranks
from tests.sampling import one_commit_in_four
from tests.shared import shared
from tests.transforms.tokenize.test_byte_level_bpe import UNITS

# As tiktoken 0.14 writes GPT-4's; ours is spelt for another regex engine.
CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)


def learned_ranks() -> dict[bytes, int]:
    """Every byte in some order, then the most frequent pairs of an odd text, as tiktoken's trainer finds them."""
    generator = random.Random(5)
    order = list(range(256))
    generator.shuffle(order)
    ranks = {bytes([byte]): rank for rank, byte in enumerate(order)}
    words = ["".join(generator.choices(UNITS, k=4)).encode() for _ in range(300)]
    parts = [[word[i : i + 1] for i in range(len(word))] for word in words]
    while len(ranks) < 700:
        counts: dict[bytes, int] = {}
        for word in parts:
            for left, right in itertools.pairwise(word):
                counts[left + right] = counts.get(left + right, 0) + 1
        best = max(counts, key=lambda pair: (counts[pair], pair))
        ranks[best] = len(ranks)
        for word in parts:
            i = 0
            while i + 1 < len(word):
                if word[i] + word[i + 1] == best:
                    word[i : i + 2] = [best]
                i += 1
    return ranks


def as_file(ranks: dict[bytes, int]) -> bytes:
    return b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items())


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def fill(folder: Path) -> None:
        for name in ENCODINGS:
            (folder / f"{name}.tiktoken").write_bytes(as_file(learned_ranks()))

    return shared(tmp_path_factory, "tiktoken", fill)


@one_commit_in_four
@pytest.mark.parametrize("name", [name for name in ENCODINGS if name != "qwen"])
@given(text=st.lists(st.sampled_from(UNITS), max_size=40).map("".join) | st.text(max_size=40))
def test_the_ids_of_tiktoken(files: Path, name: str, text: str) -> None:
    ours = load_tokenizer(str(files / f"{name}.tiktoken"))
    pattern = CL100K if name == "cl100k_base" else ENCODINGS[name].pattern
    theirs = tiktoken.Encoding(
        name, pat_str=pattern, mergeable_ranks=read_ranks((files / f"{name}.tiktoken").read_bytes()), special_tokens={}
    )
    assert ours.engine == "byte-level-bpe"
    assert ours.encode(text).tolist() == theirs.encode_ordinary(text)
    assert ours.decode(ours.encode(text)) == text


def test_special_tokens_have_their_published_ids(files: Path) -> None:
    ours = load_tokenizer(str(files / "o200k_base.tiktoken"))
    assert (ours.eos_id(), ours.token_id("<|endofprompt|>"), ours.vocab_size) == (199_999, 200_018, 200_019)
    assert ours.encode("<|endoftext|>").max() < 700


def test_the_published_patterns() -> None:
    """Of GPT-2, GPT-4o and Qwen they are, character by character, what tiktoken and Qwen have."""
    from tiktoken_ext import openai_public

    source = Path(str(openai_public.__file__)).read_text()
    assert CL100K in source
    for part in ENCODINGS["o200k_base"].pattern.split("|\\p{N}{1,3}|")[1].split("|"):
        assert part in source


@pytest.mark.parametrize(
    ("data", "name", "message"),
    [
        (b"", "o200k_base.tiktoken", "not all 256 bytes are tokens"),
        (b"YQ==\n", "o200k_base.tiktoken", "a line is not a token in base64 and its rank"),
        (b"%% 1\n", "o200k_base.tiktoken", "a line is not a token in base64 and its rank"),
        (as_file({bytes([byte]): 7 for byte in range(256)}), "o200k_base.tiktoken", "two tokens have one rank"),
        (
            as_file({bytes([i]): i for i in range(256)} | {b"abc": 256}),
            "qwen.tiktoken",
            "no merges lead to the token b'abc'",
        ),
        (
            as_file({bytes([i]): i for i in range(256)}),
            "mine.tiktoken",
            "only r50k_base, cl100k_base, o200k_base, qwen are known",
        ),
    ],
)
def test_what_is_no_rank_file(tmp_path: Path, data: bytes, name: str, message: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        load_tokenizer(str(tmp_path / name))


@given(st.lists(st.text("ab", min_size=1, max_size=9), min_size=1, max_size=60), st.booleans())
def test_pairs_are_those_of_encoding_each_token(words: list[str], bytes_last: bool) -> None:
    """Tokens that lower ranks join from two, in any order of rank; single bytes first, as published, or last."""
    ranks = {bytes([i]): 1000 * bytes_last + i for i in range(256)}
    for word in map(str.encode, words):
        if word not in ranks and len(_parts(word, rank := len(ranks) - 256 * bytes_last + 1, ranks)) == 2:
            ranks[word] = rank
    ranks = dict(sorted(ranks.items(), key=lambda item: item[1]))
    assert pairs(ranks) == [tuple(_parts(word, rank, ranks)) for word, rank in ranks.items() if len(word) > 1]


def test_pairs_are_those_that_lower_ranks_lead_to() -> None:
    """ "aaa" is "aa" and "a", never "a" and "aa"; "abcd" has two splits into tokens, and one that merges reach."""
    ranks = {bytes([i]): i for i in range(256)} | {
        b"aa": 256,
        b"aaa": 257,
        b"bc": 258,
        b"abc": 259,
        b"cd": 260,
        b"abcd": 261,
    }
    found = {left + right: (left, right) for left, right in pairs(ranks)}
    assert found[b"aaa"] == (b"aa", b"a") and found[b"abcd"] == (b"abc", b"d")
