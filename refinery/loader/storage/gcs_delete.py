"""Very many objects of a bucket removed: a hundred in a request, several requests at once."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol

from refinery.loader.storage import gcs_client
from refinery.loader.storage.fetch import FetchParams, Transient
from refinery.loader.storage.remote_store import in_batches

BATCH = 100  # calls in a request: the service takes no more
THREADS = 16  # requests at once
SECONDS = 90.0  # without an answer; the service works through the calls of a batch before it gives one


class Bucket(Protocol):
    """What is needed of the store: see refinery.loader.storage.gcs_store.GcsStore."""

    params: FetchParams

    def blob(self, name: str) -> Any: ...
    def url(self, name: str) -> str: ...
    def delete(self, name: str) -> None: ...
    def retried(self, doing: str, url: str, once: Callable[[], None]) -> None: ...


def delete_objects(store: Bucket, names: Iterable[str]) -> list[str]:
    """Remove objects, in no particular order; those that are gone already, too. Returns those that may not be (403).

    Memory: the names of twice as many requests as THREADS. Raises StorageError as the store's `delete` does, when
    requests that are under way have ended; the same call again removes what is left.
    """
    return in_batches(names, BATCH, THREADS, partial(_delete_batch, store))


def _delete_batch(store: Bucket, names: list[str]) -> list[str]:
    """Those of one request that may not be removed. What the service is too busy for is asked for again."""
    refused: list[str] = []
    failed: list[str] = []
    left = names

    def once() -> None:
        nonlocal left
        busy: dict[str, int] = {}
        for name, status in zip(left, _send(store, left), strict=True):
            if status in gcs_client.TRANSIENT:
                busy[name] = status
            elif status == 403:
                refused.append(name)
            elif status != 404 and not 200 <= status < 300:
                failed.append(name)
        left = list(busy)
        if busy:
            status = max(busy.values())
            raise Transient(f"status {status} for {len(busy)} deletes of a batch", refused=status in (429, 503))

    store.retried("be deleted", store.url(names[0]), once)
    for name in failed:
        store.delete(name)  # raises what is wrong, as a single call says it
    return refused


def _send(store: Bucket, names: list[str]) -> list[int]:
    """The status of each call."""
    batch: Any = gcs_client.client().batch(raise_exception=False)
    timeout = (store.params.connect_timeout, SECONDS)
    try:
        with batch:
            for name in names:
                store.blob(name).delete(retry=None, timeout=timeout)
    except ValueError as error:  # an answer that is not a list of answers, or has too few
        raise Transient(f"not the answer to a batch: {error}") from error
    return [response.status_code for response in batch._responses]
