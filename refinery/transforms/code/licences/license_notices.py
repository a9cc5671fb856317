# ruff: noqa: E501 - a form is a line
"""What the comments of a source file state about its licence.

A sentence counts as a statement if known notices cover it, or if it has the form of one: "licensed under", a line that
begins with "License", a name beside a copyright. A sentence that only speaks of a licence is a mention and counts for
nothing. A statement with a name that nobody knows, or with further restrictions, makes the whole UNKNOWN.
"""

import re
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from refinery.transforms.code.licences.license_cover import cover, split_words
from refinery.transforms.code.licences.license_expressions import join, licence_class
from refinery.transforms.code.licences.license_remainder import has_terms, is_holder
from refinery.transforms.code.licences.license_rules import DENIED
from refinery.transforms.code.licences.license_words import named, normalised, unnamed

PUBLIC_DOMAIN = "LicenseRef-public-domain"
UNKNOWN = "LicenseRef-unknown"
"""Terms that nobody here knows; denied."""

HEAD = 8_000  # characters of a source file that can be its header
MAX_DECLARED = 200  # characters of a declaration; a longer one is terms
COVERED = 0.8  # share of a sentence that known notices cover
SHORT = 8  # words of a line that is no more than a name
GRANT_LEFT = 8  # words of a grant that may differ, such as names

MANY_LEGAL = 3  # different words of law in a comment that no known text covers: terms, in whatever form
TRAILING = 3  # sentences behind a licence that may still be of it

LICENCE_HINT = re.compile(
    r"licen[scz]|lizenz|лиценз|许可|ライセンス|agreement|eula\b|gpl\b|gpl[ v]|permission (?:is|to)|redistribut|public domain|cc0"
    r"|propriet|commercial|prohibit|forbidden|confidential|unauthori|trade secret|research|academic|educational|evaluation"
    r"|\bby[- ]nc|creative commons|copyleft|(?:may|must|shall|can ?not) (?:not|only|never) be|you (?:may|must|shall|can)\b"
)
"""Without one of these in small letters, a comment has none of the forms below."""

_LICENCE = r"(?:licen[scz]\w*|lizenz\w*|лиценз\w*|eula|agreement|gpl\w*|agpl\w*)"
_WORK = r"(?:file|software|code|program|work|material|source|library|module|package|script|product|project)s?"
_USE = r"(?:use[ds]?|using|cop(?:y|ied|ying)|modif\w+|(?:re)?distribut\w+|reproduc\w+|disclos\w+|transmit\w+|transferred|published)"
_FORMS = (
    r"\b(?:re|dual |sub|multi )?licen[sz]ed (?:under|by|to|with|for|as|on|from|only|exclusively|in|and|software|mater)",
    r"\b(?:licen[sz]ed|all rights reserved) (?:\w+ )?$",
    r"^(?:(?:the|this|file|code|source|software|project) ){0,2}(?:licen[scz]\w{0,3}|lizenz|licensing)(?: (?:is|type|name|terms))?(?: [\w+]+){1,5}$",
    rf"\b(?:released|distributed|published|available|provided|covered|governed|issued|offered|shared|protected|regi|régie?|soumise?|subject|falls|put|under|according|bound|restricted)"
    rf" (?:\w+ ){{0,3}}?(?:by|under|to|par|a|au|à|with|the|unter|der) (?:[\w+]+ ){{0,9}}?{_LICENCE}\b",
    rf"\b(?:under|terms of) (?:[\w+]+ ){{0,8}}?{_LICENCE}\b",
    r"\bpermission (?:is|to) (?:hereby |not )*(?:granted|given|denied|required|use|copy|modify|distribute)",
    r"\b(?:redistribution|redistributing)s? (?:and|or|of|in|is|with)\b",
    rf"\bth(?:is|ese) (?:\w+ ){{0,3}}{_WORK} (?:\w+ ){{0,6}}?(?:may|must|shall|can ?not) (?:not |only |never )?be {_USE}",
    rf"\byou (?:may|must|can|shall) (?:not |only |freely )?(?:{_USE}(?: and| or)? )+(?:of )?(?:this|the) (?:\w+ ){{0,3}}{_WORK}\b",
    r"\b(?:for|to) (?:\w+ ){0,4}?(?:non ?commercial|research|academic|educational|evaluation|personal) (?:\w+ ){0,4}?(?:use|purposes?|only)\b",
    r"\b(?:non ?commercial|research|academic|educational|evaluation|personal) (?:(?:and|or) \w+ )?(?:use|purposes?) only\b",
    r"\b(?:only for|restricted to|limited to) (?:non ?commercial|research|academic|educational|evaluation|personal)\b",
    r"\bnon ?commercial (?:use|purposes?|licen|share)|\bnot for (?:commercial|resale|production|redistribution)|\bcommercial (?:use|usage|licen[sc]e\w*)\b",
    rf"\b{_USE} (?:\w+ ){{0,8}}(?:strictly |expressly )?(?:prohibited|forbidden|not permitted|not allowed)",
    r"\bconfidential and|and confidential|trade secret|\bproprietary (?:information|to|software|and|code|material|source|licen)|\bunauthori[sz]ed \w+",
    rf"\b{_USE} (?:\w+ ){{0,12}}?provided (?:that )?(?:the |these )?(?:following |below )?(?:conditions?|terms|restrictions?)\b|\bfollowing conditions\b",
    rf"\byou are (?:hereby )?(?:not )?(?:free|allowed|permitted|welcome|granted|licensed|forbidden) (?:to|the|from) (?:\w+ )?{_USE}",
    r"\brequires? (?:a|an|the|prior|written|our|my) (?:\w+ ){0,3}?(?:licen[sc]e|permission|consent)\b|\bcommercially\b",
    r"^(?:[\w+]+ ){0,7}?(?:public|general|open|free|software|commons) licen[sc]e(?: (?:v|version)? ?\d[\w ]{0,12}| only| or later)*$",
    r"\balternatively\b.{0,300}\blicen[sc]e",
    r"\blicen[sc]e (?:with|plus) (?:\w+ )?(?:restrictions?|exceptions?|conditions?|amendments?)\b",
    r"\btext of the (?:\w+ ){0,5}?licen[sc]e\b|\bproperty of\b.{0,300}\b(?:rights|law)\b",
    r"\blicen[sc]e\b.{0,300}\bgranted\b|\bno part of this\b|\bsubject to licen[sc]e\b|\bfreely (?:be )?(?:distribut|used|cop)",
    r"\bcc by\b|\bcreative commons\b|\bend user licen|\beula\b",
    r"\b(?:in|to|into) (?:the )?public domain\b|\bdual licen|\bopen source licen",
)
_FORM = re.compile("|".join(_FORMS))
_CHANGED = re.compile(
    r"\bnot (?:\w+ )?(?:permitted|granted|allowed)\b|\bno permission\b|\bcannot be licen[sc]ed"
    r"|\b(?:modified|adapted|amended) (?:version of the )?(?:mit|apache|isc|zlib|beer)"
    r"|\b(?:mit|bsd|apache|isc|zlib|ware) (?:licen[sc]e )?(?:as )?(?:modified|adapted|amended)"
)
"""A licence that was changed, or a grant that is none."""
_DENIES = re.compile(r"\b(?:not|nor|isn t|never|no) (?:\w+ ){0,3}?public domain")
_GOES_ON = re.compile(
    r"\blimited (?:solely |only )?to\b|\bsolely\b|\bcommercial|\bfees?\b|\bonly (?:be|for|if|in|on)\b|\byou (?:acknowledge|agree|may|must|shall)\b|\blicen[sc]|\bshall\b|\bnot (?:intended|designed|permitted|allowed)|prohibited"
)
_LEGAL = re.compile(
    r"licens\w*|permission|granted?|warrant\w*|liab\w*|damages|redistribut\w*|copyright(?:ed|s)|royalt\w*|intellectual|agreement"
    r"|commercial\w*|terms|obligations?|infring\w*|proprietary|patents?|trademarks?|consent|laws?|sold|sell|merchantab\w*|freely"
    r"|reserves?|governed|prohibited|disclaims?|disclaimer"
)
_RESTRICTS = re.compile(
    r"non|nc|nd|noncommercial|commercial\w*|solely|prohibit\w*|forbid\w*|restrict(?:ed|s|ions?)|except|research|academic"
    r"|education\w*|evaluation|internal|confidential|proprietary|clause|evil|military|personal|private|only"
)
_NEGATED = frozenset(("not", "no", "nor", "never", "cannot", "without", "unless", "must", "shall", "restrictions"))
_REFERS = re.compile(
    r"\b(?:see|refer|read|found|accompany\w*|described|listed|located|consult|check)"
    r" (?:[\w+]+ ){0,8}?(?:licen[sc]\w*|copying|copyright|notice|readme|legal)\b"
    r"|\b(?:in|with|by|included|given|contained) (?:[\w+]+ ){0,6}?(?:licen[sc]\w*|copying|copyright|notice|readme|legal) (?:file|txt|md|rst|html)"
    r"|\bin (?:the )?(?:copying|licen[sc]e)$|\bfollowing (?:\w+ ){0,2}(?:licen[sc]e|terms|conditions)s?\b"
    r"|\blicen[sc](?:e|ing) (?:information|info|details|file|text|header|notice)"
)
_NO_REFERENCE = re.compile(
    r"\blicen[sc]ed under (?:the |an? )?(?!terms\b|licen[sc]|conditions\b|following\b|accompanying\b|\w+ style\b)\w+|\beula\b|agreement|end user|commercial|proprietary|purchase"
)
_MENTION = re.compile(
    r"\b(?:not|never|nor|neither|isn t|aren t|no longer|without being) (?:\w+ ){0,4}?(?:covered|licen[sc]ed|governed|affected|derived|bound|under"
    r"|subject|based|from|part)\b(?: (?!but\b|instead\b|rather\b|however\b)[\w+]+){0,10}? (?:gpl\w*|gnu(?: \w+){0,2}? public licen[sc]e)"
    r"|\b(?:such as|like|unlike|for example|parses?|detects?|checks? for|recogni[sz]es?|compatible with|similar to|instead of|rather than)"
    r" (?:[\w+]+ ){0,5}?(?:l?gpl\w*|public licen[sc]e\w*|licen[sc]es?)\b"
)
_GRANT = re.compile(r"permission is hereby|permission to use|redistributions? (?:and|or) use in source")
_NAMED = re.compile(r"\bgeneral public license\b|\b(?:l|a|gnu ?)?gpl(?:v?[123][\d+]*)?\b")
_KEY = re.compile(r"^(?:@?licen[sc]e|licensing|licen[sc]es)(?: is| type| name)? (.+)$")
_HOLDER = re.compile(r"\bcopyright\b|^c? ?(?:19|20)\d\d\b")
_DUAL = re.compile(r"^dual\b|\s{0,9}/\s{0,9}|\s{1,9}or\s{1,9}(?!later|newer|any)", re.IGNORECASE)
_NO_MORE = re.compile(
    r"licen[sc]ed?|under|the|version|v?\d[\d+]*|gnu|or|later|newer|only|and|clause|new|revised|software|universal|public"
    r"|domain|dedication|iscl|open|source|mit|bsd|isc|mpl|lgpl\w*|gpl\w*|zlib"
)
"""Words of a declaration beside the name that is known."""


def declared(value: str) -> str:
    """The expression that a declaration such as `__license__ = "GPL v3"` gives; UNKNOWN for one that is not known."""
    value = value.strip()
    if len(value) > MAX_DECLARED:
        return UNKNOWN
    if licence_class(value) != DENIED:
        return value
    parts = [part for part in _DUAL.split(value) if part.strip()]
    if len(parts) > 1:
        found = [declared(part) for part in parts]
        return UNKNOWN if UNKNOWN in found else " OR ".join(dict.fromkeys(found))
    small = normalised(value).strip()
    name = named(f"licensed under {_loosely(small)} license")
    if small == "public domain":
        return PUBLIC_DOMAIN
    rest = unnamed(f"licensed under {_loosely(small)} license").split()
    more = not all(map(_NO_MORE.fullmatch, rest)) or not value.isascii()
    return UNKNOWN if not name or (more and licence_class(name) != DENIED) else name


def notice(comments: str) -> str:
    """The expression of the licences that comments state; UNKNOWN for terms that are not known, "" for none.

    Linear in the first HEAD characters; nothing behind them is read.
    """
    found, sentences = _sentences(comments[:HEAD])
    said = [_stated(sentence) for sentence in sentences]
    legal = {word for sentence in sentences for word in sentence.left if _LEGAL.fullmatch(word)}
    if UNKNOWN in said or len(legal) >= MANY_LEGAL:
        return UNKNOWN
    return named(_ascii(" ".join(filter(None, said)))) or join("AND", found if any(said) else ())


class _Sentence(NamedTuple):
    """words: of it. left: those that known texts do not cover. cut: something known is left out within it. grants: it
    or one a few before it grants rights, as licences do. inside: more of a known text comes behind it."""

    words: list[str]
    left: list[str]
    cut: bool
    grants: bool
    inside: bool


def _sentences(comments: str) -> tuple[tuple[str, ...], list[_Sentence]]:
    """(the licences of the known texts in comments, the sentences)."""
    words = split_words(comments)
    found = cover(words)
    bounds = [*np.flatnonzero(words.begins).tolist(), len(words.words)]
    out: list[_Sentence] = []
    since, grants = TRAILING + 1, False
    known = found.pooled.covered if found.pooled else found.covered
    last = int(np.flatnonzero(found.covered)[-1]) if found.covered.any() else -1
    for begin, end in pairwise(bounds):
        own = words.words[begin:end]
        left = [word for word, covered in zip(own, known[begin:end].tolist(), strict=True) if not covered]
        since = 0 if _GRANT.search(" ".join(own)) or (grants and len(left) <= len(own) / 2) else since + 1
        grants = since <= TRAILING
        out.append(_Sentence(own, left, bool(found.cut[begin:end].any()), grants, grants and end <= last))
    return found.expressions, out


def _stated(sentence: _Sentence) -> str:
    """The sentence with names in their full form, if it states a licence; UNKNOWN for terms that are not known; ""."""
    words, left, cut, grants, inside = sentence
    plain = " ".join(words)
    without = _MENTION.sub(" ", plain)
    if without != plain and not _FORM.search(without):
        return ""
    if len(left) <= (1 - COVERED) * len(words):
        terms = has_terms(left, is_holder(words)) if grants else _restricts(left, _NEGATED)
        return UNKNOWN if terms or (grants and cut) else plain
    if _DENIES.search(plain):
        return UNKNOWN
    stated = _statement(without) or (without if grants and _GOES_ON.search(without) else "")
    if not stated:
        return UNKNOWN if inside and has_terms(left, is_holder(words)) else ""
    name = named(_ascii(stated))
    if not name and _REFERS.search(stated) and not _NO_REFERENCE.search(stated):
        return ""
    if not name or (grants and len(left) > GRANT_LEFT and has_terms(left, is_holder(left))):
        return UNKNOWN
    return UNKNOWN if licence_class(name) != DENIED and (_restricts(left) or _CHANGED.search(stated)) else stated


def _restricts(left: list[str], more: frozenset[str] = frozenset()) -> bool:
    """Whether words of a statement that known notices do not cover restrict use."""
    return any(word in more or _RESTRICTS.fullmatch(word) for word in left)


def _statement(sentence: str) -> str:
    """The sentence, with names in their full form, if it states a licence; else ""."""
    if sentence.endswith("public domain") and len(sentence.split()) <= SHORT:
        return "released to the public domain"
    if key := _KEY.match(sentence):
        value = _loosely(key[1])
        if len(sentence.split()) <= SHORT or _NAMED.search(key[1]):
            return f"licensed under {value} license"
    short = (
        len(sentence.split()) <= SHORT
        and not re.sub(
            r"\b(?:gnu|the|a|v?\d+\+?|version|or|later|newer|higher|plus|only|license|under|and|any|is|this|file|code)\b",
            "",
            _NAMED.sub("", sentence),
        ).strip()
    )
    if _NAMED.search(sentence) and (short or (_HOLDER.search(sentence) and len(sentence.split()) <= 3 * SHORT)):
        return _loosely(sentence)
    return _loosely(sentence) if _FORM.search(sentence) else ""


def _loosely(words: str) -> str:
    """A bare "gpl" as "gnu gpl", by which it is known."""
    return re.sub(r"(?<!gnu )\b(gpl)\b", r"gnu \1", words)


def _ascii(words: str) -> str:
    return " ".join(re.sub(r"[^a-z0-9+ ]+", " ", words).split())
