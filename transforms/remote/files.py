"""Remote inputs of every kind behind one interface: found when a run is planned, opened by those who read them.

Kinds: hf:// (hub.py), s3:// (s3.py), https:// (web.py). gs:// and local files go through Beam.
"""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import BinaryIO

from refinery.transforms.core.document import hash64
from refinery.transforms.remote import web

THREADS = 16  # files asked about at once
UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Found:
    """A file of a source. size: in bytes, UNKNOWN until `measure`. version: what its storage knows it by, "" for
    nothing: a hash of its content or an ETag. Part of the fingerprint, and checked by those who read."""

    path: str
    size: int = UNKNOWN
    version: str = ""


def is_remote(path: str) -> bool:
    """Whether a path is of a kind that this module reads."""
    return path.startswith(("hf://", "s3://", "https://", "http://"))


def find(pattern: str, config: str = "", split: str = "train") -> list[Found]:
    """The files that a pattern means, in order. Raises ValueError and OSError, one line that does not name it."""
    if pattern.startswith("hf://"):
        from refinery.transforms.remote.hub import list_hub

        return [Found(*facts) for facts in list_hub(pattern, config, split)]
    if pattern.startswith("s3://"):
        from refinery.transforms.remote.s3 import list_s3

        return [Found(*facts) for facts in list_s3(pattern)]
    web.split_address(pattern)
    return [Found(pattern)]


def choose_files(files: Iterable[Found], most: int | None, seed: int) -> list[Found]:
    """At most that many of them, by a hash of their paths, in order of path."""
    listed = sorted(files, key=lambda file: file.path)
    if most is None or len(listed) <= most:
        return listed
    ranked = sorted(listed, key=lambda file: (hash64("file", seed, file.path), file.path))
    return sorted(ranked[:most], key=lambda file: file.path)


def measure(files: Iterable[Found]) -> list[Found]:
    """The files with sizes and versions, in order; one request for each that has none yet, THREADS at once.

    Raises OSError for the first that cannot be reached, FileNotFoundError for one that is not there.
    """
    listed = list(files)
    if all(file.size != UNKNOWN for file in listed):
        return listed
    with ThreadPoolExecutor(THREADS, "refinery-plan") as pool:
        return list(pool.map(_measured, listed))


def _measured(file: Found) -> Found:
    if file.size != UNKNOWN:
        return file
    if file.path.startswith(("hf://", "s3://")):
        found = find(file.path)
        if not found:
            raise FileNotFoundError(file.path)
        return found[0]
    size, version = web.describe(file.path)
    return replace(file, size=size, version=version)


def open_remote(path: str, size: int | None = None, version: str = "") -> BinaryIO:
    """A seekable, buffered stream of the version that was planned; without size and version, of what is there now.

    Raises FileNotFoundError, or another OSError where the storage fails, also while it is read.
    """
    if path.startswith("hf://"):
        from refinery.transforms.remote.hub import open_hub

        return open_hub(path, size, version)
    if path.startswith("s3://"):
        from refinery.transforms.remote.s3 import open_s3

        return open_s3(path, size, version)
    return web.open_web(path, size, version)
