"""From a tree to records: what is taken, in order of paths, with the licence that is nearest to each file."""

from collections.abc import Callable, Iterator
from typing import Any

from refinery.pipelines.acquire.tree_files import (
    MAX_TAKEN,
    Counts,
    Found,
    RepositoryError,
    Tree,
    check_path,
    text_of,
)
from refinery.transforms.code.licenses import FILE, MAX_EXPRESSION, NAMES, licences_of_tree, nearest_licence

TOO_LONG = "LicenseRef-too-long"  # for expressions that no stage reads: unknown, and so denied
BATCH = 256  # files asked for at once

Add = Callable[[dict[str, Any]], None]


def take_tree(tree: Tree, repo: str, commit: str, most: int, add: Add) -> Counts:
    """Give the records of a tree's files to `add`, in order of their paths; returns where every entry went.

    most: bytes of a file. Memory: the paths, and a file at a time. Raises RepositoryError.
    """
    counts = Counts()
    chosen = choose(tree, most, counts)
    order = sorted(chosen)
    licences = bounded(licences_of_tree(licence_texts(tree, chosen, order)))
    for path, data in contents(tree, chosen, order):
        text, reason = text_of(data)
        if reason:
            counts.skip(reason)
            continue
        add(record(text, repo, commit, path, nearest_licence(path, licences)))
        counts.taken += 1
        counts.taken_bytes += len(data)
    return counts


def record(text: str, repo: str, commit: str, path: str, licence: str) -> dict[str, Any]:
    """One line of the output, as the lane of source code reads it (transforms/code/source_text.py)."""
    return {"repo": repo, "commit": commit, "path": path, "repo_license": licence, "content": text}


def choose(tree: Tree, most: int, counts: Counts) -> dict[str, Found]:
    """Path -> entry of all files that are to be read; the others are counted."""
    chosen: dict[str, Found] = {}
    total = 0
    for found in tree.entries():
        counts.entries += 1
        path, reason = ("", found.kind) if found.kind else check_path(found.path)
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
    return chosen


def contents(tree: Tree, chosen: dict[str, Found], paths: list[str]) -> Iterator[tuple[str, bytes]]:
    for start in range(0, len(paths), BATCH):
        batch = paths[start : start + BATCH]
        yield from zip(batch, tree.read([chosen[path].where for path in batch]), strict=True)


def licence_texts(tree: Tree, chosen: dict[str, Found], order: list[str]) -> Iterator[tuple[str, str]]:
    """(path, as much of the text as is looked at) of the licence files. Bytes that are not UTF-8 do not matter
    there."""
    named = [path for path in order if NAMES.fullmatch(path.rpartition("/")[2])]
    for path, data in contents(tree, chosen, named):
        yield path, data[: 4 * FILE].decode("utf-8", "replace")[:FILE]


def bounded(licences: dict[str, str]) -> dict[str, str]:
    """Folder -> expression, none of them longer than what is read."""
    return {folder: found if len(found) <= MAX_EXPRESSION else TOO_LONG for folder, found in licences.items()}
