"""A prefix of a bucket in S3, or of any service that speaks its protocol.

What Cloud Storage's store guarantees (refinery.loader.storage.gcs_store) holds here, too, on services that keep what
S3 promises since 2024: reads after writes, and writes with `If-None-Match: *` that never replace an object. Services
that ignore that header are found out before the first write, and refused.
"""

import contextlib
import errno
import http.client
import re
import secrets
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from refinery.loader.errors import CorruptObject
from refinery.loader.storage.aws.answers import BadAnswer, can_hold, deletion, read_deletion, read_page
from refinery.loader.storage.aws.settings import BUCKET, read_settings
from refinery.loader.storage.fetch import (
    Attempt,
    FetchError,
    FetchParams,
    Permanent,
    RangeResponse,
    Transient,
    retrying,
    timed,
)
from refinery.loader.storage.publish_new import TEMPORARY
from refinery.loader.storage.receive import receive
from refinery.loader.storage.remote_store import BucketStore, ObjectInfo, Page, in_batches
from refinery.loader.storage.s3_client import Answered, Ask, Refusal, S3Client, client_of, headers_of
from refinery.loader.storage.s3_upload import PART, ObjectThere, Upload, checksum_of, keeps_out_parts, md5_header
from refinery.loader.storage.store import Names, StorageError, conflict, size_and_crc32c

T = TypeVar("T")

MOST_KEY = 1024  # bytes of a key in UTF-8
BATCH = 1000  # objects removed by a request
THREADS = 8  # requests at once that remove objects
RACERS = 4  # writers of one key that try out whether the service lets one of them win
WITH_CHECKSUM = {"x-amz-checksum-mode": "ENABLED"}


class S3Store(BucketStore):
    """s3://bucket or s3://bucket/prefix. The environment says where the service is, and holds the keys, in each process
    that opens one (refinery.loader.storage.aws). Nothing is asked before the first use. Raises ValueError.
    """

    scheme = "s3://"
    buckets = BUCKET

    def __init__(self, url: str, params: FetchParams | None = None) -> None:
        super().__init__(url, params)
        self._settings = read_settings()

    def key(self, name: str) -> str:
        """The object's key. Raises ValueError for a name that is not valid, or too long."""
        return check_key(super().key(name))

    @property
    def client(self) -> S3Client:
        """The bucket's client in this process."""
        return client_of(self._bucket, self._settings)

    def retried(self, doing: str, url: str, once: Callable[[Attempt], T], params: FetchParams | None = None) -> T:
        """Call `once(attempt)`, with retries. Raises StorageError; Answered is passed on."""
        given = params or self.params

        def one_attempt(until: float) -> T:
            self.counters.add(requests=1)
            with timed(given, until) as attempt:
                return once(attempt)

        try:
            found = retrying(one_attempt, url, (0, None), given, self.counters)
        except FetchError as error:
            tried = f" {error.attempts} attempts failed; last:" if error.attempts > 1 else ""
            status = error.cause.status if isinstance(error.cause, Refusal) else 0
            raise StorageError(f"{url}: cannot {doing}:{tried} {error.cause}", status) from error
        self.client.there = True
        return found

    # Reading

    def get(self, name: str, start: int, stop: int, attempt: Attempt, version: str = "") -> RangeResponse:
        """One attempt. The version is the object's ETag."""
        headers = {"range": f"bytes={start}-{stop - 1}", **WITH_CHECKSUM} | ({"if-match": version} if version else {})
        ask = Ask("GET", self.key(name), headers=headers, passed=frozenset((404, 412, 416)))

        def take(response: http.client.HTTPResponse) -> RangeResponse:
            found = headers_of(response)
            etag = found.get("etag", "")
            if not etag:
                raise Transient(f"status {response.status} without an ETag, perhaps from a proxy")
            if version and etag != version:
                raise Permanent(f"the object has changed: ETag {etag:.80} found, {version:.80} expected")
            data, total = receive(response, start, stop, attempt, self._buffers)
            # A range of an object that was written in parts may come with the checksum of a part.
            crc32c, _ = checksum_of(found, len(data) == total)
            return RangeResponse(data, total, etag, crc32c)

        try:
            return self.client.send_for(ask, attempt, take)
        except Answered as answer:
            if answer.status == 416:
                return RangeResponse(b"", answer.size)
            if answer.status == 412:
                raise Permanent(f"the object has changed: ETag {version:.80} expected") from None
            raise FileNotFoundError(errno.ENOENT, "no such object", self.url(name)) from None

    def open_ahead(self, connections: int) -> None:
        self.client.pool(self.client.origin).open_ahead(connections, self.params.connect_timeout)

    def info(self, name: str) -> ObjectInfo | None:
        ask = Ask("HEAD", self.key(name), headers=WITH_CHECKSUM, passed=frozenset((404,)))

        def once(attempt: Attempt) -> ObjectInfo:
            headers = self.client.send(ask, attempt).headers
            size, etag = headers.get("content-length", ""), headers.get("etag", "")
            if not re.fullmatch("[0-9]{1,19}", size) or not etag:
                raise Transient("an answer without size and ETag, perhaps from a proxy")
            crc32c, computed = checksum_of(headers, True)
            return ObjectInfo(int(size), crc32c, etag, computed)

        try:
            return self.retried("be looked up", self.url(name), once)
        except Answered:
            if not self.client.there:  # an answer to HEAD does not say that it is the bucket which is missing
                self.page(self._prefix, most=1)
            return None

    # Listing

    def page(self, prefix: str, token: str = "", most: int = 0, params: FetchParams | None = None) -> tuple[Page, str]:
        """As BucketStore's. No listing has checksums."""
        asked = {"list-type": "2", "prefix": prefix}
        asked |= ({"continuation-token": token} if token else {}) | ({"max-keys": str(most)} if most else {})

        def once(attempt: Attempt) -> tuple[Page, str]:
            body = self.client.send(Ask("GET", query=tuple(asked.items())), attempt).body
            try:
                listed, after = read_page(body, prefix)
            except (BadAnswer, UnicodeDecodeError) as error:
                # Keys may hold characters that XML has no way to say. Asked for always, not every service would do it,
                # nor all of those in the same way.
                asked["encoding-type"] = "url"
                raise Transient(f"not a listing: {error}") from None
            return {each.key: ObjectInfo(each.size, "", each.etag, False) for each in listed}, after

        return self.retried("be listed", self.root, once, params)

    # Writing

    def create(self, name: str, source: bytes | Path) -> None:
        given, key = size_and_crc32c(source), self.key(name)
        try:
            found = self.info(name)  # what is there already is not sent again
        except StorageError as error:
            if error.status != 403:  # of an object that is not there, to those who may not list
                raise
            found = None
        self._publish(name, key, source, given) if found is None else self._compare(name, found, given)

    def _publish(self, name: str, key: str, source: bytes | Path | ObjectThere, given: tuple[int, str]) -> None:
        self._check_once(given[0] > PART)
        try:
            written = self._upload(key, source, given, exclusive=True).write()
        except StorageError as error:
            # Without permission to overwrite, a service may answer 403 although this condition never overwrites.
            found = self.info(name) if error.status == 403 else None
            if found is None:
                raise
            return self._compare(name, found, given)
        if written is not None and written.crc32c == given[1]:
            return None
        if written is not None and written.crc32c:
            raise StorageError(
                f"{self.url(name)}: cannot be written; the service stored different bytes from those sent"
            )
        found = self.info(name)
        if found is None:
            raise StorageError(f"{self.url(name)}: existed during the upload and was then deleted", 412)
        # Services that do not check what they get, or whom two writers can surprise, are asked what is there now.
        if written is None or (found.size, found.version) != (given[0], written.etag):
            self._compare(name, found, given)
        return None

    def _compare(self, name: str, found: ObjectInfo, given: tuple[int, str]) -> None:
        """Raise StorageConflict where the object has other bytes. It is read if the service has no checksum of it, and
        its size is the same."""
        size, crc32c = found.size, found.crc32c or "unknown"
        if size == given[0] and not found.computed:
            with self.open(name) as stream:
                size, crc32c = size_and_crc32c(stream)
        if (size, crc32c) != given:
            raise conflict(self.url(name), (size, crc32c), given)

    def copy_from(self, source: "S3Store", name: str, expected: tuple[int, str]) -> None:
        """Publish `name` of another bucket or prefix under the same name here, exclusively: the service copies it.

        expected: size, above PART, and crc32c. Raises CorruptObject where `source` has another object, StorageConflict
        where there is another one here.
        """
        info, there = source.info(name), self.info(name)
        if info is None:
            raise FileNotFoundError(errno.ENOENT, "no such object", source.url(name))
        if info[:2] != (expected[0], info.crc32c and expected[1]):
            raise CorruptObject(f"{source.url(name)}: {info[:2]} found, {expected} expected: size and crc32c")
        if there is None:
            self._publish(name, self.key(name), ObjectThere(source._bucket, source.key(name), info.version), expected)
        there = self.info(name)
        if there is None:
            raise StorageError(f"{self.url(name)}: was deleted while it was copied", 412)
        self._compare(name, there, expected)

    def is_beside(self, other: "S3Store") -> bool:
        """Whether the service that holds this bucket holds the other one, too."""
        return self._settings == other._settings

    def _upload(self, key: str, source: bytes | Path | ObjectThere, given: tuple[int, str], exclusive: bool) -> Upload:
        url = f"s3://{self._bucket}/{key}"
        retried = partial(self.retried, "be written", url)
        return Upload(self.client, self.params, url, key, source, given, exclusive, retried)

    def replace(self, name: str, data: bytes) -> None:
        given = size_and_crc32c(data)
        upload = self._upload(self.key(name), data, given, exclusive=False)
        written = upload.write()  # idempotent: writing the same bytes twice is harmless
        if (written is None and self.read(name) != data) or (written and written.crc32c not in ("", given[1])):
            raise StorageError(
                f"{self.url(name)}: cannot be written; the service stored different bytes from those sent"
            )

    def check_exclusive(self, large: bool = False) -> None:
        """Raise StorageError where this service would let one writer replace what another one published.

        Tried out, each time, with an object of a temporary name that several writers create at once; it is removed
        again. large: also for objects that are written in parts. Costs six requests, or nine.
        """
        client, key = self.client, f"{self._prefix}{TEMPORARY}{secrets.token_hex(8)}"
        tries = [self._trial(key) for _ in range(RACERS)]
        try:
            with ThreadPoolExecutor(RACERS, "refinery-check") as pool:
                won = [found for found in pool.map(Upload.write, tries) if found is not None]
            if len(won) > 1:
                raise StorageError(
                    f"{self.root}: {len(won)} writers all created one object; this store "
                    "ignores the header If-None-Match: *, so published files could be replaced without a word"
                )
            client.exclusive = True
            if large:
                client.exclusive_parts = keeps_out_parts(partial(self._trial, key), self.root)
        finally:
            self._remove_trial(key)

    def _check_once(self, large: bool) -> None:
        """`check_exclusive`, unless this process has done it for this bucket."""
        client = self.client
        with client.trying:
            if not client.exclusive or (large and client.exclusive_parts is None):
                self.check_exclusive(large)

    def _trial(self, key: str) -> Upload:
        data = secrets.token_bytes(16)
        return self._upload(key, data, size_and_crc32c(data), exclusive=True)

    def _remove_trial(self, key: str) -> None:
        with contextlib.suppress(OSError):  # it may be allowed to write alone: then the object stays, out of sight
            self._delete(key)

    def delete(self, name: str) -> None:
        self._delete(self.key(name))

    def _delete(self, key: str) -> None:
        ask = Ask("DELETE", key, passed=frozenset((404,)))

        def once(attempt: Attempt) -> None:
            answer = self.client.send(ask, attempt)
            if answer.body:
                raise Transient(f"status {answer.status} and {len(answer.body)} bytes, perhaps from a proxy")

        with contextlib.suppress(Answered):
            self.retried("be deleted", f"s3://{self._bucket}/{key}", once)

    def delete_many(self, names: Iterable[str]) -> Names:
        return in_batches(names, BATCH, THREADS, self._delete_batch)

    def _delete_batch(self, names: list[str]) -> Names:
        """Those of one request that may not be removed. What the service is too busy for is asked for again."""
        keys = {self.key(name): name for name in names}
        left = [key for key in keys if can_hold(key)] if self.client.bulk else []
        alone = keys.keys() - set(left)
        refused: list[str] = []

        def once(attempt: Attempt) -> None:
            nonlocal left
            body = deletion(left)
            headers = {"content-type": "application/xml", **md5_header(body)}
            passed = frozenset((400, 405, 501))
            answer = self.client.send(Ask("POST", "", (("delete", ""),), headers, body, "", passed), attempt)
            try:
                errors = read_deletion(answer.body)
            except BadAnswer as error:
                raise Transient(f"status {answer.status}, and no result of deletions: {error}") from None
            refused.extend(keys[key] for key in left if errors.get(key) == "AccessDenied")
            busy = [key for key in left if errors.get(key) in ("InternalError", "SlowDown", "ServiceUnavailable")]
            alone.update(key for key in left if key in errors and key not in busy and errors[key] != "AccessDenied")
            left = busy
            if busy:
                raise Transient(f"{errors[busy[0]]} for {len(busy)} deletes of a batch", refused=True)

        try:
            if left:
                self.retried("be deleted", self.url(names[0]), once)
        except Answered:  # a service without requests that remove many objects
            self.client.bulk = False
            alone.update(left)
        return refused + super().delete_many(keys[key] for key in sorted(alone))

    def close(self) -> None:
        self.client.close()


def check_key(key: str) -> str:
    """`key` itself if a service can keep an object of it. Raises ValueError otherwise."""
    size = len(key.encode())  # UnicodeEncodeError, a ValueError, for lone surrogates
    if not 0 < size <= MOST_KEY or "\0" in key:
        raise ValueError(f"name: {size} bytes with its prefix given, 1 to {MOST_KEY} without NUL are allowed on s3://")
    return key
