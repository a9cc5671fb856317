"""Why slices failed: a small sealed file each, for those who look from outside. What is done later counts as done."""

import contextlib
import secrets
import socket
import time
from collections.abc import Iterator

from refinery.loader.format.manifest import SCHEMA_VERSION, seal
from refinery.loader.storage.store import Store
from refinery.pipelines.run.slices.names import FAILED
from refinery.pipelines.shell.error_line import error_line

KIND = "refinery-failed-slice"
MOST_CHARS = 500


@contextlib.contextmanager
def noting_failure(store: Store, step: str, slice_: int) -> Iterator[None]:
    """Leave the reason behind where a slice fails, also where it is interrupted."""
    try:
        yield
    except BaseException as error:
        text = " ".join(error_line(str(error)).split()) or type(error).__name__
        payload = {
            "schema_version": SCHEMA_VERSION,
            "kind": KIND,
            "step": step,
            "slice": slice_,
            "reason": text[:MOST_CHARS],
            "host": socket.gethostname(),
            "ended": time.time(),
        }
        name = f"at_work/failed-{step}-{slice_:05d}-{secrets.token_hex(8)}.json"
        if not FAILED.fullmatch(name):  # a step that no run has: nobody would look for its reason, or remove it
            raise
        with contextlib.suppress(OSError):  # what fails here, failed there, and is told by the error itself
            store.create(name, seal(payload))
        raise


def remove_failures(store: Store) -> None:
    """Remove the reasons: the run is complete."""
    store.delete_many(name for name in store.list("at_work") if FAILED.fullmatch(name))
