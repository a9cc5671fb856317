"""What `transforms.native.counting` counts with DCLM's units, a second time, in plain Python."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import chain, groupby

from refinery.transforms.native import scripts

BULLETS = ("●", "•", "*", "-")
ELLIPSES = ("...", ". . .", "…")
ASSIGNED = (range(0x40000), range(0xE0100, 0xE01F0))  # where there are letters, digits and marks
_ASCII_SPACED = re.compile(r"[^ \n\r\t\v\f\0]+")
KATAKANA = (range(0x30A1, 0x30FB), range(0x30FC, 0x3100), range(0x31F0, 0x3200), range(0xFF66, 0xFF9E))


def gopher_counts(text: str, stop_lists: Sequence[Sequence[str]]) -> dict[str, int]:
    """For Gopher's quality rules. `#` and the forms of the ellipsis share one limit, that of `#`; a stop word counts as
    often as it occurs, in any case; words are cut at white space, for `min_words` at that of ASCII alone, and there a
    word begins with a letter or a digit."""
    words = text.split()
    lines = _stripped(text, "\n")
    counted = sum(word[0].isalnum() for word in _ASCII_SPACED.findall(text))
    lower = Counter(map(str.lower, words))
    return {
        "words": len(words),
        "word_chars": sum(map(len, words)),
        "double_median_chars": 0,
        "alnum_words": counted,
        "letters": 0,
        "spaceless_letters": 0,
        "hashes": sum(map(text.count, ("#", *ELLIPSES))),
        "ellipses": 0,
        "lines": len(lines),
        "bullet_lines": sum(line.startswith(BULLETS) for line in lines),
        "ellipsis_lines": sum(line.endswith(ELLIPSES) for line in lines),
        "alphabetic_words": sum(any(map(str.isalpha, word)) for word in words),
        "stop_words": max((sum(lower[word] for word in words) for words in stop_lists), default=0),
    }


def repetition_shares(text: str) -> Mapping[str, Callable[[], float]]:
    """For the repetition rules: name of a figure -> its share. Words are those of `words_of`."""
    lines, paragraphs = (cache(partial(_stripped, text, end)) for end in ("\n", "\n\n"))
    found = Repeats(text)
    return {
        "duplicate_lines": lambda: _repeated(lines(), lambda _: 1),
        "duplicate_paragraphs": lambda: _repeated(paragraphs(), lambda _: 1),
        "duplicate_line_chars": lambda: _repeated(lines(), len),
        "duplicate_paragraph_chars": lambda: _repeated(paragraphs(), len),
        **{f"top_{n}_gram": partial(found.top, n) for n in range(2, 5)},
        **{f"duplicate_{n}_grams": partial(found.covered, n) for n in range(5, 11)},
    }


def words_of(text: str) -> list[str]:
    """Words by the boundaries of Unicode's annex 29, without what does not begin with a letter or a digit.

    Runs of letters, digits, marks and underscores; one of `'’.:·‧` between letters, or of `'’.,;،٬` between digits,
    parts no word; a letter of a script written without spaces is a word, but katakana, which make runs.
    """
    return [word for word in _words().findall(text) if word[0].isalnum()]


@cache
def _words() -> re.Pattern[str]:
    spaceless = {code for first, last in scripts.unspaced() for code in range(first, last + 1)}
    katakana = set(chain(*KATAKANA))
    kinds: dict[str, list[int]] = {"letter": [], "digit": [], "mark": [], "single": [], "katakana": []}
    for code in chain(*ASSIGNED):
        character, category = chr(code), unicodedata.category(chr(code))
        if code in katakana:
            kinds["katakana"].append(code)
        elif category[0] == "M" or category == "Cf":
            kinds["mark"].append(code)
        elif category == "Nd":
            kinds["digit"].append(code)
        elif character.isalnum():
            kinds["letter" if character.isalpha() and code not in spaceless else "single"].append(code)
    letter, digit, mark, single, kana = (_ranges(codes) for codes in kinds.values())
    run = f"[{letter}{digit}{mark}_]"
    joined = f"(?<=[{letter}{mark}])['’.:·‧](?=[{letter}])|(?<=[{digit}])['’.,;،٬](?=[{digit}])"
    return re.compile(f"[{letter}{digit}_]{run}*(?:(?:{joined}){run}+)*|[{kana}][{kana}{mark}_]*|[{single}][{mark}]*")


def _ranges(codes: Iterable[int]) -> str:
    """The inside of a character class."""
    found = []
    for _, group in groupby(enumerate(codes), lambda each: each[1] - each[0]):
        run = [code for _, code in group]
        found.append(f"{re.escape(chr(run[0]))}-{re.escape(chr(run[-1]))}")
    return "".join(found)


def _stripped(text: str, end: str) -> list[str]:
    return [piece for each in text.split(end) if (piece := each.strip())]


def _repeated(pieces: Sequence[str], size: Callable[[str], int]) -> float:
    """The share of pieces that occur more than once, weighed by `size`; of a single piece 0, of none all of it."""
    if len(pieces) < 2:
        return 0.0 if pieces else 1.0
    counts = Counter(pieces)
    return sum(size(piece) * n for piece, n in counts.items() if n > 1) / sum(map(size, pieces))


class Repeats:
    """The n-grams of a text's words that occur more than once, by growing n: both (n-1)-grams in one are repeated, too,
    so that ordinary text has few candidates beyond n = 3."""

    def __init__(self, text: str) -> None:
        self._words = words_of(text)
        self._chars = sum(map(len, self._words))
        self._starts: list[Sequence[int]] = [(), range(len(self._words))]  # by n, where a repeated one begins
        self._counts: list[Counter[tuple[str, ...]]] = [Counter(), Counter()]

    def top(self, n: int) -> float:
        """Characters of the most frequent n-gram, the longest of these, times its occurrences; 0 without any."""
        self._grow(n)
        most = max(self._counts[n].values(), default=0)
        if most < 2:
            return 0.0
        longest = max(sum(map(len, gram)) for gram, count in self._counts[n].items() if count == most)
        return longest * most / self._chars

    def covered(self, n: int) -> float:
        """Characters of words that are in a repeated n-gram, each once."""
        self._grow(n)
        inside = {i + k for i in self._starts[n] for k in range(n)}
        return sum(len(self._words[i]) for i in inside) / self._chars if inside else 0.0

    def _grow(self, n: int) -> None:
        for size in range(len(self._starts), n + 1):
            before = self._starts[-1]
            known = before if isinstance(before, range) else set(before)
            grams = [(i, tuple(self._words[i : i + size])) for i in before if i + 1 in known]
            counts = Counter(gram for _, gram in grams)
            self._starts.append([i for i, gram in grams if counts[gram] > 1])
            self._counts.append(counts)
