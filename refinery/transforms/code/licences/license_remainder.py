"""What is left of a licence file when known texts are taken away, and whether that may be a condition.

The question is never which terms these are. Words of terms in what is left, a piece left out within a sentence, or much
unknown text make the whole unknown.
"""

import re
from itertools import pairwise

import numpy as np

from refinery.transforms.code.licences.license_cover import Cover, Words

LONG = 8  # telling words of one sentence that say nothing of terms and still are too many
SURE = 8  # words in a row that no text has by chance
NEAR = 6  # words before a name, among which is the copyright
NAMES = 12  # words of one name in a copyright line
MOST = 0.5  # share of a text that may be left, without copyright lines

_TERMS = r"""
non not no nor never only solely without except(?:ion|ions|ing|ed|s)? unless provided must shall may might cannot can
could should would will requires? required requirements? restrict\w* prohibit\w* forbid\w* limit(?:ed|s|ation|ations)?
condition\w* terms? agree\w* licens\w* lizenz\w* licenz\w* sublicens\w* fees? royalt\w* pay\w* purchas\w* charge\w*
commercial\w* noncommercial\w* profit\w* evaluat\w* research\w* academic\w* educat\w* internal\w* personal private
terminat\w* permi\w* allow\w* grant\w* consent\w* rights? reserved confidential\w* secret\w* proprietary patents?
trademarks? copy copies copying modif\w* distribut\w* redistribut\w* sell sold use uses used using derivative\w*
publish\w* govern\w* military ethic\w* harm\w* evil law\w* legal\w* export\w* obligat\w* liab\w* indemn\w* warrant\w*
subject a?gpl\w* lgpl\w* nc sa nd exclu\w* owe\w* compan(?:y|ies) firms? weapon\w*
"""
TERMS = re.compile("|".join(_TERMS.split()))
"""Words that terms are made of."""
_TITLE = frozenset(("license", "licenses", "rights", "reserved"))  # in a title or a copyright line they say nothing
_POINTS = frozenset(("under", "see", "by", "of", "to", "with", "agreement"))
_NAMES = re.compile(
    r"educat\w*|research\w*|academic\w*|modif\w*|publish\w*|law\w*|legal\w*|will|may|no|export\w*|private|sa|nd|nc|company|firm"
)
_FILLER_WORDS = "a an and are as at by for from in is it its of on or that the these this to was with"
_FILLERS = frozenset(_FILLER_WORDS.split())
_TITLE_WORDS = "a all and c copying copyright file is legal mit notice of see software text the"
_TITLES = _TITLE.union(_TITLE_WORDS.split())
_YEAR = re.compile(r"(?:19|20)\d\d")  # fmt: skip


def is_free_of_terms(words: Words, cover: Cover) -> bool:
    """Whether known texts cover most of a text, whole, and what is left has no words of terms."""
    if cover.cut.any():
        return False
    left = 0
    for sentence in remainders(words, cover):
        holder = is_holder(sentence)
        if has_terms(sentence, holder):
            return False
        telling = [word for word in sentence if not word.isdigit() and word not in _FILLERS]
        if not holder and (len(telling) > LONG or not "".join(sentence).isascii()):
            return False
        left += 0 if holder else len(sentence)
    return left <= MOST * len(words.words)


def without_short_terms(words: Words, found: Cover) -> Cover:
    """`pooled` without its short pieces that have words of terms: five such words are in some known text by chance."""
    pooled = found.pooled or found
    covered = pooled.covered.copy()
    extra = covered & ~found.covered
    if extra.any():
        borders = np.flatnonzero(np.diff(extra, prepend=False)).tolist()
        for begin, end in pairwise([*borders, len(covered)]):
            if extra[begin] and end - begin < SURE and has_terms(words.words[begin:end], holder=False):
                covered[begin:end] = False
    return pooled._replace(covered=covered)


def remainders(words: Words, cover: Cover) -> list[list[str]]:
    """The words that are left, as sentences or pieces of them.

    A piece begins with the copyright or the year that stands near before it in its sentence, covered or not.
    """
    out: list[list[str]] = []
    open_, begin = False, 0
    covered = cover.covered.tolist()
    for place, begins in enumerate(words.begins.tolist()):
        begin = place if begins else begin
        if covered[place]:
            open_ = False
            continue
        if not open_ or begins:
            near = words.words[max(begin, place - NEAR) : place]
            out.append(near[next((i for i, word in enumerate(near) if _is_mark(word)), len(near)) :])
        out[-1].append(words.words[place])
        open_ = True
    return out


def _is_mark(word: str) -> bool:
    return word.startswith("copyright") or _YEAR.fullmatch(word) is not None


def is_holder(sentence: list[str]) -> bool:
    """Whether this names who has the copyright: each "copyright", "(c)" or year has at most NAMES words behind it."""
    marks = [place for place, word in enumerate(sentence) if _is_mark(word) or (word == "c" and not place)]
    if not marks or marks[0] > NAMES:
        return False
    return all(end - begin - 1 <= NAMES for begin, end in pairwise([*marks, len(sentence)]))


def says_nothing(words: Words) -> bool:
    """Whether a text is no more than a title and who has the copyright."""
    sentences = [words.words[a:b] for a, b in pairwise([*np.flatnonzero(words.begins).tolist(), len(words.words)])]
    return all(_TITLES.issuperset(one) or (is_holder(one) and not has_terms(one, holder=True)) for one in sentences)


def has_terms(sentence: list[str], holder: bool) -> bool:
    """Whether what is left of a sentence may be a condition. holder: it names who has the copyright."""
    found = {word for word in sentence if TERMS.fullmatch(word)}
    if holder:
        found = {word for word in found if not _NAMES.fullmatch(word)}
    return bool(found - _TITLE or ("license" in found and _POINTS.intersection(sentence)))
