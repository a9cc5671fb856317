"""A fake Cloud Storage on this machine, for tests: every call has a number, and any of them can go wrong on demand.

    with fake_gcs("bucket") as server:
        server.use(monkeypatch)                     # now google-cloud-storage and Beam talk to it, in subprocesses too
        server.on_call = lambda call: Fault("status", 503) if call.number == 7 else None

Google's clients find it by STORAGE_EMULATOR_HOST. Beam looks for credentials even then, and takes 16 seconds to do
without, so there is a file with a token that never has to be renewed.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.fake_gcs_api import Api
from tests.fake_gcs_wire import Answer, Refused, Request, join_batch, media_span, split_batch
from tests.fake_service import FAULTS, Call, FakeService, Fault, Hook
from tests.loader.range_server import running

__all__ = ["FAULTS", "Call", "FakeGcs", "Fault", "Hook", "fake_gcs"]

CREDENTIALS = {
    "type": "authorized_user",
    "client_id": "none",
    "client_secret": "none",
    "refresh_token": "none",
    "token": "token-of-the-fake",
    "expiry": "2999-01-01T00:00:00Z",
}


class FakeGcs(FakeService):
    """objects: (bucket, name) -> Stored. api: has page_size, rewrite_bytes and changes."""

    api: Api

    def __init__(self, *buckets: str) -> None:
        super().__init__(Api(*buckets))
        self.api.base = self.url

    def act(self, request: Request, kind: str) -> Answer:
        if kind != "batch":
            return super().act(request, kind)
        try:
            return join_batch([(identity, self.answer(part)[0]) for identity, part in split_batch(request)])
        except Refused as error:
            return error.answer()

    def refusal(self, fault: Fault) -> Answer:
        return Refused(fault.status, fault.message).answer()

    def spoiled(self, request: Request, fault: str, kind: str) -> Request | None:
        return spoiled(request, fault, kind)


def spoiled(request: Request, fault: str, kind: str) -> Request | None:
    """An upload as it arrives over a bad network: a bit of the object flipped, or the first half of a chunk alone. Of
    other requests half is nothing.
    """
    media = kind in ("upload", "upload-chunk", "upload-end")
    start, stop = media_span(request) if media else (0, 0)
    middle = (start + stop) // 2
    if fault == "corrupt request":
        flipped = bytes([byte ^ 16 for byte in request.body[middle : min(middle + 1, stop)]])
        return replace(request, body=request.body[:middle] + flipped + request.body[middle + len(flipped) :])
    span = request.headers.get("content-range", "")
    if "-" not in span:
        return None
    first, total = span.removeprefix("bytes ").split("-")[0], span.rpartition("/")[2]
    given = f"bytes {first}-{int(first) + middle - 1}/{total}"
    return replace(request, body=request.body[:middle], headers={**request.headers, "content-range": given})


@contextmanager
def fake_gcs(*buckets: str) -> Iterator[FakeGcs]:
    """A running server with these buckets. Nothing is set in the environment: see `FakeGcs.use`."""
    with TemporaryDirectory(prefix="fake-gcs-") as folder, running(FakeGcs(*buckets)) as server:
        key = Path(folder) / "credentials.json"
        key.write_text(json.dumps(CREDENTIALS))
        server.environment = {
            "STORAGE_EMULATOR_HOST": server.url,
            "GOOGLE_APPLICATION_CREDENTIALS": os.fspath(key),
            "GOOGLE_CLOUD_PROJECT": "project",
            # A background request for traces, which would make the numbers of calls differ from run to run.
            "DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA": "true",
        }
        yield server
    if server.errors:
        raise server.errors[0]
