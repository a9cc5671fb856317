"""Inputs in S3, or in anything that speaks its protocol, by obstore.

Credentials, endpoint and region come from the environment alone, in each process that reads: AWS_ACCESS_KEY_ID and
AWS_SECRET_ACCESS_KEY (AWS_SESSION_TOKEN), or what a container or a web identity gives; AWS_ENDPOINT_URL, AWS_REGION.
Without any of them requests are not signed, which public buckets allow.
"""

import os
import re
from collections.abc import Callable
from datetime import timedelta
from functools import lru_cache
from typing import Any, BinaryIO, TypeVar
from urllib.parse import urlsplit

from obstore.exceptions import BaseError, NotFoundError, PermissionDeniedError, PreconditionError, UnauthenticatedError
from obstore.store import S3Store

from refinery.loader.storage.fetch import without_secrets
from refinery.loader.storage.remote_store import PiecesStream
from refinery.loader.storage.store import StorageError
from refinery.transforms.core.safe_text import safe
from refinery.transforms.remote.globs import bounded, fixed_folder, glob_regex, is_glob
from refinery.transforms.remote.web import buffered

T = TypeVar("T")

CREDENTIALS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_METADATA_ENDPOINT",  # asks an instance for its role, which takes long where there is none
)
ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
LOOPBACK = ("localhost", "127.0.0.1", "::1")


def split_address(path: str) -> tuple[str, str]:
    """(bucket, key) of s3://bucket/key."""
    bucket, _, key = path.removeprefix("s3://").partition("/")
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]{1,62}", bucket) or not key:
        raise ValueError("s3://BUCKET/KEY is allowed")
    return bucket, key


def bucket_store(bucket: str) -> S3Store:
    """The bucket as obstore opens it. One per process."""
    return _bucket_store(bucket, os.getpid())


@lru_cache(maxsize=64)
def _bucket_store(bucket: str, process: int) -> S3Store:
    endpoint = next((value for name in ENDPOINTS if (value := os.environ.get(name))), "")
    plain = endpoint.startswith("http://")
    if plain and urlsplit(endpoint).hostname not in LOOPBACK:
        raise ValueError("AWS_ENDPOINT_URL: https:// is allowed, http:// for this machine only")
    unsigned = {} if any(os.environ.get(name) for name in CREDENTIALS) else {"skip_signature": True}
    return S3Store(
        bucket,
        client_options={"allow_http": plain, "timeout": "60s", "connect_timeout": "10s"},
        retry_config={
            "max_retries": 8,
            "retry_timeout": timedelta(minutes=4),
            "backoff": {
                "base": 2,
                "init_backoff": timedelta(milliseconds=200),
                "max_backoff": timedelta(seconds=30),
            },
        },
        **unsigned,  # type: ignore[arg-type]
    )


def asking(path: str, call: Callable[[], T]) -> T:
    """`call()`, with obstore's errors as one line each. Raises FileNotFoundError, StorageError."""
    try:
        return call()
    except NotFoundError:
        raise FileNotFoundError(path) from None
    except PreconditionError:
        raise StorageError(f"{path}: the object has changed since the run was planned", 412) from None
    except (PermissionDeniedError, UnauthenticatedError):
        raise StorageError(f"{path}: {_denied()}", 403) from None
    except BaseError as error:
        text = safe(without_secrets(" ".join(str(error).split()).partition(" Debug source:")[0]))
        if "status code: 403" in text:  # of a listing
            raise StorageError(f"{path}: {_denied()}", 403) from None
        hint = "; set AWS_REGION to the bucket's" if "301" in text or "Redirect" in text else ""
        raise StorageError(f"{path}: {text[:300]}{hint}") from None


def _denied() -> str:
    signed = any(os.environ.get(name) for name in CREDENTIALS)
    advice = "these credentials may not read it" if signed else "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    return f"access is denied: {advice}"


def list_s3(pattern: str) -> list[tuple[str, int, str]]:
    """(path, bytes, version) of every object that a pattern or key means, in order. Costs a request for 1,000 objects
    of the folder that holds the first special character."""
    bucket, key = split_address(pattern)
    store = bucket_store(bucket)
    if not is_glob(key) and not key.endswith("/"):
        try:
            found = [asking(pattern, lambda: store.head(key))]
        except FileNotFoundError:
            return []
    else:
        folder, wanted = fixed_folder(key), glob_regex(key)

        def every() -> list[Any]:
            listed = (one for chunk in store.list(folder or None) for one in chunk)
            return [one for one in bounded(listed) if wanted.fullmatch(one["path"])]

        found = asking(pattern, every)
        # Consoles make empty objects "folder/", which obstore lists as "folder".
        folders = {one["path"].rpartition("/")[0] for one in found}
        found = [one for one in found if one["size"] or one["path"] not in folders]
    return sorted((f"s3://{bucket}/{one['path']}", one["size"], f"etag:{one['e_tag'] or ''}") for one in found)


class ObjectStream(PiecesStream):
    """One version of an object."""

    def __init__(self, path: str, size: int, etag: str) -> None:
        super().__init__(size)
        self._path, self._etag = path, etag
        bucket, self._key = split_address(path)
        self._store = bucket_store(bucket)

    def piece(self, start: int, stop: int) -> bytes:
        options: Any = {"range": (start, stop), **({"if_match": self._etag} if self._etag else {})}
        data = asking(self._path, lambda: bytes(self._store.get(self._key, options=options).bytes()))
        if len(data) != stop - start:
            raise StorageError(f"{self._path}: {len(data)} bytes found, {stop - start} expected from {start} on")
        return data


def open_s3(path: str, size: int | None = None, version: str = "") -> BinaryIO:
    """A seekable, buffered stream. version: as `list_s3` told it; "" for whatever is there."""
    if size is None:
        found = list_s3(path)
        if not found:
            raise FileNotFoundError(path)
        _, size, version = found[0]
    return buffered(ObjectStream(path, size, version.removeprefix("etag:")))
