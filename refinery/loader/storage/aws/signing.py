"""AWS Signature Version 4 for S3, in headers: the signature of a request with one hash of its whole body.

The algorithm: docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html. S3 differs from AWS's other
services in that a path is encoded once and never normalized. Bodies are never sent in signed pieces ("aws-chunked"),
which some stores keep as if they were content.
"""

import hashlib
import hmac
import time
from collections.abc import Iterable, Mapping
from functools import lru_cache
from urllib.parse import quote

from refinery.loader.storage.aws.keys import Credentials

NO_BODY = hashlib.sha256(b"").hexdigest()


def encoded_path(key: str) -> str:
    """A key as encoded in the path of a request and in the signature."""
    return quote(key, safe="/~")


def encoded_query(query: Iterable[tuple[str, str]]) -> str:
    """Parameters as encoded in a request and in the signature, in order."""
    return "&".join(f"{quote(name, safe='~')}={quote(value, safe='~')}" for name, value in sorted(query))


def signed_headers(
    method: str, path: str, query: str, headers: Mapping[str, str], body_sha256: str, credentials: Credentials,
    region: str, now: float, service: str = "s3",
) -> dict[str, str]:  # fmt: skip
    """The headers to send: those given, with "host" among them and lower-case names, and the signature's own.

    path, query: encoded. now: seconds since 1970.
    """
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    sent = {**headers, "x-amz-date": moment, "x-amz-content-sha256": body_sha256}
    if credentials.token:
        sent["x-amz-security-token"] = credentials.token
    names = ";".join(sorted(sent))
    lines = [method, path, query, *(f"{name}:{' '.join(sent[name].split())}" for name in sorted(sent)), ""]
    digest = hashlib.sha256("\n".join([*lines, names, body_sha256]).encode()).hexdigest()
    scope = f"{moment[:8]}/{region}/{service}/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", moment, scope, digest])
    key = _signing_key(credentials.secret_key, moment[:8], region, service)
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    sent["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return sent


@lru_cache(maxsize=16)
def _signing_key(secret: str, day: str, region: str, service: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key
