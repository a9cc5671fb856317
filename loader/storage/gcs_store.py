"""A prefix of a Cloud Storage bucket."""

import base64
import contextlib
import errno
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar, cast

import google_crc32c

from refinery.loader.storage import gcs_client
from refinery.loader.storage.fetch import (
    Answer,
    Attempt,
    Counters,
    FetchError,
    FetchParams,
    Permanent,
    Transient,
    retrying,
)
from refinery.loader.storage.gcs_upload import (
    CHUNK,
    Made,
    SessionLost,
    check_session,
    open_bytes,
    send_chunks,
    size_and_sum,
)
from refinery.loader.storage.remote_store import PIECE, CorruptObject, RangeStream, RemoteStore
from refinery.loader.storage.store import TEMPORARY, Names, StorageError, check_name, conflict, size_and_crc32c

T = TypeVar("T")

SESSIONS = 3  # resumable uploads begun for one object
CHECK_SECONDS = 15.0
KIND = "application/octet-stream"
BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{0,221}")


class Facts(NamedTuple):
    """Of an object that is there; crc32c as 8 hexadecimal digits."""

    size: int
    crc32c: str
    generation: str


class GcsStore(RemoteStore):
    """A prefix of a Cloud Storage bucket. google-cloud-storage is imported, and its client made, at the first use."""

    def __init__(self, url: str, params: FetchParams | None = None) -> None:
        bucket, _, prefix = url.removeprefix("gs://").partition("/")
        prefix = prefix.rstrip("/")
        if not BUCKET.fullmatch(bucket) or (prefix and check_name(prefix) != prefix):
            raise ValueError(f"location: {url!r} given, gs://bucket or gs://bucket/prefix is allowed")
        self.params = params or FetchParams()
        self.counters = Counters()
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self.root = f"gs://{bucket}/{prefix}".rstrip("/")

    def _blob(self, name: str) -> Any:
        return gcs_client.client().bucket(self._bucket).blob(self._prefix + check_name(name))

    def _retried(self, doing: str, url: str, once: Callable[[], T], params: FetchParams | None = None) -> T:
        """`once()`, again after transient errors. Raises StorageError; 404 of objects and 412 come through."""

        def attempt(until: float) -> T:
            self.counters.add(requests=1)
            with gcs_client.classified():
                return once()

        try:
            return retrying(attempt, url, (0, None), params or self.params, self.counters)
        except FetchError as error:
            tried = f" {error.attempts} attempts failed; the last:" if error.attempts > 1 else ""
            status = error.cause.status if isinstance(error.cause, gcs_client.Refusal) else 0
            raise StorageError(f"{url}: cannot {doing}:{tried} {error.cause}", status) from error

    @property
    def _timeout(self) -> tuple[float, float]:
        return self.params.connect_timeout, self.params.read_timeout

    # Reading

    def get(self, name: str, start: int, stop: int, attempt: Attempt, version: str = "") -> Answer:
        """One attempt, without the library's own retries. The version is the object's generation."""
        from google.api_core import exceptions

        sink = _Sink(stop - start, attempt)
        options: dict[str, Any] = {"if_generation_match": int(version)} if version else {}
        timeout = (attempt.params.connect_timeout, attempt.params.read_timeout)
        try:
            with gcs_client.classified():
                blob = self._blob(name)  # the first call looks for credentials
                # raw: the stored bytes, also of objects that carry Content-Encoding: gzip
                blob.download_to_file(
                    sink, start=start, end=stop - 1, raw_download=True, retry=None, checksum=None, timeout=timeout,
                    **options,
                )  # fmt: skip
        except exceptions.RequestRangeNotSatisfiable:
            return Answer(b"")
        except exceptions.PreconditionFailed:
            raise Permanent(f"the object has changed: generation {version} expected") from None
        except exceptions.NotFound as error:
            raise FileNotFoundError(errno.ENOENT, "no such object", self.url(name)) from error
        crc32c = base64.b64decode(blob.crc32c).hex() if blob.crc32c else ""
        return Answer(sink.data, None, str(blob.generation or ""), crc32c)

    def open(self, name: str) -> BinaryIO:
        facts = self._facts(name)
        if facts is None:
            raise FileNotFoundError(errno.ENOENT, "no such object", self.url(name))
        stream = _CheckedStream(self, name, facts)
        return cast(BinaryIO, io.BufferedReader(stream, PIECE // 8))

    def _facts(self, name: str) -> Facts | None:
        """Of the object now, None where there is none."""
        from google.api_core import exceptions

        url = self.url(name)

        def once() -> Facts:
            blob = self._blob(name)
            blob.reload(retry=None, timeout=self._timeout)
            return Facts(*size_and_sum(lambda: (blob.size, blob.crc32c)), str(blob.generation))

        try:
            return self._retried("be looked up", url, once)
        except exceptions.NotFound:
            return None

    def size(self, name: str) -> int | None:
        facts = self._facts(name)
        return None if facts is None else facts.size

    def list(self, folder: str = "") -> Names:
        names = self._listed(self._prefix + (f"{check_name(folder)}/" if folder else ""))
        # Consoles make empty objects "folder/" to show folders; no such name can be read here.
        return sorted(
            name[len(self._prefix) :]
            for name in names
            if not name.endswith("/") and f"/{TEMPORARY}" not in f"/{name[len(self._prefix) :]}"
        )

    def is_empty(self) -> bool:
        page, token = self._page(self._prefix, None, limit=10)
        return token is None and all(name.endswith("/") for name in page)

    def listed_crc32c(self, beginning: str) -> dict[str, str]:
        """Name -> CRC-32C, 8 hexadecimal digits, of every object whose name begins so. Cost: a request per 1,000."""
        begun = self._listed(self._prefix + beginning)
        return {name[len(self._prefix) :]: base64.b64decode(crc32c).hex() for name, crc32c in begun.items()}

    def _listed(self, prefix: str) -> dict[str, str]:
        """Full name -> checksum as the service gives it."""
        found: dict[str, str] = {}
        token: str | None = None
        tokens: set[str] = set()
        while True:
            page, token = self._page(prefix, token)
            found |= page
            if token is None:
                return found
            if token in tokens:
                raise StorageError(f"{self.root}: cannot be listed: the service gives the same page again and again")
            tokens.add(token)

    def _page(
        self, prefix: str, token: str | None, params: FetchParams | None = None, limit: int | None = None
    ) -> tuple[dict[str, str], str | None]:
        """One page of `_listed`, and the next page's token."""

        def once() -> tuple[dict[str, str], str | None]:
            found = gcs_client.client().list_blobs(
                self._bucket, prefix=prefix, page_token=token, page_size=limit, retry=None, timeout=self._timeout,
                fields="items(name,crc32c),nextPageToken",
            )  # fmt: skip
            page = {blob.name: blob.crc32c or "" for blob in next(found.pages, ())}
            return page, found.next_page_token

        return self._retried("be listed", self.root, once, params)

    def check(self) -> None:
        patience = FetchParams(deadline=min(CHECK_SECONDS, self.params.deadline))
        self._page(self._prefix, None, patience, 1)

    # Writing

    def create(self, name: str, source: bytes | Path) -> None:
        from google.api_core import exceptions

        given = size_and_crc32c(source)
        try:
            self._upload(name, source, given, if_generation_match=0)
        except exceptions.PreconditionFailed:  # it exists: perhaps by an attempt of ours whose answer was lost
            found = self._facts(name)
            if found is None:
                raise StorageError(
                    f"{self.url(name)}: it was there while it was written, and is gone now", 412
                ) from None
        except StorageError as error:
            # Who may not overwrite may be told so even where, with this condition, nothing would be overwritten.
            found = self._facts(name) if error.status == 403 else None
            if found is None:
                raise
        else:
            return
        if found[:2] != given:
            raise conflict(self.url(name), found[:2], given)

    def replace(self, name: str, data: bytes) -> None:
        self._upload(name, data, size_and_crc32c(data))  # the same bytes written twice do no harm

    def delete(self, name: str) -> None:
        from google.api_core import exceptions

        url = self.url(name)
        with contextlib.suppress(exceptions.NotFound):
            self._retried("be deleted", url, lambda: self._blob(name).delete(retry=None, timeout=self._timeout))

    def _upload(self, name: str, source: bytes | Path, given: tuple[int, str], **conditions: int) -> None:
        """Write an object; the service is told its checksum and refuses other bytes. Memory: one chunk."""
        url, (size, crc32c) = self.url(name), given
        options = {"content_type": KIND, "checksum": None, "retry": None, **conditions}

        def new_blob() -> Any:
            blob = self._blob(name)
            blob.crc32c = base64.b64encode(bytes.fromhex(crc32c)).decode()
            return blob

        def at_once() -> Made:
            blob = new_blob()
            stream.seek(0)
            timeout = (self.params.read_timeout,) * 2  # the first bounds the sending of the body, too
            blob.upload_from_file(stream, size=size, timeout=timeout, **options)
            return size_and_sum(lambda: (blob.size, blob.crc32c))

        def begin() -> str:
            session = str(new_blob().create_resumable_upload_session(size=size, timeout=self._timeout, **options))
            check_session(session, gcs_client.client().api_endpoint)
            return session

        def retried(once: Callable[[], T]) -> T:
            return self._retried("be written", url, once)

        with open_bytes(source) as stream:
            made = retried(at_once) if size <= CHUNK else self._send(url, begin, stream, size, retried)
        if made != given:
            raise StorageError(f"{url}: cannot be written: the service holds other bytes than it was sent")

    def _send(
        self, url: str, begin: Callable[[], str], stream: BinaryIO, size: int, retried: Callable[..., Any]
    ) -> Made:
        """Send a large object in chunks, from the beginning again where its session is lost."""
        for _ in range(SESSIONS):
            session = retried(begin)
            try:
                return send_chunks(gcs_client.client()._http, session, stream, size, self.params, retried)
            except SessionLost as error:
                lost = error
        raise StorageError(f"{url}: cannot be written: {SESSIONS} uploads were broken off; the last: {lost}")

    def close(self) -> None:
        gcs_client.close()


class _CheckedStream(RangeStream):
    """A stream that compares the CRC-32C with the service's once it was read from its beginning to its end."""

    def __init__(self, store: GcsStore, name: str, facts: Facts) -> None:
        super().__init__(store, name, facts.size, facts.generation)
        self._expected = facts.crc32c
        self._summed = self._crc32c = 0  # bytes from the beginning on, and their checksum

    def readinto(self, buffer: Any) -> int:
        start = self.tell()
        count = super().readinto(buffer)
        if not count and start < self._size and len(buffer):
            raise CorruptObject(f"{self._store.url(self._name)}: it ends at byte {start}, {self._size} expected")
        if count and start == self._summed:
            self._crc32c = google_crc32c.extend(self._crc32c, bytes(memoryview(buffer).cast("B")[:count]))
            self._summed += count
            if self._summed == self._size and f"{self._crc32c:08x}" != self._expected:
                text = f"crc32c {self._crc32c:08x} found, {self._expected} expected by the server"
                raise CorruptObject(f"{self._store.url(self._name)}: {text}")
        return count


class _Sink:
    """What a download writes to: refuses more bytes than were asked for, and ends an attempt that was cancelled."""

    def __init__(self, limit: int, attempt: Attempt) -> None:
        self.data = bytearray()
        self._limit = limit
        self._attempt = attempt

    def write(self, data: bytes) -> int:
        self._attempt.check()
        if len(self.data) + len(data) > self._limit:
            raise Transient(f"more than the {self._limit} bytes asked for")
        self.data += data
        return len(data)
