"""A prefix of a Cloud Storage bucket."""

import base64
import contextlib
import errno
import io
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar, cast

from refinery.loader.errors import CorruptObject
from refinery.loader.storage import gcs_client, gcs_download
from refinery.loader.storage.fetch import (
    Attempt,
    FetchError,
    FetchParams,
    Permanent,
    RangeResponse,
    ReadCounters,
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
from refinery.loader.storage.pace import MOST_BYTES
from refinery.loader.storage.receive import Buffers
from refinery.loader.storage.remote_store import REQUEST_BYTES, CheckedStream, RemoteStore
from refinery.loader.storage.store import TEMPORARY, Names, StorageError, check_name, conflict, size_and_crc32c

T = TypeVar("T")

SESSIONS = 3  # resumable uploads started for one object, at most
CHECK_SECONDS = 15.0
CONTENT_TYPE = "application/octet-stream"
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{0,221}")


class ObjectInfo(NamedTuple):
    """Metadata of an object. crc32c: 8 hexadecimal digits."""

    size: int
    crc32c: str
    generation: str


class GcsStore(RemoteStore):
    """A prefix of a Cloud Storage bucket. google-cloud-storage is imported and its client created at first use."""

    def __init__(self, url: str, params: FetchParams | None = None) -> None:
        bucket, _, prefix = url.removeprefix("gs://").partition("/")
        prefix = prefix.rstrip("/")
        if not _BUCKET.fullmatch(bucket) or (prefix and check_name(prefix) != prefix):
            raise ValueError(f"location: {url!r} given, gs://bucket or gs://bucket/prefix is allowed")
        self.params = params or FetchParams()
        self.counters = ReadCounters()
        self._bucket = bucket
        self._buffers = Buffers(2 * MOST_BYTES)  # on their way, and being stored
        self._prefix = f"{prefix}/" if prefix else ""
        self.root = f"gs://{bucket}/{prefix}".rstrip("/")

    def blob(self, name: str) -> Any:
        """The library's object of that name; nothing is asked."""
        return gcs_client.client().bucket(self._bucket).blob(self._prefix + check_name(name))

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

        wanted = gcs_download.Wanted(self._bucket, self._prefix + check_name(name), start, stop, version)
        try:
            with gcs_client.classified():
                return gcs_download.download(wanted, attempt, self._buffers)
        except exceptions.RequestRangeNotSatisfiable:
            return RangeResponse(b"")
        except exceptions.PreconditionFailed:
            raise Permanent(f"the object has changed: generation {version} expected") from None
        except exceptions.NotFound as error:
            raise FileNotFoundError(errno.ENOENT, "no such object", self.url(name)) from error

    def open(self, name: str) -> BinaryIO:
        info = self._info(name)
        if info is None:
            raise FileNotFoundError(errno.ENOENT, "no such object", self.url(name))
        stream = CheckedStream(self, name, info.size, info.generation, info.crc32c)
        return cast(BinaryIO, io.BufferedReader(stream, REQUEST_BYTES // 8))

    def _info(self, name: str) -> ObjectInfo | None:
        """Current metadata of the object, None if there is none."""
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

    def size(self, name: str) -> int | None:
        info = self._info(name)
        return None if info is None else info.size

    def pages(self, folder: str = "") -> Iterator[Names]:
        for page in self._pages(self._prefix + (f"{check_name(folder)}/" if folder else "")):
            # The console creates empty objects "folder/" as folder placeholders; such names are not valid here.
            yield [
                name[len(self._prefix) :]
                for name in page
                if not name.endswith("/") and f"/{TEMPORARY}" not in f"/{name[len(self._prefix) :]}"
            ]

    def is_empty(self) -> bool:
        page, token = self._page(self._prefix, None, limit=10)
        return token is None and all(name.endswith("/") for name in page)

    def listed_crc32c(self, beginning: str, wanted: Collection[str]) -> dict[str, str]:
        """Name -> CRC-32C (8 hexadecimal digits) of those `wanted` objects whose names start so. Cost: one request per
        1,000 objects whose names do."""
        found: dict[str, str] = {}
        for page in self._pages(self._prefix + beginning):
            names = ((name[len(self._prefix) :], crc32c) for name, crc32c in page.items())
            found |= {name: base64.b64decode(crc32c).hex() for name, crc32c in names if name in wanted}
        return found

    def _pages(self, prefix: str) -> Iterator[dict[str, str]]:
        """Full name -> checksum in base64, as listed, in the order of names."""
        token: str | None = None
        tokens: set[str] = set()
        while True:
            page, token = self._page(prefix, token)
            yield page
            if token is None:
                return
            if token in tokens:
                raise StorageError(f"{self.root}: cannot be listed: the service repeats a page")
            tokens.add(token)

    def _page(
        self, prefix: str, token: str | None, params: FetchParams | None = None, limit: int | None = None
    ) -> tuple[dict[str, str], str | None]:
        """One page of `_pages`, and the next page's token."""

        def once() -> tuple[dict[str, str], str | None]:
            found = gcs_client.client().list_blobs(
                self._bucket, prefix=prefix, page_token=token, page_size=limit, retry=None, timeout=self._timeout,
                fields="items(name,crc32c),nextPageToken",
            )  # fmt: skip
            page = {blob.name: blob.crc32c or "" for blob in next(found.pages, ())}
            return page, found.next_page_token

        return self.retried("be listed", self.root, once, params)

    def check(self) -> None:
        self._page(self._prefix, None, FetchParams(deadline=min(CHECK_SECONDS, self.params.deadline)), 1)

    # Writing

    def create(self, name: str, source: bytes | Path) -> None:
        from google.api_core import exceptions

        given = size_and_crc32c(source)
        try:
            self._upload(name, source, given, if_generation_match=0)
        except exceptions.PreconditionFailed:  # it exists, perhaps from an attempt of ours whose response was lost
            found = self._info(name)
            if found is None:
                raise StorageError(f"{self.url(name)}: existed during the upload and was then deleted", 412) from None
        except StorageError as error:
            # Without permission to overwrite, the service may answer 403 although this condition never overwrites.
            found = self._info(name) if error.status == 403 else None
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
        info = source._info(name)
        if info is None:
            raise FileNotFoundError(errno.ENOENT, "no such object", source.url(name))
        if info[:2] != expected:
            raise CorruptObject(f"{source.url(name)}: {info[:2]} found, {expected} expected: size and crc32c")

        def once() -> str | None:
            conditions = {"if_generation_match": 0, "if_source_generation_match": int(info.generation)}
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
        found = self._info(name)
        if found is None:
            raise StorageError(f"{url}: cannot be copied: {source.url(name)} changed meanwhile", 412)
        if found[:2] != expected:
            raise conflict(url, found[:2], expected)

    def replace(self, name: str, data: bytes) -> None:
        self._upload(name, data, size_and_crc32c(data))  # idempotent: writing the same bytes twice is harmless

    def delete(self, name: str) -> None:
        from google.api_core import exceptions

        url = self.url(name)
        with contextlib.suppress(exceptions.NotFound):
            self.retried("be deleted", url, lambda: self.blob(name).delete(retry=None, timeout=self._timeout))

    def delete_many(self, names: Iterable[str]) -> Names:
        return delete_objects(self, names)

    def _upload(self, name: str, source: bytes | Path, given: tuple[int, str], **conditions: int) -> None:
        """Write an object; the service gets its checksum and rejects other bytes. Memory: one chunk."""
        url, (size, crc32c) = self.url(name), given
        options = {"content_type": CONTENT_TYPE, "checksum": None, "retry": None, **conditions}

        def new_blob() -> Any:
            blob = self.blob(name)
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
            raise StorageError(f"{url}: cannot be written: the service stored other bytes than were sent")

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
