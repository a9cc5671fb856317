"""Remote inputs of every kind behind one interface: found when a run is planned, opened by those who read them.

Kinds: gs:// and s3:// (buckets.py), hf:// (hub.py), https:// (web.py).
"""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, BinaryIO

from refinery.transforms.core.document import hash64
from refinery.transforms.read.remote import web

if TYPE_CHECKING:
    from refinery.transforms.read.remote.buckets import BucketInputs

THREADS = 16  # files asked about at once
UNKNOWN = -1
BUCKETS = ("gs://", "s3://")
KINDS = (*BUCKETS, "hf://", "https://", "http://")


@dataclass(frozen=True, slots=True)
class Found:
    """A file of a source. size: in bytes, UNKNOWN until `measure`. version: what its storage knows it by, "" for
    nothing: a hash of its content, an ETag or a generation; checked by those who read. crc32c: of all its bytes, 8
    hexadecimal digits, where its storage says it. This, or else the version, is part of the fingerprint."""

    path: str
    size: int = UNKNOWN
    version: str = ""
    crc32c: str = ""


def is_remote(path: str) -> bool:
    """Whether a path is of a kind that this module reads."""
    return path.startswith(KINDS)


def find(pattern: str, config: str = "", split: str = "train", payer: str = "") -> list[Found]:
    """The files that a pattern means, in order. payer: as of `open_remote`. Raises ValueError and OSError, one line
    that does not name it."""
    if pattern.startswith("hf://"):
        from refinery.transforms.read.remote.hub import list_hub

        return [Found(*facts) for facts in list_hub(pattern, config, split)]
    if pattern.startswith(BUCKETS):
        from refinery.transforms.read.remote.buckets import list_bucket

        return [Found(*facts) for facts in list_bucket(_service(pattern), pattern, payer)]
    web.split_address(pattern)
    return [Found(pattern)]


def choose_files(files: Iterable[Found], most: int | None, seed: int) -> list[Found]:
    """At most that many of them, by a hash of their paths, in order of path."""
    listed = sorted(files, key=lambda file: file.path)
    if most is None or len(listed) <= most:
        return listed
    ranked = sorted(listed, key=lambda file: (hash64("file", seed, file.path), file.path))
    return sorted(ranked[:most], key=lambda file: file.path)


def measure(files: Iterable[Found], payer: str = "") -> list[Found]:
    """The files with sizes and versions, in order; one request for each that has none yet, THREADS at once. payer: as
    of `open_remote`.

    Raises OSError for the first that cannot be reached, FileNotFoundError for one that is not there.
    """
    listed = list(files)
    if all(file.size != UNKNOWN for file in listed):
        return listed
    with ThreadPoolExecutor(THREADS, "refinery-plan") as pool:
        return list(pool.map(partial(_measured, payer=payer), listed))


def _measured(file: Found, payer: str) -> Found:
    if file.size != UNKNOWN:
        return file
    if file.path.startswith(BUCKETS):
        from refinery.transforms.read.remote.buckets import describe_object

        return Found(*describe_object(_service(file.path), file.path, payer))
    if file.path.startswith("hf://"):
        found = find(file.path)
        if not found:
            raise FileNotFoundError(file.path)
        return found[0]
    size, version = web.describe(file.path)
    return replace(file, size=size, version=version)


def open_remote(path: str, size: int | None = None, version: str = "", payer: str = "") -> BinaryIO:
    """A seekable, buffered stream of the version that was planned; without size and version, of what is there now.

    payer: the project that pays for requests to somebody else's bucket, where the bucket asks for that; "" for none.

    Raises FileNotFoundError, or another OSError where the storage fails, also while it is read.
    """
    if path.startswith("hf://"):
        from refinery.transforms.read.remote.hub import open_hub

        return open_hub(path, size, version)
    if path.startswith(BUCKETS):
        from refinery.transforms.read.remote.buckets import open_object

        return open_object(_service(path), path, size, version, payer)
    return web.open_web(path, size, version)


def _service(path: str) -> "type[BucketInputs]":
    """The store of an address of BUCKETS."""
    if path.startswith("s3://"):
        from refinery.transforms.read.remote.s3 import S3Inputs

        return S3Inputs
    from refinery.transforms.read.remote.gcs import GcsInputs

    return GcsInputs
