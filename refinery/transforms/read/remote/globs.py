"""Patterns of paths, one meaning for every kind of storage that is listed here."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from refinery.loader.storage.store import StorageError

T = TypeVar("T")

SPECIAL = "*?[{"
MOST_LISTED = 2_000_000  # names of one listing; Common Crawl's largest has 100,000


def bounded(listing: Iterable[T]) -> Iterator[T]:
    """The entries of a listing. Raises StorageError beyond MOST_LISTED: a server may invent pages without end."""
    for number, entry in enumerate(listing):
        if number >= MOST_LISTED:
            raise StorageError(f"more than {MOST_LISTED:,} names are listed; name a folder with fewer")
        yield entry


def is_glob(pattern: str) -> bool:
    """Whether a path holds a glob's characters."""
    return any(character in pattern for character in SPECIAL)


def meaning(pattern: str, named: Callable[[str], list[T]], listed: Callable[[str], list[T]]) -> list[T]:
    """What a pattern means: everything below a folder that ends in "/", the one file of that name, or a glob's files.

    Names may hold a glob's characters: braces alone are first taken for a part of a name, other patterns that match
    nothing at last. named: the file of a name, or []. listed: the files of a pattern.
    """
    if pattern.endswith("/"):
        return listed(pattern)
    if not is_glob(pattern):
        return named(pattern)
    if re.search(r"[*?\[]", pattern):
        return listed(pattern) or named(pattern)
    return named(pattern) or listed(pattern)


def fixed_beginning(pattern: str) -> str:
    """How everything begins that a pattern means: "a/b-" of "a/b-*/c"."""
    return re.split(r"[*?\[{]", pattern)[0]


def fixed_folder(pattern: str) -> str:
    """The part of a pattern before the folder in which its first special character stands: "a/b" of "a/b/*/c"."""
    return fixed_beginning(pattern).rpartition("/")[0]
