"""Answers of S3's REST API in XML, its errors, and the signatures of requests."""

import hashlib
import hmac
import re
from dataclasses import replace
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.fake_gcs_wire import Answer, Request

KEY, SECRET = "AKIAFAKEFAKEFAKEFAKE", "not-a-secret"
STATUS = {
    "AccessDenied": 403, "SignatureDoesNotMatch": 403, "NoSuchBucket": 404, "NoSuchKey": 404, "NoSuchUpload": 404,
    "ConditionalRequestConflict": 409, "PreconditionFailed": 412, "InvalidRange": 416, "NotImplemented": 501,
}  # fmt: skip


class S3Error(Exception):
    """The API's answer is an error."""

    def __init__(self, code: str, status: int = 0, message: str = "", **headers: str) -> None:
        super().__init__(code)
        self.status = status or STATUS.get(code, 400)
        self.headers = headers
        self.message = message or "scripted or deserved"

    def answer(self) -> Answer:
        body = f"<?xml version='1.0'?><Error><Code>{self}</Code><Message>{escape(self.message)}</Message></Error>"
        headers = {name.replace("_", "-"): value for name, value in self.headers.items()}
        return Answer(self.status, body.encode(), {"Content-Type": "application/xml", **headers})


def as_xml(root: str, inside: str) -> Answer:
    space = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} {space}>{inside}</{root}>'
    return Answer(200, body.encode(), {"Content-Type": "application/xml"})


def bodiless(answer: Answer) -> Answer:
    """The answer to HEAD."""
    size = str(len(answer.body)) if answer.status == 200 else ""
    return replace(answer, body=b"", headers={**answer.headers, "Content-Length": size})


def as_xml_text(text: str) -> str:
    """As S3 writes keys: characters that XML has no way to say, too."""
    return re.sub(r"[\x00-\x1f]", lambda found: f"&#{ord(found[0])};", escape(text))


def unescaped(text: str) -> str:
    for name, character in (
        ("lt", "<"),
        ("gt", ">"),
        ("quot", '"'),
        ("#34", '"'),
        ("#10", "\n"),
        ("#13", "\r"),
        ("#9", "\t"),
    ):
        text = text.replace(f"&{name};", character)
    return text.replace("&amp;", "&")


def is_signed(request: Request) -> bool:
    """Whether the signature is that of KEY and SECRET: AWS's "Create a signed request", steps 1 to 4."""
    found = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=(\S+?)/(\d{8})/([\w-]+)/s3/aws4_request, SignedHeaders=(\S+), Signature=(\w+)",
        request.headers.get("authorization", ""),
    )
    if not found or found[1] != KEY:
        return False
    _, day, region, names, signature = found.groups()
    unsigned = {name for name in request.headers if name.startswith("x-amz-") or name == "host"} - {*names.split(";")}
    if unsigned:
        return False
    parts = urlsplit(request.target)
    pairs = sorted((quote(k, "-_.~"), quote(v, "-_.~")) for k, v in parse_qsl(parts.query, True))
    lines = [request.method, quote(unquote(parts.path), "/-_.~"), "&".join(f"{k}={v}" for k, v in pairs)]
    lines += [f"{name}:{' '.join(request.headers.get(name, '').split())}" for name in names.split(";")]
    lines += ["", names, request.headers["x-amz-content-sha256"]]
    scope = f"{day}/{region}/s3/aws4_request"
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    text = "\n".join(["AWS4-HMAC-SHA256", request.headers["x-amz-date"], scope, digest])
    key = f"AWS4{SECRET}".encode()
    for part in (day, region, "s3", "aws4_request", text):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.compare_digest(key.hex(), signature)
