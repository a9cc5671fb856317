"""The fast engine: byte-level BPE with the splitting of GPT-2, Llama 3, Qwen 2, GPT-4, GPT-4o, Mistral and DeepSeek.

Why its ids equal those of Hugging Face tokenizers, which stay the reference:

- Pieces. The kernel knows published regular expressions by heart. Which characters are letters, numbers, whitespace,
  marks, signs is asked of the installed Hugging Face library when a tokenizer is loaded, for every code point up to
  U+3FFFF and the few marks beyond, so a new Unicode version there makes no difference (a test covers all the rest).
- Merges. Both merge the adjacent pair of lowest rank, the leftmost of several, until no pair is left. The kernel uses
  the file's own merge table, pair by pair: nothing is derived from the vocabulary's strings.
- Alphabet. All 256 bytes must be in the vocabulary, so the unknown token and byte fallback never come into play.
- Everything else in the file that could change the result (dropout, prefixes, other normalizers, added tokens that are
  text) makes `recognise` answer None, and the reference engine runs instead. It also runs when a battery of strings,
  encoded by both at load, shows any difference.
"""

import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import PreTokenizedString, Regex, pre_tokenizers

from refinery.transforms.native import bpe
from refinery.transforms.tokenize.token_spans import Spans, Spelling, spelt_spans
from refinery.transforms.tokenize.tokenizer import BOS_NAMES, EOS_NAMES, Ids, check_ids, first_known

OTHER, LETTER, NUMBER, SPACE, UNSTABLE = 0, 1, 2, 3, 4
CLASSES = {LETTER: r"\p{L}+", NUMBER: r"\p{N}+", SPACE: r"\s+"}
CODE_POINTS, PROBED = 0x110000, 0x40000
TAGS = range(0xE0000, 0xE1000)  # beyond PROBED there are marks here alone
# Bits of capital letters and marks, and of small letters, punctuation and symbols; letters without case have both.
DETAIL = {8: r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+", 16: r"[\p{Ll}\p{Lm}\p{Lo}\p{P}\p{S}]+"}
DETAILED = ("o200k", "tekken", "deepseek")  # splittings that need them

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
GPT2_GROUPED = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
CL100K = (  # as GPT-4's, spelt for the library's regex engine, whose $ and {1,3}+ mean something else
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s+\z|\s*[\r\n]|\s+(?!\S)|\s"
)
_WORD = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
)
_SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = rf"{_WORD[0]}{_SUFFIX}|{_WORD[1]}{_SUFFIX}|\p{{N}}{{1,3}}|{_REST}"  # GPT-4o, GPT-OSS
TEKKEN = rf"{_WORD[0]}|{_WORD[1]}|\p{{N}}|{_REST}"  # Mistral
PATTERNS = {
    GPT2: "gpt2",
    GPT2_GROUPED: "gpt2",
    LLAMA3: "llama3",
    QWEN2: "qwen2",
    CL100K: "cl100k",
    O200K: "o200k",
    TEKKEN: "tekken",
}
DEEPSEEK = (  # three splits in a row, as in DeepSeek V3
    r"\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    "[!\"#$%&'()*+,"
    r"\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+",
)

BATTERY = (
    "",
    " ",
    "The quick brown fox, isn't it? THEY'LL WE'RE I'd 'tis 'S 'ſ",
    "a  b   c\t\td \n\n e\r\n\r\n  f \n",
    "   \n \n  x   ",
    "1234567 3.14 ²³ Ⅷ ١٢٣ 1e-9",
    "naïve café Ελληνικά Русский עברית العربية हिन्दी 中文 日本語 한국어 ไทย",
    "e\u0301 \u00a0\u2003\u3000x \u200b\ufeff \x00\x7f\x85",
    "😀👩‍👩‍👧‍👦 𝔘𝔫𝔦 \U0003fffe \U0010ffff",
    "<|endoftext|><s></s>[CLS] !!!??? --- '''' 'x ' '",
    "a" * 300 + "!" * 200 + "ab" * 100,
    # Every byte that UTF-8 has (all but C0, C1 and F5 to FF), each behind a space and beside other neighbours.
    "".join(map(chr, range(0x80))),
    " ".join(chr(lead << 6 | trail) for lead, trail in zip(range(2, 32), range(3, 64, 2), strict=False)),
    " ".join(chr(0x80 + trail) + chr(0x7C0 + trail) for trail in range(64)),
    " ".join(chr(max(lead << 12, 0x800) | lead << 6 | lead) for lead in range(16) if lead != 13) + " \ud7a3\U0001f600",
    " \U00010000 \U00045678 \U0008abcd \U000cdef0 \U0010fffd",
)


class ByteLevelTokenizer:
    """Byte-level BPE on the compiled kernel.

    vocab: model vocabulary, token in the byte-level alphabet -> id. merges: uint32 of shape (merges, 3), the ids of
    left, right and joint token in rank order. added: added token -> id. special: ids that `decode` leaves out. whole: a
    piece that is a token is taken as it stands, before any merge. normalize: None, or NFC by the reference library,
    applied only to text with a character that NFC might touch. Lossless without it. learned: the added tokens that are
    the model's own, too (see shadowed.py).

    Cost: 0.2 to 0.6 s to make; about 250 MB/s of English prose; memory about 27 MB, 25 to 50 bytes per merge and the
    vocabulary.
    """

    engine = "byte-level-bpe"

    def __init__(
        self,
        pattern: str,
        vocab: Mapping[str, int],
        merges: npt.NDArray[np.uint32],
        added: Mapping[str, int],
        special: frozenset[int],
        whole: bool = False,
        normalize: Callable[[str], str] | None = None,
        learned: frozenset[str] = frozenset(),
    ) -> None:
        arguments = (
            pattern,
            np.array([vocab[char] for char in byte_alphabet()], dtype=np.uint32),
            np.ascontiguousarray(merges),
            character_classes(normalize is not None, pattern in DETAILED),
        )
        self._encoder = bpe.Encoder(*arguments)
        # The merges of most vocabularies lead to every token, and then there is nothing to look up.
        taken = vocab.keys() - (added.keys() - learned)
        odd = not_merged(self._encoder, {token: vocab[token] for token in taken}) if whole else {}
        if odd:
            self._encoder = bpe.Encoder(*arguments, odd)
        self._normalize = normalize
        self._names = {**vocab, **added}
        self._added = added
        self._special = special
        self.vocab_size = max(self._names.values()) + 1
        self.lossless = normalize is None

    @cached_property
    def _spelling(self) -> Spelling:
        """The bytes of each id, made when they are first asked for."""
        table = [b""] * self.vocab_size
        spelt = {token: id_ for token, id_ in self._names.items() if id_ not in self._special}
        for id_, data in zip(spelt.values(), all_token_bytes(spelt), strict=True):
            table[id_] = data
        return Spelling(table)

    def encode(self, text: str) -> Ids:
        """See `Tokenizer.encode`."""
        packed = self._encoder.encode(text, self._normalize is not None)
        if packed is None and self._normalize is not None:
            packed = self._encoder.encode(self._normalize(text), False)
        return np.frombuffer(packed or b"", dtype=np.uint32)

    def encode_batch(self, texts: Iterable[str]) -> list[Ids]:
        """`encode` of each text."""
        return [self.encode(text) for text in texts]

    def spans(self, text: str, ids: Ids) -> Spans | None:
        """See `Tokenizer.spans`."""
        return spelt_spans(text, ids, self._spelling)

    def decode(self, ids: Sequence[int] | npt.NDArray[Any]) -> str:
        """See `Tokenizer.decode`."""
        table = self._spelling.table
        return b"".join([table[id_] for id_ in check_ids(ids, self.vocab_size).tolist()]).decode("utf-8", "replace")

    def token_id(self, name: str) -> int | None:
        """Id of a token of the vocabulary or of an added one."""
        return self._names.get(name)

    def bos_id(self) -> int | None:
        """The first well-known BOS name among the added tokens."""
        return first_known(self._added, BOS_NAMES)

    def eos_id(self) -> int | None:
        """The first well-known EOS name among the added tokens."""
        return first_known(self._added, EOS_NAMES)


def recognise(spec: Mapping[str, Any]) -> str | None:
    """The kernel's name for the splitting of a parsed tokenizer.json, or None if the kernel must not run it."""
    model, normalizer = spec["model"], spec.get("normalizer")
    alphabet = byte_alphabet()
    plain = (
        model.get("type", "BPE") == "BPE"
        and not any(
            model.get(key) for key in ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback")
        )
        and (not normalizer_steps(normalizer) or normalizer_steps(normalizer) == [{"type": "NFC"}])
        and all(char in model["vocab"] for char in alphabet)
    )
    return _pattern(spec.get("pre_tokenizer")) if plain else None


def normalizer_steps(normalizer: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    """The normalizers that a file names, one after the other."""
    if normalizer is None:
        return []
    return list(normalizer["normalizers"]) if normalizer.get("type") == "Sequence" else [normalizer]


def _pattern(pre_tokenizer: Mapping[str, Any] | None) -> str | None:
    if pre_tokenizer is None:
        return None
    steps = pre_tokenizer["pretokenizers"] if pre_tokenizer["type"] == "Sequence" else [pre_tokenizer]
    last = steps[-1] if steps else {}
    if last.get("type") != "ByteLevel" or last.get("add_prefix_space", True):
        return None
    if len(steps) == 1:
        return "gpt2" if last.get("use_regex", True) else None
    if last.get("use_regex", True) or not all(_isolates(step, alone=len(steps) == 2) for step in steps[:-1]):
        return None
    patterns = tuple(escaped(step["pattern"].get("Regex", "")) for step in steps[:-1])
    if patterns == DEEPSEEK:
        return "deepseek"
    return PATTERNS.get(patterns[0]) if len(patterns) == 1 else None


def escaped(pattern: str) -> str:
    r"""A regular expression with line ends written `\r` and `\n`: published files have them in either way."""
    return pattern.replace("\r", r"\r").replace("\n", r"\n")


def _isolates(step: Mapping[str, Any], alone: bool) -> bool:
    """Whether each match is a piece. Without another split what no match holds may be removed: there is nothing."""
    way = (step.get("behavior"), bool(step.get("invert")))
    return step["type"] == "Split" and (way == ("Isolated", False) or (alone and way == ("Removed", True)))


@lru_cache(maxsize=1)
def byte_alphabet() -> str:
    """The character that stands for each byte in a byte-level vocabulary, 256 of them (GPT-2, bytes_to_unicode)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = iter(range(0x100, 0x200))
    return "".join(chr(byte) if byte in printable else chr(next(rest)) for byte in range(256))


@lru_cache(maxsize=1)
def _byte_of() -> dict[str, int]:
    return {char: byte for byte, char in enumerate(byte_alphabet())}


def token_bytes(token: str) -> bytes:
    """The bytes that a token of a byte-level vocabulary stands for; its own UTF-8 if it is not in that alphabet."""
    table = _byte_of()
    try:
        return bytes([table[char] for char in token])
    except KeyError:
        return token.encode()


def all_token_bytes(tokens: Collection[str]) -> Iterator[bytes]:
    """`token_bytes` of each. Cost: 30 ms for 200,000 tokens of the alphabet."""
    table, joined = _byte_of(), "".join(tokens)
    if not set(joined) <= table.keys():
        yield from map(token_bytes, tokens)
        return
    packed = np.zeros(max(map(ord, table)) + 1, np.uint8)
    packed[[ord(char) for char in table]] = list(table.values())
    data, start = packed[np.frombuffer(joined.encode("utf-32-le"), np.uint32)].tobytes(), 0
    for token in tokens:
        yield data[start : (start := start + len(token))]


def not_merged(encoder: bpe.Encoder, ids: Mapping[str, int]) -> dict[bytes, int]:
    """The bytes and ids of the tokens that merges alone do not lead to. Cost: 0.2 s for 200,000 tokens.

    A token with a character outside the byte-level alphabet is none of them: no piece is ever spelt like it.
    """
    table = _byte_of()
    if not set("".join(ids)) <= table.keys():
        ids = {token: id_ for token, id_ in ids.items() if table.keys() >= set(token)}
    expected = np.fromiter(ids.values(), np.uint32, len(ids)).tobytes()
    merge, odd = encoder.merge, {}
    for number, (token, piece) in enumerate(zip(ids, all_token_bytes(ids), strict=True)):
        if merge(piece) != expected[4 * number : 4 * number + 4]:
            odd[piece] = ids[token]
    return odd


@lru_cache(maxsize=4)
def character_classes(unstable: bool, detail: bool = False) -> bytes:
    """One byte per code point: letter, number, whitespace or other, as the Hugging Face library's regex engine sees it.

    unstable: also set the bit UNSTABLE on every character that NFC might change or combine. detail: also tell capital
    letters from small ones and those without case, and marks, punctuation and symbols from other others. Cost: about
    0.05 s, with `unstable` 0.15 s.
    """
    points = np.r_[0:0xD800, 0xE000:PROBED, TAGS.start : TAGS.stop].astype("<u4")
    characters = points.tobytes().decode("utf-32-le")
    data = np.frombuffer(characters.encode(), np.uint8)
    starts = np.flatnonzero(data & 0xC0 != 0x80)  # of each character among the bytes: the library counts bytes fast
    marks = np.zeros(len(data), np.uint8)
    runs = list(_found("|".join(CLASSES.values()), characters))  # each of one class
    first = np.searchsorted(starts, [start for start, _ in runs])
    examples = "".join(characters[place] for place in first.tolist())
    places = np.cumsum([0, *map(len, map(str.encode, examples))]).tolist()  # of the examples among their bytes
    for class_, pattern in CLASSES.items():
        for start, stop in _found(pattern, examples):
            for begin, end in runs[places.index(start) : places.index(stop)]:
                marks[begin:end] = class_
    for bit, pattern in DETAIL.items() if detail else ():
        for start, stop in _found(pattern, characters):
            marks[start:stop] |= bit
    classes = np.zeros(CODE_POINTS, dtype=np.uint8)
    classes[points] = marks[starts]
    if unstable:
        inert = np.zeros(CODE_POINTS, bool)
        inert[list(_nfc_inert())] = True
        classes[~inert] |= UNSTABLE
    return classes.tobytes()


def _found(pattern: str, text: str) -> Iterator[tuple[int, int]]:
    """Where the library's regex engine finds a pattern in a text: places among its bytes."""
    pieces = PreTokenizedString(text)
    pre_tokenizers.Split(Regex(pattern), "removed", invert=True).pre_tokenize(pieces)
    yield from (place for _, place, _ in pieces.get_splits("original", "byte"))


def _nfc_inert() -> set[int]:
    """Code points that stay as they are in every NFC text: starters that NFC keeps and that no composition absorbs.

    An unassigned one is left out, since a later Unicode version may give it a decomposition.
    """
    inert, absorbed = set(), {*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)}  # Hangul vowels and trailing consonants
    for point, char in enumerate(map(chr, range(PROBED))):
        decomposition = unicodedata.decomposition(char)
        if decomposition and not decomposition.startswith("<"):
            absorbed.update(int(part, 16) for part in decomposition.split()[1:])
            if unicodedata.normalize("NFC", char) != char:
                continue
        if unicodedata.category(char) not in ("Cn", "Cs") and not unicodedata.combining(char):
            inert.add(point)
    return inert - absorbed
