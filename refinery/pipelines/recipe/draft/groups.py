"""Files put together that one source of a recipe can read: of one argument, one format and, in tables, one text field.

And how the recipe names them: by the shortest pattern that means these files and no other.
"""

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from refinery.pipelines.recipe.draft.list_files import Listed
from refinery.transforms.code.languages import LANGUAGES
from refinery.transforms.read.byte_source import open_source
from refinery.transforms.read.explain import first_bytes, kind_of
from refinery.transforms.read.reader import COMPRESSIONS, ends_with
from refinery.transforms.read.registry import readers
from refinery.transforms.read.remote.files import Found, is_remote
from refinery.transforms.read.remote.globs import is_glob
from refinery.transforms.read.remote.path_glob import Glob

CODE, ARCHIVE, REFUSED, UNKNOWN = "code", "archive", "refused", "unknown"  # kinds beside the names of readers
ARCHIVES = (*(f".tar{more}" for more in (*COMPRESSIONS, ".xz", ".bz2")), ".tgz", ".txz", ".zip")
MOST_PATHS = 1_000  # files that a recipe names one by one
_PATTERN = re.compile(r"[*?\[]")  # braces alone are first taken for a part of a name


@dataclass(frozen=True)
class Group:
    """kind: the name of a reader, or one of the kinds above. argument: what its files were named by. all_of_it: whether
    that is a pattern or an address, and these are all files that it means."""

    argument: str
    kind: str
    files: tuple[Found, ...]
    all_of_it: bool = False


def kind_of_path(path: str) -> str:
    """What a file is by its name."""
    name = path.lower()
    if name.endswith(ARCHIVES):
        return ARCHIVE
    for reader in readers().values():
        if any(ends_with(path, (ending,)) for ending, _ in reader.refused):
            return REFUSED
        if ends_with(path, reader.endings, reader.compressed):
            return reader.name
    return CODE if name.endswith(_code_endings()) else UNKNOWN


def _code_endings() -> tuple[str, ...]:
    return tuple(ending for language in LANGUAGES.values() for ending in language.endings)


def group_files(listed: Listed) -> list[Group]:
    """The files of an argument by kind, the kind of most bytes first."""
    kinds: dict[str, list[Found]] = {}
    for file in listed.files:
        kinds.setdefault(kind_of_path(file.path), []).append(file)
    ordered = sorted(kinds.items(), key=lambda item: (-sum(file.size for file in item[1]), item[0]))
    is_pattern = is_remote(listed.argument) or (is_glob(listed.argument) and not os.path.lexists(listed.argument))
    alone = is_pattern and len(kinds) == 1 and not listed.others
    return [Group(listed.argument, kind, tuple(files), alone) for kind, files in ordered]


def sniffed(group: Group) -> Group:
    """The group, or where it is one file of an unknown ending what its first bytes say. Cost: a MiB of it."""
    if group.kind != UNKNOWN or len(group.files) != 1:
        return group
    file = group.files[0]
    try:
        with open_source(file.path, None if file.size < 0 else file.size, file.version) as source:
            head = first_bytes(source)
            what = kind_of(source)
    except OSError:  # said where it is read
        return group
    kinds = [reader.name for reader in readers().values() if any(head.startswith(start) for start in reader.magic)]
    kind = kinds[0] if kinds else {"JSON": "jsonl", "plain text": "text", "HTML or XML": "text"}.get(what, UNKNOWN)
    return replace(group, kind=kind)


def named_one_by_one(listings: Iterable[Listed]) -> Iterator[Listed]:
    """Listings in which local files that were arguments themselves, as a shell expands a pattern, are put together by
    folder."""
    together: defaultdict[str, Listed] = defaultdict(lambda: Listed(""))
    for listed in listings:
        if [file.path for file in listed.files] != [os.path.normpath(listed.argument)]:
            yield listed
            continue
        folder = os.path.dirname(listed.files[0].path)
        together[folder].argument = folder
        together[folder].files += listed.files
    for listed in together.values():
        listed.files.sort(key=lambda file: file.path)
        yield listed


def by_folder(group: Group) -> list[Group]:
    """The group's files, those of a folder together."""
    folders: dict[str, list[Found]] = {}
    for file in group.files:
        folders.setdefault(os.path.dirname(file.path), []).append(file)
    return [Group(group.argument, group.kind, tuple(files)) for _, files in sorted(folders.items())]


def endings_of(files: Iterable[Found]) -> list[str]:
    """The endings of some files with those of compression, the most frequent one first: ".jsonl.gz"."""
    found = Counter(ending_of(file.path) for file in files)
    return [ending for ending, _ in sorted(found.items(), key=lambda item: (-item[1], item[0]))]


def ending_of(path: str) -> str:
    """ ".jsonl.gz" of "a/b.jsonl.gz", "" of a name without a dot."""
    stem, ending = os.path.splitext(os.path.basename(path))
    return os.path.splitext(stem)[1] + ending if ending.lower() in COMPRESSIONS else ending


def paths_of(group: Group, every: Sequence[Found] | None) -> list[str]:
    """`paths` that mean the files of a group. every: all files that were listed beside them, which a pattern must not
    mean, too; None: not known, each file is named. Raises ValueError where more files than MOST_PATHS would have to be
    named one by one."""
    if group.all_of_it:
        return [group.argument]
    names = [file.path for file in group.files]
    if len(names) > 1 and every is not None and (patterns := list(_patterns(group, names, every))):
        return patterns
    if len(names) > MOST_PATHS:
        raise ValueError(f"{len(names):,} of its files would have to be named one by one; use a glob in quotes instead")
    return [name if is_remote(name) else escaped(name) for name in names]


def _patterns(group: Group, names: Sequence[str], every: Sequence[Found]) -> Iterator[str]:
    """One pattern an ending, if together they mean these files alone."""
    folder = os.path.dirname(names[0]) if len({os.path.dirname(name) for name in names}) == 1 else ""
    folder = folder or _common_folder(names)
    if is_glob(folder):
        return
    deep = "" if all(os.path.dirname(name) == folder for name in names) else "**/"
    start = f"{folder}/" if folder else ""
    patterns = [f"{start}{deep}*{ending}" for ending in endings_of(group.files) if ending and not is_glob(ending)]
    wanted = [Glob(pattern) for pattern in patterns]
    meant = {file.path for file in every if any(each.matches(file.path) for each in wanted)}
    if meant == set(names):
        yield from patterns


def _common_folder(names: Sequence[str]) -> str:
    parts = [os.path.dirname(name).split("/") for name in names]
    common = []
    for level in zip(*parts, strict=False):
        if len(set(level)) > 1:
            break
        common.append(level[0])
    return "/".join(common)


def escaped(path: str) -> str:
    """A local path as a pattern that means this file alone."""
    return re.sub(r"[*?\[{]", lambda found: f"[{found[0]}]", path) if _PATTERN.search(path) else path
