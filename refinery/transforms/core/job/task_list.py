"""Task lists, which travel as an object: a job's request stays small however many files it is about.

The launcher writes the list into the work location, the job gets its name and SHA-256; one worker reads it and deals
its lines out. Runners keep the request of a job, bound its size (Dataflow: 10 MB), and send it to every worker.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from refinery.loader.errors import FormatError
from refinery.loader.storage.open_store import open_store


@dataclass(frozen=True)
class TaskList:
    """Where a list is, and what it must be.

    location: root of its store. items: number of its lines. sha256: of its bytes.
    """

    location: str
    name: str
    items: int
    sha256: str

    def plain(self) -> dict[str, Any]:
        """All but the location, for a report in the same location: `TaskList(location, **plain)` is the list again."""
        return {"name": self.name, "items": self.items, "sha256": self.sha256}


def write_task_list(location: str, folder: str, items: Sequence[bytes]) -> TaskList:
    """Publish `items` (JSON without line breaks) as LOCATION/folder/list-*.jsonl, one a line.

    The name is the content's hash: the same list is written once, and another one never gets in its way. Raises
    ValueError for an item with a line break, and as the store does.
    """
    for item in items:
        if b"\n" in item:
            raise ValueError(f"items: {item[:80]!r} given, lines without line breaks are allowed")
    data = b"".join(item + b"\n" for item in items)
    digest = hashlib.sha256(data).hexdigest()
    name = f"{folder}/list-{digest[:32]}.jsonl"
    open_store(location).create(name, data)
    return TaskList(location, name, len(items), digest)


def read_task_list(task_list: TaskList) -> list[bytes]:
    """The items of a list, in order. Raises FormatError, naming it, if it is not what was written; memory: twice it."""
    store = open_store(task_list.location)
    data = store.read(task_list.name)
    found = hashlib.sha256(data).hexdigest()
    if found != task_list.sha256:
        raise FormatError(
            f"{store.url(task_list.name)}: sha256 {found} found, {task_list.sha256} expected; damaged or replaced"
        )
    return data.split(b"\n")[:-1]
