"""Obfuscated words: spaced or dotted letters, digits and signs for letters, look-alike letters, stretched letters.

A pattern (RE2, linear) finds signs of obfuscation; everything else is never looked at. The token around a sign is
reduced to a skeleton, as Unicode Technical Standard 39 does for identifiers: compatibility forms and accents are folded
(NFKD), letters that look alike become one letter, separators go, runs of a letter become one. It is a hit where an
entry has the same skeleton. The tables of shapes are this project's own.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from statistics import median_high
from typing import Any

import re2

from refinery.transforms.filter.toxic.lexicon import Hit, Lexicon, char_starts
from refinery.transforms.redaction.pii_types.lazy_pattern import LazyPattern

SHORTEST, SHORTEST_SPACED = 4, 3  # letters of an entry; spaced letters are a sign by themselves, so fewer suffice
MOST_WEIGHTS = 1 << 16  # tokens of at most 128 characters: some 10 MB
LONGEST = 64  # characters of a token, letters of a spaced run; what is longer is not a word
# Letters and signs that stand for the first of their set; l goes with i and v with u, as 1 and µ may be either.
SHAPES = """
a4@аαɑᴀ b8вβʙ cсϲᴄ¢ dԁᴅɗđ e3еєεᴇ€ fƒꜰғ g69ɡɢԍց hһнʜħη il1!|іιıɪӏłʟ£ jјᴊϳ kкκᴋ mмᴍ nпᴎɴռ o0оοσᴏøօ pрρᴘ qԛ rгʀ s5$ѕꜱ
t7+тτᴛ uvцυᴜᴠνʋսμµ wԝωᴡш xхχ× yуγʏү zᴢ
"""
SHAPE = {ord(other): shape[0] for shape in SHAPES.split() for other in shape[1:]}
# Letters in circles and squares that NFKD leaves as they are, and flags: 26 each from these on.
ENCLOSED = {first + i: SHAPE.get(97 + i, chr(97 + i)) for first in (0x1F150, 0x1F170, 0x1F1E6) for i in range(26)}
SHAPE |= ENCLOSED
VISIBLE = ENCLOSED | dict.fromkeys((0xAD, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF))
# Invisible characters, full width, enclosed and mathematical letters.
UNFOLDED = re.compile(
    "[\u00ad\u200b\u2060\ufeff\uff21-\uff3a\uff41-\uff5a\u249c-\u24e9\U0001d400-\U0001d7ff\U0001f110-\U0001f1ff]"
)
JOINERS = "\u200c\u200d"  # which other scripts need: only between Latin letters
UTF8_LENGTH = {0xC2: 2, 0xE2: 3, 0xEF: 3, 0xF0: 4}
MASK = "*"


def _compile(*patterns: bytes | Callable[[], bytes]) -> Any:
    """Patterns, or what makes them, as one; compiled when it is first used."""

    def make() -> Any:
        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        return re2.compile(b"|".join(each if isinstance(each, bytes) else each() for each in patterns), options)

    return LazyPattern(make)


def _any(letters: str, times: int) -> bytes:
    """A pattern: one of these letters, this many times in a row."""
    return rb"(?:" + b"|".join(letter.encode() * times for letter in letters) + rb")"


def _changed_by_folding() -> bytes:
    """A pattern over UTF-8: runs of characters beyond ASCII, each of which str.casefold changes."""
    last_bytes: dict[bytes, list[bytes]] = defaultdict(list)
    for point in range(0x80, 0x20000):
        letter = chr(point)
        if letter.casefold() != letter:
            *first, last = letter.encode()
            last_bytes[bytes(first)].append(rb"\x%02x" % last)
    sequences = (re2.escape(first) + b"[" + b"".join(last) + b"]" for first, last in sorted(last_bytes.items()))
    return b"(?:" + b"|".join(sequences) + b")+"


GAPS = " \t._/|~,'’·•-*"
GAP = r"(?:[ \t._/|~,'’·•-]{1,3}| ?\* ?)"
SPACED = re.compile(rf"[^\W_](?:{GAP}(?:[^\W_]|[@$!])){{2,{LONGEST}}}(?![^\W_])")
TOKEN = re.compile(r"[\w@$!|+*~.\u0300-\u036f¢€£-]*")
LETTER = re.compile(r"[^\W_]|[@$!]")
BYTE_GAP = rb"(?:(?:[ \t._/|~,'-]|\xe2\x80[\x99\xa2]|\xc2\xb7){1,3}| ?\* ?)"
CHAR = rb"(?:[a-z0-9@$!]|[\xc3-\xd6][\x80-\xbf])"
ODD = rb"(?:[\xcc-\xd6][\x80-\xbf]|\xc9[\x90-\xbf]|\xca[\x80-\xaf]|\xe1[\xb4-\xb6][\x80-\xbf]|\xea\x9c[\xb0\xb1])"
STRICT = rb"(?:" + b"|".join(letter.encode() for letter in "асеорхуіѕјһӏԁԛԝοανιρυκτεχ") + rb")"
MAY_UNFOLD = _compile(  # the same in UTF-8, by first bytes
    rb"\xc2\xad|\xe2\x80[\x8b-\x8d]|\xe2\x81\xa0|\xef\xbb\xbf|\xef\xbd[\x81-\x9a]|\xef\xbc[\xa1-\xba]|\xf0\x9d[\x90-\x9f]"
    rb"|\xe2\x92[\x9c-\xbf]|\xe2\x93[\x80-\xa9]|\xf0\x9f[\x84-\x87]"
)
CASED = _compile(_changed_by_folding)
SIGNS = (
    rb"(?:^|[^a-z0-9])[a-z0-9@$]" + BYTE_GAP + rb"[a-z0-9@$!]" + BYTE_GAP + rb"[a-z0-9@$!](?:$|[^a-z0-9])",  # f u c k
    rb"[\xd0-\xd2][\x80-\xbf]" + BYTE_GAP + CHAR + BYTE_GAP + CHAR + BYTE_GAP,
    rb"\b[a-z]{1,3}[._~*-][a-z]{1,3}\b",  # fu.ck
    rb"[a-z][0-9@$!|+*]+[a-z]",  # f4ck, f**k
    rb"(?:^|[^0-9a-z.@])[0-9@$!+][a-z]{2}",  # 4ss
    rb"[0-9@$][a-z][0-9@$]",  # 5h17
    rb"[a-z]{2}[0357@$](?:$|[^a-z0-9])|[a-z][5$]{2}",  # cun7, a$$
    rb"\b[a-z]{1,2}\*\*",  # f***
    _any("abcdefghijklmnopqrstuvwxyz", 3),  # fuuuck
    _any("abcdefghijklmnopqrstuvwxyz", 2) * 2,  # ffuucckk
    rb"aa|ii|uu",  # fuuck
    _any("абвгдежзийклмнопрстуфхцчшщъыьэюяёіїєґ", 3),
    rb"[a-z]" + ODD + rb"|" + ODD + rb"[a-z]",  # a look-alike beside a Latin letter
    STRICT + rb"{4}",  # nothing but look-alikes
)
SIGN = _compile(*SIGNS)
ACCENTED = _compile(*SIGNS, rb"[a-z](?:[\xc3-\xc5][\x80-\xbf]|\xe1[\xba\xbb][\x80-\xbf])")  # fück
PLAIN_LATIN = ("", "en")  # languages in which an accent is a sign


@dataclass(frozen=True, slots=True)
class Skeletons:
    """Entries by skeleton.

    words: skeleton with runs made one -> (skeleton, weight) of the entries of one word. masked: (first letter, length)
    -> (word, weight), for words with stars in them. weights: of tokens met so far, MOST_WEIGHTS at most.
    """

    words: Mapping[str, Sequence[tuple[str, float]]]
    masked: Mapping[tuple[str, int], Sequence[tuple[str, float]]]
    weights: dict[str, float] = field(default_factory=dict)

    def weight(self, token: str) -> float:
        """Of the entry that a token is in disguise, 0.0 for none; most tokens with a sign are met again and again."""
        known = self.weights.get(token)
        if known is None:
            if len(self.weights) >= MOST_WEIGHTS:
                self.weights.clear()
            known = self.weights[token] = _weight(token, self, SHORTEST) or _masked(token, self)
        return known


def skeleton(text: str) -> str:
    """Letters by shape, without accents, separators and signs that are like no letter."""
    folded = unicodedata.normalize("NFKD", text).casefold().translate(SHAPE)
    return "".join(letter for letter in folded if letter.isalpha())


def runs_as_one(letters: str) -> str:
    """ "aabbb" -> "ab"."""
    return "".join(letter for letter, _ in groupby(letters))


def make_skeletons(lexicon: Lexicon) -> Skeletons:
    """Skeletons of the entries in letters; a phrase counts without its spaces."""
    words, masked = defaultdict(list), defaultdict(list)
    for entry, weight in sorted(lexicon.entries.items()):
        word, found = "".join(entry), skeleton("".join(entry))
        if len(found) >= SHORTEST_SPACED and weight > 0:
            words[runs_as_one(found)].append((found, weight))
            if len(entry) == 1 and len(word) >= SHORTEST and weight >= 1 and word.isascii():
                masked[word[0], len(word)].append((word, weight))
    return Skeletons(words, masked)


def fold(text: str) -> tuple[str, bytes]:
    """`unfold(text.casefold())` and its UTF-8, several times as fast where few letters are beyond ASCII: folding works
    letter by letter, so only those are looked at which it changes. Raises UnicodeEncodeError for lone surrogates.
    """
    if text.isascii():
        text = text.lower()
        return text, text.encode()
    data = text.encode().lower()
    pieces, at = [], 0
    for match in CASED.finditer(data):
        pieces += [data[at : match.start()], match[0].decode().casefold().encode()]
        at = match.end()
    data = _unfold(b"".join([*pieces, data[at:]]) if at else data)
    return data.decode(), data


def unfold(text: str) -> str:
    """A case-folded text with compatibility forms of letters as letters and without invisible characters; mostly `text`
    itself."""
    return text if text.isascii() else _unfold(text.encode()).decode()


def _unfold(data: bytes) -> bytes:
    pieces, at = [], 0
    for match in MAY_UNFOLD.finditer(data):
        start, end = match.start(), match.start() + UTF8_LENGTH[data[match.start()]]
        letter = data[start:end].decode()
        inside_latin = data[start - 1 : start].islower() and data[end : end + 1].islower()  # of ASCII, as bytes are
        if inside_latin if letter in JOINERS else UNFOLDED.match(letter):
            pieces += [data[at:start], unicodedata.normalize("NFKC", letter.translate(VISIBLE)).casefold().encode()]
            at = end
    return b"".join([*pieces, data[at:]]) if at else data


def find_obfuscated(
    text: str, skeletons: Skeletons, language: str, plain: Iterable[Hit], data: bytes | None = None
) -> list[Hit]:
    """Entries in disguise in a case-folded text, but where a hit of `plain` is. In order. Linear. data: its UTF-8.

    A sign costs about 10 microseconds. Raises UnicodeEncodeError for lone surrogates.
    """
    data = text.encode() if data is None else data
    known = {hit.start for hit in plain}
    found: list[Hit] = []
    end = 0
    pattern = ACCENTED if language in PLAIN_LATIN else SIGN
    for at in char_starts(text, data, pattern.finditer(data)):
        if at < end:
            continue
        first = at if text[at].isalnum() or text[at] in "@$!" else at + 1
        spaced = SPACED.match(text, first) if text[first + 1 : first + 2] in GAPS else None
        if spaced and (first == 0 or not text[first - 1].isalnum()):
            hits = list(_spaced(spaced, skeletons))
        else:
            hits = [_token(text, at, first, skeletons)]
        end = max(end, hits[-1].end)
        found += [hit for hit in hits if hit.weight and known.isdisjoint(range(hit.start, hit.end))]
    return found


def _token(text: str, at: int, first: int, skeletons: Skeletons) -> Hit:
    """The token around a sign, with weight 0.0 where it is not an entry."""
    middle = min(first, len(text) - 1)
    start = middle - _token_length(text[max(0, first - LONGEST) : middle][::-1])
    stop = middle + _token_length(text[middle : first + LONGEST])
    token = text[start:stop].strip("!|+.~-_")
    return Hit(start, max(stop, at + 1), skeletons.weight(token))


def _token_length(text: str) -> int:
    """Characters at the beginning that are part of a token."""
    found = TOKEN.match(text)
    return found.end() if found else 0


def _spaced(found: re.Match[str], skeletons: Skeletons) -> Iterator[Hit]:
    """The words of a run of spaced letters: between wider gaps, and without a word of one letter ("a", "i", "u") at
    either end."""
    at = found.start()
    places = [at + letter.start() for letter in LETTER.finditer(found[0])]
    usual = median_high([after - before for before, after in pairwise(places)])
    cuts = [i for i, (before, after) in enumerate(pairwise(places), 1) if after - before > usual]
    for first, last in pairwise([0, *cuts, len(places)]):
        word = "".join(found[0][place - at] for place in places[first:last])
        parts = (word, word[1:] if word[0] in "aiu" else "", word[:-1] if word[-1] in "aiu" else "")
        weight = max(_weight(part, skeletons, SHORTEST_SPACED) for part in parts)
        yield Hit(places[first], places[last - 1] + 1, weight)


def _weight(token: str, skeletons: Skeletons, shortest: int) -> float:
    """Weight of the entry with the same skeleton, in which no run of letters is longer; 0.0 for none."""
    letters = skeleton(token)
    if len(letters) < shortest:
        return 0.0
    runs = [len(list(run)) for _, run in groupby(letters)]
    for entry, weight in skeletons.words.get(runs_as_one(letters), ()):
        if len(entry) >= shortest and all(
            len(list(run)) <= most for (_, run), most in zip(groupby(entry), runs, strict=True)
        ):
            return weight
    return 0.0


def _masked(token: str, skeletons: Skeletons) -> float:
    """Weight of an entry some letters of which are stars, but not the first."""
    token = token.rstrip("!.") if MASK in token[1:] else ""
    if not token or token[0] == MASK or (len(token) - token.count(MASK) < 2 and len(token) != SHORTEST):
        return 0.0
    for word, weight in skeletons.masked.get((token[0], len(token)), ()):
        if all(letter in (MASK, other) for letter, other in zip(token, word, strict=True)):
            return weight
    return 0.0
