"""Calls to a store of objects, and the faults of one of them: what tests of Cloud Storage and of S3 share."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from refinery.loader.storage.fetch import FetchParams
from refinery.loader.storage.store import Store
from tests.fake_service import Call, Fault

QUICK = FetchParams(deadline=20.0, connect_timeout=2, read_timeout=2, first_delay=0.001, max_delay=0.005, hedge_after=0)
SHORT_DEADLINE = replace(QUICK, deadline=0.6)  # a busy machine answers the first try within it
SMALL = bytes(range(256)) * 100
TRANSIENT = ("408", "429", "500", "502", "503", "504", "reset", "lost", "stall")


def patience(fault: str) -> FetchParams:
    """Settings under which a fault passes quickly: those that stall are given up on soon."""
    return replace(QUICK, read_timeout=0.1 if fault.startswith("stall") else 2)


def once_at(kind: str, fault: str | Fault | None) -> Callable[[Call], Fault | None]:
    """A hook: the first call of a kind fails."""
    todo = [Fault.named(fault) if isinstance(fault, str) else fault]
    return lambda call: todo.pop() if call.kind == kind and todo else None


def use(store: Store, method: str) -> Any:
    """Calls a method on the object "x", or writes the object "new"."""
    if method == "open":
        with store.open("x") as stream:
            return stream.read()
    if method in ("create", "replace"):
        return getattr(store, method)("new", SMALL)
    if method == "delete_many":
        return store.delete_many(["x"])
    return getattr(store, method)(*([] if method in ("list", "check") else ["x"]))


def write_x(store: Store, method: str, data: bytes, folder: Path) -> None:
    """Writes the object "x": `create` from a file, `replace` from memory."""
    if method == "create":
        source = folder / "source"
        source.write_bytes(data)
        store.create("x", source)
    else:
        store.replace("x", data)
