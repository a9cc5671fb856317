"""The files of a source: globs, folders and lists of addresses, on every kind of storage."""

import os
import re
from collections.abc import Iterator

from refinery.loader.storage.fetch import without_secrets
from refinery.transforms.core.wording import meant_address
from refinery.transforms.read.byte_source import MemberStream, open_source
from refinery.transforms.read.params import SourceParams
from refinery.transforms.read.remote.files import Found, choose_files, find, is_remote, measure
from refinery.transforms.read.remote.globs import fixed_folder, meaning
from refinery.transforms.read.remote.path_glob import Glob

_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^\s'\"]*")
MAX_FILE_BYTES = 1 << 46  # 64 TiB, more than any storage holds in one object; planning cuts files into parts
MAX_LIST_BYTES = 256 << 20  # of a list of addresses, decompressed


def mistyped(path: str) -> str:
    """What may be wrong with a path that matches nothing: its scheme, or the working directory."""
    if address := meant_address(path):
        return f"; did you mean {address}?"
    return "" if "://" in path or path.startswith("/") else f"; relative paths start in {os.getcwd()}"


def find_files(source: SourceParams) -> list[Found]:
    """Every file of a source, in order of path; one that is matched twice is there once. `max_files` are chosen before
    any is asked about.

    Raises ValueError, one line, for what matches nothing or cannot be listed.
    """
    files: dict[str, Found] = {}
    for key, patterns in (("paths", source.paths), ("path_lists", source.path_lists)):
        for pattern in patterns:
            shown = without_credentials(pattern)
            try:
                found = (
                    find_listed(pattern, source.requester_pays)
                    if key == "path_lists"
                    else find_pattern(pattern, source)
                )
            except FileNotFoundError:
                found = []
            except (OSError, ValueError) as error:
                raise ValueError(
                    f"source {source.name}: {key}: {shown!r} cannot be listed: {without_credentials(error)}"
                ) from None
            if not found:
                raise ValueError(f"source {source.name}: {key}: {shown!r} given, no file matches it{mistyped(shown)}")
            for file in found:
                if not file.path.isprintable():  # also a name that is not UTF-8: it cannot be written to provenance
                    raise ValueError(
                        f"source {source.name}: {key}: file {file.path!r} found, printable names are allowed"
                    )
                files.setdefault(file.path, file)
    chosen = choose_files(files.values(), source.max_files, source.seed)
    try:
        measured = measure(chosen, source.requester_pays)
    except FileNotFoundError as error:
        raise ValueError(f"source {source.name}: paths: {without_credentials(error)} is not there") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"source {source.name}: paths: {without_credentials(error)}") from None
    for file in measured:
        if not isinstance(file.size, int) or not 0 <= file.size <= MAX_FILE_BYTES:
            raise ValueError(
                f"source {source.name}: paths: {file.path}: its storage says that it has {file.size!r} bytes, "
                f"0 to {MAX_FILE_BYTES} are allowed"
            )
    return measured


def without_credentials(said: object) -> str:
    """What is said of addresses, each without user, password and query: recipes and command lines hold some that
    somebody copied from a browser, and errors end in logs. (A glob's ? stays.)"""
    return _ADDRESS.sub(lambda address: without_secrets(address[0]), str(said))


def find_file(path: str, payer: str = "") -> Found:
    """One file by its exact name, with size and version: nothing in it is a pattern. At most one request. payer: who
    pays for it, as `requester_pays` of a source.

    Raises FileNotFoundError where it is not there, and OSError and ValueError as its storage does.
    """
    if is_remote(path):
        return measure([Found(path)], payer)[0]
    if not os.path.isfile(path):
        raise FileNotFoundError(path)
    return Found(path, os.path.getsize(path))


def find_pattern(pattern: str, source: SourceParams) -> list[Found]:
    """What an element of `paths` means. A folder means the files below it, but those that begin with "." or "_"."""
    if is_remote(pattern):
        found = find(pattern, source.config, source.split, source.requester_pays)
        depth = pattern.count("/")  # a data set's commit changes none
        is_folder = pattern.endswith("/")
        return [file for file in found if not (is_folder and is_hidden("/".join(file.path.split("/")[depth:])))]
    if not os.path.isdir(pattern):
        return match(pattern)
    inside = (path for path in files_below(pattern) if not is_hidden(os.path.relpath(path, pattern)))
    return [local(path) for path in inside if is_regular(path)]


def files_below(folder: str) -> Iterator[str]:
    """The paths of everything below a local folder that is not a folder."""
    for base, _, names in os.walk(folder):
        yield from (os.path.join(base, name) for name in names)


def local(path: str) -> Found:
    """A local file."""
    return Found(os.path.normpath(path), os.path.getsize(path))


def is_hidden(path: str) -> bool:
    """Whether a part of a path begins with "." or "_": what tools leave beside data."""
    return any(part.startswith((".", "_")) for part in path.split("/"))


def match(pattern: str) -> list[Found]:
    """The files of a local glob, or the one of that name. A link that leads nowhere is none of a glob's."""
    if "://" in pattern:
        raise ValueError("gs://, s3://, hf://, https:// or a local path is allowed")

    def named(path: str) -> list[Found]:
        return [local(path)] if os.path.exists(path) and is_regular(path) else []

    def listed(pattern: str) -> list[Found]:
        wanted = Glob(pattern)
        return [
            found
            for path in files_below(fixed_folder(pattern) or "/")  # of an absolute one
            if wanted.matches(path)
            for found in named(path)
        ]

    return meaning(pattern if os.path.isabs(pattern) else f"./{pattern}", named, listed)


def is_regular(path: str) -> bool:
    """Whether a local path is a file, and no folder. Raises ValueError for what is neither: it cannot be read, and
    nothing is to be left out without a word."""
    if os.path.isfile(path) or os.path.isdir(path):
        return os.path.isfile(path)
    what = "a FIFO, device or socket" if os.path.exists(path) else "a link that leads nowhere"
    raise ValueError(f"{path!r} is {what}, files are allowed; remove it, or name the files without it")


def find_listed(address: str, payer: str = "") -> list[Found]:
    """The files that a list names; of several lists where the address is a glob. Raises ValueError for a line that is
    none."""
    places = find(address, payer=payer) if is_remote(address) else match(address)
    return [file for place in places for file in files_in(place.path, payer)]


def files_in(place: str, payer: str = "") -> list[Found]:
    """The files that one list names."""
    root = root_of(place)
    files = []
    for number, line in enumerate(read_list(place, payer).decode("utf-8", "replace").splitlines(), 1):
        path = line.strip()
        if not path or path.startswith("#"):
            continue
        is_whole = "://" in path or (path.startswith("/") and "://" not in root)
        path = path if is_whole else f"{root}{path.lstrip('/')}"
        if "://" in path and not is_remote(path):
            raise ValueError(
                f"line {number}: {path[:80]!r} given, gs://, s3://, hf://, https:// or a relative path is allowed"
            )
        if "://" in path:
            files.append(Found(path))
            continue
        try:
            size = os.path.getsize(path)
        except (FileNotFoundError, ValueError):  # or a NUL in it
            raise ValueError(f"line {number}: {path[:200]!r} is not there") from None
        if not is_regular(path):
            raise ValueError(f"line {number}: {path[:200]!r} is a folder, files are allowed")
        files.append(Found(os.path.normpath(path), size))
    return files


def root_of(place: str) -> str:
    """Where the relative lines of a list start: its host or bucket, the root of its data set, or its folder."""
    scheme, separator, rest = place.partition("://")
    if not separator:
        return f"{os.path.dirname(place) or '.'}/"
    parts = rest.split("/")
    kept = parts[:3] if scheme == "hf" else parts[:1]  # datasets/ORGANISATION/NAME@COMMIT
    return f"{scheme}://{'/'.join(kept)}/"


def read_list(place: str, payer: str = "") -> bytes:
    """The bytes of a list, decompressed. Raises OSError, ValueError."""
    data = bytearray()
    with open_source(place, payer=payer) as source:
        stream = MemberStream(source)
        while piece := stream.read():
            data += piece
            if len(data) > MAX_LIST_BYTES:
                raise ValueError(f"more than {MAX_LIST_BYTES} bytes found, a list of addresses is expected")
    if stream.broken:
        raise ValueError(f"the list is damaged ({stream.broken})")
    return bytes(data)
