"""A prefix of a Cloud Storage bucket."""

import base64
import contextlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, cast

from loader.fetch import Answer, Attempt, Counters, FetchParams, Permanent, Transient
from loader.remote import RemoteStore
from loader.storage import CHUNK, TEMPORARY, Names, check_name, conflict, size_and_crc32c


class GcsStore(RemoteStore):
    """A prefix of a Cloud Storage bucket. google-cloud-storage is imported, and its client made, at the first use."""

    def __init__(self, url: str, params: FetchParams | None = None) -> None:
        bucket, _, prefix = url.removeprefix("gs://").partition("/")
        prefix = prefix.rstrip("/")
        if not bucket or (prefix and check_name(prefix) != prefix):
            raise ValueError(f"location: {url!r} given, gs://bucket or gs://bucket/prefix is allowed")
        self.params = params or FetchParams()
        self.counters = Counters()
        self._bucket_name = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self.root = f"gs://{bucket}/{prefix}".rstrip("/")

    @cached_property
    def _bucket(self) -> Any:
        from google.cloud import storage

        # Objects need no project: without None the client insists on a default one.
        return storage.Client(project=None).bucket(self._bucket_name)

    def _blob(self, name: str) -> Any:
        return self._bucket.blob(self._prefix + check_name(name))

    def _found(self, name: str) -> Any:
        """The blob with its metadata, or None."""
        return self._bucket.get_blob(self._prefix + check_name(name))

    def get(self, name: str, start: int, stop: int, attempt: Attempt, version: str = "") -> Answer:
        """One attempt, without the library's own retries. The version is the object's generation."""
        from google.api_core import exceptions

        sink = _Sink(stop - start, attempt)
        options: dict[str, Any] = {"if_generation_match": int(version)} if version else {}
        timeout = (attempt.params.connect_timeout, attempt.params.read_timeout)
        try:
            with _classified():
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
            raise FileNotFoundError(self.url(name)) from error
        crc32c = base64.b64decode(blob.crc32c).hex() if blob.crc32c else ""
        return Answer(sink.data, None, str(blob.generation or ""), crc32c)

    def open(self, name: str) -> BinaryIO:
        blob = self._found(name)
        if blob is None:
            raise FileNotFoundError(self.url(name))
        stream = blob.open("rb", chunk_size=CHUNK, if_generation_match=blob.generation, raw_download=True)
        return cast(BinaryIO, stream)

    def size(self, name: str) -> int | None:
        blob = self._found(name)
        return None if blob is None else int(blob.size)

    def list(self, folder: str = "") -> Names:
        prefix = self._prefix + (f"{check_name(folder)}/" if folder else "")
        blobs = self._bucket.client.list_blobs(self._bucket_name, prefix=prefix, fields="items(name),nextPageToken")
        # Consoles make empty objects "folder/" to show folders; no such name can be read here.
        names = (blob.name[len(self._prefix) :] for blob in blobs if not blob.name.endswith("/"))
        return sorted(name for name in names if f"/{TEMPORARY}" not in f"/{name}")

    def create(self, name: str, source: bytes | Path) -> None:
        from google.api_core import exceptions

        blob = self._blob(name)
        upload = blob.upload_from_string if isinstance(source, bytes) else blob.upload_from_filename
        try:
            upload(source, content_type="application/octet-stream", if_generation_match=0, checksum="crc32c")
        except exceptions.PreconditionFailed:  # it exists: perhaps by an attempt of ours whose answer was lost
            blob.reload()
            found, given = (int(blob.size), base64.b64decode(blob.crc32c).hex()), size_and_crc32c(source)
            if found != given:
                raise conflict(self.url(name), found, given) from None

    def replace(self, name: str, data: bytes) -> None:
        from google.cloud.storage.retry import DEFAULT_RETRY

        # Writing the same bytes twice does no harm, so retries need no precondition.
        self._blob(name).upload_from_string(
            data, content_type="application/octet-stream", checksum="crc32c", retry=DEFAULT_RETRY
        )

    def delete(self, name: str) -> None:
        from google.api_core import exceptions
        from google.cloud.storage.retry import DEFAULT_RETRY

        with contextlib.suppress(exceptions.NotFound):
            self._blob(name).delete(retry=DEFAULT_RETRY)

    def close(self) -> None:
        if "_bucket" in self.__dict__:
            self._bucket.client.close()


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


@contextlib.contextmanager
def _classified() -> Iterator[None]:
    """Turn the libraries' errors into Transient and Permanent; 404, 412 and 416 stay."""
    import requests
    import urllib3
    from google.api_core import exceptions
    from google.auth.exceptions import GoogleAuthError, TransportError

    try:
        yield
    except exceptions.GoogleAPICallError as error:
        code = int(error.code or 0)
        if code in (404, 412, 416):
            raise
        cause = f"status {code}"  # the message has nothing more than the address
        if code in (408, 429) or code >= 500:
            raise Transient(cause) from error
        raise Permanent(cause) from error
    except TransportError as error:
        raise Transient(error) from error
    except GoogleAuthError as error:
        raise Permanent(error) from error
    except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
        raise Transient(error) from error
