"""From a tree to records: what is taken, in order of paths, with the licence that is nearest to each file."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from refinery.pipelines.acquire.tree_files import (
    MAX_NAMED,
    MAX_TAKEN,
    MISSING,
    Counts,
    Deadline,
    Found,
    RepositoryError,
    Tree,
    check_path,
    text_of,
)
from refinery.transforms.code.licences.license_expressions import MAX_EXPRESSION
from refinery.transforms.code.licences.license_files import (
    is_licence_file,
    licence_in,
    licences_of_folders,
    nearest_licence,
    read_as,
)
from refinery.transforms.code.licences.licenses import FILE

T = TypeVar("T")

LOST = "LicenseRef-missing"  # where a licence file is missing: unknown, and so denied
TOO_LONG = "LicenseRef-too-long"  # for expressions that no stage reads: unknown, and so denied
BATCH = 256  # files asked for at once

Add = Callable[[dict[str, Any]], None]


def take_tree(tree: Tree, repo: str, commit: str, most: int, add: Add, deadline: Deadline) -> Counts:
    """Give the records of a tree's files to `add`, in order of their paths; returns where every entry went.

    most: bytes of a file. Memory: the paths, and a file at a time. Raises RepositoryError.
    """
    counts = Counts()
    chosen, lost = choose(tree, most, counts, deadline)
    order = sorted(chosen)
    licences = bounded(licences_of_folders(licence_files(tree, chosen, order, deadline)))
    licences |= dict.fromkeys(folders_of_licences(lost), LOST)
    for path, data in contents(tree, order, [chosen[path].where for path in order]):
        deadline.check()
        text, reason = text_of(data)
        if reason:
            counts.skip(reason)
            continue
        add(record(text, repo, commit, path, nearest_licence(path, licences)))
        counts.taken += 1
        counts.taken_bytes += len(data)
    if lost and not counts.taken:
        first = next(iter(lost.values())).where
        raise RepositoryError(f"object {first} is missing, as are all files that count: make a full clone")
    counts.missing = sorted(lost)[:MAX_NAMED]
    return counts


def record(text: str, repo: str, commit: str, path: str, licence: str) -> dict[str, Any]:
    """One line of the output, as the lane of source code reads it (transforms/code/source_text.py)."""
    return {"repo": repo, "commit": commit, "path": path, "repo_license": licence, "content": text}


def choose(tree: Tree, most: int, counts: Counts, deadline: Deadline) -> tuple[dict[str, Found], dict[str, Found]]:
    """Path -> entry of all files that are to be read, and of those that are missing; the others are counted."""
    chosen: dict[str, Found] = {}
    lost: dict[str, Found] = {}
    total = 0
    for found in tree.entries():
        deadline.check()
        counts.entries += 1
        path, reason = ("", found.kind) if found.kind not in ("", MISSING) else check_path(found.path)
        if not reason and found.kind == MISSING:
            reason = MISSING
            lost[path] = found
        if not reason and path in chosen:
            reason = "path-repeated"
        if not reason and not 0 < found.size <= most:
            reason = "too-large" if found.size else "empty"
        if reason:
            counts.skip(reason)
            continue
        chosen[path] = found
        total += found.size
        if total > MAX_TAKEN:
            raise RepositoryError(f"its files have more than {MAX_TAKEN >> 30} GiB")
    return chosen, lost


def contents(tree: Tree, names: Sequence[T], places: Sequence[Any]) -> Iterator[tuple[T, bytes]]:
    """The bytes at each place, beside its name."""
    for start in range(0, len(places), BATCH):
        yield from zip(names[start : start + BATCH], tree.read(places[start : start + BATCH]), strict=True)


def licence_files(
    tree: Tree, chosen: dict[str, Found], order: list[str], deadline: Deadline
) -> Iterator[tuple[str, str]]:
    """(path, expression) of the licence files. Each is identified once, in however many folders it is. Bytes that are
    not UTF-8 do not matter there."""
    paths: dict[Any, list[str]] = {}
    for path in order:
        if is_licence_file(path):
            paths.setdefault(chosen[path].where, []).append(path)
    for named, data in contents(tree, list(paths.values()), list(paths)):
        deadline.check()
        text = data[: 4 * FILE].decode("utf-8", "replace")[:FILE]
        expressions: dict[str, str] = {}
        for path in named:
            kind = read_as(path)
            if kind not in expressions:
                expressions[kind] = licence_in(path, text)
            if expressions[kind]:
                yield path, expressions[kind]


def folders_of_licences(paths: Iterable[str]) -> Iterator[str]:
    """The folders of those of these files that are licence files by their names."""
    return (path.rpartition("/")[0] for path in paths if is_licence_file(path))


def bounded(licences: dict[str, str]) -> dict[str, str]:
    """Folder -> expression, none of them longer than what is read."""
    return {folder: found if len(found) <= MAX_EXPRESSION else TOO_LONG for folder, found in licences.items()}
