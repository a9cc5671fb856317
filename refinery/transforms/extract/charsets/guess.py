"""Which encoding bytes are in that are not UTF-8: the one under which their words are most probable in some language.

The model is a mixture: P(bytes) = max over encodings e and languages l of P(e | l) P(l | ASCII words around)
P(words | l), with the words that hold bytes above 7F, decoded by e (`letters`). So a Polish name in an English page is
judged as Polish, and a letter that stands alone by the language of its sentence. P(e | l) says how common encodings are
and which ones a language is written in (`usage`). What a page declares is evidence as any other: it makes an encoding
e^12 times as likely, or e^6 times where it is one of those that servers and editors put on pages without a look.

Others do less: Firefox (chardetng) scores pairs of letters under all single-byte encodings but those of the Macintosh
and believes every label; uchardet, chardet and charset-normalizer look at no words around.
"""

import re
import unicodedata
from collections.abc import Sequence

import numpy as np
from resiliparse.parse.encoding import detect_encoding

from refinery.transforms.extract.charsets.decoders import decode_as
from refinery.transforms.extract.charsets.labels import MULTI_BYTE, SINGLE_BYTE, python_codec
from refinery.transforms.extract.charsets.letters import (
    NOT_LATIN,
    RARE,
    UNIT,
    Vector,
    folded,
    log_probabilities,
    turns,
)
from refinery.transforms.extract.charsets.single_byte import single_byte_evidence
from refinery.transforms.extract.charsets.usage import PRIOR, usage

SAMPLE = 2_000  # bytes of different words; more change nothing
WINDOW = 120  # bytes before and behind such a word that tell the language
WINDOWS = 60
SOUND_PER_ERROR = 10  # a multi-byte encoding fits with one error in so many characters

DECLARED = 12 * UNIT
DEFAULT = 6 * UNIT  # a label of _DEFAULTS
DETECTED = 3 * UNIT
_TURN = 6 * UNIT
_UNDEFINED = 12 * UNIT  # a byte that a single-byte encoding lacks; in others it is a fault like any
_AROUND_MOST = 8 * UNIT  # the limit of what ASCII words say: pages quote other languages
# What servers, editors and templates declare of pages that nobody looked at: iso-8859-1, gb2312 and so on.
_DEFAULTS = ("cp1252", "cp1251", "gb18030", "utf-8")
_COMMA_BELOW = str.maketrans("şţŞŢ", "șțȘȚ")
# In the order that wins ties: two encodings under which a text is the same.
CANDIDATES = (
    "cp1252",
    *sorted(SINGLE_BYTE - {"cp1252"}, key=lambda name: (-PRIOR.get(name, 0), name)),
    *sorted(MULTI_BYTE - {"utf-16-le", "utf-16-be", "iso2022_jp"}),
)
_FOREIGN = re.compile(rb"[\x80-\xff][^\t\n\x0c\r <>]{0,200}")
_BEFORE = re.compile(rb"[^\t\n\x0c\r <>]{0,24}$")
_MARKUP = re.compile(rb"<[^<>]*>?|&#?\w{1,10};?|[\x00-\x20]+")
_NOT_ASCII = re.compile(rb"[^ ]*[\x80-\xff][^ ]*")


def guess(data: bytes, declared: Sequence[str]) -> str:
    """The encoding of `data`, which hold bytes above 7F: one of CANDIDATES or `declared`.

    Cost: a search for bytes above 7F, and some 3 ms where there are 2 kB of such words.
    """
    words, around = _words(data)
    language = _around(around)
    detected = python_codec(detect_encoding(data, max_len=1 << 17, from_html_meta=False) or "")
    single = single_byte_evidence(words)
    texts: dict[str, Vector] = {}
    found: dict[str, Vector] = {}
    for name in dict.fromkeys((*declared, *CANDIDATES)):
        if name in single:
            found[name] = _weighed(*single[name])
        elif (text := _decoded(words, name)) is not None:
            if text not in texts:
                texts[text] = _evidence(text, name)
            found[name] = texts[text]
        else:
            continue
        if name in declared:
            text = decode_as(words, name)
            comma = text.translate(_COMMA_BELOW)
            if comma != text:  # Romanian before Unicode 3.0: encodings had cedillas, the counts hardly have any
                found[name] = np.maximum(found[name], _evidence(comma, name))
    if not found:
        return "cp1252"
    likeliest = (np.array(list(found.values())) + np.array([usage(name) for name in found]) + language).max(1)
    scores = dict(zip(found, likeliest.tolist(), strict=True))
    for name in dict.fromkeys(declared):
        if name in scores:
            scores[name] += DEFAULT if name in _DEFAULTS else DECLARED
    if detected in scores:
        scores[detected] += DETECTED
    return max(scores, key=scores.__getitem__)


def _evidence(text: str, name: str) -> Vector:
    undefined = text.count("\ufffd") if name in SINGLE_BYTE else 0
    return _weighed(log_probabilities(folded(text)), turns(text), undefined)


def _weighed(logarithms: Vector, turned: int, undefined: int) -> Vector:
    """The logarithm of the probability of words in each language, with what the order of their letters says."""
    return logarithms - (_TURN * turned + _UNDEFINED * undefined)


def _words(data: bytes) -> tuple[bytes, bytes]:
    """Different words of `data` with bytes above 7F, and what stands around some of them; both with spaces between."""
    words: dict[bytes, None] = {}
    around: list[bytes] = []
    size = end = 0
    for found in _FOREIGN.finditer(data):
        before = data[max(end, found.start() - 24) : found.start()]
        word = _BEFORE.search(before)
        whole = (word[0] if word else b"") + found[0]
        if found.start() >= end and len(around) < WINDOWS:
            around.append(data[max(end, found.start() - WINDOW) : found.end() + WINDOW])
        end = found.end()
        if whole not in words:
            words[whole] = None
            size += len(whole)
            if size >= SAMPLE:
                break
    return b" ".join(words), b" ".join(around)


def _around(around: bytes) -> Vector:
    """What ASCII words say of the language: a logarithm for each, 0 for the likeliest, none below a limit.

    Letters of a sentence are not independent evidence, so they count two fifths. Of languages in other scripts, all
    have the same: they hold such words only as names.
    """
    plain = _NOT_ASCII.sub(b" ", _MARKUP.sub(b" ", around)).decode("ascii", "ignore")
    words = " ".join(dict.fromkeys(plain.split()))
    if not words:
        return RARE
    found = log_probabilities(folded(words)) * 2 // 5
    found[NOT_LATIN] = found[NOT_LATIN].max()
    evidence: Vector = np.maximum(found - found.max(), -_AROUND_MOST) + RARE
    return evidence


def _decoded(words: bytes, name: str) -> str | None:
    """The words under an encoding, or None where it does not fit them."""
    text = decode_as(words, name)
    errors = text.count("\ufffd")
    if errors and name in MULTI_BYTE:
        sound = len(text) - errors - len(text.encode("ascii", "ignore"))
        if sound == 0 or (name != "utf-8" and errors * SOUND_PER_ERROR > sound):
            return None
    return unicodedata.normalize("NFC", text)
