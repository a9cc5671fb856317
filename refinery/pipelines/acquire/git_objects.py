"""Objects of a git repository, each proved by its own hash: commit, trees, files.

A repository that somebody else made is never opened: an empty one of our own borrows its folder of objects (git's
"alternates"), so its configuration, hooks, attributes, index, replacements and worktree are not even read. And
because what is asked for is named by hash, and every hash is computed again, a commit's id vouches for every byte.
"""

import contextlib
import hashlib
import math
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from refinery.pipelines.acquire.git_program import end_git, reason_of, run_git, start_git
from refinery.pipelines.acquire.tree_files import MAX_PATH, MAX_TAKEN, MISSING, Deadline, Found, Limit, RepositoryError

MAX_OBJECT = 64 << 20  # bytes of a commit, a tag, or the list of a folder
MAX_INFLATED = 2 * MAX_TAKEN + (1 << 30)  # bytes of all objects that are read: licence files are read twice
MAX_TAGS = 10  # tags of tags
ASKED = 64  # objects asked for before the first answer is read: their names fit into a pipe
SYMLINK, GITLINK, FOLDER, FILE = 0o120000, 0o160000, 0o040000, 0o100000


class Entry(NamedTuple):
    """One line of a folder's list."""

    mode: int
    name: bytes
    id: str


def new_repository(scratch: Path, digits: int, timeout: float, borrowed: Path | None = None) -> Path:
    """An empty repository in a scratch folder, for ids of that many digits; borrowed: a folder of objects.

    Raises RepositoryError.
    """
    kind = "sha1" if digits == 40 else "sha256"
    arguments = ["init", "--quiet", "--bare", "--template=", f"--object-format={kind}", "repository"]
    run_git(arguments, scratch, timeout, 1 << 20)
    repository = scratch / "repository"
    if borrowed is not None:
        path = str(borrowed.resolve())
        if "\n" in path:
            raise RepositoryError("its path has a line break, which git cannot take")
        (repository / "objects" / "info").mkdir(exist_ok=True)
        (repository / "objects" / "info" / "alternates").write_text(f"{path}\n")
    return repository


class GitObjects:
    """Two `git cat-file` processes: one for kinds and sizes, one for contents. timeout: seconds for one answer, after
    which both are killed; an object that is a pipe would never be read. deadline: for all answers together.
    """

    def __init__(self, repository: Path, digits: int, timeout: float, deadline: Deadline) -> None:
        self.hash = hashlib.sha1 if digits == 40 else hashlib.sha256
        self.digits, self.timeout, self.deadline = digits, timeout, deadline
        self.inflated = 0
        self.log = repository.parent / "errors"
        self.late = False
        self._due = math.inf  # when the answer that is waited for is late
        self._closed = threading.Event()
        with self.log.open("wb") as errors:
            self._sizes, self._contents = (
                start_git(
                    ["--git-dir=repository", "cat-file", form],
                    repository.parent,
                    errors.fileno(),
                    stdin=subprocess.PIPE,
                )
                for form in ("--batch-check", "--batch")
            )
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while not self._closed.wait(min(1.0, self.timeout / 4)):
            if time.monotonic() > self._due:
                self.late = True
                for process in (self._sizes, self._contents):
                    process.kill()
                return

    @contextlib.contextmanager
    def _waiting(self) -> Iterator[None]:
        self.deadline.check()
        self._due = min(time.monotonic() + self.timeout, self.deadline.end)
        try:
            yield
        finally:
            self._due = math.inf

    def close(self) -> None:
        self._closed.set()
        for process in (self._sizes, self._contents):
            end_git(process)

    def __enter__(self) -> "GitObjects":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def sizes(self, ids: Sequence[str], may_miss: bool = False) -> Iterator[tuple[str, int]]:
        """Kind and size of each object; MISSING and 0 where it may be missing. Raises RepositoryError."""
        return self._answers(self._sizes, ids, may_miss)

    def read(self, ids: Sequence[str], kind: str, most: int) -> Iterator[bytes]:
        """The bytes of each object, all of that kind, with the hash that is their name. Raises RepositoryError."""
        known = list(self.sizes(ids))
        for name, (found, size) in zip(ids, known, strict=True):
            if found != kind:
                raise RepositoryError(f"object {name} is a {found}, a {kind} is expected")
            if size > most:
                raise RepositoryError(f"{kind} {name} has {size:,} bytes, {most:,} are allowed")
            self.inflated += size
        if self.inflated > MAX_INFLATED:
            raise RepositoryError(f"its objects have more than {MAX_INFLATED >> 30} GiB, inflated")
        stream = self._contents.stdout
        assert stream is not None  # noqa: S101 - a pipe was asked for
        for name, (found, size) in zip(ids, self._answers(self._contents, ids), strict=True):
            with self._waiting():
                data = stream.read(size + 1)
            if len(data) != size + 1:
                raise self._failed()
            digest = self.hash(b"%s %d\0" % (found.encode(), size), usedforsecurity=False)
            digest.update(memoryview(data)[:size])
            if digest.hexdigest() != name:
                raise RepositoryError(f"object {name} is damaged: its bytes have the hash {digest.hexdigest()}")
            yield data[:size]

    def _answers(
        self, process: "subprocess.Popen[bytes]", ids: Sequence[str], may_miss: bool = False
    ) -> Iterator[tuple[str, int]]:
        for start in range(0, len(ids), ASKED):
            batch = ids[start : start + ASKED]
            try:
                process.stdin.write("".join(f"{name}\n" for name in batch).encode())  # type: ignore[union-attr]
                process.stdin.flush()  # type: ignore[union-attr]
            except OSError:
                raise self._failed() from None
            for name in batch:
                with self._waiting():
                    words = process.stdout.readline(300).split()  # type: ignore[union-attr]
                if words[1:] == [MISSING.encode()]:
                    if may_miss and words[0] == name.encode():
                        yield MISSING, 0
                        continue
                    raise RepositoryError(
                        f"object {name} is missing: the clone is partial or damaged; make a full clone"
                    )
                if len(words) != 3 or words[0] != name.encode() or not words[2].isdigit():
                    raise self._failed()
                yield words[1].decode("ascii", "replace"), int(words[2])

    def _failed(self) -> RepositoryError:
        if self.late:
            self.deadline.check()
            return RepositoryError(f"reading an object took more than {self.timeout:g} s (--timeout)")
        return RepositoryError(reason_of(self.log))

    def commit_of(self, name: str) -> str:
        """The commit that an object is, or that it tags. Raises RepositoryError where it is neither."""
        for _ in range(MAX_TAGS):
            ((kind, _size),) = self.sizes([name])
            if kind == "commit":
                return name
            if kind != "tag":
                raise RepositoryError(f"it names a {kind}, not a commit")
            (data,) = self.read([name], "tag", MAX_OBJECT)
            name = self._named(data, b"object ", name)
        raise RepositoryError(f"more than {MAX_TAGS} tags of tags")

    def tree_of(self, commit: str) -> str:
        (data,) = self.read([commit], "commit", MAX_OBJECT)
        return self._named(data, b"tree ", commit)

    def _named(self, data: bytes, field: bytes, name: str) -> str:
        line = data.partition(b"\n")[0]
        found = line.removeprefix(field).decode("ascii", "replace")
        if not line.startswith(field) or len(found) != self.digits or not set(found) <= set("0123456789abcdef"):
            raise RepositoryError(f"object {name} has no line {field.decode()!r}")
        return found


def parse_tree(data: bytes, digits: int) -> Iterator[Entry]:
    """The entries of a tree object: mode in octal, blank, name, NUL, hash. Raises ValueError. Linear."""
    at, width = 0, digits // 2
    while at < len(data):
        blank = data.index(b" ", at, at + 8)
        end = data.index(b"\0", blank)
        if len(data) < end + 1 + width:
            raise ValueError("it ends within an entry")
        yield Entry(int(data[at:blank], 8), data[blank + 1 : end], data[end + 1 : end + 1 + width].hex())
        at = end + 1 + width


class GitTree:
    """The files of a commit, read a folder after the other."""

    def __init__(self, objects: GitObjects, commit: str) -> None:
        self.objects = objects
        self.root = objects.tree_of(commit)

    def entries(self) -> Iterator[Found]:
        limit = Limit()
        folders = [(b"", self.root)]
        while folders:
            prefix, tree = folders.pop()
            (data,) = self.objects.read([tree], "tree", MAX_OBJECT)
            files: list[tuple[bytes, str]] = []
            try:
                listed = list(parse_tree(data, self.objects.digits))
            except ValueError as error:
                raise RepositoryError(f"tree {tree} is damaged: {error}") from None
            for mode, name, child in listed:
                path = prefix + name
                limit.see(path)
                kind = mode & 0o170000
                if b"/" in name:  # a name like another folder's path
                    yield Found(path, "path-unsafe", 0, None)
                elif kind == FOLDER and len(path) > MAX_PATH:
                    yield Found(b"", "path-too-long", 0, None)
                elif kind == FOLDER:
                    folders.append((path + b"/", child))
                elif kind == FILE:
                    files.append((path, child))
                else:
                    yield Found(path, {SYMLINK: "symlink", GITLINK: "submodule"}.get(kind, "special-file"), 0, None)
            answers = self.objects.sizes([child for _, child in files], may_miss=True)
            for (path, child), (found, size) in zip(files, answers, strict=True):
                if found == MISSING:
                    yield Found(path, MISSING, 0, child)
                    continue
                if found != "blob":
                    raise RepositoryError(f"tree {tree} is damaged: a file in it is a {found}")
                yield Found(path, "", size, child)

    def read(self, places: Sequence[str]) -> Iterator[bytes]:
        return self.objects.read(places, "blob", 1 << 40)
