"""Where a repository's objects come from: a clone on this machine, or an address from which one commit is fetched."""

import os
import re
import stat
from pathlib import Path

from refinery.pipelines.acquire.git_program import run_git
from refinery.pipelines.acquire.tree_files import MAX_TAKEN, RepositoryError

MAX_REF = 4096  # bytes of a file that holds one reference, or of a line of packed ones
HEX = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def git_folder(clone: Path) -> Path:
    """The folder that holds a clone's objects and references: itself (bare), its .git, or, for a worktree, the main
    clone's. Raises RepositoryError.
    """
    try:
        return _git_folder(clone)
    except (OSError, ValueError) as error:  # a path that is too long, has a NUL, or leads in a circle
        if isinstance(error, RepositoryError):
            raise
        said = error.strerror if isinstance(error, OSError) else "no path"
        raise RepositoryError(f"its .git leads nowhere: {said}") from None


def _git_folder(clone: Path) -> Path:
    found = clone / ".git"
    if found.is_file():
        line = small_file(found).partition("\n")[0]
        if not line.startswith("gitdir: "):
            raise RepositoryError("its .git is not a link to a repository")
        found = clone / line.removeprefix("gitdir: ")
        if (found / "commondir").is_file():
            found = found / small_file(found / "commondir").strip()
    elif not found.is_dir():
        found = clone
    if not (found / "objects").is_dir():
        raise RepositoryError("it is not a git repository")
    return found


def small_file(path: Path) -> str:
    """The first MAX_REF bytes of a regular file. A pipe is not waited for, a symbolic link not followed."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError as error:
        raise RepositoryError(f"{path.name}: {os.strerror(error.errno or 0)}") from None
    with open(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise RepositoryError(f"{path.name} is not a regular file")
        return stream.read(MAX_REF).decode(errors="replace")


def reference(folder: Path, name: str) -> str:
    """The id at a reference such as refs/tags/v1 of a clone, "" where there is none. name: of `check_tag`."""
    path = folder / name
    if os.path.lexists(path) and not path.is_dir():
        return small_file(path).strip()
    packed = folder / "packed-refs"
    if not os.path.lexists(packed):
        return ""
    small_file(packed)  # that it is a regular file
    with packed.open("rb") as stream:
        while line := stream.readline(MAX_REF):
            words = line.split()
            if len(words) == 2 and words[1] == name.encode():
                return words[0].decode("ascii", "replace")
    return ""


def tag_of_clone(folder: Path, tag: str) -> str:
    """The id that a tag of a clone has. Raises RepositoryError, saying what to do, where there is no such tag."""
    found = reference(folder, f"refs/tags/{tag}")
    if HEX.fullmatch(found):
        return found
    if found:
        raise RepositoryError(f"tag {tag}: it holds no id of an object")
    if branch := reference(folder, f"refs/heads/{tag}"):
        raise RepositoryError(f"{tag} is a branch, which moves; name a tag or a commit (it is at {branch[:64]!a} now)")
    if (folder / "reftable").is_dir():
        raise RepositoryError("its references are a reftable, which cannot be read; name the commit")
    raise RepositoryError(f"it has no tag {tag}; `git tag` lists them")


def tag_of_remote(url: str, tag: str, scratch: Path, timeout: float) -> str:
    """The commit at a tag of a server, as the server says. Raises RepositoryError."""
    name = f"refs/tags/{tag}"
    said = run_git(
        ["ls-remote", "--quiet", "--end-of-options", url, name, f"{name}^{{}}"],
        scratch,
        timeout,
        1 << 20,
        protocols(url),
    )
    found = {}
    for line in said.decode(errors="replace").splitlines():
        id_, _, ref = line.partition("\t")
        if HEX.fullmatch(id_):
            found[ref] = id_
    if name not in found:
        raise RepositoryError(
            f"it has no tag {tag}; branches are not accepted because they move; name a tag or a commit"
        )
    return found.get(f"{name}^{{}}", found[name])


def fetch(url: str, wanted: str, scratch: Path, timeout: float) -> None:
    """Bring one commit, with its files and without its history, into `scratch`/repository.

    wanted: its id, or refs/tags/NAME. Raises RepositoryError.
    """
    arguments = ["--git-dir=repository", "fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules"]
    arguments += ["--no-auto-maintenance", "--no-write-fetch-head", "--end-of-options", url, f"+{wanted}:refs/acquired"]
    run_git(arguments, scratch, timeout, MAX_TAKEN, protocols(url))


def protocols(url: str) -> str:
    """What git may speak, after redirects, too: https, or for a server on this machine what its address says."""
    return url.partition("://")[0]
