"""What is left of a licence file when known texts are taken away, and whether that may be a condition.

The question is never which terms these are. Words of terms in what is left, a piece left out within a sentence, or much
unknown text make the whole unknown.
"""

import re

from refinery.transforms.code.licences.license_cover import Cover, Words

LONG = 25  # words of one sentence that say nothing of terms and still are too many
MOST = 0.5  # share of a text that may be left, without copyright lines

_TERMS = r"""
non not no nor never only solely without except(?:ion|ions|ing|ed|s)? unless provided must shall may might cannot can
could should would will requires? required requirements? restrict\w* prohibit\w* forbid\w* limit(?:ed|s|ation|ations)?
condition\w* terms? agree\w* licens\w* lizenz\w* licenz\w* sublicens\w* fees? royalt\w* pay\w* purchas\w* charge\w*
commercial\w* noncommercial\w* profit\w* evaluat\w* research\w* academic\w* educat\w* internal\w* personal private
terminat\w* permi\w* allow\w* grant\w* consent\w* rights? reserved confidential\w* secret\w* proprietary patents?
trademarks? copy copies copying modif\w* distribut\w* redistribut\w* sell sold use uses used using derivative\w*
publish\w* govern\w* military ethic\w* harm\w* evil law\w* legal\w* export\w* obligat\w* liab\w* indemn\w* warrant\w*
subject a?gpl\w* lgpl\w* nc sa nd
"""
TERMS = re.compile("|".join(_TERMS.split()))
"""Words that terms are made of."""
_TITLE = frozenset(("license", "licenses", "rights", "reserved"))  # in a title or a copyright line they say nothing
_POINTS = frozenset(("under", "see", "by", "of", "to", "with", "agreement"))
_NAMES = re.compile(
    r"educat\w*|research\w*|academic\w*|modif\w*|publish\w*|law\w*|legal\w*|will|may|no|export\w*|private|sa|nd|nc"
)
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
        telling = [word for word in sentence if not word.isdigit()]
        if not holder and len(telling) > LONG:
            return False
        left += 0 if holder else len(telling)
    return left <= MOST * len(words.words)


def remainders(words: Words, cover: Cover) -> list[list[str]]:
    """The words that are left, as the sentences that they are of or pieces of them."""
    out: list[list[str]] = []
    open_ = False
    for word, covered, begins in zip(words.words, cover.covered.tolist(), words.begins.tolist(), strict=True):
        if covered:
            open_ = False
            continue
        if not open_ or begins:
            out.append([])
        out[-1].append(word)
        open_ = True
    return out


def is_holder(sentence: list[str]) -> bool:
    """Whether this names who has the copyright."""
    return (
        "copyright" in sentence or sentence[:1] == ["c"] or (len(sentence) < 12 and any(map(_YEAR.fullmatch, sentence)))
    )


def has_terms(sentence: list[str], holder: bool) -> bool:
    """Whether what is left of a sentence may be a condition. holder: it names who has the copyright."""
    found = {word for word in sentence if TERMS.fullmatch(word)}
    if holder:
        found = {word for word in found if not _NAMES.fullmatch(word)}
    return bool(found - _TITLE or ("license" in found and _POINTS.intersection(sentence)))
