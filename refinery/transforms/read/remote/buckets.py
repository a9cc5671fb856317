"""Inputs in buckets, gs:// and s3://: found by listing, read in ranges of the version that was planned.

By the loader's stores, which find credentials, endpoint and region in each process. Keys need not be valid names of a
corpus: "a//b" is an input like any other.
"""

from typing import BinaryIO, ClassVar

from refinery.loader.storage.fetch import FetchParams
from refinery.loader.storage.remote_store import BucketStore, ObjectInfo, RangeStream
from refinery.transforms.read.remote.globs import bounded, fixed_beginning, meaning
from refinery.transforms.read.remote.path_glob import Glob
from refinery.transforms.read.remote.web import PLANNING, READING, buffered

Facts = tuple[str, int, str, str]  # path, bytes, version, CRC-32C in hexadecimal or ""


class BucketInputs(BucketStore):
    """The objects of a bucket by their keys, whatever these are. Behind the store of a service in its classes.

    version_name: what the service calls an object's version. lists_checksums: whether listings have the CRC-32C of all
    objects, so it may be part of a fingerprint however an object was found.
    """

    version_name: ClassVar[str]
    lists_checksums: ClassVar[bool]

    def key(self, name: str) -> str:
        return name

    def url(self, name: str) -> str:
        return f"{self.root}/{name}"

    def pay(self, payer: str) -> None:
        """Let this project pay for requests; "" changes nothing."""
        raise NotImplementedError

    def facts(self, key: str, info: ObjectInfo) -> Facts:
        """What a plan has of an object."""
        crc32c = info.crc32c if self.lists_checksums else ""
        return self.url(key), info.size, f"{self.version_name}:{info.version}", crc32c


def split_address(path: str) -> tuple[str, str, str]:
    """(scheme with "://", bucket, key) of gs://bucket/key or s3://bucket/key; key "" is all of the bucket. Raises
    ValueError."""
    scheme, _, rest = path.partition("://")
    bucket, slash, key = rest.partition("/")
    if not bucket or not slash:
        raise ValueError(f"{scheme}://BUCKET/KEY is allowed")
    return f"{scheme}://", bucket, key


def inputs_at(service: type[BucketInputs], path: str, params: FetchParams, payer: str = "") -> tuple[BucketInputs, str]:
    """The bucket of an address, and the key in it; connections are kept for the next file. Raises ValueError."""
    scheme, bucket, key = split_address(path)
    if not service.buckets.fullmatch(bucket):
        raise ValueError(f"{scheme}BUCKET/KEY is allowed")
    store = service(f"{scheme}{bucket}", params)
    store.pay(payer)
    return store, key


def list_bucket(service: type[BucketInputs], pattern: str, payer: str = "") -> list[Facts]:
    """Every object that a pattern, folder or key means, in order. Costs a request for a key, and one for 1,000 objects
    whose keys begin as a pattern does. Raises StorageError, ValueError."""
    store, key = inputs_at(service, pattern, PLANNING, payer)

    def named(key: str) -> list[Facts]:
        info = store.info(key)
        return [] if info is None else [store.facts(key, info)]

    def listed(key: str) -> list[Facts]:
        wanted = Glob(key)
        entries = (entry for page in store.listed(fixed_beginning(key)) for entry in page.items())
        # Consoles make empty objects "folder/".
        return [
            store.facts(name, info)
            for name, info in bounded(entries)
            if wanted.matches(name) and (info.size or not name.endswith("/"))
        ]

    return sorted(meaning(key or "**", named, listed))


def describe_object(service: type[BucketInputs], path: str, payer: str = "") -> Facts:
    """The object of exactly that key. Costs a request. Raises FileNotFoundError, StorageError, ValueError."""
    store, key = inputs_at(service, path, PLANNING, payer)
    info = store.info(key)
    if info is None:
        raise FileNotFoundError(path)
    return store.facts(key, info)


def open_object(
    service: type[BucketInputs], path: str, size: int | None = None, version: str = "", payer: str = ""
) -> BinaryIO:
    """A seekable, buffered stream. version: as planning told it; "" for whatever is there."""
    store, key = inputs_at(service, path, READING, payer)
    version = version.removeprefix(f"{store.version_name}:")
    if size is None:
        info = store.info(key)
        if info is None:
            raise FileNotFoundError(path)
        size, version = info.size, info.version
    return buffered(RangeStream(store, key, size, version))
