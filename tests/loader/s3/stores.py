"""What tests of S3 share."""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from refinery.loader.storage.fetch import FetchParams
from refinery.loader.storage.s3_store import S3Store
from tests.fake_gcs_wire import Answer
from tests.fake_s3 import Call, FakeS3, Fault

QUICK = FetchParams(deadline=20.0, connect_timeout=2, read_timeout=2, first_delay=0.001, max_delay=0.005, hedge_after=0)
SHORT_DEADLINE = replace(QUICK, deadline=0.2)
SMALL = bytes(range(256)) * 100
PIECE = 64 << 10
LARGE = os.urandom(PIECE) * 2 + b"tail"  # three parts
OK = Answer(200)


def tried(store: S3Store, server: FakeS3) -> S3Store:
    store.check_exclusive(large=True)
    server.calls.clear()
    server.changes.clear()
    return store


def once_at(kind: str, fault: str | Fault | None) -> Callable[[Call], Fault | None]:
    """A hook: the first call of a kind fails."""
    todo = [Fault.named(fault) if isinstance(fault, str) else fault]
    return lambda call: todo.pop() if call.kind == kind and todo else None


def refuse(code: str, status: int = 0, *kinds: str) -> Callable[[Call], Fault | None]:
    """A hook: all calls of these kinds, or of all, are refused."""
    return lambda call: Fault("status", status, message=code) if not kinds or call.kind in kinds else None


def use(store: S3Store, method: str) -> Any:
    if method == "open":
        with store.open("x") as stream:
            return stream.read()
    if method == "create":
        return store.create("new", SMALL)
    if method == "replace":
        return store.replace("new", SMALL)
    if method == "delete_many":
        return store.delete_many(["x"])
    return getattr(store, method)(*([] if method in ("list", "check") else ["x"]))
