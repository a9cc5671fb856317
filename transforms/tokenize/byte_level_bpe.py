"""The fast engine: byte-level BPE as GPT-2, Llama 3 and Qwen 2 define it, in the kernel `transforms.native.bpe`.

Why its ids equal those of Hugging Face tokenizers, which stay the reference:

- Pieces. The kernel knows three regular expressions by heart. Which characters are letters, numbers and whitespace is
  asked of the installed Hugging Face library for every code point up to U+3FFFF when a tokenizer is loaded, so a new
  Unicode version there makes no difference; beyond, Unicode has no letter, number or space (a test covers them all).
- Merges. Both merge the adjacent pair of lowest rank, the leftmost of several, until no pair is left. The kernel uses
  the file's own merge table, pair by pair: nothing is derived from the vocabulary's strings.
- Alphabet. All 256 bytes must be in the vocabulary, so the unknown token and byte fallback never come into play.
- Everything else in the file that could change the result (dropout, prefixes, other normalizers, added tokens that are
  text) makes `recognise` answer None, and the reference engine runs instead. It also runs when a battery of strings,
  encoded by both at load, shows any difference.
"""

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Regex, pre_tokenizers

from refinery.transforms.native import bpe
from refinery.transforms.tokenize.tokenizer import BOS_NAMES, EOS_NAMES, Ids, check_ids, first_known

OTHER, LETTER, NUMBER, SPACE, UNSTABLE = 0, 1, 2, 3, 4
CODE_POINTS, PROBED = 0x110000, 0x40000

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
GPT2_GROUPED = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
PATTERNS = {GPT2: "gpt2", GPT2_GROUPED: "gpt2", LLAMA3: "llama3", QWEN2: "qwen2"}

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
)


class ByteLevelTokenizer:
    """Byte-level BPE on the compiled kernel.

    vocab: model vocabulary, token in the byte-level alphabet -> id. added: added token -> id. special: ids that
    `decode` leaves out. whole: a piece that is a token is taken as it stands, before any merge. normalize: None, or NFC
    by the reference library, applied only to text with a character that NFC might touch. Lossless without it.

    Cost: about 150 MB/s of English prose; memory about 10 MB and the vocabulary.
    """

    engine = "byte-level-bpe"

    def __init__(
        self,
        pattern: str,
        vocab: Mapping[str, int],
        merges: Sequence[tuple[str, str]],
        added: Mapping[str, int],
        special: frozenset[int],
        whole: bool = False,
        normalize: Callable[[str], str] | None = None,
    ) -> None:
        alphabet = byte_alphabet()
        rows = np.array(
            [(vocab[left], vocab[right], vocab[left + right]) for left, right in merges], dtype=np.uint32
        ).reshape(-1, 3)
        pieces = {token_bytes(token): id_ for token, id_ in vocab.items() if token not in added} if whole else None
        self._encoder = bpe.Encoder(
            pattern,
            np.array([vocab[char] for char in alphabet], dtype=np.uint32),
            rows,
            character_classes(unstable=normalize is not None),
            pieces,
        )
        self._normalize = normalize
        self._names = {**vocab, **added}
        self._added = added
        self._special = special
        self.vocab_size = max(self._names.values()) + 1
        self._bytes: list[bytes] = [b""] * self.vocab_size
        for token, id_ in self._names.items():
            self._bytes[id_] = b"" if id_ in special else token_bytes(token)
        self.lossless = normalize is None

    def encode(self, text: str) -> Ids:
        """See `Tokenizer.encode`."""
        packed = self._encoder.encode(text, self._normalize is not None)
        if packed is None and self._normalize is not None:
            packed = self._encoder.encode(self._normalize(text), False)
        return np.frombuffer(packed or b"", dtype=np.uint32)

    def encode_batch(self, texts: Iterable[str]) -> list[Ids]:
        """`encode` of each text."""
        return [self.encode(text) for text in texts]

    def decode(self, ids: Sequence[int] | npt.NDArray[Any]) -> str:
        """See `Tokenizer.decode`."""
        table = self._bytes
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
        and (normalizer is None or normalizer == {"type": "NFC"})
        and all(char in model["vocab"] for char in alphabet)
    )
    return _pattern(spec.get("pre_tokenizer")) if plain else None


def _pattern(pre_tokenizer: Mapping[str, Any] | None) -> str | None:
    if pre_tokenizer is None:
        return None
    steps = pre_tokenizer["pretokenizers"] if pre_tokenizer["type"] == "Sequence" else [pre_tokenizer]
    last = steps[-1] if steps else {}
    if last.get("type") != "ByteLevel" or last.get("add_prefix_space", True):
        return None
    if len(steps) == 1:
        return "gpt2" if last.get("use_regex", True) else None
    split = steps[0]
    if len(steps) != 2 or last.get("use_regex", True) or split["type"] != "Split":
        return None
    if split.get("behavior") != "Isolated" or split.get("invert"):
        return None
    return PATTERNS.get(split["pattern"].get("Regex", ""))


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


@lru_cache(maxsize=2)
def character_classes(unstable: bool) -> bytes:
    """One byte per code point: letter, number, whitespace or other, as the Hugging Face library's regex engine sees it.

    unstable: also set the bit UNSTABLE on every character that NFC might change or combine. Cost: about 0.3 s.
    """
    characters = "".join(map(chr, [*range(0xD800), *range(0xE000, PROBED)]))
    points = np.array([ord(char) for char in characters])
    classes = np.zeros(CODE_POINTS, dtype=np.uint8)
    for class_, pattern in ((LETTER, r"\p{L}+"), (NUMBER, r"\p{N}+"), (SPACE, r"\s+")):
        matches = pre_tokenizers.Split(Regex(pattern), "removed", invert=True).pre_tokenize_str(characters)
        for _, (start, stop) in matches:
            classes[points[start:stop]] = class_
    if unstable:
        stable = _nfc_inert()
        classes[[point for point in range(CODE_POINTS) if point not in stable]] |= UNSTABLE
    return classes.tobytes()


def _nfc_inert() -> set[int]:
    """Code points that stay as they are in every NFC text: starters that NFC keeps and that no composition absorbs.

    An unassigned one is left out, since a later Unicode version may give it a decomposition.
    """
    inert, absorbed = set(), {*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)}  # Hangul vowels and trailing consonants
    for point in range(PROBED):
        char = chr(point)
        decomposition = unicodedata.decomposition(char)
        if decomposition and not decomposition.startswith("<"):
            absorbed.update(int(part, 16) for part in decomposition.split()[1:])
        if (
            unicodedata.category(char) not in ("Cn", "Cs")
            and not unicodedata.combining(char)
            and unicodedata.normalize("NFC", char) == char
        ):
            inert.add(point)
    return inert - absorbed
