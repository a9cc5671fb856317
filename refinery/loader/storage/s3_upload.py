"""Objects written to S3: at once, or in parts that become an object when the last request completes them.

The protocol: docs.aws.amazon.com/AmazonS3/latest/userguide/mpuoverview.html and conditional-writes.html. Where the
service takes checksums it gets the CRC-32C of every body, and of the whole object, and rejects other bytes; where it
does not, the SHA-256 in the signature says the same, and the CRC-32C stays with the object as metadata.
"""

import base64
import contextlib
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import google_crc32c

from refinery.loader.storage.aws.answers import BadAnswer, completion, parse
from refinery.loader.storage.aws.signing import encoded_path
from refinery.loader.storage.fetch import Attempt, FetchParams, Transient
from refinery.loader.storage.gcs_upload import open_bytes
from refinery.loader.storage.s3_client import Answer, Answered, Ask, S3Client
from refinery.loader.storage.store import StorageError, cache_control

PART = 8 << 20  # bytes of one request, and of memory, for objects of up to MOST_PARTS of them; 5 MiB is the least
MOST_PARTS = 10_000
MIB = 1 << 20
COPIED = 256 << 20  # bytes that the service copies at a request
MOST_AT_ONCE = 5 << 30  # bytes of an object that is written in one request
UPLOADS = 3  # multipart uploads begun for one object, at most
METADATA = "x-amz-meta-refinery-crc32c"
CONTENT_TYPE = "application/octet-stream"
# How stores say that they do not take a header of a checksum.
UNKNOWN_HEADER = frozenset(("InvalidArgument", "InvalidRequest", "NotImplemented"))


@dataclass(frozen=True)
class ObjectThere:
    """An object of the same service, to be copied by it. etag: of the version."""

    bucket: str
    key: str
    etag: str


class Exists(Exception):
    """An exclusive write found an object there (412)."""


class UploadLost(Exception):
    """The service does not know the upload any more, or not all of its parts: start over."""


class Written(NamedTuple):
    """What the service says of an object it has written. crc32c: "" where it says none."""

    etag: str
    crc32c: str


@dataclass(frozen=True)
class Upload:
    """An object to write. given: its size and CRC-32C. exclusive: only if there is none of that key.

    retried: calls a function until it succeeds, with the deadline of these parameters, or of the store's.
    """

    client: S3Client
    params: FetchParams
    url: str
    key: str
    source: bytes | Path | ObjectThere
    given: tuple[int, str]
    exclusive: bool
    retried: Callable[..., Any]

    @property
    def _headers(self) -> dict[str, str]:
        """Those that stay with the object."""
        kept = cache_control(self.key, is_replaced=not self.exclusive)
        return {"content-type": CONTENT_TYPE, "cache-control": kept, METADATA: self.given[1]}

    def write(self) -> Written | None:
        """What was written; None where an object is there that may be another one, or this one of an earlier try whose
        answer was lost.

        Raises StorageError. Memory: a part.
        """
        try:
            return self._write()
        except Exists:
            return None

    def _write(self) -> Written | None:
        size = self.given[0]
        at_once = self.exclusive and self.client.exclusive_parts is False
        if not isinstance(self.source, ObjectThere) and (size <= PART or (at_once and size <= MOST_AT_ONCE)):
            return self._at_once()
        if at_once:
            raise StorageError(
                f"{self.url}: cannot be written: {size} bytes given, up to {MOST_AT_ONCE} are allowed; this store "
                "ignores If-None-Match where a multipart upload is completed"
            )
        for _ in range(UPLOADS):
            try:
                return self.in_parts()
            except UploadLost as error:
                lost = error
        raise StorageError(f"{self.url}: cannot be written: {UPLOADS} uploads were lost; last: {lost}")

    def _condition(self) -> dict[str, str]:
        return {"if-none-match": "*"} if self.exclusive else {}

    def _at_once(self) -> Written:
        crc32c = self.given[1]
        assert not isinstance(self.source, ObjectThere)  # noqa: S101 - these are copied in parts
        sha256 = _sha256(self.source)
        headers = self._headers | self._condition()

        passed = frozenset[int | str]((412,) if self.exclusive else ())
        ask = Ask("PUT", self.key, (), headers, self.source, sha256, passed)

        def put(attempt: Attempt) -> Written:
            return written(with_checksum(self.client, attempt, crc32c, ask))

        try:
            found: Written = self.retried(put, patient(self.params, self.given[0]))
        except Answered:
            raise Exists from None
        return found

    def in_parts(self) -> Written | None:
        """One try with a multipart upload. Raises Exists, UploadLost, StorageError; nothing is left of it then."""
        upload = self._begin()
        try:
            return self._complete(upload, self._send_parts(upload))
        except BaseException:
            self._abort(upload)  # parts that are left are paid for, and no listing shows them
            raise

    def _begin(self) -> str:
        client = self.client

        def begin(attempt: Attempt) -> str:
            headers = self._headers
            whole = {"x-amz-checksum-algorithm": "CRC32C", "x-amz-checksum-type": "FULL_OBJECT"}
            ask = Ask("POST", self.key, (("uploads", ""),), headers, passed=UNKNOWN_HEADER)
            if client.whole_checksums:
                try:
                    return upload_id(client.send(replace(ask, headers=headers | whole), attempt))
                except Answered:
                    client.whole_checksums = False
            return upload_id(client.send(replace(ask, passed=frozenset()), attempt))

        return str(self.retried(begin))

    def _send_parts(self, upload: str) -> list[Written]:
        size = self.given[0]
        if isinstance(self.source, ObjectThere):
            starts = range(0, size, part_size(size, COPIED))
            return [
                self._copy_part(upload, number, self.source, start, min(start + starts.step, size))
                for number, start in enumerate(starts, 1)
            ]
        room = part_size(size, PART)
        parts: list[Written] = []
        with open_bytes(self.source) as stream:
            for start in range(0, size, room):
                data = stream.read(room)
                if len(data) != min(room, size - start):
                    raise StorageError(f"{self.url}: cannot be written: its file became shorter meanwhile")
                parts.append(self._send_part(upload, len(parts) + 1, data))
        return parts

    def _send_part(self, upload: str, number: int, data: bytes) -> Written:
        crc32c, sha256 = f"{google_crc32c.value(data):08x}", hashlib.sha256(data).hexdigest()
        query = (("partNumber", str(number)), ("uploadId", upload))
        ask = Ask("PUT", self.key, query, {}, data, sha256, frozenset(("NoSuchUpload",)))

        def put(attempt: Attempt) -> Written:
            headers = checksum_header(crc32c) if self.client.whole_checksums else md5_header(data)
            return written(self.client.send(replace(ask, headers=headers), attempt))._replace(crc32c=crc32c)

        try:
            part: Written = self.retried(put, patient(self.params, len(data)))
            return part
        except Answered as answer:
            raise UploadLost(answer) from None

    def _copy_part(self, upload: str, number: int, source: "ObjectThere", start: int, stop: int) -> Written:
        headers = {
            "x-amz-copy-source": encoded_path(f"{source.bucket}/{source.key}"),
            "x-amz-copy-source-if-match": source.etag,
            "x-amz-copy-source-range": f"bytes={start}-{stop - 1}",
        }
        query = (("partNumber", str(number)), ("uploadId", upload))
        ask = Ask("PUT", self.key, query, headers, passed=frozenset(("NoSuchUpload", 412)))

        def copy(attempt: Attempt) -> Written:
            answer = self.client.send(ask, attempt)
            try:
                found = parse(answer.body, "CopyPartResult")
            except BadAnswer as error:  # an <Error>, too: it may come after the status was sent
                raise Transient(f"status {answer.status}, and no copy: {error}") from None
            if not (etag := found.text("ETag")):
                raise Transient("a copy without an ETag")
            return Written(etag, crc32c_in(found.text("ChecksumCRC32C")))

        try:
            part: Written = self.retried(copy)
            return part
        except Answered as answer:
            if answer.status == 412:
                raise StorageError(f"{self.url}: cannot be copied: its source has changed meanwhile", 412) from None
            raise UploadLost(answer) from None

    def _complete(self, upload: str, parts: list[Written]) -> Written | None:
        """None: an answer was lost, and then the upload was not there any more."""
        told = self.client.whole_checksums
        body = completion((part.etag, base64_of(part.crc32c) if told and part.crc32c else "") for part in parts)
        headers = {"content-type": "application/xml", **self._condition()}
        if self.client.whole_checksums:
            headers |= checksum_header(self.given[1]) | {"x-amz-checksum-type": "FULL_OBJECT"}
        passed = frozenset[int | str]((412, "NoSuchUpload", "InvalidPart", "BadDigest", *UNKNOWN_HEADER))
        ask = Ask("POST", self.key, (("uploadId", upload),), headers, body, "", passed)
        tries = 0

        def complete(attempt: Attempt) -> Written:
            nonlocal tries
            tries += 1
            answer = self.client.send(ask, attempt)
            try:
                found = parse(answer.body, "CompleteMultipartUploadResult")
            except BadAnswer as error:  # an <Error>, too: it may come after the status was sent
                raise Transient(f"status {answer.status}, and no result of a completed upload: {error}") from None
            if not (etag := found.text("ETag")):
                raise Transient("a result of a completed upload without an ETag")
            is_whole = found.text("ChecksumType") == "FULL_OBJECT"
            return Written(etag, crc32c_in(found.text("ChecksumCRC32C")) if is_whole else "")

        try:
            done: Written = self.retried(complete)
        except Answered as answer:
            if answer.status == 412 and self.exclusive:
                raise Exists from None
            if answer.code == "NoSuchUpload" and tries > 1:
                return None
            if answer.code in ("BadDigest", *UNKNOWN_HEADER) and self.client.whole_checksums:
                self.client.whole_checksums = False  # a store that takes these headers for something else
            elif answer.code not in ("NoSuchUpload", "InvalidPart"):
                raise StorageError(f"{self.url}: cannot be written: {answer}", answer.status) from None
            raise UploadLost(answer) from None
        return done

    def _abort(self, upload: str) -> None:
        ask = Ask("DELETE", self.key, (("uploadId", upload),), passed=frozenset((404,)))

        def abort(attempt: Attempt) -> None:
            with contextlib.suppress(Answered):
                self.client.send(ask, attempt)

        with contextlib.suppress(OSError):  # what stopped the upload is what is said
            self.retried(abort, replace(self.params, deadline=min(self.params.deadline, 10.0)))


def keeps_out_parts(trial: Callable[[], Upload], place: str) -> bool:
    """Whether a completed multipart upload does not replace an object either, which is there. trial: another upload of
    that object. place: for messages. Raises StorageError."""
    for _ in range(UPLOADS):
        try:
            trial().in_parts()
        except UploadLost:
            continue
        except Exists:
            return True
        except StorageError as error:
            if error.status not in (400, 501):
                raise
        return False
    raise StorageError(f"{place}: cannot be written: {UPLOADS} uploads were lost")


def with_checksum(client: S3Client, attempt: Attempt, crc32c: str, ask: Ask) -> Answer:
    """The answer to a request whose body has this CRC-32C, which a header says if the service takes it."""
    if client.checksums:
        told = replace(ask, headers={**ask.headers, **checksum_header(crc32c)}, passed=ask.passed | UNKNOWN_HEADER)
        try:
            return client.send(told, attempt)
        except Answered as refusal:
            if refusal.status in ask.passed or refusal.code in ask.passed:
                raise
    plain = replace(ask, headers={**ask.headers, **md5_header(ask.body)})
    answer = client.send(plain, attempt)  # raises what is wrong, if it was not that header
    if client.checksums:
        client.checksums = client.whole_checksums = False
    return answer


def checksum_header(crc32c: str) -> dict[str, str]:
    return {"x-amz-checksum-crc32c": base64_of(crc32c)}


def md5_header(body: bytes | Path) -> dict[str, str]:
    """The checksum that every service knows; of files as large as they are the signature has one."""
    if isinstance(body, Path):
        return {}
    return {"content-md5": base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()}


def base64_of(crc32c: str) -> str:
    """A checksum as S3 says it."""
    return base64.b64encode(bytes.fromhex(crc32c)).decode()


def crc32c_in(text: str) -> str:
    """8 hexadecimal digits of a checksum as S3 says it; "" for none, or for one of checksums of parts ("…-3")."""
    with contextlib.suppress(ValueError):
        if len(found := base64.b64decode(text, validate=True)) == 4:
            return found.hex()
    return ""


def checksum_of(headers: Mapping[str, str], is_whole: bool) -> tuple[str, bool]:
    """The object's CRC-32C, and whether the service computed it; "" where nobody says it. is_whole: whether the answer
    is about all of the object."""
    kept = headers.get(METADATA, "")
    kept = kept if re.fullmatch("[0-9a-f]{8}", kept) else ""
    found = crc32c_in(headers.get("x-amz-checksum-crc32c", "")) if is_whole else ""
    # Of an object written in parts it may be a checksum of their checksums, which not every service marks as S3 does.
    in_parts = re.search(r'-\d+"?$', headers.get("etag", "")) is not None
    kind = headers.get("x-amz-checksum-type", "" if in_parts else "FULL_OBJECT")
    if not found or kind != "FULL_OBJECT" or kept not in ("", found):
        return kept, False
    return found, True


def written(answer: Answer) -> Written:
    """Of an answer to PUT. Raises Transient without an ETag, which no write is answered without."""
    if not (etag := answer.headers.get("etag", "")):
        raise Transient(f"status {answer.status} without an ETag, perhaps from a proxy")
    return Written(etag, crc32c_in(answer.headers.get("x-amz-checksum-crc32c", "")))


def upload_id(answer: Answer) -> str:
    """Of an answer to the beginning of a multipart upload."""
    try:
        found = parse(answer.body, "InitiateMultipartUploadResult").text("UploadId")
    except BadAnswer as error:
        raise Transient(f"status {answer.status}, and no upload begun: {error}") from None
    if not found:
        raise Transient("an upload begun without a name")
    return found


def part_size(size: int, usual: int) -> int:
    """Bytes of every part but the last: all of one size, which some stores need, and no more than MOST_PARTS."""
    if size <= usual * MOST_PARTS:
        return usual
    least = -(-size // MOST_PARTS)
    return -(-least // MIB) * MIB


def patient(params: FetchParams, size: int) -> FetchParams:
    """Parameters for a request with a body of `size` bytes: as slow as a part may be, byte for byte."""
    return replace(params, deadline=params.deadline * max(1.0, size / PART))


def _sha256(source: bytes | Path) -> str:
    if isinstance(source, bytes):
        return hashlib.sha256(source).hexdigest()
    with source.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
