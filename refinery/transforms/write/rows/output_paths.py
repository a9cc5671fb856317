"""Where the output of each input file goes: its path below the first folder of the pattern that means it."""

import os.path
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from refinery.transforms.core.safe_text import safe
from refinery.transforms.read.find_files import without_credentials
from refinery.transforms.read.remote.files import is_remote
from refinery.transforms.read.remote.globs import fixed_folder, is_glob

NO_ENDINGS: Mapping[str, str] = MappingProxyType({})


def output_paths(found: Iterable[tuple[str, str]], endings: Mapping[str, str] = NO_ENDINGS) -> dict[str, str]:
    """Input file -> its output's path below the output folder. found: (pattern, file), in the order of patterns; the
    first pattern that means a file counts. endings: of files whose output has a longer name.

    Raises ValueError, which names both, where two files would have one output, or one's output would be a folder of
    another's; and as `output_path`.
    """
    places: dict[str, str] = {}
    for pattern, path in found:
        if path not in places:
            places[path] = output_path(pattern, path) + endings.get(path, "")
    users: dict[str, str] = {}
    for path, place in places.items():
        if place in users:
            raise ValueError(
                f"{_shown(users[place])} and {_shown(path)} would both become {safe(place)!r}: name the folder above "
                "them, or run one command for each"
            )
        users[place] = path
    for path, place in places.items():
        folder = os.path.dirname(place)
        while folder:
            if folder in users:
                raise ValueError(
                    f"{_shown(users[folder])} would become a file {safe(folder)!r}, and {_shown(path)} a file in a "
                    "folder of that name: run one command for each"
                )
            folder = os.path.dirname(folder)
    return places


def output_path(pattern: str, path: str) -> str:
    """Where one file goes, with "/" between folders; the names are the input's, character for character.

    The first folder of a relative pattern is left out: `in/x/a.jsonl` becomes `x/a.jsonl` by `in/**/*.jsonl`, `in/` and
    `in/x/a.jsonl`. Where that folder is a part of the pattern with a glob's characters, nothing is left out. Of an
    absolute pattern all folders before the first such part are left out. Addresses are taken as relative behind
    bucket or host; files of a data set on the hub keep their whole path in it.

    Raises ValueError for a file that would lie outside.
    """
    if is_remote(path):
        rest = "" if ".." in path.split("/") else _behind_host(pattern, path)
    else:
        rest = _below(os.path.normpath(pattern) + ("/" if pattern.endswith("/") else ""), os.path.normpath(path))
    if not rest or rest.startswith("/") or {"", ".", ".."} & {*rest.split("/")}:
        raise ValueError(f"{_shown(path)} has no place below the output folder; name it by another path")
    return rest


def _behind_host(pattern: str, path: str) -> str:
    scheme, _, rest = path.partition("://")
    _, _, rest_of_pattern = pattern.partition("://")
    if scheme == "hf":  # datasets/ORGANISATION/NAME@REVISION/PATH
        return "/".join(rest.split("/")[3:])
    if scheme in ("http", "https"):
        rest, rest_of_pattern = (each.partition("?")[0].partition("#")[0] for each in (rest, rest_of_pattern))
    return _below(rest_of_pattern.partition("/")[2], rest.partition("/")[2])


def _below(pattern: str, path: str) -> str:
    """The path without what the pattern says of its beginning."""
    if path.startswith("/"):
        is_named = pattern == path
        folder = os.path.dirname(path) if is_named else _folder_of(pattern, path)
        return path[len(folder) :].lstrip("/")
    parts = path.split("/")
    while len(parts) > 1 and parts[0] == "..":
        parts = parts[1:]
    names = [part for part in pattern.split("/") if part not in ("..", ".")]
    is_first = bool(names) and parts[0] == names[0] and (not is_glob(names[0]) or _is_literal(pattern, path))
    return "/".join(parts[1:] if is_first and len(parts) > 1 else parts)


def _folder_of(pattern: str, path: str) -> str:
    """The folder that an absolute pattern names, up to its first part with a glob's characters."""
    literal = pattern.rstrip("/")
    return literal if path.startswith(f"{literal}/") else fixed_folder(pattern)


def _is_literal(pattern: str, path: str) -> bool:
    """Whether the pattern is the name of the file, or of a folder above it, whatever characters it has."""
    return path == pattern or path.startswith(f"{pattern.rstrip('/')}/")


def _shown(path: str) -> str:
    return safe(without_credentials(path))
