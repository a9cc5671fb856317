"""Requests to a bucket of S3, or of anything that speaks its protocol: signed, sent once, and what their answers mean.

obstore reads S3 well, but lacks what this project relies on (0.12): a completion of a
multipart upload that must not overwrite; 409, "try again", distinguished from 412, "exists"; CRC-32C in the headers of
requests and answers; keys that are not clean paths, such as "a//b"; the region that a redirect names; and an attempt
that ends when another thread says so.

Addresses: https://BUCKET.s3.REGION.amazonaws.com at AWS, ENDPOINT/BUCKET elsewhere. Bodies are sent whole, with their
SHA-256 in the signature; never in pieces with trailers, which some stores refuse and others keep as content.
"""

import contextlib
import hashlib
import http.client
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from functools import lru_cache
from pathlib import Path
from typing import NoReturn, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from refinery.loader.storage.aws.answers import error_of
from refinery.loader.storage.aws.credentials import provider
from refinery.loader.storage.aws.keys import Credentials, CredentialsError
from refinery.loader.storage.aws.settings import DEFAULT_REGION, Settings, aws_host, is_region
from refinery.loader.storage.aws.signing import NO_BODY, encoded_path, encoded_query, signed_headers
from refinery.loader.storage.connections import Connections, Lease
from refinery.loader.storage.fetch import Attempt, Permanent, Transient, without_secrets

T = TypeVar("T")

AGAIN = 4  # requests sent for one, where each answer says how the next has to differ
PIECE = 1 << 18  # bytes sent between two checks of the time limit
MOST_ANSWER = 32 << 20  # bytes of an answer that is not an object; a listing of 1,000 keys has up to 4 MB
TRANSIENT = frozenset((408, 429, 500, 502, 503, 504))
BUSY = frozenset(("ConditionalRequestConflict", "OperationAborted"))  # 409: another request for the key is under way
CORRUPTED = frozenset(("BadDigest", "XAmzContentSHA256Mismatch", "IncompleteBody", "InvalidDigest", "RequestTimeout"))
EXPIRED = frozenset(("ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"))
REJECTED = frozenset(("InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "InvalidClientTokenId"))
KEYS = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
NEEDED = "s3:ListBucket and s3:GetObject to read, s3:PutObject to write, s3:DeleteObject to delete"


class Refusal(Permanent):
    """The service refused a request permanently, or none could be made. status: 0 if there was no response."""

    def __init__(self, status: int, cause: object) -> None:
        super().__init__(cause)
        self.status = status


class Answered(Exception):
    """An answer that its caller knows what to do with. code: as S3 names it, "" for an answer without a body. size: of
    the object, where a range beyond its end (416) says it."""

    def __init__(self, status: int, code: str, said: str, size: int | None = None) -> None:
        super().__init__(said)
        self.status, self.code, self.size = status, code, size


@dataclass(frozen=True)
class Ask:
    """A request. key: "" for the bucket. body: bytes, or a file sent as it is read. sha256: of the body.

    passed: statuses and codes that the caller handles as Answered.
    """

    method: str
    key: str = ""
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | Path = b""
    sha256: str = ""
    passed: frozenset[int | str] = frozenset()


@dataclass(frozen=True)
class Answer:
    """headers: by lower-case name."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""


class S3Client:
    """One bucket as this process reaches it. Safe to share between threads. Created by `client_of`, which keeps it.

    What is found out about the service stays here: region (of the bucket), ahead (seconds of its clock before ours),
    checksums (whether it takes CRC-32C in headers), whole_checksums (and of all parts of an upload together), bulk
    (whether it removes many objects at once), exclusive (whether it was seen to never replace an object that exists),
    exclusive_parts (the same of completions of multipart uploads; None: not tried), there (whether the bucket exists).
    """

    def __init__(self, bucket: str, settings: Settings) -> None:
        self.bucket, self._settings = bucket, settings
        self.region = settings.region or DEFAULT_REGION
        self.ahead = 0.0
        self.checksums = self.whole_checksums = self.bulk = True
        self.exclusive = self.there = False
        self.exclusive_parts: bool | None = None
        self.trying = threading.Lock()  # whoever finds out about `exclusive`
        self._pools: dict[str, Connections] = {}

    @property
    def origin(self) -> str:
        """Scheme, host and port of requests."""
        scheme, _, host = (self._settings.endpoint or f"https://{aws_host('s3', self.region)}").partition("://")
        return f"{scheme}://{self.bucket}.{host}" if self._named_in_host else f"{scheme}://{host}"

    @property
    def _named_in_host(self) -> bool:
        # No certificate fits the host of a bucket with a dot in its name.
        return "." not in self.bucket and (self._settings.virtual_hosted or not self._settings.endpoint)

    def path(self, key: str) -> str:
        """The encoded path of a key."""
        bucket = "" if self._named_in_host else f"/{self.bucket}"
        return f"{bucket}/{encoded_path(key)}" if key or not bucket else bucket

    def pool(self, origin: str) -> Connections:
        """Connections to an origin."""
        if origin not in self._pools:  # two threads may both create one, which is harmless
            found = urlsplit(origin)
            self._pools[origin] = Connections(found.scheme, found.hostname or "", found.port, proxied=True)
        return self._pools[origin]

    def close(self) -> None:
        """Close idle connections."""
        for pool in list(self._pools.values()):
            pool.close()

    def send(self, ask: Ask, attempt: Attempt) -> Answer:
        """The whole answer, of status 200 to 299. Raises Answered, Transient, Refusal."""
        return self.send_for(ask, attempt, lambda response: read_whole(response, attempt))

    def send_for(self, ask: Ask, attempt: Attempt, take: Callable[[http.client.HTTPResponse], T]) -> T:
        """What `take` makes of an answer of status 200 to 299.

        An answer that says how to ask again (another region, another time, other keys) is followed, some times. Raises
        Answered, Transient, Refusal.
        """
        origin, path, query = self.origin, self.path(ask.key), ask.query
        for _ in range(AGAIN):
            keys = self._keys()
            with self.pool(origin).use(attempt) as lease:
                response, sent = self._ask_once(lease, origin, path, query, ask, keys, attempt)
                with response:
                    if 200 <= response.status < 300:
                        taken = take(response)
                        lease.keep = response.isclosed() and not response.will_close
                        return taken
                    answer = read_whole(response, attempt)
                    lease.keep = sent and response.isclosed() and not response.will_close
            if moved := self._redirected(answer, origin):
                origin, path, query = moved
            elif not self._corrected(answer, keys):
                if ask.method == "HEAD" and answer.status not in ask.passed:
                    self._ask_why(ask, attempt, answer)
                raise self._judged(answer, ask, keys)
            else:
                origin, path = self.origin, self.path(ask.key)
        raise Refusal(answer.status, f"status {answer.status} after every redirect and correction")

    def _ask_why(self, ask: Ask, attempt: Attempt, answer: Answer) -> NoReturn:
        """Answers to HEAD have no body that says why: ask for a byte instead. Raises the same errors as `send_for`."""
        asked = replace(ask, method="GET", headers={**ask.headers, "range": "bytes=0-0"}, passed=ask.passed | {416})
        with contextlib.suppress(Answered):
            self.send(asked, attempt)
        raise Transient(f"status {answer.status}")

    def _ask_once(
        self, lease: Lease, origin: str, path: str, query: tuple[tuple[str, str], ...], ask: Ask,
        keys: Credentials | None, attempt: Attempt,
    ) -> tuple[http.client.HTTPResponse, bool]:  # fmt: skip
        """The answer, and whether all of the body was sent before it."""
        parts, encoded = urlsplit(origin), encoded_query(query)
        size = ask.body.stat().st_size if isinstance(ask.body, Path) else len(ask.body)
        headers = {"host": parts.netloc, **ask.headers}
        if self._settings.requester_pays:
            headers["x-amz-request-payer"] = "requester"
        if keys is not None:
            digest = ask.sha256 or (hashlib.sha256(ask.body).hexdigest() if isinstance(ask.body, bytes) else "")
            headers = signed_headers(
                ask.method, path, encoded, headers, digest or NO_BODY, keys, self.region, time.time() + self.ahead
            )
        headers |= {"accept-encoding": "identity", "user-agent": "refinery"}
        if ask.method in ("PUT", "POST"):
            headers["content-length"] = str(size)
        connection = lease.connection
        connection.putrequest(ask.method, f"{path}?{encoded}" if query else path, skip_host=True,
                              skip_accept_encoding=True)  # fmt: skip
        for name, value in headers.items():
            connection.putheader(name, value)
        sent = True
        try:
            connection.endheaders()
            for piece in pieces_of(ask.body):
                attempt.check()
                connection.send(piece)
        except (BrokenPipeError, ConnectionResetError):
            sent = False  # a service may refuse a body before it has read it all: its answer says why
        response = connection.getresponse()
        if not sent and response.status < 300:
            raise Transient(f"status {response.status} before all was sent")
        return response, sent

    def _keys(self) -> Credentials | None:
        try:
            return None if self._settings.unsigned else provider().get()
        except CredentialsError as error:
            said = f"no valid AWS credentials: {error}"
            raise (Transient(said) if error.passing else Refusal(0, said)) from None

    def _redirected(self, answer: Answer, origin: str) -> tuple[str, str, tuple[tuple[str, str], ...]] | None:
        """Where a temporary redirect (307) leads; it must not lead away from the service: requests carry bytes."""
        location = answer.headers.get("location", "")
        if answer.status != 307 or not location:
            return None
        try:
            found, own = urlsplit(location), urlsplit(origin)
            near = found.netloc == own.netloc and found.scheme == own.scheme
            host = found.hostname or ""
        except ValueError:
            raise Refusal(307, "redirected to an invalid URL") from None
        aws = not self._settings.endpoint and host.endswith((".amazonaws.com", ".amazonaws.com.cn"))
        if not near and not (aws and found.scheme == "https" and found.netloc == host):
            raise Refusal(307, f"redirected to {found.scheme}://{host:.80}, only {origin} is allowed")
        query = tuple(parse_qsl(found.query, keep_blank_values=True))
        return f"{found.scheme}://{found.netloc}", encoded_path(unquote(found.path)), query

    def _corrected(self, answer: Answer, keys: Credentials | None) -> bool:
        """Whether the answer said what to change, and it was changed: the region, the clock, the keys."""
        error = error_of(answer.body)
        code = error.get("Code", "")
        region = answer.headers.get("x-amz-bucket-region", "") or error.get("Region", "")
        if answer.status in (301, 400) and region != self.region and is_region(region):
            self.region = region
            return True
        if code == "RequestTimeTooSkewed" and keys is not None:
            ahead = clock_of(answer) - time.time()
            changed = abs(ahead - self.ahead) > 60
            self.ahead = ahead if changed else self.ahead
            return changed
        if keys is not None and code in EXPIRED:
            try:
                return provider().renew(keys) is not None
            except CredentialsError as error:
                raise Refusal(answer.status, f"the credentials have expired: {error}") from None
        return False

    def _judged(self, answer: Answer, ask: Ask, keys: Credentials | None) -> Exception:
        """What an answer that is not 2xx is to the one who asked."""
        status, error = answer.status, error_of(answer.body)
        code, text = line(error.get("Code", ""))[:80], line(error.get("Message", ""))
        said = " ".join(part for part in (f"status {status}", code) if part) + (f": {text}" if text else "")
        unable = status == 501 and error.get("Header", "").lower() == "if-none-match"
        if (status in ask.passed or code in ask.passed) and code != "NoSuchBucket" and not unable:
            beyond = re.fullmatch(r"bytes \*/([0-9]{1,19})", answer.headers.get("content-range", ""))
            return Answered(status, code, said, int(beyond[1]) if beyond else None)
        if status in TRANSIENT or status > 504 or (status == 409 and code in BUSY):
            return Transient(said, seconds(answer.headers.get("retry-after", "")), status in (429, 503))
        if code in CORRUPTED:
            return Transient(f"the bytes were corrupted in transit: {said}")
        return Refusal(status, f"{said}{self._advice(answer, error, ask, keys)}")

    def _advice(self, answer: Answer, error: Mapping[str, str], ask: Ask, keys: Credentials | None) -> str:
        status, code = answer.status, error.get("Code", "")
        if code in EXPIRED and keys is not None:
            return f"; the credentials of {keys.source} have expired: renew them"
        if code in REJECTED:
            return f"; these credentials ({keys.source if keys else 'none'}) were rejected: look at {KEYS}"
        if code == "NoSuchBucket":
            return ". Create it, or correct its name"
        if status in (401, 403) and keys is None:
            return f"; there are no credentials: set {KEYS}, or AWS_PROFILE"
        if status == 403:
            return f"; these credentials ({keys.source if keys else 'none'}) may not do that: {NEEDED}"
        if status == 301:
            region = line(answer.headers.get("x-amz-bucket-region", ""))
            return f"; the bucket is in another region{f', {region}' if region else ''}: set AWS_REGION"
        if status == 501 and "if-none-match" in ask.headers:
            return "; this store has no exclusive create (PUT with If-None-Match: *), which published files need"
        return ""


def read_whole(response: http.client.HTTPResponse, attempt: Attempt) -> Answer:
    """An answer with its body. Raises Transient for one that ends early, or does not end."""
    pieces, size = [], 0
    while piece := response.read1(PIECE):
        attempt.check()
        pieces.append(piece)
        size += len(piece)
        if size > MOST_ANSWER:
            raise Transient(f"an answer of more than {MOST_ANSWER} bytes")
    if response.length:
        raise Transient(f"an answer that ends {response.length} bytes early")
    response.read()  # at the end already; lets http.client finish the response
    return Answer(response.status, headers_of(response), b"".join(pieces))


def headers_of(response: http.client.HTTPResponse) -> dict[str, str]:
    """Headers by lower-case name."""
    return {name.lower(): value for name, value in response.getheaders()}


def pieces_of(body: bytes | Path) -> Iterator[bytes | memoryview]:
    """A body in pieces that are sent between two looks at the clock."""
    if isinstance(body, bytes):
        view = memoryview(body)
        yield from (view[at : at + PIECE] for at in range(0, len(body), PIECE))
        return
    with body.open("rb") as stream:
        while piece := stream.read(PIECE):
            yield piece


def line(text: str) -> str:
    """In one line, for logs and terminals: what a server answers may have anything in it."""
    return without_secrets("".join(c if c.isprintable() else "?" for c in " ".join(text.split())[:300]))


def seconds(text: str) -> float:
    """Retry-After in seconds; its other form, a date, is ignored."""
    return float(text) if re.fullmatch(r"\d{1,6}", text) else 0.0


def clock_of(answer: Answer) -> float:
    """The service's time, ours if it does not say it."""
    try:
        return parsedate_to_datetime(answer.headers.get("date", "")).timestamp()
    except (ValueError, TypeError):
        return time.time()


def client_of(bucket: str, settings: Settings) -> S3Client:
    """The client of a bucket that all stores of this process share."""
    clients = _clients(os.getpid())
    return clients.get((bucket, settings)) or clients.setdefault((bucket, settings), S3Client(bucket, settings))


@lru_cache(maxsize=1)
def _clients(process: int) -> dict[tuple[str, Settings], S3Client]:  # a forked child begins anew
    return {}


def forget_clients() -> None:
    """What this process has found out about services; their connections are closed."""
    for client in _clients(os.getpid()).values():
        client.close()
    _clients.cache_clear()
