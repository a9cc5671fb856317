"""When a run started and ended, in its work location: for the report alone, so no published byte depends on it."""

import time

from refinery.loader.format.manifest import seal, unseal
from refinery.loader.storage.store import Store

KIND = "refinery-time"
STARTED, ENDED = "started.json", "ended.json"


def note_time(work: Store, name: str) -> None:
    """Write down that it is now, unless it is written already: of a run that is resumed the first start counts."""
    if work.size(name) is None:
        work.create(name, seal({"kind": KIND, "seconds_since_1970": round(time.time())}))


def read_times(work: Store) -> tuple[float, float] | None:
    """When the run of this work location started and ended; None where it is gone, or of an older version."""
    try:
        started, ended = (float(unseal(work.read(name), name)["seconds_since_1970"]) for name in (STARTED, ENDED))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return started, ended
