"""Requests and answers of the Cloud Storage JSON API, and what is packed inside: uploads, batches, partial answers."""

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

BATCH_LIMIT = 100  # calls in one batch


@dataclass(frozen=True)
class Request:
    method: str
    target: str  # path and query
    headers: Mapping[str, str]  # names in lower case
    body: bytes = b""

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    whole: bytes = b""  # of a download of a range: the whole object


class Refused(Exception):
    """The API's answer is an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status

    def answer(self) -> Answer:
        reasons = {304: "notModified", 404: "notFound", 409: "conflict", 412: "conditionNotMet", 403: "forbidden"}
        reason = reasons.get(self.status, "backendError" if self.status >= 500 else "invalid")
        error = {"message": str(self), "domain": "global", "reason": reason}
        body = {"error": {"code": self.status, "message": str(self), "errors": [error]}}
        return Answer(self.status) if self.status == 304 else as_json(body, self.status)


def as_json(value: Any, status: int = 200) -> Answer:
    return Answer(status, json.dumps(value).encode(), {"Content-Type": "application/json; charset=UTF-8"})


def encoded(digest: bytes) -> str:
    """A checksum as the API writes it."""
    return base64.b64encode(digest).decode()


def content_range(request: Request) -> tuple[int | None, int | None, int | None]:
    """First and last byte of a chunk, and the size of the whole; None for "*"."""
    text = request.headers.get("content-range", "")
    match = re.fullmatch(r"bytes (?:(\d+)-(\d+)|\*)/(?:(\d+)|\*)", text)
    if match:
        first, last, total = (None if part is None else int(part) for part in match.groups())
    else:  # a chunk without the header is the whole object
        first, last, total = 0, len(request.body) - 1, len(request.body)
    return first, last, total


def given_hashes(request: Request) -> dict[str, str]:
    """crc32c and md5Hash of a x-goog-hash header."""
    found = dict(pair.strip().split("=", 1) for pair in request.headers.get("x-goog-hash", "").split(",") if pair)
    return {own: found[key] for key, own in (("crc32c", "crc32c"), ("md5", "md5Hash")) if key in found}


def split_upload(request: Request) -> tuple[dict[str, Any], bytes]:
    """Metadata and bytes of an upload in one request."""
    kind = request.headers.get("content-type", "application/octet-stream")
    if request.query["uploadType"] == "media":
        return {"contentType": kind}, request.body
    start, stop = media_span(request)
    head = request.body[:start].split(b"\r\n\r\n")
    own = re.search(rb"(?i)content-type: *([^\r]+)", head[-2].rpartition(b"\r\n--")[2])
    fields = json.loads(head[1].rpartition(b"\r\n--")[0])
    return {"contentType": own[1].decode() if own else "application/octet-stream"} | fields, request.body[start:stop]


def media_span(request: Request) -> tuple[int, int]:
    """Where the object's own bytes begin and end in the body of an upload."""
    match = re.search(r"multipart/related;.*boundary=[\"']*([^\"';]+)", request.headers.get("content-type", ""))
    if not match:
        return 0, len(request.body)
    boundary = b"\r\n--" + match[1].encode()
    second = request.body.index(boundary)  # the first has no line before it
    return request.body.index(b"\r\n\r\n", second) + 4, request.body.rindex(boundary)


def split_batch(request: Request) -> list[tuple[str, Request]]:
    """Content-ID and request of each part of a batch."""
    match = re.search(r"multipart/mixed;.*boundary=[\"']*([^\"';]+)", request.headers.get("content-type", ""))
    if not match:
        raise Refused(400, "Failed to parse batch request")
    parts = []
    for part in request.body.split(b"--" + match[1].encode())[1:-1]:
        outer, inner, body = [*re.split(rb"\r?\n\r?\n", part.strip(b"\r\n"), maxsplit=2), b""][:3]
        identity = re.search(rb"(?i)content-id: *<?([^>\r\n]+)", outer)
        line, *lines = inner.decode().splitlines()
        method, target, _ = line.split(" ")
        headers = {k.strip().lower(): v.strip() for k, v in (text.split(":", 1) for text in lines)}
        address = urlsplit(target)
        target = address.path + (f"?{address.query}" if address.query else "")
        parts.append((identity[1].decode() if identity else "", Request(method, target, headers, body.strip())))
    if len(parts) > BATCH_LIMIT:
        raise Refused(400, f"The batch request has {len(parts)} calls, {BATCH_LIMIT} are allowed")
    return parts


def join_batch(answers: list[tuple[str, Answer]]) -> Answer:
    """The answers to the parts of a batch, in one."""
    text = b""
    for identity, answer in answers:
        headers = "".join(f"{k}: {v}\r\n" for k, v in answer.headers.items()) + f"Content-Length: {len(answer.body)}"
        outer = f"--batch\r\nContent-Type: application/http\r\nContent-ID: <response-{identity}>\r\n\r\n"
        text += f"{outer}HTTP/1.1 {answer.status} -\r\n{headers}\r\n\r\n".encode() + answer.body + b"\r\n"
    return Answer(200, text + b"--batch--\r\n", {"Content-Type": "multipart/mixed; boundary=batch"})


def selected(value: Any, fields: str) -> Any:
    """The part of an answer that `fields` asks for, such as "items(name,size),nextPageToken"."""
    if isinstance(value, list):
        return [selected(entry, fields) for entry in value]
    kept: dict[str, Any] = {}
    for text in re.findall(r"[^,()]+(?:\([^()]*\))?", fields):
        name, _, inner = text.removesuffix(")").partition("(") if "(" in text else text.partition("/")
        if name == "*":
            return value
        if name in value:
            kept[name] = selected(value[name], inner) if inner else value[name]
    return kept
