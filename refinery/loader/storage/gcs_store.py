"""A prefix of a Cloud Storage bucket."""

import base64
import contextlib
import errno
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from refinery.loader.errors import CorruptObject
from refinery.loader.storage import gcs_client, gcs_download
from refinery.loader.storage.fetch import (
    Attempt,
    FetchError,
    FetchParams,
    Permanent,
    RangeResponse,
    Transient,
    retrying,
)
from refinery.loader.storage.gcs_delete import delete_objects
from refinery.loader.storage.gcs_upload import (
    UPLOAD_CHUNK,
    SessionLost,
    UploadedObject,
    check_session,
    open_bytes,
    send_chunks,
    size_and_sum,
)
from refinery.loader.storage.remote_store import BucketStore, ObjectInfo, Page
from refinery.loader.storage.store import Names, StorageError, cache_control, conflict, size_and_crc32c

T = TypeVar("T")

SESSIONS = 3  # resumable uploads started for one object, at most
CONTENT_TYPE = "application/octet-stream"


class GcsStore(BucketStore):
    """A prefix of a Cloud Storage bucket. google-cloud-storage is imported and its client created at first use."""

    scheme = "gs://"
    buckets = re.compile(r"[a-z0-9][a-z0-9._-]{0,221}")
    payer = ""  # the project that pays for reading a bucket with requester pays

    def bucket(self) -> Any:
        """The library's bucket; nothing is asked."""
        return gcs_client.client().bucket(self._bucket, user_project=self.payer or None)

    def blob(self, name: str) -> Any:
        """The library's object of that name; nothing is asked."""
        return self.bucket().blob(self.key(name))

    def retried(self, doing: str, url: str, once: Callable[[], T], params: FetchParams | None = None) -> T:
        """Call `once()`, with retries. Raises StorageError; 404 of objects and 412 are passed on."""

        def attempt(until: float) -> T:
            self.counters.add(requests=1)
            with gcs_client.classified():
                return once()

        try:
            return retrying(attempt, url, (0, None), params or self.params, self.counters)
        except FetchError as error:
            tried = f" {error.attempts} attempts failed; last:" if error.attempts > 1 else ""
            status = error.cause.status if isinstance(error.cause, gcs_client.Refusal) else 0
            raise StorageError(f"{url}: cannot {doing}:{tried} {error.cause}", status) from error

    @property
    def _timeout(self) -> tuple[float, float]:
        return self.params.connect_timeout, self.params.read_timeout

    # Reading

    def get(self, name: str, start: int, stop: int, attempt: Attempt, version: str = "") -> RangeResponse:
        """One attempt, without the library's retries. The version is the object's generation."""
        from google.api_core import exceptions

        wanted = gcs_download.Wanted(self._bucket, self.key(name), start, stop, version, self.payer)
        try:
            with gcs_client.classified():
                return gcs_download.download(wanted, attempt, self._buffers)
        except exceptions.RequestRangeNotSatisfiable:
            return RangeResponse(b"")
        except exceptions.PreconditionFailed:
            raise Permanent(f"the object has changed: generation {version} expected") from None
        except exceptions.NotFound as error:
            raise FileNotFoundError(errno.ENOENT, "no such object", self.url(name)) from error

    def info(self, name: str) -> ObjectInfo | None:
        from google.api_core import exceptions

        url = self.url(name)

        def once() -> ObjectInfo:
            blob = self.blob(name)
            blob.reload(retry=None, timeout=self._timeout)
            return ObjectInfo(*size_and_sum(lambda: (blob.size, blob.crc32c)), str(blob.generation))

        try:
            return self.retried("be looked up", url, once)
        except exceptions.NotFound:
            return None

    # Listing

    def page(self, prefix: str, token: str = "", most: int = 0, params: FetchParams | None = None) -> tuple[Page, str]:
        def once() -> tuple[Page, str]:
            found = gcs_client.client().list_blobs(
                self.bucket(), prefix=prefix, page_token=token or None, page_size=most or None, retry=None,
                timeout=self._timeout, fields="items(name,size,crc32c,generation),nextPageToken",
            )  # fmt: skip
            page = {blob.name: _listed(blob) for blob in next(found.pages, ())}
            return page, found.next_page_token or ""

        return self.retried("be listed", self.root, once, params)

    # Writing

    def create(self, name: str, source: bytes | Path) -> None:
        from google.api_core import exceptions

        given = size_and_crc32c(source)
        try:
            self._upload(name, source, given, if_generation_match=0)
        except exceptions.PreconditionFailed:  # it exists, perhaps from an attempt of ours whose response was lost
            found = self.info(name)
            if found is None:
                raise StorageError(f"{self.url(name)}: existed during the upload and was then deleted", 412) from None
        except StorageError as error:
            # Without permission to overwrite, the service may answer 403 although this condition never overwrites.
            found = self.info(name) if error.status == 403 else None
            if found is None:
                raise
        else:
            return
        if found[:2] != given:
            raise conflict(self.url(name), found[:2], given)

    def copy_from(self, source: "GcsStore", name: str, expected: tuple[int, str]) -> None:
        """Publish `name` of another bucket or prefix under the same name here, exclusively: the service copies it.

        expected: size and crc32c. Raises CorruptObject where `source` has another object, StorageConflict where there
        is another one here.
        """
        from google.api_core import exceptions

        url, token = self.url(name), None
        info = source.info(name)
        if info is None:
            raise FileNotFoundError(errno.ENOENT, "no such object", source.url(name))
        if info[:2] != expected:
            raise CorruptObject(f"{source.url(name)}: {info[:2]} found, {expected} expected: size and crc32c")

        def once() -> str | None:
            conditions = {"if_generation_match": 0, "if_source_generation_match": int(info.version)}
            timeout = (self.params.read_timeout,) * 2
            blob = self.blob(name)
            found, _, _ = blob.rewrite(source.blob(name), token=token, retry=None, timeout=timeout, **conditions)
            return None if found is None else str(found)

        try:
            token = self.retried("be copied", url, once)
            while token is not None:  # large objects between places of storage are copied in several calls
                token = self.retried("be copied", url, once)
        except exceptions.PreconditionFailed:  # it exists, perhaps from an attempt of ours whose response was lost
            pass
        found = self.info(name)
        if found is None:
            raise StorageError(f"{url}: cannot be copied: {source.url(name)} changed meanwhile", 412)
        if found[:2] != expected:
            raise conflict(url, found[:2], expected)

    def replace(self, name: str, data: bytes) -> None:
        self._upload(name, data, size_and_crc32c(data), True)  # idempotent: writing the same bytes twice is harmless

    def delete(self, name: str) -> None:
        from google.api_core import exceptions

        url = self.url(name)
        with contextlib.suppress(exceptions.NotFound):
            self.retried("be deleted", url, lambda: self.blob(name).delete(retry=None, timeout=self._timeout))

    def delete_many(self, names: Iterable[str]) -> Names:
        return delete_objects(self, names)

    def _upload(
        self, name: str, source: bytes | Path, given: tuple[int, str], is_replaced: bool = False, **conditions: int
    ) -> None:
        """Write an object; the service gets its checksum and rejects other bytes. Memory: one chunk."""
        url, (size, crc32c) = self.url(name), given
        options = {"content_type": CONTENT_TYPE, "checksum": None, "retry": None, **conditions}

        def new_blob() -> Any:
            blob = self.blob(name)
            blob.cache_control = cache_control(name, is_replaced)
            blob.crc32c = base64.b64encode(bytes.fromhex(crc32c)).decode()
            return blob

        def at_once() -> UploadedObject:
            blob = new_blob()
            stream.seek(0)
            timeout = (self.params.read_timeout,) * 2  # the first one also applies to sending the body
            blob.upload_from_file(stream, size=size, timeout=timeout, **options)
            return size_and_sum(lambda: (blob.size, blob.crc32c))

        def begin() -> str:
            session = str(new_blob().create_resumable_upload_session(size=size, timeout=self._timeout, **options))
            check_session(session, gcs_client.client().api_endpoint)
            return session

        def retried(once: Callable[[], T]) -> T:
            return self.retried("be written", url, once)

        with open_bytes(source) as stream:
            made = retried(at_once) if size <= UPLOAD_CHUNK else self._send(url, begin, stream, size, retried)
        if made != given:
            raise StorageError(f"{url}: cannot be written; the service stored different bytes from those sent")

    def _send(
        self, url: str, begin: Callable[[], str], stream: BinaryIO, size: int, retried: Callable[..., Any]
    ) -> UploadedObject:
        """Send a large object in chunks; starts over if its session is lost."""
        for _ in range(SESSIONS):
            session = retried(begin)
            try:
                return send_chunks(gcs_client.client()._http, session, stream, size, self.params, retried)
            except SessionLost as error:
                lost = error
        raise StorageError(f"{url}: cannot be written: {SESSIONS} upload sessions were lost; last: {lost}")

    def close(self) -> None:
        gcs_client.close()


def _listed(blob: Any) -> ObjectInfo:
    """An object of a listing, which has no checksum of what a customer's own key encrypts. Raises Transient."""
    with contextlib.suppress(ValueError, TypeError):
        return ObjectInfo(int(blob.size), base64.b64decode(blob.crc32c or "").hex(), str(blob.generation))
    raise Transient("a listing without the size of an object, perhaps from a proxy")
