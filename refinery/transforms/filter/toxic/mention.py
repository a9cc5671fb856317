"""Which hits are mentioned rather than said: in quotation marks, in a quoted line, after a word of reported speech.

Counter-speech quotes what it answers, and so do news and research. Filters by words that do not tell use from mention
remove it (Röttger et al. 2021, "HateCheck", functions F20 and F21; Gligoric et al. 2024).
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import cache

import refinery.transforms.filter.toxic.words as data
from refinery.transforms.filter.toxic.lexicon import WORD, Hit

LONGEST = 1_000  # characters of a quotation: a mark that is never closed quotes nothing
BEFORE = 4 * LONGEST  # characters of a line before a hit that are read for quotation marks
REACH = 200  # characters before a hit that are read for a word of reported speech
# None of the classes has its opening mark, so what is never closed costs its own length only.
QUOTED = re.compile(
    rf'"[^"\n]{{1,{LONGEST}}}+"|“[^“”„\n]{{1,{LONGEST}}}+”|„[^„“”"\n]{{1,{LONGEST}}}+[“”"]|«[^«»\n]{{1,{LONGEST}}}+»'
    rf"|»[^«»\n]{{1,{LONGEST}}}+«|「[^「」\n]{{1,{LONGEST}}}+」|『[^『』\n]{{1,{LONGEST}}}+』|‘(?:[^‘’\n]|(?<=\w)’(?=\w)){{1,{LONGEST}}}+’"
    rf"|(?<!\w)'(?:[^'\n]|(?<=\w)'(?=\w)){{1,{LONGEST}}}+'(?!\w)|^[ \t]{{0,3}}>[^\n]*",
    re.MULTILINE,
)
SENTENCE_END = re.compile(r"[.!?;\n。！？]")


@cache
def _reporting(language: str) -> tuple[frozenset[str], frozenset[str]]:
    """Words of reported speech of a language (English: of all that have no list), and those of its first person."""
    known = language if language in data.REPORTING else "en"
    return frozenset(data.REPORTING[known].split()), frozenset(data.FIRST_PERSON[known].split())


def find_mentions(text: str, hits: Sequence[Hit], language: str) -> list[bool]:
    """For each hit in a case-folded text, whether it is mentioned. `hits` in order. Linear in both."""
    found: list[bool] = []
    spans: list[tuple[int, int]] = []
    read = 0
    for hit in hits:
        if hit.end > read:
            spans, read = _quotations(text, hit)
        before = bisect_right(spans, (hit.start, len(text))) - 1
        quoted = before >= 0 and hit.end <= spans[before][1]
        found.append(quoted or _is_reported(text, hit.start, language))
    return found


def _quotations(text: str, hit: Hit) -> tuple[list[tuple[int, int]], int]:
    """Quotations of the line that a hit is in, at most `BEFORE` characters before it, and where reading ended."""
    reach = max(0, hit.start - BEFORE)
    start = max(reach, text.rfind("\n", reach, hit.start) + 1)
    stop = text.find("\n", hit.end, hit.end + LONGEST)
    stop = stop if stop >= 0 else min(len(text), hit.end + LONGEST)
    return [found.span() for found in QUOTED.finditer(text, start, stop)], stop


def _is_reported(text: str, at: int, language: str) -> bool:
    """Whether a word of reported speech stands before, in the same sentence, and not in the first person."""
    verbs, speakers = _reporting(language)
    sentence = SENTENCE_END.split(text[max(0, at - REACH) : at])[-1]
    words = WORD.findall(sentence.replace("'", "").replace("’", ""))
    return any(word in verbs and (i == 0 or words[i - 1] not in speakers) for i, word in enumerate(words))
