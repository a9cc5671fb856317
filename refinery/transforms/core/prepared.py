"""What stages prepare (models, lists, tables), once per process however many copies of a stage a worker runs.

Runners make a copy of a stage for every thread, and again for every bundle or job. Threads that prepare at the same
time would each build the same table, at several times its memory.

Its files are held to the digests that the fingerprint of the run has of them. A launcher hashes the files of a recipe
and its workers open them, minutes or days later and elsewhere: lists of who refused, models, thresholds and benchmarks
that changed in between, or that a disk or a copy damaged, would publish what was refused, under a fingerprint that says
otherwise.
"""

import pickle
import threading
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakValueDictionary

from refinery.transforms.core.document import FailClosed
from refinery.transforms.core.resources import opened_digest, resource_digest

HeldFiles = tuple[tuple[str, str], ...]  # path, sha256

_LOCK = threading.Lock()  # one at a time: what several threads need is built by the first
_KNOWN: "WeakValueDictionary[bytes, Prepared]" = WeakValueDictionary()


class Prepared:
    """What `prepare()` returned, as long as a copy of the stage holds it. Shared by threads: no stage changes it."""

    def __init__(self, resource: Any) -> None:
        self.resource = resource


def prepare_once(prepare: Callable[[], Any]) -> Prepared:
    """The resource of `prepare`, that of an equal one if this process has it. Raises what `prepare` raises.

    Equal are functions that pickle to the same bytes: those of a module, with equal parameters. Others are called.
    """
    try:
        key = pickle.dumps(prepare)
    except (pickle.PicklingError, AttributeError, TypeError):  # a function inside another one
        return Prepared(prepare())
    with _LOCK:
        known = _KNOWN.get(key)
        if known is None:
            known = _KNOWN[key] = Prepared(prepare())
        return known


class FileChanged(FailClosed):
    """A file of the recipe is not the one that the run was planned with."""


def prepare_held(prepare: Callable[[], Any] | None, files: HeldFiles) -> Any:
    """What `prepare` returns, once all these files are known to be what they were; None without one.

    Files that it opened are compared by what it read; all others are hashed. Raises FileChanged, OSError for a file
    that cannot be read, and what `prepare` raises. Cost: hashing, at some 400 MB/s, once a process.
    """
    try:
        resource = prepare() if prepare is not None else None
    except Exception:
        check_held(files)  # what is damaged often cannot be loaded either, and that says more
        raise
    check_held(files)
    return resource


def check_held(files: Sequence[tuple[str, str]]) -> None:
    """Raises FileChanged for the first file that is not what it was."""
    for path, planned in files:
        found = opened_digest(path) or resource_digest(path)
        if found != planned:
            raise FileChanged(
                f"{path}: other bytes, SHA-256 {found[:16]}…, {planned[:16]}… when the run was planned; put the file "
                "back as it was and run the same command, or choose another --output"
            )
