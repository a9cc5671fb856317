"""Which files of a repository say its licence, and which licence holds for a folder.

Licence files first: LICENSE, COPYING, LICENSE-MIT and their like, and the texts below LICENSES/ (REUSE). Then what a
package says of itself: package.json, Cargo.toml, pyproject.toml, pom.xml.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from refinery.transforms.code.licences.license_expressions import identifiers, join, licence_class, stem
from refinery.transforms.code.licences.license_metadata import METADATA, said_by_package
from refinery.transforms.code.licences.license_notices import UNKNOWN
from refinery.transforms.code.licences.license_rules import DENIED, KERNEL, KERNEL_NOTE
from refinery.transforms.code.licences.licenses import FILE, Licence, identify_file

_NAMES = re.compile(
    r"(?:un)?licen[sc]es?(?:[-._][\w.+-]*)?|copying(?:[-._][\w.+-]*)?|copyright(?:\.\w+)?|(?:mit|apache|bsd)-licen[sc]e"
    r"(?:\.\w+)?|(?:eula|terms)(?:[-._][\w.+-]*)?",
    re.IGNORECASE,
)
_CODE = re.compile(
    r".*\.(?:py|c|cc|cpp|cs|go|h|hpp|java|js|kt|m|php|pl|rb|rs|scala|sh|swift|ts|tsx|vue|json|yml|yaml)", re.IGNORECASE
)
_REUSE = "LICENSES"
_CHOICES = re.compile(
    r"(?:licen[sc]e|copying)[-._](?:mit|apache|apl|asl|bsd|mpl|zlib|isc|boost|unlicense|a?gpl|lgpl|epl|cc0)[\w.+-]*"
)


def is_licence_file(path: str) -> bool:
    """Whether a file says a licence, by its name."""
    folder, _, name = path.rpartition("/")
    if name.lower() in METADATA or folder.rpartition("/")[2] == _REUSE:
        return True
    return _NAMES.fullmatch(name) is not None


def read_as(path: str) -> str:
    """How a licence file is read: "" for a text, or the name of the metadata that it is."""
    name = path.rpartition("/")[2].lower()
    return name if name in METADATA else ""


def licence_in(path: str, text: str) -> str:
    """The expression that a file of that name gives; UNKNOWN for terms that are not known, "" for none.

    A text of FILE characters may be what a reader has cut: it is UNKNOWN. A program that is named after licences
    (license.c) says one only if it has the text of one.
    """
    kind = read_as(path)
    read = len(text) != FILE
    found = UNKNOWN if not read else said_by_package(kind, text) if kind else identify_file(text)
    return "" if found == UNKNOWN and not kind and _CODE.fullmatch(path) else found


def licences_of_tree(files: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Folder ("" for the root) -> expression of its licence files, from (path, text) of all files."""
    return licences_of_folders(licence_files(files))


def licence_files(files: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """(path, expression) of the licence files among (path, text). Memory: one text."""
    for path, text in files:
        if is_licence_file(path) and (expression := licence_in(path, text)):
            yield path, expression


def licences_of_folders(found: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Folder -> expression, of (path, expression) as `licence_files` finds them.

    Of several in a folder, those named after a licence (LICENSE-MIT, LICENSE.Apache) offer a choice, with a plain
    COPYING that is the GPL; COPYING.LESSER changes COPYING; all others hold together. A package's own word counts where
    it names all that the files say (it may offer a choice between them), and else holds beside them. Texts below
    LICENSES/ hold together, where no licence file stands beside that folder.
    """
    folders: dict[str, dict[str, str]] = {}
    packages: dict[str, list[str]] = {}
    reuse: dict[str, list[str]] = {}
    for path, expression in sorted(found):
        folder, _, name = path.rpartition("/")
        if name.lower() in METADATA:
            packages.setdefault(folder, []).append(expression)
        elif folder.rpartition("/")[2] == _REUSE:
            reuse.setdefault(folder.rpartition("/")[0], []).append(expression)
        else:
            folders.setdefault(folder, {})[name.lower()] = expression
    out = {folder: _together(named) for folder, named in folders.items()}
    for folder, texts in reuse.items():
        out.setdefault(folder, join("AND", texts))
    for folder, said in packages.items():
        word, files = join("AND", said), out.get(folder, "")
        out[folder] = word if not files or _names_all(word, files) else join("AND", [word, files])
    return out


def _names_all(word: str, files: str) -> bool:
    stems = {stem(name) for name in identifiers(word)}
    return UNKNOWN.lower() not in identifiers(files) and {stem(name) for name in identifiers(files)} <= stems


def _together(found: Mapping[str, str]) -> str:
    if lesser := [found[name] for name in found if name.startswith("copying.l")]:
        return lesser[0]
    choice = [name for name in found if _CHOICES.fullmatch(name)]
    if choice and "copying" in found and identifiers(found["copying"]) and _is_gnu(found["copying"]):
        choice.append("copying")
    rest = [found[name] for name in found if name not in choice]
    return join("AND", [*rest, *([join("OR", (found[name] for name in choice))] if choice else [])])


def _is_gnu(expression: str) -> bool:
    return all(re.match(r"[al]?gpl-", name) for name in identifiers(expression))


def nearest_licence(path: str, folders: Mapping[str, str]) -> str:
    """The expression of the licence file in the folder of `path` or the nearest above it; "" for none."""
    folder = path
    while folder:
        folder = folder.rpartition("/")[0]
        if folder in folders:
            return folders[folder]
    return ""


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
