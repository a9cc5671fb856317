"""As much of the Cloud Storage JSON API as google-cloud-storage and Beam use, in memory: requests in, answers out.

No network here: see fake_gcs.py. What the real service would refuse is refused with its status; what this one does not
know raises, so that no test passes by accident. Statuses and rules: cloud.google.com/storage/docs/json_api/v1.
"""

import base64
import gzip
import hashlib
import itertools
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote

import google_crc32c

from tests.fake_gcs_wire import (
    Answer,
    Refused,
    Request,
    as_json,
    content_range,
    encoded,
    given_hashes,
    selected,
    split_upload,
)

QUANTUM = 256 << 10  # a resumable upload keeps multiples of this until its last chunk
BUCKET, OBJECT = r"/storage/v1/b/([^/]+)", r"/storage/v1/b/([^/]+)/o/([^/]+)"
ROUTES: tuple[tuple[str, str, str], ...] = (
    ("POST", r"/batch/storage/v1", "batch"),
    ("POST", r"/storage/v1/b", "create-bucket"),
    ("GET", BUCKET, "get-bucket"),
    ("GET", rf"{BUCKET}/o", "list"),
    ("POST", rf"/upload{BUCKET}/o", "upload"),
    ("PUT", rf"/upload{BUCKET}/o", "upload-chunk"),
    ("DELETE", rf"/upload{BUCKET}/o", "upload-cancel"),
    ("GET", rf"(?:/download)?{OBJECT}", "stat"),
    ("PATCH", OBJECT, "patch"),
    ("DELETE", OBJECT, "delete"),
    ("POST", rf"{OBJECT}/compose", "compose"),
    ("POST", rf"{OBJECT}/copyTo/b/([^/]+)/o/([^/]+)", "copy"),
    ("POST", rf"{OBJECT}/rewriteTo/b/([^/]+)/o/([^/]+)", "rewrite"),
)


def crc32c_of(data: bytes) -> str:
    return encoded(google_crc32c.value(data).to_bytes(4, "big"))


@dataclass(frozen=True)
class Stored:
    """One generation of an object. `fields`: what a client may set: contentType, contentEncoding, metadata, …"""

    data: bytes
    generation: int
    metageneration: int = 1
    fields: Mapping[str, Any] = field(default_factory=dict)
    components: int = 0  # of a composed object, which has no MD5
    updated: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
    crc32c: str = ""
    md5: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "crc32c", self.crc32c or crc32c_of(self.data))
        object.__setattr__(self, "md5", self.md5 or encoded(hashlib.md5(self.data, usedforsecurity=False).digest()))


@dataclass
class Upload:
    """A resumable upload. `data` is what has been kept so far; `made`: the answer once it is complete."""

    bucket: str
    name: str
    query: Mapping[str, str]
    fields: Mapping[str, Any]
    data: bytes = b""
    made: Answer | None = None
    cancelled: bool = False


class Api:
    """objects: (bucket, name) -> Stored; an entry is replaced as a whole, so no reader sees half an object.

    changes: (what, bucket, name) of all that was created, replaced or deleted so far. page_size: most names in one page
    of a list. rewrite_bytes: most bytes that one call of a rewrite copies.
    """

    def __init__(self, *buckets: str) -> None:
        self.objects: dict[tuple[str, str], Stored] = {}
        self.buckets = set(buckets)
        self.paid_by: dict[str, str] = {}  # buckets with requester pays -> the project that may pay
        self.bucket_fields: dict[str, dict[str, Any]] = {}  # what a bucket says of itself, beside the usual
        self.changes: list[tuple[str, str, str]] = []
        self.page_size = 1000
        self.rewrite_bytes = 1 << 40
        self.base = ""  # address of the server, for the Location of resumable uploads
        self._uploads: dict[str, Upload] = {}
        self._rewrites: dict[str, tuple[tuple[Any, ...], int]] = {}
        # Microseconds since 1970, as the service's: more than a float or 32 bits hold exactly.
        self._generations = itertools.count(1_790_000_000_000_001)

    def put(self, bucket: str, name: str, data: bytes, **fields: Any) -> Stored:
        """Write an object; the way for tests, and the one that all uploads end in."""
        self.buckets.add(bucket)
        return self._store(bucket, name, Stored(data, next(self._generations), 1, fields))

    def locate(self, request: Request) -> tuple[str, str, str]:
        """Kind, bucket and name of a request ("" where it has none); names as `Call` in fake_gcs.py explains them."""
        for method, pattern, known in ROUTES:
            match = re.fullmatch(pattern, request.path)
            if match and method == request.method:
                kind = known
                parts = [unquote(part) for part in match.groups()]
                break
        else:
            raise NotImplementedError(f"{request.method} {request.target}: unknown to the fake")
        bucket, name = [*parts, "", ""][:2]
        if kind == "stat" and request.query.get("alt") == "media":
            kind = "download"
        elif kind == "upload":
            name = request.query.get("name", "")
            if request.query["uploadType"] == "resumable":
                kind, name = "upload-start", name or json.loads(request.body)["name"]
            name = name or split_upload(request)[0]["name"]
        elif kind in ("upload-chunk", "upload-cancel"):
            upload = self._uploads.get(request.query["upload_id"])
            name = upload.name if upload else ""
            first, last, total = content_range(request)
            if kind == "upload-chunk" and total is not None and total == (0 if last is None else last + 1):
                kind = "upload-end"
            elif kind == "upload-chunk" and first is None:
                kind = "upload-status"
        elif kind in ("copy", "rewrite"):
            bucket, name = parts[2:]
        return kind, bucket, name

    def act(self, request: Request) -> Answer:
        """Do what the request says. The caller makes sure that only one acts at a time."""
        kind, bucket, name = self.locate(request)
        try:
            if bucket and bucket not in self.buckets:
                raise Refused(404, "The specified bucket does not exist.")
            if bucket in self.paid_by and request.query.get("userProject") is None:
                raise Refused(400, "Bucket is a requester pays bucket but no user project provided.")
            if bucket in self.paid_by and request.query["userProject"] != self.paid_by[bucket]:
                raise Refused(403, "The caller may not use this project.")
            method: Callable[[Request, str, str], Answer] = getattr(self, "_" + kind.replace("-", "_"))
            answer = method(request, bucket, name)
        except Refused as error:
            return error.answer()
        wanted = request.query.get("fields")
        if wanted and answer.status == 200 and answer.headers.get("Content-Type", "").startswith("application/json"):
            return as_json(selected(json.loads(answer.body), wanted))
        return answer

    # Buckets and lists

    def _create_bucket(self, request: Request, bucket: str, name: str) -> Answer:
        bucket = json.loads(request.body)["name"]
        if bucket in self.buckets:
            raise Refused(409, "Your previous request to create the named bucket succeeded and you already own it.")
        self.buckets.add(bucket)
        return self._get_bucket(request, bucket, "")

    def _get_bucket(self, request: Request, bucket: str, name: str) -> Answer:
        fixed = {"kind": "storage#bucket", "id": bucket, "name": bucket, "projectNumber": "1", "location": "US"}
        usual = {"locationType": "multi-region", "softDeletePolicy": {"retentionDurationSeconds": "0"}}
        return as_json(fixed | usual | self.bucket_fields.get(bucket, {}))

    def _list(self, request: Request, bucket: str, name: str) -> Answer:
        query = request.query
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = base64.b64decode(query.get("pageToken", "")).decode()
        found: dict[str, Stored | None] = {}  # names and prefixes
        for (owner, full), stored in self.objects.items():
            if owner == bucket and full.startswith(prefix) and query.get("startOffset", "") <= full:
                if full >= query.get("endOffset", "\U0010ffff"):
                    continue
                cut = full.find(delimiter, len(prefix)) if delimiter else -1
                found[full if cut < 0 else full[: cut + len(delimiter)]] = stored if cut < 0 else None
        names = sorted((n for n in found if n > after), key=str.encode)
        limit = min(int(query.get("maxResults", self.page_size)), self.page_size)
        page = {n: found[n] for n in names[:limit]}
        answer: dict[str, Any] = {"kind": "storage#objects"}
        answer["items"] = [described(bucket, n, stored) for n, stored in page.items() if stored]
        answer["prefixes"] = [n for n, stored in page.items() if not stored]
        if len(names) > limit:
            answer["nextPageToken"] = encoded(names[limit - 1].encode())
        return as_json({key: value for key, value in answer.items() if value})

    # Objects

    def _found(self, request: Request, bucket: str, name: str, generation: str = "generation") -> Stored:
        stored = self.objects.get((bucket, name))
        if stored is None or int(request.query.get(generation, stored.generation)) != stored.generation:
            raise Refused(404, f"No such object: {bucket}/{name}")
        return stored

    def _stat(self, request: Request, bucket: str, name: str) -> Answer:
        stored = self._found(request, bucket, name)
        check_conditions(request.query, stored, reading=True)
        return as_json(described(bucket, name, stored))

    def _download(self, request: Request, bucket: str, name: str) -> Answer:
        stored = self._found(request, bucket, name)
        check_conditions(request.query, stored, reading=True)
        data, encoding = stored.data, stored.fields.get("contentEncoding", "")
        headers = {
            "Content-Type": stored.fields.get("contentType", "application/octet-stream"),
            "ETag": etag_of(stored),
            "X-Goog-Generation": str(stored.generation),
            "X-Goog-Metageneration": str(stored.metageneration),
            "X-Goog-Hash": f"crc32c={stored.crc32c}" + ("" if stored.components else f",md5={stored.md5}"),
            "X-Goog-Stored-Content-Encoding": encoding or "identity",
            "X-Goog-Stored-Content-Length": str(len(data)),
        }
        if encoding == "gzip" and "gzip" not in request.headers.get("accept-encoding", ""):
            return Answer(200, gzip.decompress(data), headers)  # ranges do not apply to what is decompressed
        if encoding:
            headers["Content-Encoding"] = encoding
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", request.headers.get("range", ""))
        if not asked or asked.groups() == ("", ""):
            return Answer(200, data, headers, data)
        start = int(asked[1]) if asked[1] else max(0, len(data) - int(asked[2]))
        stop = min(int(asked[2]) + 1 if asked[1] and asked[2] else len(data), len(data))
        if start >= len(data):
            return Answer(416, b"", headers | {"Content-Range": f"bytes */{len(data)}"})
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{len(data)}"
        return Answer(206, data[start:stop], headers, data)

    def _patch(self, request: Request, bucket: str, name: str) -> Answer:
        stored = self._found(request, bucket, name)
        check_conditions(request.query, stored)
        fields = {key: value for key, value in json.loads(request.body).items() if value is not None}
        changed = replace(stored, metageneration=stored.metageneration + 1, fields={**stored.fields, **fields})
        self.objects[bucket, name] = changed
        return as_json(described(bucket, name, changed))

    def _delete(self, request: Request, bucket: str, name: str) -> Answer:
        check_conditions(request.query, self._found(request, bucket, name))
        del self.objects[bucket, name]
        self.changes.append(("delete", bucket, name))
        return Answer(204)

    def _store(self, bucket: str, name: str, stored: Stored) -> Stored:
        self.changes.append(("replace" if (bucket, name) in self.objects else "create", bucket, name))
        self.objects[bucket, name] = stored
        return stored

    def _write(
        self, query: Mapping[str, str], bucket: str, name: str, data: bytes, fields: Mapping[str, Any]
    ) -> Answer:
        """What every upload ends in: all or nothing."""
        check_conditions(query, self.objects.get((bucket, name)))
        made = Stored(
            data, next(self._generations), 1, {k: v for k, v in fields.items() if k not in ("name", "bucket")}
        )
        for key, value in (("crc32c", made.crc32c), ("md5Hash", made.md5)):
            if fields.get(key, value) != value:
                label = {"crc32c": "CRC32C", "md5Hash": "MD5"}[key]
                raise Refused(400, f'Provided {label} "{fields[key]}" doesn\'t match calculated {label} "{value}".')
        return as_json(described(bucket, name, self._store(bucket, name, made)))

    # Uploads

    def _upload(self, request: Request, bucket: str, name: str) -> Answer:
        fields, data = split_upload(request)
        return self._write(request.query, bucket, name, data, fields | given_hashes(request))

    def _upload_start(self, request: Request, bucket: str, name: str) -> Answer:
        check_conditions(request.query, self.objects.get((bucket, name)))
        fields = json.loads(request.body or b"{}")
        fields.setdefault("contentType", request.headers.get("x-upload-content-type", "application/octet-stream"))
        identity = f"upload-{len(self._uploads) + 1}"
        self._uploads[identity] = Upload(bucket, name, request.query, fields)
        where = f"{self.base}/upload/storage/v1/b/{bucket}/o?uploadType=resumable&name={quote(name, '')}"
        return Answer(200, b"", {"Location": f"{where}&upload_id={identity}", "X-GUploader-UploadID": identity})

    def _ongoing(self, request: Request) -> Upload:
        upload = self._uploads.get(request.query["upload_id"])
        if upload is None:
            raise Refused(404, "No such upload")
        if upload.cancelled:
            raise Refused(499, "The upload was cancelled")
        return upload

    def _upload_chunk(self, request: Request, bucket: str, name: str) -> Answer:
        upload = self._ongoing(request)
        if upload.made:
            return upload.made
        first, last, total = content_range(request)
        if first is not None:
            if last is None or len(request.body) != last - first + 1:
                raise Refused(400, f"{len(request.body)} bytes in the body, {request.headers['content-range']}")
            if first > len(upload.data):
                raise Refused(400, f"bytes from {first} on given, {len(upload.data)} are here")
            complete = upload.data[:first] + request.body
            if len(complete) > len(upload.data):  # what is here already is not taken again
                complete = upload.data + complete[len(upload.data) :]
                upload.data = complete if len(complete) == total else complete[: len(complete) // QUANTUM * QUANTUM]
        if total is not None and len(upload.data) == total:
            fields = dict(upload.fields) | given_hashes(request)
            upload.made = self._write(upload.query, upload.bucket, upload.name, upload.data, fields)
            return upload.made
        return Answer(308, b"", {"Range": f"bytes=0-{len(upload.data) - 1}"} if upload.data else {})

    _upload_end = _upload_status = _upload_chunk

    def _upload_cancel(self, request: Request, bucket: str, name: str) -> Answer:
        self._ongoing(request).cancelled = True
        return Answer(499)

    # Copies

    def _copied(self, request: Request) -> tuple[Stored, dict[str, Any]]:
        """The source of a copy, and the fields of its destination: given ones replace the source's."""
        match = re.match(OBJECT, request.path)
        assert match
        bucket, name = unquote(match[1]), unquote(match[2])
        if bucket not in self.buckets:
            raise Refused(404, "The specified bucket does not exist.")
        source = self._found(request, bucket, name, "sourceGeneration")
        check_conditions(request.query, source, prefix="ifSource")
        return source, json.loads(request.body or b"{}") or dict(source.fields)

    def _copy(self, request: Request, bucket: str, name: str) -> Answer:
        source, fields = self._copied(request)
        return self._write(request.query, bucket, name, source.data, fields)

    def _rewrite(self, request: Request, bucket: str, name: str) -> Answer:
        source, fields = self._copied(request)
        identity = (request.path, source.generation)
        token = request.query.get("rewriteToken", "")
        if token and self._rewrites.get(token, ((), 0))[0] != identity:
            raise Refused(400, "Invalid rewriteToken")
        size = len(source.data)
        done = min(size, (self._rewrites.pop(token)[1] if token else 0) + self.rewrite_bytes)
        answer = {"kind": "storage#rewriteResponse", "totalBytesRewritten": str(done), "objectSize": str(size)}
        if done < size:
            token = f"rewrite-{next(self._generations)}"
            self._rewrites[token] = identity, done
            return as_json(answer | {"done": False, "rewriteToken": token})
        made = json.loads(self._write(request.query, bucket, name, source.data, fields).body)
        return as_json(answer | {"done": True, "resource": made})

    def _compose(self, request: Request, bucket: str, name: str) -> Answer:
        body = json.loads(request.body)
        if not 1 <= len(body["sourceObjects"]) <= 32:
            raise Refused(400, "The number of source components provided (33 > 32)")
        sources = []
        for entry in body["sourceObjects"]:
            source = self.objects.get((bucket, entry["name"]))
            if source is None or int(entry.get("generation") or source.generation) != source.generation:
                raise Refused(404, f"No such object: {bucket}/{entry['name']}")
            check_conditions({k: str(v) for k, v in entry.get("objectPreconditions", {}).items()}, source)
            sources.append(source)
        check_conditions(request.query, self.objects.get((bucket, name)))
        data, count = b"".join(s.data for s in sources), sum(s.components or 1 for s in sources)
        made = Stored(data, next(self._generations), 1, body.get("destination", {}), count)
        return as_json(described(bucket, name, self._store(bucket, name, made)))


def described(bucket: str, name: str, stored: Stored) -> dict[str, Any]:
    """The metadata of an object as the API tells it: whole numbers of 64 bits are strings."""
    fixed = {
        "kind": "storage#object",
        "id": f"{bucket}/{name}/{stored.generation}",
        "bucket": bucket,
        "name": name,
        "generation": str(stored.generation),
        "metageneration": str(stored.metageneration),
        "size": str(len(stored.data)),
        "crc32c": stored.crc32c,
        "etag": etag_of(stored),
        "storageClass": "STANDARD",
        "timeCreated": stored.updated,
        "updated": stored.updated,
    }
    digest = {"componentCount": stored.components} if stored.components else {"md5Hash": stored.md5}
    return {**stored.fields, **fixed, **digest}


def etag_of(stored: Stored) -> str:
    return encoded(f"{stored.generation}/{stored.metageneration}".encode())


def check_conditions(
    query: Mapping[str, str], stored: Stored | None, reading: bool = False, prefix: str = "if"
) -> None:
    """Raise Refused where a precondition does not hold. What is not there has generation and metageneration 0."""
    now = {"Generation": stored.generation if stored else 0, "Metageneration": stored.metageneration if stored else 0}
    for what, value in now.items():
        wanted, unwanted = query.get(f"{prefix}{what}Match"), query.get(f"{prefix}{what}NotMatch")
        if wanted is not None and int(wanted) != value:
            raise Refused(412, "At least one of the pre-conditions you specified did not hold.")
        if unwanted is not None and int(unwanted) == value:
            raise Refused(304 if reading else 412, "At least one of the pre-conditions you specified did not hold.")
