"""Open the store at an address: a local folder, Cloud Storage, S3 or a web server."""

from os import PathLike
from pathlib import Path

from refinery.loader.storage.fetch import FetchParams
from refinery.loader.storage.gcs_store import GcsStore
from refinery.loader.storage.http_store import HttpStore
from refinery.loader.storage.remote_store import RemoteStore
from refinery.loader.storage.store import LocalStore, Store

WRITABLE = "a local folder, gs://bucket/prefix or s3://bucket/prefix is allowed"
ALLOWED = "a local folder, gs://bucket/prefix, s3://bucket/prefix or https://... is allowed"


def open_with(url: str | Path, fetch: FetchParams | None) -> Store:
    """`open_store`; a remote one reads with these parameters, if there are any: manifest and indexes, too."""
    store = open_store(url)
    if isinstance(store, RemoteStore) and fetch is not None:
        store.params = fetch
    return store


def open_store(url: str | Path) -> Store:
    """The store at a local folder (which need not exist yet), gs://bucket/prefix, s3://bucket/prefix, or
    https://host/prefix (read-only).

    http:// is allowed for loopback addresses only. Opening a store neither reads nor writes. Raises ValueError for any
    other kind of address, and for s3:// where the environment names no valid endpoint.
    """
    if not isinstance(url, (str, PathLike)):
        raise ValueError(f"location: {url!r:.80} given, {ALLOWED}")
    text = str(url)
    if text.startswith("gs://"):
        return GcsStore(text)
    if text.startswith("s3://"):
        from refinery.loader.storage.s3_store import S3Store  # 12 ms that others need not wait for

        return S3Store(text)
    if text.startswith(("https://", "http://")):
        return HttpStore(text)
    if not text or "\0" in text or "://" in text:
        shown = f"{text.partition('://')[0]}://..." if "://" in text else text  # the rest may contain a password
        raise ValueError(f"location: {shown!r} given, {ALLOWED}")
    return LocalStore(text)
