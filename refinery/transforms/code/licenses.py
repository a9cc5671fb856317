"""The licence of a source file: its SPDX tag, else what its header says, else the nearest licence file above it.

Why a matcher of our own: scancode-toolkit, the reference of the trade, compares with 40,000 rules and takes seconds a
file; a corpus has millions, and what is asked here is whether a file may be used, not which of 2,000 licences it has.
Text that names no licence known here has none: unknown is never allowed.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from refinery.transforms.code.license_rules import (
    CHOICE,
    CLASSES,
    DENIED,
    KERNEL,
    KERNEL_NOTE,
    PERMISSIVE,
    RULES,
    TITLE_CHARS,
    TITLES,
    WEAK,
    WEAK_EXCEPTIONS,
)

HEAD = 8_000  # characters of a source file that can be its header
FILE = 80_000  # characters of a licence file that are read
MAX_EXPRESSION = 1_000  # characters of an SPDX expression
NAMES = re.compile(
    r"(?:un)?licen[sc]es?(?:[-._][\w.+-]*)?|copying(?:[-._][\w.+-]*)?|copyright(?:\.\w+)?", re.IGNORECASE
)
"""File names whose content is a licence."""

_TAG = re.compile(r"SPDX-License-Identifier:[ \t]*([^\r\n]{1,1000})")
_TAG_END = re.compile(r"\*/|-->|\"|'|;|\*\)|#\}|$")
_HYPHEN = re.compile(r"([a-z])-[^\S\n]*\n[\s*/#;!-]*([a-z])")  # no two parts take the same character: linear
_REST = re.compile(r"[^a-z0-9+]+")
_HINT = re.compile(r"licen[sc]|permission|redistribut|public domain|gpl|cc0|copying|proprietary|commercial|prohibited")
_WORDS = re.compile(r"\(|\)|[^\s()]+")


class Licence(NamedTuple):
    """expression: SPDX, "" for unknown. found: "tag", "header", "file", or "" for nowhere."""

    expression: str
    found: str


def licence_of(text: str, nearest: str = "") -> Licence:
    """The licence of a source file. nearest: the expression of the nearest licence file, "" for none.

    Cost: about 0.2 ms; linear in the first HEAD characters.
    """
    head = text[:HEAD]
    if tag := _tag(head):
        return Licence(tag, "tag")
    if named := identify(head):
        return Licence(named, "header")
    return Licence(nearest, "file") if nearest else Licence("", "")


def _tag(head: str) -> str:
    """The expression of a file's SPDX tags: several hold together."""
    found = dict.fromkeys(_tag_value(match[1]) for match in _TAG.finditer(head))
    found.pop("", None)
    return " AND ".join(f"({one})" if len(found) > 1 else one for one in found)


def _tag_value(rest: str) -> str:
    end = _TAG_END.search(rest)
    return " ".join(rest[: end.start() if end else None].split())


def normalised(text: str) -> str:
    """Small letters, digits and "+", everything else one space; words divided at the end of a line are joined."""
    return _REST.sub(" ", _HYPHEN.sub(r"\1\2", text.lower()))


def identify(text: str) -> str:
    """The expression of the licences that a header or licence text names; "" for none.

    Several hold together (AND), unless the header has words of choice (OR).
    """
    small = text.lower()
    if not _HINT.search(small):
        return ""
    words = normalised(text)
    found: dict[str, None] = {}
    rest = words
    for name, signs, pattern in RULES:
        if any(sign in rest for sign in signs) and (match := pattern.search(rest)):
            found[_versioned(name, words, match.start())] = None
            rest = pattern.sub(" ", rest)
    return (" OR " if len(found) > 1 and CHOICE.search(words) else " AND ").join(found)


def identify_file(text: str) -> str:
    """The expression of a licence file: the licence whose title it begins with, else what `identify` finds."""
    words = normalised(text[:FILE])
    title = words[:TITLE_CHARS]
    titled = [(match.start(), name) for name, pattern in TITLES if (match := pattern.search(title))]
    if titled and KERNEL_NOTE in text[:FILE].lower():
        return "GPL-2.0-only WITH Linux-syscall-note"
    if titled:
        return _versioned(min(titled)[1], words, 0)
    tag = _tag(text[:FILE])
    return tag or identify(text[:FILE])


_VERSION = re.compile(r"version ([123])(?: ([01]))?|(?:gpl|mpl) ?v ?([123])(?: ?([01])\b)?|\b([23]) (?:0|1)\b")
_LATER = re.compile(r"(?:any|or) later|or \(?at your option\)? any|gplv?[23] ?\+|v[23] ?\+|or newer")


def _versioned(name: str, words: str, place: int) -> str:
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
    return f"{name}-{version}-{'or-later' if _LATER.search(near) else 'only'}"


@lru_cache(maxsize=4096)
def licence_class(expression: str) -> str:
    """PERMISSIVE, WEAK, KERNEL or DENIED for an SPDX expression: of OR the best, of AND the worst.

    Unknown identifiers, exceptions and what is not an expression are DENIED. Linear; no recursion.
    """
    if len(expression) > MAX_EXPRESSION:
        return DENIED
    # Shunting-yard; every operand is a rank in ORDER.
    operands: list[int] = []
    operators: list[str] = []
    words = _WORDS.findall(expression)
    i, want_operand = 0, True
    while i < len(words):
        word = words[i]
        small = word.lower()
        if small == "(" and want_operand:
            operators.append("(")
        elif small == ")" and not want_operand:
            while operators and operators[-1] != "(":
                _apply(operators.pop(), operands)
            if not operators:
                return DENIED
            operators.pop()
        elif small in ("and", "or") and not want_operand:
            while operators and operators[-1] != "(" and (operators[-1] == "and" or small == "or"):
                _apply(operators.pop(), operands)
            operators.append(small)
            want_operand = True
        elif want_operand and small not in ("and", "or", "with", ")"):
            exception = (
                words[i + 2].lower()
                if [w.lower() for w in words[i + 1 : i + 2]] == ["with"] and i + 2 < len(words)
                else ""
            )
            i += 2 if exception else 0
            operands.append(ORDER.index(_single(small, exception)))
            want_operand = False
        else:
            return DENIED
        i += 1
    if want_operand:
        return DENIED
    while operators:
        if (operator := operators.pop()) == "(":
            return DENIED
        _apply(operator, operands)
    return ORDER[operands[0]] if len(operands) == 1 else DENIED


ORDER = (PERMISSIVE, WEAK, KERNEL, DENIED)


def _apply(operator: str, operands: list[int]) -> None:
    second, first = operands.pop(), operands.pop()
    operands.append(min(first, second) if operator == "or" else max(first, second))


def _single(name: str, exception: str) -> str:
    """The class of one identifier in small letters, with its exception."""
    name = name.removesuffix("+")
    if name in CLASSES:
        return CLASSES[name]
    if name.startswith("gpl-2.0") and exception == KERNEL_NOTE:
        return KERNEL
    if name.startswith(("gpl-2.0", "gpl-3.0")) and exception in WEAK_EXCEPTIONS:
        return WEAK
    return DENIED


def class_of_file(licence: Licence, nearest: str = "") -> str:
    """`licence_class`, with files under the plain GPL-2.0 of a tree whose licence has the syscall note as KERNEL."""
    found = licence_class(licence.expression)
    kernel = KERNEL_NOTE in nearest.lower() and licence.expression.lower().startswith("gpl-2.0")
    return KERNEL if found == DENIED and kernel and licence_class(_noted(licence.expression)) == KERNEL else found


def _noted(expression: str) -> str:
    words = [
        word + " WITH Linux-syscall-note" if word.lower().startswith("gpl-2.0") else word for word in expression.split()
    ]
    return " ".join(words)


def licences_of_tree(files: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Folder ("" for the root) -> expression of its licence files, from (path, text) of those that NAMES fits.

    Of several in a folder, those named after a licence (LICENSE-MIT, LICENSE-APACHE) offer a choice, and COPYING.LESSER
    changes COPYING; all others hold together.
    """
    return licences_of_folders(licence_files(files))


def licence_files(files: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """(path, expression) of the licence files among (path, text). Memory: one text."""
    for path, text in files:
        if NAMES.fullmatch(path.rpartition("/")[2]) and (expression := identify_file(text)):
            yield path, expression


def licences_of_folders(found: Iterable[tuple[str, str]]) -> dict[str, str]:
    """`licences_of_tree` of what `licence_files` found."""
    folders: dict[str, dict[str, str]] = {}
    for path, expression in sorted(found):
        folder, _, name = path.rpartition("/")
        folders.setdefault(folder, {})[name.lower()] = expression
    return {folder: _together(named) for folder, named in folders.items()}


_CHOICES = re.compile(r"(?:licen[sc]e|copying)[-._](?:mit|apache|bsd|mpl|zlib|isc|boost|unlicense|gpl)[\w.-]*")


def _together(found: Mapping[str, str]) -> str:
    if lesser := [found[name] for name in found if name.startswith("copying.l")]:
        return lesser[0]
    choice = [found[name] for name in found if _CHOICES.fullmatch(name)]
    rest = [found[name] for name in found if not _CHOICES.fullmatch(name)]
    parts = list(dict.fromkeys([*rest, *([_join(" OR ", choice)] if choice else [])]))
    return _join(" AND ", parts)


def _join(word: str, parts: list[str]) -> str:
    parts = list(dict.fromkeys(parts))
    return parts[0] if len(parts) == 1 else word.join(f"({one})" if " " in one else one for one in parts)


def nearest_licence(path: str, folders: Mapping[str, str]) -> str:
    """The expression of the licence file in the folder of `path` or the nearest above it; "" for none."""
    folder = path
    while folder:
        folder = folder.rpartition("/")[0]
        if folder in folders:
            return folders[folder]
    return ""
