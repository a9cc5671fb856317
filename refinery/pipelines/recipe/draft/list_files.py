"""The files that `refinery init` is about: arguments as `paths` of a recipe take them, listed within a bound."""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from refinery.transforms.core.safe_text import safe
from refinery.transforms.read.find_files import find_pattern, is_hidden, without_credentials
from refinery.transforms.read.params import SourceParams
from refinery.transforms.read.remote.files import Found, is_remote
from refinery.transforms.read.remote.globs import fixed_folder, is_glob
from refinery.transforms.read.remote.path_glob import Glob

MOST_NAMES = 100_000  # of one argument, on this machine
WHY_NOT_REMOTE = "without a network, copy a few files to this machine and name those"


@dataclass
class Listed:
    """The files of one argument, in order of path. is_cut: there are more names than are listed. repositories: folders
    among them that are clones. problems: a line for each name that cannot be read. others: names that are
    not files of this argument, which a pattern over its folders must not match."""

    argument: str
    files: list[Found] = field(default_factory=list)
    is_cut: bool = False
    repositories: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    others: list[Found] = field(default_factory=list)


def list_files(argument: str) -> Listed:
    """What an argument means: a file, a folder with all below it that is not hidden, a glob, or a remote address.

    Nothing is opened. Cost: a walk over at most MOST_NAMES names, or one listing of a bucket or data set.
    """
    found = Listed(argument)
    try:
        if is_remote(argument):
            found.files = sorted(find_pattern(argument, SourceParams(name="files", paths=(argument,))), key=_path)
        elif "://" in argument:
            found.problems.append(f"{shown(argument)}: gs://, s3://, hf://, https:// or a local path is allowed")
        elif os.path.lexists(argument) and not os.path.isdir(argument):
            _take(found, argument)
        else:
            _walk(found, argument)
    except (OSError, ValueError) as error:
        advice = f"; {WHY_NOT_REMOTE}" if is_remote(argument) else ""
        found.problems.append(f"{shown(argument)}: cannot be listed: {shown(str(error))}{advice}")
        return found
    if not found.files and not found.problems and not found.repositories:
        found.problems.append(f"{shown(argument)}: no file matches it; a file, folder or glob is needed")
    found.files.sort(key=_path)
    return found


def list_all(arguments: Sequence[str]) -> Iterator[Listed]:
    """Each argument's files; one that an earlier argument has is left out."""
    seen: set[str] = set()
    for argument in dict.fromkeys(arguments):
        listed = list_files(argument)
        listed.others += [file for file in listed.files if file.path in seen]
        listed.files = [file for file in listed.files if file.path not in seen]
        seen |= {file.path for file in listed.files}
        yield listed


def _path(file: Found) -> str:
    return file.path


def shown(text: str) -> str:
    """What is said of an address, on one line and without credentials."""
    return safe(" ".join(without_credentials(text).split()))[:500]


def _take(found: Listed, path: str) -> None:
    """One local name. An unprintable name cannot be in a recipe; only files are opened."""
    name = os.path.normpath(path)
    if not name.isprintable():
        found.problems.append(f"{shown(name)}: only printable names are allowed; rename it")
        found.others.append(Found(name, 0))
        return
    try:
        state = os.stat(name)
    except OSError as error:
        found.problems.append(f"{name}: {error.strerror}")
        return
    if stat.S_ISREG(state.st_mode):
        found.files.append(Found(name, state.st_size))
    else:
        found.problems.append(f"{name}: is a FIFO, device or socket; only files are allowed")
        found.others.append(Found(name, 0))


def _walk(found: Listed, argument: str) -> None:
    """A local folder or glob. Links to folders are not followed, as in runs."""
    is_folder = os.path.isdir(argument)
    root = argument if is_folder else fixed_folder(argument) or ("/" if argument.startswith("/") else ".")
    wanted = None if is_folder or not is_glob(argument) else Glob(argument.removeprefix("./"))
    if not is_folder and wanted is None:
        return
    names = 0
    for base, folders, files in os.walk(root):
        is_clone = ".git" in folders or {"HEAD", "objects", "refs"} <= {*folders, *files}
        if is_clone and is_folder:
            found.repositories.append(os.path.normpath(base))
            folders.clear()
            continue
        for name in files:
            names += 1
            if names > MOST_NAMES:
                found.is_cut = True
                return
            path = os.path.join(base, name)
            if not is_hidden(os.path.relpath(path, root)) if wanted is None else wanted.matches(os.path.normpath(path)):
                _take(found, path)
