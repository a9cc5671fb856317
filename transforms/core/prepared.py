"""What stages prepare (models, lists, tables), once per process however many copies of a stage a worker runs.

Runners make a copy of a stage for every thread, and again for every bundle or job. Threads that prepare at the same
time would each build the same table, at several times its memory.
"""

import pickle
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

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
