"""As much of S3's REST API as this project uses, in memory: requests in, answers out, as strict as S3 itself.

No network here: see fake_s3.py. What this one does not know raises, so that no test passes by accident. Statuses, codes
and rules: docs.aws.amazon.com/AmazonS3/latest/API. Services that are less than S3 are made by the attributes of S3Api.
"""

import base64
import hashlib
import itertools
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, unquote, urlsplit
from xml.sax.saxutils import escape

import google_crc32c

from tests.fake_gcs_wire import Answer, Request
from tests.fake_s3_wire import S3Error, as_xml, as_xml_text, bodiless, is_signed, unescaped

LEAST_PART = 5 << 20


def crc32c_of(data: bytes) -> str:
    return base64.b64encode(google_crc32c.value(data).to_bytes(4, "big")).decode()


def etag(data: bytes) -> str:
    """As S3's of an object that was written at once and is not encrypted."""
    return f'"{hashlib.md5(data).hexdigest()}"'  # noqa: S324 - as S3 does


@dataclass(frozen=True)
class StoredObject:
    """headers: metadata, and the checksum that the service keeps."""

    data: bytes
    etag: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class PartsUpload:
    bucket: str
    key: str
    headers: Mapping[str, str]
    whole: bool
    parts: dict[int, StoredObject] = field(default_factory=dict)


def own_headers(request: Request) -> dict[str, str]:
    """Those of a writer that stay with an object."""
    return {n: value for n, value in request.headers.items() if n.startswith("x-amz-meta-") or n == "cache-control"}


class S3Api:
    """objects: (bucket, key) -> StoredObject; an entry is replaced as a whole. changes: as of Api in fake_gcs_api.py.

    page_size: most keys in a page of a listing. signed: whether requests must carry a signature. region: which
    requests must be signed for. least_part: bytes of all parts of an upload but the last. ahead: seconds that the clock
    is fast. expired: access keys whose time is over.

    What is less than S3: ignores: kinds of calls ("put", "upload-end") that overwrite whatever If-None-Match says.
    slow_check: seconds between looking for an object and writing it, in which others can (fake_s3.py). checksums:
    whether headers of CRC-32C are known, "refused" or ignored (""). whole: the same of an upload's whole object. bulk:
    whether many objects can be removed at once. random_etags: ETags are no MD5. url_keys: whether encoding-type=url is
    done.
    """

    def __init__(self, *buckets: str) -> None:
        self.objects: dict[tuple[str, str], StoredObject] = {}
        self.uploads: dict[str, PartsUpload] = {}
        self.buckets = set(buckets)
        self.changes: list[tuple[str, str, str]] = []
        self._numbers = itertools.count(1)
        self.reset()

    def reset(self) -> None:
        """Be S3 again."""
        self.uploads.clear()
        self.page_size, self.least_part = 1000, LEAST_PART
        self.signed, self.region, self.ahead = False, "", 0.0
        self.expired: set[str] = set()
        self.ignores: set[str] = set()
        self.slow_check = 0.0
        self.checksums = self.whole = "known"
        self.bulk = self.url_keys = True
        self.random_etags = False

    def put(self, bucket: str, key: str, data: bytes, **headers: str) -> StoredObject:
        """Write an object; the way for tests, and the one that all uploads end in."""
        self.buckets.add(bucket)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self._store(bucket, key, StoredObject(data, self._etag(data), named))

    def _etag(self, data: bytes) -> str:
        return f'"{next(self._numbers):032x}"' if self.random_etags else etag(data)

    def _store(self, bucket: str, key: str, made: StoredObject) -> StoredObject:
        self.changes.append(("replace" if (bucket, key) in self.objects else "create", bucket, key))
        self.objects[bucket, key] = made
        return made

    def locate(self, request: Request) -> tuple[str, str, str]:
        """Kind, bucket and key of a request: put, get, head, delete, delete-many, list, copy-part, upload-start,
        upload-part, upload-end, upload-abort."""
        bucket, _, key = unquote(urlsplit(request.target).path.lstrip("/")).partition("/")
        query = request.query
        kinds = {
            ("GET", False): "list", ("POST", False): "delete-many", ("GET", True): "get", ("HEAD", True): "head",
            ("PUT", True): "put", ("DELETE", True): "delete", ("POST", True): "upload-start",
        }  # fmt: skip
        kind = kinds.get((request.method, bool(key)))
        if kind is None or (kind == "delete-many" and "delete" not in query):
            raise NotImplementedError(f"{request.method} {request.target}: unknown to the fake")
        if "uploadId" in query:
            kind = {"put": "upload-part", "upload-start": "upload-end", "delete": "upload-abort"}[kind]
        elif kind == "upload-start" and "uploads" not in query:
            raise NotImplementedError(f"{request.method} {request.target}: unknown to the fake")
        if kind == "upload-part" and "x-amz-copy-source" in request.headers:
            kind = "copy-part"
        return kind, bucket, key

    def act(self, request: Request) -> Answer:
        """Do what the request says. The caller makes sure that only one acts at a time."""
        kind, bucket, key = self.locate(request)
        try:
            self._authorize(request)
            if bucket not in self.buckets:
                raise S3Error("NoSuchBucket")
            if len(key.encode()) > 1024:
                raise S3Error("KeyTooLongError")
            method: Callable[[Request, str, str], Answer] = getattr(self, "_" + kind.replace("-", "_"))
            answer = method(request, bucket, key)
        except S3Error as error:
            answer = error.answer()
        return bodiless(answer) if kind == "head" else answer

    def _authorize(self, request: Request) -> None:
        header = request.headers.get("authorization", "")
        if not header:
            if self.signed:
                raise S3Error("AccessDenied")
            return
        found = re.search(r"Credential=([^/]+)/\d+/([^/]+)/", header)
        access, region = found.groups() if found else ("", "")
        if access in self.expired:
            raise S3Error("ExpiredToken")
        sent = time.mktime(time.strptime(request.headers["x-amz-date"], "%Y%m%dT%H%M%SZ")) - time.timezone
        if abs(time.time() + self.ahead - sent) > 900:
            raise S3Error("RequestTimeTooSkewed", 403)
        if self.region and region != self.region:
            raise S3Error("PermanentRedirect", 301, x_amz_bucket_region=self.region)
        if not is_signed(request):
            raise S3Error("SignatureDoesNotMatch")
        if request.headers["x-amz-content-sha256"] != hashlib.sha256(request.body).hexdigest():
            raise S3Error("XAmzContentSHA256Mismatch")

    # Listing

    def _list(self, request: Request, bucket: str, key: str) -> Answer:
        query = request.query
        if query.get("list-type") != "2":
            raise NotImplementedError(f"{request.target}: unknown to the fake")
        after = base64.b64decode(query.get("continuation-token", "")).decode()
        keys = sorted(
            (k for b, k in self.objects if b == bucket and k.startswith(query.get("prefix", ""))), key=str.encode
        )
        keys = [k for k in keys if k.encode() > after.encode()]
        limit = min(int(query.get("max-keys", self.page_size)), self.page_size)
        page, more = keys[:limit], len(keys) > limit
        is_url = self.url_keys and query.get("encoding-type") == "url"
        shown: Callable[[str], str] = (lambda k: quote(k, safe="/").replace("%20", "+")) if is_url else as_xml_text
        inside = "<EncodingType>url</EncodingType>" if is_url else ""
        inside += "".join(
            f"<Contents><Key>{shown(k)}</Key><LastModified>2026-11-22T10:00:00.000Z</LastModified>"
            f"<ETag>{escape(found.etag)}</ETag><Size>{len(found.data)}</Size></Contents>"
            for k in page
            for found in [self.objects[bucket, k]]
        )
        token = base64.b64encode(page[-1].encode()).decode() if more else ""
        inside += f"<NextContinuationToken>{token}</NextContinuationToken>" if more else ""
        return as_xml("ListBucketResult", f"<IsTruncated>{str(more).lower()}</IsTruncated>{inside}")

    # Objects

    def _found(self, request: Request, bucket: str, key: str) -> StoredObject:
        found = self.objects.get((bucket, key))
        if found is None:
            raise S3Error("NoSuchKey")
        if request.headers.get("if-match", found.etag) != found.etag:
            raise S3Error("PreconditionFailed")
        return found

    def _described(self, request: Request, found: StoredObject, whole: bool = True) -> dict[str, str]:
        facts = {"ETag": found.etag, "Last-Modified": "Sun, 22 Nov 2026 10:00:00 GMT", **found.headers}
        if not whole or request.headers.get("x-amz-checksum-mode") != "ENABLED":
            facts.pop("x-amz-checksum-crc32c", None)
        return facts

    def _head(self, request: Request, bucket: str, key: str) -> Answer:
        found = self._found(request, bucket, key)
        return Answer(200, found.data, self._described(request, found))

    def _get(self, request: Request, bucket: str, key: str) -> Answer:
        found = self._found(request, bucket, key)
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", request.headers.get("range", ""))
        if not asked:
            return Answer(200, found.data, self._described(request, found))
        start, stop = int(asked[1]), min(int(asked[2]) + 1, len(found.data))
        if start >= len(found.data):
            raise S3Error("InvalidRange", Content_Range=f"bytes */{len(found.data)}")
        facts = self._described(request, found, stop - start == len(found.data))
        facts["Content-Range"] = f"bytes {start}-{stop - 1}/{len(found.data)}"
        return Answer(206, found.data[start:stop], facts, found.data)

    def _put(self, request: Request, bucket: str, key: str) -> Answer:
        kept = self._checked(request)
        self._check_condition(request, "put", bucket, key)
        return self._written(self._store(bucket, key, StoredObject(request.body, self._etag(request.body), kept)))

    def _check_condition(self, request: Request, kind: str, bucket: str, key: str) -> None:
        asked = request.headers.get("if-none-match", "")
        if asked not in ("", "*"):
            raise S3Error("NotImplemented")
        if asked and kind not in self.ignores and (bucket, key) in self.objects:
            raise S3Error("PreconditionFailed")

    def _checked(self, request: Request) -> dict[str, str]:
        """Headers that stay with an object. Raises S3Error for those of checksums that do not fit, or are unknown."""
        headers = request.headers
        if "x-amz-trailer" in headers or "aws-chunked" in headers.get("content-encoding", ""):
            raise NotImplementedError("bodies in signed pieces")
        kept = own_headers(request)
        digest = base64.b64encode(hashlib.md5(request.body).digest()).decode()  # noqa: S324 - as S3 does
        if headers.get("content-md5", digest) != digest:
            raise S3Error("BadDigest")
        given = {name for name in headers if name.startswith("x-amz-checksum-")}
        if given and self.checksums == "refused":
            raise S3Error("InvalidArgument", message=f"Unsupported header {min(given)}")
        if self.checksums != "known":
            return kept
        own = crc32c_of(request.body)
        if headers.get("x-amz-checksum-crc32c", own) != own:
            raise S3Error("BadDigest")
        return {**kept, "x-amz-checksum-crc32c": own, "x-amz-checksum-type": "FULL_OBJECT"}

    def _written(self, made: StoredObject) -> Answer:
        kept = {name: value for name, value in made.headers.items() if name.startswith("x-amz-checksum-")}
        return Answer(200, b"", {"ETag": made.etag, **kept})

    def _delete(self, request: Request, bucket: str, key: str) -> Answer:
        if self.objects.pop((bucket, key), None) is not None:
            self.changes.append(("delete", bucket, key))
        return Answer(204)

    def _delete_many(self, request: Request, bucket: str, key: str) -> Answer:
        if not self.bulk:
            raise S3Error("NotImplemented")
        digest = base64.b64encode(hashlib.md5(request.body).digest()).decode()  # noqa: S324 - as S3 does
        if request.headers.get("content-md5") != digest:
            raise S3Error("InvalidRequest", message="Missing required header for this request: Content-MD5")
        keys = [unescaped(text) for text in re.findall("<Key>(.*?)</Key>", request.body.decode(), re.DOTALL)]
        if len(keys) > 1000:
            raise S3Error("MalformedXML")
        for each in keys:
            self._delete(request, bucket, each)
        return as_xml("DeleteResult", "")

    # Multipart uploads

    def _upload_start(self, request: Request, bucket: str, key: str) -> Answer:
        asked = request.headers.get("x-amz-checksum-type", "")
        if asked and "refused" in (self.checksums, self.whole):
            raise S3Error("InvalidRequest", message="checksum type")
        kept = own_headers(request)
        name = f"upload-{next(self._numbers)}"
        self.uploads[name] = PartsUpload(bucket, key, kept, asked == "FULL_OBJECT" and self.whole == "known")
        inside = f"<Bucket>{bucket}</Bucket><Key>{as_xml_text(key)}</Key><UploadId>{name}</UploadId>"
        return as_xml("InitiateMultipartUploadResult", inside)

    def _upload(self, request: Request, bucket: str, key: str) -> PartsUpload:
        found = self.uploads.get(request.query["uploadId"])
        if found is None or (found.bucket, found.key) != (bucket, key):
            raise S3Error("NoSuchUpload")
        return found

    def _upload_part(self, request: Request, bucket: str, key: str) -> Answer:
        upload = self._upload(request, bucket, key)
        kept = self._checked(request)
        part = StoredObject(request.body, self._etag(request.body), kept)
        upload.parts[int(request.query["partNumber"])] = part
        return self._written(part)

    def _copy_part(self, request: Request, bucket: str, key: str) -> Answer:
        upload = self._upload(request, bucket, key)
        there = unquote(request.headers["x-amz-copy-source"].lstrip("/")).partition("/")
        found = self.objects.get((there[0], there[2]))
        if found is None:
            raise S3Error("NoSuchKey")
        if request.headers.get("x-amz-copy-source-if-match", found.etag) != found.etag:
            raise S3Error("PreconditionFailed")
        first, last = request.headers["x-amz-copy-source-range"].removeprefix("bytes=").split("-")
        data = found.data[int(first) : int(last) + 1]
        part = upload.parts[int(request.query["partNumber"])] = StoredObject(data, self._etag(data))
        return as_xml(
            "CopyPartResult", f"<ETag>{escape(part.etag)}</ETag><ChecksumCRC32C>{crc32c_of(data)}</ChecksumCRC32C>"
        )

    def _upload_end(self, request: Request, bucket: str, key: str) -> Answer:
        upload = self._upload(request, bucket, key)
        listed = re.findall(r"<PartNumber>(\d+)</PartNumber><ETag>(.*?)</ETag>", request.body.decode())
        numbers = [int(number) for number, _ in listed]
        if numbers != sorted(set(numbers)) or not numbers:
            raise S3Error("InvalidPartOrder")
        if any(
            n not in upload.parts or upload.parts[n].etag != unescaped(tag)
            for n, (_, tag) in zip(numbers, listed, strict=True)
        ):
            raise S3Error("InvalidPart")
        told = re.findall("<ChecksumCRC32C>(.*?)</ChecksumCRC32C>", request.body.decode())
        pieces = [upload.parts[number].data for number in numbers]
        if upload.whole and self.checksums == "known" and told != [crc32c_of(piece) for piece in pieces]:
            raise S3Error("InvalidRequest", message="The complete request must include the checksum for each part.")
        if any(len(piece) < self.least_part for piece in pieces[:-1]) or len({len(piece) for piece in pieces[:-1]}) > 1:
            raise S3Error("EntityTooSmall")
        data = b"".join(pieces)
        kept, whole = dict(upload.headers), ""
        if self.checksums == "known" and upload.whole:
            whole = kept["x-amz-checksum-crc32c"] = crc32c_of(data)
            kept["x-amz-checksum-type"] = "FULL_OBJECT"
            if request.headers.get("x-amz-checksum-crc32c", whole) != whole:
                raise S3Error("BadDigest")
        elif self.checksums == "known":
            kept["x-amz-checksum-crc32c"] = f"{crc32c_of(b'of parts')}-{len(pieces)}"
            kept["x-amz-checksum-type"] = "COMPOSITE"
        self._check_condition(request, "upload-end", bucket, key)
        del self.uploads[request.query["uploadId"]]
        made = self._store(bucket, key, StoredObject(data, f'{self._etag(data)[:-1]}-{len(pieces)}"', kept))
        shown = f"<ChecksumCRC32C>{whole}</ChecksumCRC32C><ChecksumType>FULL_OBJECT</ChecksumType>" if whole else ""
        return as_xml("CompleteMultipartUploadResult", f"<ETag>{escape(made.etag)}</ETag>{shown}")

    def _upload_abort(self, request: Request, bucket: str, key: str) -> Answer:
        self._upload(request, bucket, key)
        del self.uploads[request.query["uploadId"]]
        return Answer(204)
