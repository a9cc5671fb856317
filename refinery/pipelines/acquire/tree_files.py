"""What every kind of repository comes down to: files with a path, a size and bytes, taken or skipped for a reason.

Nothing here is written under a path that a repository names: paths are data, so one that differs from another in the
case of its letters alone is a file like any other.
"""

import time
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

MAX_PATH = 4096  # bytes; Linux's PATH_MAX
MAX_ENTRIES = 2_000_000  # files and folders of a repository; the largest public ones have some 500,000
MAX_PATHS = 512 << 20  # bytes of all paths of a repository together, which are held in memory
MAX_TAKEN = 20 << 30  # bytes of the files of a repository, or of a tarball with nothing compressed
MISSING = "missing"  # the kind of a file whose object is not there
MAX_NAMED = 1000  # files that a report names as missing; all are counted
TIMES = 4  # of --timeout, which is for one answer: the time of a repository
LFS = b"version https://git-lfs.github.com/spec/v1\n"  # git-lfs, docs/spec.md: the first line of a pointer
LFS_BYTES = 1024  # the same page: pointers are smaller

REASONS = {
    "symlink": "a symbolic link, which is never followed",
    "submodule": "another repository at a commit, named by this one; name it in the list",
    "hard-link": "a second name of a file in a tarball",
    "special-file": "a device, a pipe or something unknown",
    "sparse-file": "a file with holes in a tarball",
    "path-unsafe": "an absolute path, or one with a part that is empty, `.`, `..` or `.git`",
    "path-control": "control characters in the path, or separators of lines",
    "path-not-utf8": "the path is not UTF-8",
    "path-too-long": f"a path of more than {MAX_PATH:,} bytes; a folder with such a path counts once",
    "path-repeated": "a second file with the same path",
    "too-large": "larger than `--max-file-bytes`",
    "empty": "empty, or only white space",
    MISSING: "a file whose object the clone lacks, since it is partial or damaged; the report names it",
    "binary": "a NUL byte",
    "not-utf8": "the content is not UTF-8",
    "lfs-pointer": "a pointer that Git LFS keeps instead of the file",
    "row-incomplete": "a row without repo, path or content, or without a whole commit",
    "row-damaged": "a row that cannot be read",
}
"""Why files are skipped: reason -> when."""


class RepositoryError(OSError):
    """A repository that cannot be taken: unreachable, damaged, beyond a limit. One line, without credentials."""


class Found(NamedTuple):
    """An entry of a tree. path: as in the tree. kind: "" for a file, else the reason why it is not a file.

    where: what the tree reads it by.
    """

    path: bytes
    kind: str
    size: int
    where: Any


class Deadline:
    """Ends a repository that takes too long in all, however little each step of it does."""

    def __init__(self, timeout: float) -> None:
        self.seconds = TIMES * timeout
        self.end = time.monotonic() + self.seconds

    def check(self) -> None:
        """Raise RepositoryError where it has passed."""
        if time.monotonic() > self.end:
            raise RepositoryError(f"it took more than {self.seconds:g} s in all ({TIMES} times --timeout)")


class Limit:
    """Ends a tree that would never end, such as a few folders that hold each other a billion times."""

    def __init__(self) -> None:
        self.entries = self.path_bytes = 0

    def see(self, path: bytes) -> None:
        """Count a file or folder. Raises RepositoryError beyond MAX_ENTRIES, or MAX_PATHS bytes of paths."""
        self.entries += 1
        self.path_bytes += len(path)
        if self.entries > MAX_ENTRIES:
            raise RepositoryError(f"more than {MAX_ENTRIES:,} files and folders")
        if self.path_bytes > MAX_PATHS:
            raise RepositoryError(f"its paths have more than {MAX_PATHS >> 20} MiB")


class Tree(Protocol):
    """A repository at a commit."""

    def entries(self) -> Iterator[Found]:
        """Everything in it but folders, in any order. Raises RepositoryError."""

    def read(self, places: Sequence[Any]) -> Iterator[bytes]:
        """The bytes of files in the order asked for, whole and checked. Raises RepositoryError."""


@dataclass
class Counts:
    """Where every file went: entries = taken + sum(skipped)."""

    entries: int = 0
    taken: int = 0
    taken_bytes: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)  # paths, MAX_NAMED at most

    def skip(self, reason: str) -> None:
        self.skipped[reason] = self.skipped.get(reason, 0) + 1

    def plain(self) -> dict[str, Any]:
        """For a report. Raises RuntimeError unless every entry is accounted for."""
        if self.entries != self.taken + sum(self.skipped.values()):
            raise RuntimeError(f"{self.entries} entries found, {self.taken} taken, skipped {self.skipped}")
        files = {"files": self.taken, "bytes": self.taken_bytes}
        found = {"entries": self.entries, "taken": files, "skipped": dict(sorted(self.skipped.items()))}
        return found | ({"missing": self.missing} if self.missing else {})


def check_path(raw: bytes) -> tuple[str, str]:
    """(path, "") of a path that is safe to pass on, else ("", reason). Linear.

    >>> check_path(b"src/main.c"), check_path(b"../x"), check_path(b"a\\x00")
    (('src/main.c', ''), ('', 'path-unsafe'), ('', 'path-control'))
    """
    if len(raw) > MAX_PATH:
        return "", "path-too-long"
    try:
        path = raw.decode()
    except UnicodeDecodeError:
        return "", "path-not-utf8"
    if any(unicodedata.category(char) in ("Cc", "Zl", "Zp") for char in path if not " " <= char <= "~"):
        return "", "path-control"
    if any(part in ("", ".", "..") or part.lower() == ".git" for part in path.split("/")):
        return "", "path-unsafe"
    return path, ""


def text_of(data: bytes) -> tuple[str, str]:
    """(text, "") of a file's bytes, else ("", reason). A byte order mark is left out; nothing else is changed."""
    if data.startswith(LFS) and len(data) <= LFS_BYTES:
        return "", "lfs-pointer"
    if b"\0" in data:
        return "", "binary"
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "", "not-utf8"
    return ("", "empty") if not text or text.isspace() else (text, "")
