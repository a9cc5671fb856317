"""What tests of S3 share."""

import os
from collections.abc import Callable

from refinery.loader.storage.s3_store import S3Store
from tests.fake_gcs_wire import Answer
from tests.fake_s3 import Call, FakeS3, Fault

PIECE = 64 << 10
LARGE = os.urandom(PIECE) * 2 + b"tail"  # three parts
OK = Answer(200)


def tried(store: S3Store, server: FakeS3) -> S3Store:
    store.check_exclusive(large=True)
    server.calls.clear()
    server.changes.clear()
    return store


def refuse(code: str, status: int = 0, *kinds: str) -> Callable[[Call], Fault | None]:
    """A hook: all calls of these kinds, or of all, are refused."""
    return lambda call: Fault("status", status, message=code) if not kinds or call.kind in kinds else None
