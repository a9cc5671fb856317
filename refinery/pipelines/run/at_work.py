"""Which commands are at work on a run: leases in its work location, by which a second command learns of the first.

A lease is a small sealed file, at_work/ID-NUMBER.json, created exclusively when a command begins. It is renewed every
minute under the next number (names are never overwritten), and removed at the end. Leases protect no data, exclusive
names and reports do that; they keep two commands on one machine from doing the same work twice.

No two clocks are compared to judge one. A lease of this machine is over when its process is gone. A lease of another
machine is over when one command has seen the same number for three minutes of its own clock.
"""

import contextlib
import hashlib
import os
import re
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import SCHEMA_VERSION, seal, unseal
from refinery.loader.storage.store import StorageError, Store
from refinery.pipelines.run.errors import RefineError
from refinery.transforms.core.safe_text import safe

FOLDER = "at_work"
LEASE = re.compile(r"at_work/[0-9a-f]{16}-[0-9]{8}\.json")  # names of leases in a work location
RENEWED_SECONDS = 60.0
NO_SLICE = -1
ID_HALF = 8  # digits of an id that say what its command does
LAST_SECONDS = 2.0**37  # the year 6325
VALID_SECONDS = 180.0  # for commands on other machines: two renewals may be late

_first_seen: dict[str, dict[str, float]] = {}  # root of a store -> name of a lease -> when this process first saw it


@dataclass(frozen=True)
class Lease:
    """A command at work. machine: where process numbers mean the same (boot and namespace). born: when the process
    started, by its kernel, which shows whether its number was given to another process. started, renewed: UNIX seconds.
    step, slice: what it does of a run that is sliced; "" and NO_SLICE: all.
    """

    id: str
    host: str
    machine: str
    process: int
    born: str
    started: float
    renewed: float
    step: str = ""
    slice: int = NO_SLICE

    def words(self) -> str:
        """As people read it: "since 12:03 (process 123 on HOST)"; and that it looks abandoned, where it does."""
        late = f", last renewed {_moment(self.renewed)}: it was killed, or a clock is wrong" if self.is_overdue else ""
        return f"since {_moment(self.started)} (process {self.process} on {safe(self.host[:80])}{late})"

    @property
    def is_plausible(self) -> bool:
        """Whether a command can have written it: anybody can, and its fields are compared and printed."""
        texts = (self.id, self.host, self.machine, self.born, self.step)
        numbers = type(self.process) is int and type(self.slice) is int and 0 <= self.process < 1 << 31
        moments = is_moment(self.started) and is_moment(self.renewed)
        return numbers and moments and all(isinstance(text, str) for text in texts)

    @property
    def is_here(self) -> bool:
        """Whether it is of this machine."""
        return (self.host, self.machine) == (socket.gethostname(), machine_id())

    @property
    def is_overdue(self) -> bool:
        """Whether it is of another machine and was not renewed for three minutes, if the clocks of both agree. For
        words alone: nothing is decided by it."""
        return not self.is_here and abs(time.time() - self.renewed) >= VALID_SECONDS


def is_moment(seconds: Any) -> bool:
    """Whether a value out of JSON is UNIX seconds that a clock can show."""
    return type(seconds) in (int, float) and 0 <= seconds < LAST_SECONDS


def _moment(seconds: float) -> str:
    """A time of this day as "12:03", with its date otherwise."""
    moment = datetime.fromtimestamp(seconds).astimezone()
    day = "" if moment.date() == datetime.now().astimezone().date() else f"{moment:%Y-%m-%d} "
    return f"{day}{moment:%H:%M}"


def machine_id() -> str:
    """Boot and process namespace; "" where the system does not tell."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def process_born(process: int) -> str:
    """When a process of this machine started, in the kernel's ticks since boot; "?" where the system does not tell,
    "" if there is no such process."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
        return "" if stat.rpartition(")")[2].split()[0] in "ZX" else stat.rpartition(")")[2].split()[19]
    except OSError:
        pass
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "" if Path("/proc/self/stat").exists() else "?"


def read_leases(store: Store, begin: str = "") -> dict[str, Lease]:
    """Name -> lease, of every one that is there and readable. begin: of their ids. Cost: a listing, and a small read
    each."""
    found = {}
    for name in store.list(FOLDER):
        if not LEASE.fullmatch(name) or not name.startswith(f"{FOLDER}/{begin}"):
            continue
        with contextlib.suppress(FileNotFoundError, FormatError, TypeError, ValueError):  # removed, or not ours
            fields = unseal(store.read(name), store.url(name))
            lease = Lease(**{field: fields[field] for field in Lease.__dataclass_fields__ if field in fields})
            if lease.is_plausible:
                found[name] = lease
    now, before = time.monotonic(), _first_seen.get(store.root, {})
    _first_seen[store.root] = {name: before.get(name, now) for name in found}
    return found


def _is_alive(store: Store, name: str, lease: Lease) -> bool:
    """Whether a lease's command is alive: known here, assumed elsewhere until its number was seen for three minutes."""
    if lease.is_here:
        return process_born(lease.process) == lease.born
    return time.monotonic() - _first_seen[store.root][name] < VALID_SECONDS


def others_at_work(store: Store, begin: str = "") -> list[Lease]:
    """The commands that are at work, the first to come first. One that is renewed right now may be missed, or be there
    twice under both names: each is listed once. begin: of their ids."""
    newest = {lease.id: (name, lease) for name, lease in sorted(read_leases(store, begin).items())}
    alive = (lease for name, lease in newest.values() if _is_alive(store, name, lease))
    return sorted(alive, key=lambda lease: (lease.started, lease.id))


def remove_stale_leases(store: Store) -> None:
    """Remove the leases of commands that are gone, as far as this process knows. Cost: as `read_leases`."""
    for name, lease in read_leases(store).items():
        if not _is_alive(store, name, lease):
            _remove(store, name)


def remove_slice_leases(store: Store) -> None:
    """Remove the leases of slices: the run is complete, so whoever holds one is gone, or does what is done."""
    for name, lease in read_leases(store).items():
        if lease.step:
            _remove(store, name)


def lease_id(step: str, slice_: int) -> str:
    """A new id: commands that do the same have the same first half, so each finds the others without reading all."""
    return hashlib.sha256(f"{step}/{slice_}".encode()).hexdigest()[:ID_HALF] + secrets.token_hex(ID_HALF // 2)


@contextlib.contextmanager
def at_work(
    store: Store, shared: bool, say: Callable[[str], None], step: str = "", slice_: int = NO_SLICE
) -> Iterator[None]:
    """Hold a lease in the work location `store` while the context lasts.

    shared: jobs run elsewhere, where two commands of one run find the same ones; so another command is only spoken of.
    step, slice_: what the command does, if not all; only one that does the same is spoken of. Raises RefineError where
    another one that does all is at work on this machine. Leases of commands that are gone are removed.
    """
    now = time.time()
    lease = Lease(
        lease_id(step, slice_),
        socket.gethostname(),
        machine_id(),
        os.getpid(),
        process_born(os.getpid()),
        now,
        now,
        step,
        slice_,
    )
    held = _Held(store, lease)
    held.write()
    try:
        _tell_of_others(store, lease, shared, say)
        with held.renewed():
            yield
    finally:
        held.remove()


def _tell_of_others(store: Store, own: Lease, shared: bool, say: Callable[[str], None]) -> None:
    if not own.step:
        remove_stale_leases(store)
    for lease in others_at_work(store, own.id[:ID_HALF] if own.step else ""):
        # Of two here that start at once each may see the other: the first one goes on.
        if lease.id == own.id or (lease.is_here and _came_first(own, lease)):
            continue
        if (own.step, own.slice) != (lease.step, lease.slice):
            continue
        words = f"another command is at work here {lease.words()}"
        if lease.is_here and not shared and not own.step:
            raise RefineError(f"{words}; wait for its end, or end it, and run this command again")
        say(f"{words}; both do the same work, and what is finished counts once")


def _came_first(one: Lease, other: Lease) -> bool:
    """Whether one lease of this machine is older than another: by their processes' births, which the kernel tells, and
    by what they say themselves only where it does not."""
    if one.born.isdecimal() and other.born.isdecimal() and one.born != other.born:
        return int(one.born) < int(other.born)
    return (one.started, one.id) < (other.started, other.id)


@dataclass
class _Held:
    store: Store
    lease: Lease
    number: int = 0

    @property
    def name(self) -> str:
        return f"{FOLDER}/{self.lease.id}-{self.number:08d}.json"

    def write(self) -> None:
        fields = {"schema_version": SCHEMA_VERSION, "kind": "refinery-lease", **asdict(self.lease)}
        self.store.create(self.name, seal(fields))

    def remove(self) -> None:
        with contextlib.suppress(OSError):  # a lease that stays is told to be stale by its process
            _remove(self.store, self.name)

    @contextlib.contextmanager
    def renewed(self) -> Iterator[None]:
        ended = threading.Event()
        thread = threading.Thread(target=self._renew, args=(ended,), name="lease", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _renew(self, ended: threading.Event) -> None:
        while not ended.wait(RENEWED_SECONDS):
            old, before = self.name, self.lease
            self.number, self.lease = self.number + 1, replace(self.lease, renewed=time.time())
            try:
                self.write()
            except OSError:  # the job says what is wrong with the storage; here the next minute is another try
                self.number, self.lease = self.number - 1, before
                continue
            with contextlib.suppress(OSError):
                if not _remove(self.store, old):
                    return  # a name a minute for days would stay


def _remove(store: Store, name: str) -> bool:
    """False without the right to delete, as in a bucket that only takes new objects: a lease then stays, and lapses."""
    try:
        store.delete(name)
    except StorageError as error:
        if error.status != 403:
            raise
        return False
    return True
