"""What goes wrong inside a forked run (tests/fork_server.py): each fault patches that process alone.

Faults have names and JSON arguments. Those of storage go by Python's audit events, which the product cannot go around.
In a worker process of the pool faults come in by ARMED: see `arm_workers`.
"""

import contextlib
import dataclasses
import errno
import functools
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

FAULTS: dict[str, Callable[..., None]] = {}
NOTES: dict[str, Any] = {}  # what the test gets to read
ARMED = "FAULTS_OF_WORKERS"  # variable with [[name, arguments], ...] as JSON


def fault(function: Callable[..., None]) -> Callable[..., None]:
    """Give a fault its name."""
    FAULTS[function.__name__] = function
    return function


def apply(faults: Iterable[Sequence[Any]]) -> None:
    """(name, arguments) each."""
    for name, arguments in faults:
        FAULTS[name](**arguments)


@contextlib.contextmanager
def noting(path: Path) -> Iterator[None]:
    """Write NOTES to `path` at the end, unless the process is killed."""
    try:
        yield
    finally:
        path.write_text(json.dumps(NOTES))


def die(by: str = "SIGKILL") -> NoReturn:
    """As the out-of-memory killer does it, or a bug in C (SIGSEGV): nothing is cleaned up."""
    os.kill(os.getpid(), signal.Signals[by])
    raise SystemExit  # never reached


@fault
def arm_workers(folder: str, faults: list[Any]) -> None:
    """Apply faults in every worker process that this process starts, by way of its sitecustomize."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    Path(folder, "sitecustomize.py").write_text(
        f"import json, os, tests.faults\ntests.faults.apply(json.loads(os.environ[{ARMED!r}]))\n"
    )
    os.environ.update({"PYTHONPATH": folder, ARMED: json.dumps(faults)})


# --- local storage ------------------------------------------------------------------------------------------------

# Audit event -> place of the path among its arguments.
CHANGES = {"os.mkdir": 0, "os.link": 1, "os.rename": 1, "os.remove": 0, "os.rmdir": 0}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

Watch = Callable[[str, str], None]


def watch(root: str, tell: Watch) -> None:
    """tell(what, name) right before anything happens to a file or folder below `root`.

    what: "read" and "make" (opened), "fill" (one is half copied), "sync", "link", "rename", "remove", "mkdir", "rmdir".
    """

    def happens(what: str, path: Any) -> None:
        name = os.path.abspath(os.fsdecode(path)) if isinstance(path, str | bytes | os.PathLike) else ""
        if what == "mkdir" and os.path.isdir(name):
            return
        if name == root or name.startswith(f"{root}/"):
            tell(what, os.path.relpath(name, root))

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            happens("make" if arguments[2] & WRITES else "read", arguments[0])
        elif event in CHANGES:
            happens(event.removeprefix("os."), arguments[CHANGES[event]])

    sync = os.fsync

    def watched_sync(descriptor: int) -> None:
        happens("sync", os.readlink(f"/proc/self/fd/{descriptor}"))
        sync(descriptor)

    def watched_copy(source: Any, target: Any, length: int = 0) -> None:
        data = source.read()
        target.write(data[: len(data) // 2])
        target.flush()
        happens("fill", target.name)
        target.write(data[len(data) // 2 :])

    os.fsync, shutil.copyfileobj = watched_sync, watched_copy
    sys.addaudithook(audit)


@fault
def at_change(root: str, kill: int = -1, syncs: bool = True) -> None:
    """Count what changes below `root`; kill the process right before change number `kill`. NOTES: changes.

    syncs: whether being synced counts as a change.
    """
    NOTES["changes"] = 0

    def tell(what: str, name: str) -> None:
        if what != "read" and (syncs or what != "sync"):
            if NOTES["changes"] == kill:
                die()
            NOTES["changes"] += 1

    watch(root, tell)


@fault
def kill_at(root: str, what: str, name: str) -> None:
    """Kill the process right before the first `what` happens to a path that `name`, a pattern, matches."""

    def tell(happens: str, path: str) -> None:
        if happens == what and re.search(name, path):
            die()

    watch(root, tell)


@fault
def refuse(root: str, what: str, name: str, code: str, times: int = 1 << 30) -> None:
    """Let `what` fail with an errno such as "ENOSPC", the first `times` that it is to happen to a path like `name`."""
    left = times

    def tell(happens: str, path: str) -> None:
        nonlocal left
        if left and happens == what and re.search(name, path):
            left -= 1
            number = getattr(errno, code)
            raise OSError(number, os.strerror(number), os.path.join(root, path))

    watch(root, tell)


@fault
def limit_file_size(size: int) -> None:
    """No file of this process may grow beyond `size` bytes (EFBIG)."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@fault
def limit_memory(more: int) -> None:
    """This process may map `more` bytes beyond what it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    size = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


@fault
def obey_permissions() -> None:
    """Give up root's right to write into what is read-only."""
    import ctypes

    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this process
    nothing = (ctypes.c_uint32 * 6)()
    assert ctypes.CDLL(None).capset(header, nothing) == 0


# --- stages and runners -------------------------------------------------------------------------------------------


def around_judge(stage: str, urls: Iterable[str], act: Callable[[], None]) -> None:
    """Call `act` before a stage judges the documents with these addresses ("*": every one)."""
    from refinery.transforms.core.per_document import _JudgeDocument

    chosen, setup = frozenset(urls), _JudgeDocument.setup

    def armed_setup(self: Any) -> None:
        setup(self)
        if self.stage == stage:
            judge = self.judge

            def armed(doc: Any, *resource: Any) -> Any:
                if "*" in chosen or doc.url in chosen:
                    act()
                return judge(doc, *resource)

            self.judge = armed

    _JudgeDocument.setup = armed_setup


class Poison(Exception):
    """What a stage that cannot process a document raises."""


@fault
def raise_in_stage(stage: str, urls: list[str]) -> None:
    """A stage fails on these documents, every time."""

    def act() -> None:
        raise Poison("scripted")

    around_judge(stage, urls, act)


@fault
def die_in_stage(stage: str, urls: list[str], by: str = "SIGKILL") -> None:
    """A stage ends its process on these documents, as a bug in a library written in C does."""
    around_judge(stage, urls, functools.partial(die, by))


@fault
def leak_in_stage(stage: str, urls: list[str], size: int) -> None:
    """A stage takes `size` bytes for each of these documents and never gives them back."""
    held: list[bytearray] = []
    around_judge(stage, urls, lambda: held.append(bytearray(size)))


@fault
def shuffle_bundles(seed: int, most: int) -> None:
    """Beam's FnApiRunner hands out a stage's elements in another order, in up to `most` bundles, the last first."""
    from apache_beam.coders.coder_impl import create_InputStream, create_OutputStream
    from apache_beam.runners.portability.fn_api_runner import execution, fn_runner

    rng = random.Random(seed)

    class OneByOne:
        """Runs bundles one after the other, in an order of its own."""

        def __enter__(self) -> "OneByOne":
            return self

        def __exit__(self, *_: object) -> None:
            return None

        def map(self, run: Callable[[Any], Any], bundles: Iterable[Any]) -> list[Any]:
            done = [run(bundle) for bundle in reversed(list(bundles))]
            NOTES["bundles"] = NOTES.get("bundles", 0) + len(done)
            return done[::-1]

    def partition(self: Any, count: int) -> list[list[bytes]]:
        elements = []
        for chunk in self._inputs:
            stream = create_InputStream(chunk)
            while stream.size() > 0:
                out = create_OutputStream()
                self._coder_impl.encode_to_stream(self._coder_impl.decode_from_stream(stream, True), out, True)
                elements.append(out.get())
        rng.shuffle(elements)
        return [elements[part::count] for part in range(count)]

    grouped_partition = execution.GroupingBuffer.partition

    def shuffled_partition(self: Any, count: int) -> list[list[bytes]]:
        if self._table:
            entries = list(self._table.items())
            rng.shuffle(entries)
            self._table.clear()
            self._table.update((key, rng.sample(values, len(values))) for key, values in entries)
        return grouped_partition(self, count)

    def get_bundle_manager(self: Any, context: Any) -> Any:
        tokens = self.get_cache_token_generator(static=False)
        manager = fn_runner.ParallelBundleManager(context, self._progress_frequency, cache_token_generator=tokens)
        manager._num_workers = rng.randint(1, most)
        return manager

    execution.ListBuffer.partition = partition
    execution.GroupingBuffer.partition = shuffled_partition
    fn_runner.FnApiRunner._get_bundle_manager = get_bundle_manager
    fn_runner.thread_pool_executor.shared_unbounded_instance = OneByOne


@fault
def after_planning(path: str, size: int) -> None:
    """When the inputs are planned and described, cut the file at `path` to `size` bytes (-1: remove it)."""
    import refinery.pipelines.run.refine as refine

    describe = refine.describe_inputs

    def described(*arguments: Any) -> Any:
        inputs = describe(*arguments)
        os.unlink(path) if size < 0 else os.truncate(path, size)
        return inputs

    refine.describe_inputs = described


@fault
def shorten_deadline(deadline: float) -> None:
    """Cloud Storage is given up after `deadline` seconds, with hundredths of them between the attempts."""
    from refinery.loader.storage.fetch import FetchParams

    hurried = {"deadline": deadline, "first_delay": 0.001, "max_delay": 0.01}
    names = [field.name for field in dataclasses.fields(FetchParams)]
    values = FetchParams.__init__.__defaults__
    assert values and len(names) == len(values)
    FetchParams.__init__.__defaults__ = tuple(hurried.get(n, v) for n, v in zip(names, values, strict=True))


# --- Beam's channels ----------------------------------------------------------------------------------------------


@fault
def flush_by_time(milliseconds: int) -> None:
    """Let the launcher flush its data channels by time, which loses what is written meanwhile."""
    from apache_beam.runners.portability.fn_api_runner import worker_handlers

    from refinery.pipelines.runners import local_runner  # noqa: F401 - it sets the limit when it is imported

    worker_handlers.DATA_BUFFER_TIME_LIMIT_MS = milliseconds


@fault
def miscount(stage: str) -> None:
    """Lose one of the documents that the counters of a stage say it kept."""
    from refinery.transforms.core.counters import Counters

    records = Counters.records

    def short(self: Any) -> Iterator[bytes]:
        if self.stage == stage:
            for (_, outcome, _), entry in self.counts.items():
                if outcome == "kept":
                    entry[0] -= 1
        return records(self)

    Counters.records = short  # type: ignore[method-assign]
