"""How likely a text is in a language: pairs of letters, counted in 61 languages that legacy encodings were made for.

P(b after a) in a language is (pairs(a, b) + 12 P(b)) / (count(a) + 12), Dirichlet smoothing (Zhai and Lafferty, SIGIR
2001), with P(b) of the language for letters and of all languages for signs, which a small text has by accident. What
typographers set for ASCII's quotation marks, dashes and dots counts as these, digits are one sign, case is another
matter (`turns`). Of Chinese, Japanese and Korean, single characters count: the common ones that the national standards
put first (JIS X 0208, GB 2312, Big5, KS X 1001) by their frequency, the others by their level.

The counts are in `letters.npy`, made by `python -m refinery.pipelines.training.letters`.
"""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from threading import RLock

import numpy as np
from numpy.typing import NDArray

COUNTS = "letters.npy"
# ISO 639-3; macrolanguages where the standard has them. The second group is written on few pages of legacy encodings.
_COMMON = (
    "ara bel bul cat ces dan deu ell eng est fas fin fra heb hrv hun isl ita jpn kor lav lit mkd nld nor pol por ron "
    "rus slk slv spa sqi srp swe tha tur ukr vie zho"
)
_RARE = "afr bre cym epo eus fao fry gla gle glg hsb ind lat ltz mlt oci roh sme swa urd yid"
LANGUAGES = (*_COMMON.split(), *_RARE.split())
IDEOGRAPHIC = ("jpn", "kor", "zho")
_NOT_LATIN = "ara bel bul ell fas heb jpn kor mkd rus tha ukr urd yid zho"  # Serbian is written in both
NOT_LATIN = np.isin(LANGUAGES, _NOT_LATIN.split())

_SMOOTHING = 12.0
_RARE_COST = 2
_MIXED = 0.001  # an ideograph beside a letter of an alphabet
_HELD_ALONE = 1 << 12
_HELD = 1 << 16  # rows of logarithms, 8 MB
# Probabilities of what no text had: a letter of another script and of the language's own, a sign, no character at all.
_UNKNOWN_LETTER, _OWN_SCRIPT, _UNKNOWN_SIGN, _NO_CHARACTER = 3e-7, 1e-5, 1e-6, 1e-8
_POINT = 2e-3  # a mark on a letter of the same script
_FAULT = 1e-4  # U+FFFD: a byte that is wrong
_SIGNS = {
    **dict.fromkeys("®™€₪₽₫£±²³½¼¾·×¿¡¤¢¥µ¬¦†‡¶\xad", 1e-4),
    **dict.fromkeys("°ºª§©", 5e-4),
    **dict.fromkeys("\xa0\u200c\u200d\u200e\u200f", 1e-3),  # spaces, joiners and marks of direction
}
_ANYWHERE = "\ufffd\u200c\u200d\u200e\u200f"
_ALPHABETS = ("LATIN", "GREEK", "CYRILLIC", "HEBREW", "ARABIC")
_NO_LETTERS = "ªºµ"  # to Unicode they are
_MOST_MIXED = 4  # some write Cyrillic with Latin letters that look the same
_BEFORE_NO_WORD = ("So", "Sk", "No", "Sc")
_AFTER_DIGITS, _AFTER_DIGIT = "°ºª€", 1e-2
_FOREIGN_WORD, _FOREIGN_LETTER = 0.01, 0.3  # in a text of another script, of a word in Latin letters
_WITHIN_WORDS = "’ʼ·‐‑\xad\u200c\u200d\u200e\u200f"
_ONE_FORM = str.maketrans(
    {
        **dict.fromkeys("“”„‟«»‹›", '"'),
        **dict.fromkeys("‘’‚‛", "'"),
        **dict.fromkeys("–—‑‐", "-"),
        **dict.fromkeys("•·", "*"),
        **dict.fromkeys("123456789\t\n\r\f", "0") | dict.fromkeys("\t\n\r\f", " "),
        "…": ".",
    }
)

UNIT = 256  # logarithms are whole numbers of 1/256, so sums are the same on every machine
Vector = NDArray[np.int32]


def folded(text: str) -> str:
    """`text` in the form that is counted: small letters, one digit, plain quotation marks, spaces around it."""
    return f" {' '.join(text.lower().translate(_ONE_FORM).split(' '))} "


def turns(text: str) -> int:
    """How often characters outside ASCII occur where words do not have such characters, and where letters were
    mistaken for others.

    Each of these counts once: a small letter before a capital, and again if a small one follows; a sign between two
    letters; a capital before a word that begins with one; a letter beside one of another alphabet (the mixed scripts of
    Unicode Technical Standard 39), four times at most; a character of another script between two ASCII letters, or
    half-width kana beside one; a symbol, superior figure or sign of currency before a small letter; a line of a box
    beside a letter.
    """
    count = mixed = 0
    for at, sign in enumerate(text):
        if sign.isascii() or sign in _WITHIN_WORDS or sign == "\ufffd":
            continue
        before, behind = text[at - 1 : at], text[at + 1 : at + 2]
        if not _is_letter(sign):
            if before.isalpha() and behind.isalpha():
                count += 1
            elif behind.islower():
                count += unicodedata.category(sign) in _BEFORE_NO_WORD
            if "\u2500" <= sign <= "\u25ff":
                count += before.isalpha() or behind.isalpha()
            continue
        script = _alphabet(sign)
        if script:
            mixed += _alphabet(before) not in (script, "")
            mixed += behind.isascii() and _alphabet(behind) not in (script, "")
        elif sign not in _NO_LETTERS:
            sides = _is_ascii_letter(before) + _is_ascii_letter(behind)
            count += sides == 2 or (sides == 1 and "\uff66" <= sign <= "\uff9f")
        if sign.isupper():
            small = text[at + 2 : at + 3]
            if before.islower():
                count += 1 + behind.islower()
            elif not before.isalpha() and behind.isupper() and behind.isascii():
                count += small.islower()
        elif sign.islower():
            count += behind.isupper() and behind.isascii()
    return count + min(mixed, _MOST_MIXED)


def _is_ascii_letter(sign: str) -> bool:
    return sign.isascii() and sign.isalpha()


TURN_BITS = {
    **{name: 1 << bit for bit, name in enumerate(["outside", "letter", "alpha", "lower", "upper", "ASCII letter"])},
    "no word before": 1 << 6,
    "box": 1 << 7,
    "no letter": 1 << 8,
    "alphabets": 7 << 9,
    "most mixed": _MOST_MIXED,
}


def turn_bits(sign: str) -> int:
    """What `turns` asks of a character, as bits of TURN_BITS."""
    holds = {
        "outside": not (sign.isascii() or sign in _WITHIN_WORDS or sign == "\ufffd"),
        "letter": _is_letter(sign),
        "alpha": sign.isalpha(),
        "lower": sign.islower(),
        "upper": sign.isupper(),
        "ASCII letter": _is_ascii_letter(sign),
        "no word before": unicodedata.category(sign) in _BEFORE_NO_WORD,
        "box": "\u2500" <= sign <= "\u25ff",
        "no letter": sign in _NO_LETTERS,
    }
    alphabet = _alphabet(sign)
    number = _ALPHABETS.index(alphabet) + 1 if alphabet else 0
    return sum(TURN_BITS[name] for name, held in holds.items() if held) | number << 9


@lru_cache(1 << 12)
def _alphabet(sign: str) -> str:
    """The script of a letter, if words do not mix it with others; "" for all else."""
    script = _script(sign) if sign.isalpha() and sign not in _NO_LETTERS else ""
    return script if script in _ALPHABETS else ""


def log_probabilities(text: str) -> Vector:
    """For each of LANGUAGES, the logarithm of the probability of a `folded` text, in 1/UNIT. Linear."""
    pairs = Counter(pairwise(text))
    if not pairs:
        return np.zeros(len(LANGUAGES), np.int32)
    rows = load().rows(list(pairs))
    weighed: Vector = np.fromiter(pairs.values(), np.int32, len(pairs)) @ rows
    return weighed


class Letters:
    """Counts of letters and of pairs by language, made probabilities. Threads share it: workers of many engines are
    threads of a process, and what is held for pairs is theirs together."""

    def __init__(self, counts: NDArray[np.uint16]) -> None:
        """counts: rows of language, letter, next letter (0: of the letter alone) and how often."""
        languages, former, later, times = (counts[:, column] for column in range(4))
        alone = later == 0
        letters = np.unique(former[alone])
        self._row = {chr(code): row for row, code in enumerate(letters.tolist())}
        single = np.zeros((len(letters), len(LANGUAGES)), np.float64)
        single[np.searchsorted(letters, former[alone]), languages[alone]] = times[alone]
        total = single.sum(0)
        pooled = single.sum(1, keepdims=True) / total.sum()
        scripts = [_script(chr(code)) for code in letters.tolist()]
        self._scripts = {
            script: single[[row for row, other in enumerate(scripts) if other == script]].sum(0) * 4 > total
            for script in dict.fromkeys(scripts)
            if script
        }
        is_letter = np.array([_is_letter(chr(code)) for code in letters.tolist()])[:, None]
        least = np.array([self._unknown_letter(script) for script in scripts])
        own = np.maximum(single / (total + 600), least)
        self._probability = np.where(is_letter, own, np.maximum((own + pooled) / 2, _UNKNOWN_SIGN))
        for column, name in enumerate(LANGUAGES):
            if name in IDEOGRAPHIC:
                for code, row in zip(letters.tolist(), range(len(letters)), strict=True):
                    level = _level(chr(code), name)
                    if level:
                        self._probability[row, column] = (single[row, column] + total[column] * level) / (
                            2 * total[column]
                        )
        # What is left for pairs that no text had; behind a sign, anything may follow.
        self._unseen = np.where(is_letter, _SMOOTHING / (single + _SMOOTHING), 1.0)
        self._not_latin = np.where(self._scripts["LATIN"], 0.0, 1.0)
        keys = former[~alone].astype(np.int64) << 16 | later[~alone]
        pairs = np.unique(keys)
        self._pair_row = {(chr(key >> 16), chr(key & 0xFFFF)): row for row, key in enumerate(pairs.tolist())}
        self._pairs = np.zeros((len(pairs), len(LANGUAGES)), np.float32)
        self._pairs[np.searchsorted(pairs, keys), languages[~alone]] = times[~alone]
        self._counts_before = single
        self._alone: dict[str, NDArray[np.float64]] = {}
        self._of_bytes: dict[str, NDArray[np.int32]] = {}
        self._held: dict[tuple[str, str], int] = {}
        self._logarithms = np.zeros((_HELD, len(LANGUAGES)), np.int16)
        self._lock = RLock()  # around what is held: another thread may fill a row that this one has just taken

    def rows(self, pairs: list[tuple[str, str]]) -> Vector:
        """A row of logarithms for each pair. The last _HELD that were asked for are held."""
        with self._lock:
            return self._rows(pairs)

    def _rows(self, pairs: list[tuple[str, str]]) -> Vector:
        held = self._held
        pairs = [pair if pair[1] < "\u2e80" else self._common(pair) for pair in pairs]
        if len(held) + len(pairs) > _HELD:
            held.clear()
            self._of_bytes.clear()
        if len(pairs) > _HELD:
            return self._log_pairs(pairs).astype(np.int32)
        missing = list(dict.fromkeys(pair for pair in pairs if pair not in held))
        if missing:
            first = len(held)
            self._logarithms[first : first + len(missing)] = self._log_pairs(missing)
            held.update(zip(missing, range(first, first + len(missing)), strict=True))
        return self._logarithms[[held[pair] for pair in pairs]].astype(np.int32)

    def _common(self, pair: tuple[str, str]) -> tuple[str, str]:
        """The pair that stands for all of the same row: before an ideograph that was not counted behind it, a letter
        counts by its script only (U+01BF for alphabets, a private character for all else)."""
        former, later = pair
        if later < "\u2e80" or not _ideograph(later) or pair in self._pair_row:
            return pair
        return "\u01bf" if former.isalpha() and former < "\u2e80" else "\ue000", later

    def byte_rows(self, name: str, signs: str, pairs: NDArray[np.int64]) -> Vector:
        """`rows` of pairs of bytes (the first times 256 and the second), which are `signs` by an encoding's name."""
        with self._lock:
            return self._byte_rows(name, signs, pairs)

    def _byte_rows(self, name: str, signs: str, pairs: NDArray[np.int64]) -> Vector:
        known = self._of_bytes.get(name)
        found = None if known is None else known[pairs]
        if known is None or found is None or found.min(initial=0) < 0:
            missing = pairs if found is None else pairs[found < 0]
            letters = [(signs[pair >> 8], signs[pair & 0xFF]) for pair in missing.tolist()]
            rows = self.rows(letters)
            if name not in self._of_bytes:
                self._of_bytes[name] = np.full(1 << 16, -1, np.int32)
            known = self._of_bytes[name]
            known[missing] = [self._held[self._common(pair)] for pair in letters]
            found = known[pairs]
            if found.min(initial=0) < 0:  # all that was held has gone for these
                return self._byte_rows(name, signs, pairs)
            if len(missing) == len(pairs):
                return rows
        return self._logarithms[found].astype(np.int32)

    def _log_pairs(self, pairs: list[tuple[str, str]]) -> NDArray[np.int16]:
        """log P(later after former) by pair and language, in 1/UNIT."""
        logarithms = np.log(np.array([self._of_pair(*pair) for pair in pairs])) * UNIT
        rounded: NDArray[np.int16] = np.rint(logarithms).astype(np.int16)
        return rounded

    def _of_pair(self, former: str, later: str) -> NDArray[np.float64]:
        probability = self._of(later)
        row = self._row.get(former)
        pair = self._pair_row.get((former, later))
        if pair is not None and row is not None and (later == "0" or (former == "0" and not _is_letter(later))):
            # Digits are of no language; some texts that were counted have none.
            times, before = self._pairs[pair].sum(), self._counts_before[row].sum()
            return np.full(len(LANGUAGES), (times + _SMOOTHING * probability.mean()) / (before + _SMOOTHING))
        if pair is not None and row is not None:
            before = self._counts_before[row]
            probability = (self._pairs[pair] + _SMOOTHING * probability) / (before + _SMOOTHING)
        elif later in _ANYWHERE:
            pass
        elif unicodedata.category(later) == "Mn":  # points of Hebrew and Arabic, which most texts do without
            probability = np.maximum(probability, np.where(probability >= _OWN_SCRIPT, _POINT, 0.0))
        elif _ideograph(later) or _ideograph(former):
            if former.isalpha() and later.isalpha() and min(former, later) < "\u2e80":
                probability = probability * _MIXED
        elif row is not None:
            probability = probability * self._unseen[row]
        if former == "0" and later in _AFTER_DIGITS:
            probability = np.maximum(probability, _AFTER_DIGIT)
        if _is_ascii_letter(later):
            probability = np.maximum(probability, self._foreign_word(former, later))
        return probability

    def _foreign_word(self, former: str, later: str) -> NDArray[np.float64]:
        """The probability of an ASCII letter as one of a foreign name, in languages of other scripts; else 0."""
        inside = _is_ascii_letter(former)
        counts = self._of_english(former if inside else " ", later)
        return self._not_latin * (counts * (_FOREIGN_LETTER if inside else _FOREIGN_WORD))

    def _of_english(self, former: str, later: str) -> float:
        english = LANGUAGES.index("eng")
        pair = self._pair_row.get((former, later))
        times = 0.0 if pair is None else float(self._pairs[pair, english])
        before = float(self._counts_before[self._row[former], english])
        return (times + _SMOOTHING * float(self._of(later)[english])) / (before + _SMOOTHING)

    def _unknown_letter(self, script: str) -> NDArray[np.float64]:
        own = self._scripts.get(script)
        return np.full(len(LANGUAGES), _UNKNOWN_LETTER) if own is None else np.where(own, _OWN_SCRIPT, _UNKNOWN_LETTER)

    def _of(self, sign: str) -> NDArray[np.float64]:
        found = self._alone.get(sign)
        if found is None:
            if len(self._alone) >= _HELD_ALONE:
                self._alone.clear()
            found = self._alone[sign] = self._probability_of(sign)
        return found

    def _probability_of(self, sign: str) -> NDArray[np.float64]:
        row = self._row.get(sign)
        if row is not None:
            return np.maximum(self._probability[row], _SIGNS.get(sign, 0.0))  # type: ignore[no-any-return]
        if _full_width(sign):
            return np.array([2e-5 if name in IDEOGRAPHIC else _UNKNOWN_SIGN for name in LANGUAGES])
        if sign in _SIGNS:
            return np.full(len(LANGUAGES), _SIGNS[sign])
        if _is_letter(sign):
            levels = [_level(sign, name) / 2 if name in IDEOGRAPHIC else 0.0 for name in LANGUAGES]
            likeliest: NDArray[np.float64] = np.maximum(np.array(levels), self._unknown_letter(_script(sign)))
            return likeliest
        if sign == "\ufffd":
            return np.full(len(LANGUAGES), _FAULT)
        return np.full(len(LANGUAGES), _SIGNS.get(sign, _UNKNOWN_SIGN if _is_sign(sign) else _NO_CHARACTER))


@cache
def load() -> Letters:
    """The shipped counts, once a process (4 MB)."""
    with files(__package__).joinpath(COUNTS).open("rb") as stream:
        return Letters(np.load(stream))


RARE: Vector = np.array([0 if name in _COMMON.split() else -_RARE_COST * UNIT for name in LANGUAGES], np.int32)


def _is_letter(sign: str) -> bool:
    return sign.isalpha() or unicodedata.category(sign)[0] == "M"


def _script(sign: str) -> str:
    """The first word of a letter's name, which is its script: "LATIN". "" for ideographs and what is not a letter."""
    return unicodedata.name(sign, "").split(" ")[0] if _is_letter(sign) and not _ideograph(sign) else ""


_FULL_WIDTH = ("\u2460\u24ff", "\u3000\u303f", "\u3200\u33ff", "\uff01\uffef")


def _full_width(sign: str) -> bool:
    """Forms and signs of East Asian typography, circled numbers and half-width letters among them."""
    return any(span[0] <= sign <= span[1] for span in _FULL_WIDTH)


def _is_sign(sign: str) -> bool:
    return unicodedata.category(sign) not in ("Cc", "Co", "Cn", "Cs") and sign != "\ufffd"


def _ideograph(sign: str) -> bool:
    return "\u2e80" <= sign <= "\u9fff" or "\uac00" <= sign <= "\ud7a3" or "\uf900" <= sign <= "\ufaff"


# For each language, the standards whose first level holds what is common: lead bytes of it, and how many there are.
_LEVELS: dict[str, Sequence[tuple[str, int, int, float]]] = {
    "jpn": (("euc_jp", 0xB0, 0xCF, 1e-4),),
    "kor": (("euc_kr", 0xB0, 0xC8, 2e-4), ("euc_kr", 0xCA, 0xFD, 1e-6)),
    "zho": (("gb2312", 0xB0, 0xD7, 1e-4), ("big5", 0xA4, 0xC6, 1e-4)),
}


@lru_cache(1 << 14)
def _level(sign: str, language: str) -> float:
    """The probability of an ideograph or a syllable in a language that nothing but its level is known of."""
    if not _ideograph(sign) or not sign.isalpha():
        return 0.0
    for codec, first, last, probability in _LEVELS[language]:
        code = sign.encode(codec, "ignore")
        if len(code) == 2 and first <= code[0] <= last:
            return probability
    return 3e-6 if not "\uac00" <= sign <= "\ud7a3" or language == "kor" else 0.0
