"""Inputs in S3, or in anything that speaks its protocol: found by listing, read in ranges of the version planned.

By the loader's store (refinery.loader.storage.s3_store), which reads credentials, endpoint and region from the
environment in each process. Keys need not be valid names of a corpus: "a//b" is an input like any other.
"""

from typing import BinaryIO

from refinery.loader.aws.answers import ListedObject
from refinery.loader.aws.settings import BUCKET
from refinery.loader.storage.fetch import FetchParams
from refinery.loader.storage.remote_store import RangeStream
from refinery.loader.storage.s3_store import S3Store, check_key
from refinery.transforms.remote.globs import bounded, fixed_folder, glob_regex, is_glob
from refinery.transforms.remote.web import PLANNING, READING, buffered


class Objects(S3Store):
    """The objects of a bucket by their keys, whatever these are."""

    def key(self, name: str) -> str:
        return check_key(name)

    def url(self, name: str) -> str:
        return f"{self.root}/{name}"


def split_address(path: str) -> tuple[str, str]:
    """(bucket, key) of s3://bucket/key."""
    bucket, _, key = path.removeprefix("s3://").partition("/")
    if not BUCKET.fullmatch(bucket) or not key:
        raise ValueError("s3://BUCKET/KEY is allowed")
    return bucket, key


def store_of(bucket: str, params: FetchParams = READING) -> Objects:
    """The store of a bucket; its connections are kept for the next file."""
    return Objects(f"s3://{bucket}", params)


def list_s3(pattern: str) -> list[tuple[str, int, str]]:
    """(path, bytes, version) of every object that a pattern or key means, in order. Costs a request for 1,000 objects
    of the folder that holds the first special character. Raises StorageError, ValueError."""
    bucket, key = split_address(pattern)
    store = store_of(bucket, PLANNING)
    if not is_glob(key) and not key.endswith("/"):
        info = store.info(key)
        found = [] if info is None else [ListedObject(key, info.size, info.etag)]
    else:
        folder, wanted = fixed_folder(key), glob_regex(key)
        listed = (entry for page in store.listed(f"{folder}/" if folder else "") for entry in page)
        # Consoles make empty objects "folder/".
        found = [
            entry
            for entry in bounded(listed)
            if wanted.fullmatch(entry.key) and (entry.size or not entry.key.endswith("/"))
        ]
    return sorted((f"s3://{bucket}/{entry.key}", entry.size, f"etag:{entry.etag}") for entry in found)


def open_s3(path: str, size: int | None = None, version: str = "") -> BinaryIO:
    """A seekable, buffered stream. version: as `list_s3` told it; "" for whatever is there."""
    bucket, key = split_address(path)
    store = store_of(bucket)
    etag = version.removeprefix("etag:")
    if size is None:
        info = store.info(key)
        if info is None:
            raise FileNotFoundError(path)
        size, etag = info.size, info.etag
    return buffered(RangeStream(store, key, size, etag))
