"""A fake S3 on this machine, for tests: every call has a number, and any of them can go wrong on demand.

    with fake_s3("bucket") as server:
        server.use(monkeypatch)                     # now s3:// is there, in subprocesses too
        server.on_call = lambda call: Fault("status", 503, message="SlowDown") if call.number == 7 else None

A fault's message is the error's code. Faults and hooks: tests/fake_service.py. How it can be less than S3:
tests/fake_s3_api.py.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from email.utils import formatdate

from tests.fake_gcs_wire import Answer, Request
from tests.fake_s3_api import S3Api, etag
from tests.fake_s3_wire import KEY, SECRET, S3Error
from tests.fake_service import Call, FakeService, Fault
from tests.loader.range_server import running

__all__ = ["KEY", "SECRET", "Call", "FakeS3", "Fault", "etag", "fake_s3"]

UPLOADS = ("put", "upload-part")


class FakeS3(FakeService):
    """objects: (bucket, key) -> StoredObject. unsigned: requests so far that carried no signature."""

    api: S3Api
    downloads = "get"

    def __init__(self, *buckets: str) -> None:
        super().__init__(S3Api(*buckets))
        self.unsigned = 0

    def clear(self) -> None:
        super().clear()
        self.api.reset()

    def act(self, request: Request, kind: str) -> Answer:
        self.unsigned += "authorization" not in request.headers
        if self.api.slow_check and kind == "put" and "if-none-match" in request.headers:
            with self.lock:
                there = self.api.locate(request)[1:] in self.objects
            if there:
                return S3Error("PreconditionFailed").answer()
            self.stopping.wait(self.api.slow_check)
            with self.lock:
                made = self.api.put(*self.api.locate(request)[1:], request.body)
            return Answer(200, b"", {"ETag": made.etag})
        answer = super().act(request, kind)
        date = formatdate(time.time() + self.api.ahead, usegmt=True)
        return replace(answer, headers={**answer.headers, "Date": date})

    def refusal(self, fault: Fault) -> Answer:
        return S3Error(fault.message, fault.status).answer()

    def spoiled(self, request: Request, fault: str, kind: str) -> Request | None:
        if fault != "corrupt request" or kind not in UPLOADS or not request.body:
            return None
        middle = len(request.body) // 2
        flipped = bytes([request.body[middle] ^ 16])
        return replace(request, body=request.body[:middle] + flipped + request.body[middle + 1 :])


@contextmanager
def fake_s3(*buckets: str) -> Iterator[FakeS3]:
    """A running server with these buckets. Nothing is set in the environment: see `FakeS3.use`."""
    with running(FakeS3(*buckets)) as server:
        server.environment = {
            "AWS_ENDPOINT_URL": server.url,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        }
        yield server
    if server.errors:
        raise server.errors[0]
