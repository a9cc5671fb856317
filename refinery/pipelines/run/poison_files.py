"""Files on which worker processes died: remembered from one command to the next, and left out where the recipe says so.

A worker that runs out of memory or crashes ends the run on this machine. The same command reads the file again; where
a process dies on it a second time, it is the file. (What another machine's service does with a process that dies is its
own matter: it tries again, and then fails the job.)
"""

import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from refinery.loader.format.manifest import SCHEMA_VERSION, seal, unseal
from refinery.loader.storage.store import Store
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.phases import DEATH
from refinery.pipelines.runners.local_runner import WorkerDied
from refinery.transforms.core.safe_text import printable
from refinery.transforms.read.sources import ReadTask

TWICE = 2
KIND = "refinery-worker-death"


@contextmanager
def remembering_deaths(store: Store) -> Iterator[None]:
    """Note in the work location which files a worker was reading that dies inside."""
    try:
        yield
    except WorkerDied as death:
        if death.files:
            note = {"schema_version": SCHEMA_VERSION, "kind": KIND, "files": list(death.files)}
            store.create(f"clean/death-{uuid.uuid4().hex}.json", seal(note))
        raise


def leave_out_poison(
    store: Store, tasks: Sequence[ReadTask], allowed: int, say: Callable[[str], None]
) -> list[ReadTask]:
    """The tasks, with those of files on which two workers died as poison. Raises RefineError, which names them, where
    they are more than `allowed`."""
    deaths: Counter[str] = Counter()
    for path in store.list("clean"):
        if DEATH.fullmatch(path):
            deaths.update(set(unseal(store.read(path), store.url(path)).get("files", [])))
    paths = {task.path for task in tasks}
    poison = sorted(path for path, times in deaths.items() if times >= TWICE and path in paths)
    if not poison:
        return list(tasks)
    names = ", ".join(map(printable, poison))
    if len(poison) > allowed:
        raise RefineError(
            f"worker processes died twice while they read {names}. Give them more memory (fewer --workers), lower "
            f"`limits`, look at the file, or leave it out: --set failures.poison_files={len(poison)} counts each file "
            "as one dead letter"
        )
    say(f"clean: left out because worker processes died on them: {names}")
    return [replace(task, poison=True) if task.path in poison else task for task in tasks]
