"""Names of licences in running text: which words say which, with the version that stands near."""

import re
import unicodedata

from refinery.transforms.code.licences.license_expressions import join
from refinery.transforms.code.licences.license_rules import CHOICE, RESTRICTED, RULES

_HYPHEN = re.compile(r"([a-z])-[^\S\n]*\n[\s*/#;!-]*([a-z])")  # no two parts take the same character: linear
_REST = re.compile(r"[^a-z0-9+]+")
_VERSION = re.compile(r"version ([123])(?: ([01]))?|(?:gpl|mpl) ?v ?([123])(?: ?([01])\b)?|\b([23]) (?:0|1)\b")
_LATER = re.compile(r"(?:any|or) later|or \(?at your option\)? any|gplv?[23] ?\+|v[23] ?\+|or newer")
_EXCEPTION = re.compile(r"with (?:the |an? )?(?:special )?linking exception")


def plain(text: str) -> str:
    """Text in compatible characters (NFKC), without those that nobody sees (category Cf)."""
    if text.isascii():
        return text
    return "".join(one for one in unicodedata.normalize("NFKC", text) if unicodedata.category(one) != "Cf")


def normalised(text: str) -> str:
    """Small letters, digits and "+", everything else one space; words divided at the end of a line are joined."""
    return _REST.sub(" ", _HYPHEN.sub(r"\1\2", text.lower()))


def named(words: str) -> str:
    """The expression of the licences that normalised words name; "" for none.

    Several hold together (AND), unless there are words of choice (OR). No choice takes away terms that restrict use.
    """
    found: dict[str, None] = {}
    rest = words
    for name, signs, pattern in RULES:
        if any(sign in rest for sign in signs) and (match := pattern.search(rest)):
            found[versioned(name, words, match.start())] = None
            rest = pattern.sub(" ", rest)
    bound = [name for name in found if name.startswith(RESTRICTED)]
    free = [name for name in found if name not in bound]
    choice = len(free) > 1 and CHOICE.search(words)
    return (
        join("AND", [join("OR", free), *bound] if choice and bound else free + bound)
        if not choice or bound
        else (" OR ".join(free))
    )


def unnamed(words: str) -> str:
    """Normalised words without the licences that they name."""
    for _, signs, pattern in RULES:
        if any(sign in words for sign in signs):
            words = pattern.sub(" ", words)
    return words


def versioned(name: str, words: str, place: int) -> str:
    """LGPL, GPL, MPL and EPL with the version that stands near; others as they are."""
    if name not in ("LGPL", "GPL", "MPL", "EPL"):
        return name
    near = words[max(0, place - 120) : place + 300]
    match = _VERSION.search(near)
    major = next((group for group in match.groups()[::2] if group), "") if match else ""
    minor = "1" if match and "1" in (match[2], match[4]) and major in ("1", "2") else "0"
    if name == "LGPL" and major == "2" and "2 1" in near:
        minor = "1"
    default = {"LGPL": "2.1", "GPL": "2.0", "MPL": "2.0", "EPL": "2.0"}[name]
    version = f"{major}.{minor}" if major and f"{name}-{major}.{minor}" not in ("GPL-2.1", "GPL-3.1") else default
    if name in ("MPL", "EPL"):
        return f"{name}-{version}"
    full = f"{name}-{version}-{'or-later' if _LATER.search(near) else 'only'}"
    return f"{full} WITH AdditionRef-linking-exception" if name == "GPL" and _EXCEPTION.search(near) else full
