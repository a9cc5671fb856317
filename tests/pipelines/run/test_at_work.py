"""Two commands on one run: the second is told of the first, and what a killed one leaves is noticed and removed."""

import os
import re
import socket
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from refinery.loader.format.manifest import seal
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import LocalStore, Store
from refinery.pipelines.run import at_work as module
from refinery.pipelines.run.at_work import (
    Lease,
    _came_first,
    at_work,
    machine_id,
    others_at_work,
    process_born,
    read_leases,
    remove_stale_leases,
)
from refinery.pipelines.run.errors import RefineError
from refinery.pipelines.run.phases import OWN, remove_work
from tests.fake_gcs import Fault, fake_gcs
from tests.fork_server import ForkServer
from tests.pipelines.small_runs import command
from tests.sampling import one_commit_in_four

OWN_LEASE = Lease(
    "0" * 16, socket.gethostname(), machine_id(), os.getpid(), process_born(os.getpid()), 1.0, 1.0
)  # of a command that came first


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return LocalStore(str(tmp_path / "work"))


def put(store: Store, lease: Lease, number: int = 0) -> str:
    name = f"at_work/{lease.id}-{number:08d}.json"
    store.create(name, seal({"schema_version": 1, "kind": "refinery-lease", **asdict(lease)}))
    return name


def dead_process() -> tuple[int, str]:
    """Number and birth of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    born = process_born(process.pid)
    process.communicate(b"\n")
    assert born
    return process.pid, born


def test_a_command_alone_leaves_nothing(store: Store) -> None:
    said: list[str] = []
    with at_work(store, False, said.append):
        ((name, lease),) = read_leases(store).items()
        assert (lease.process, lease.host) == (os.getpid(), socket.gethostname()) and OWN.fullmatch(name)
        assert others_at_work(store) == [lease]
    assert read_leases(store) == {} and said == []


def test_a_second_command_on_this_machine_is_refused(store: Store) -> None:
    with at_work(store, False, print):
        before = read_leases(store)
        with (
            pytest.raises(RefineError, match=rf"at work here since \d\d:\d\d \(process {os.getpid()} on "),
            at_work(store, False, print),
        ):
            pytest.fail("it went on")
        assert read_leases(store) == before


def test_where_jobs_are_shared_it_is_said(store: Store) -> None:
    put(store, OWN_LEASE)
    said: list[str] = []
    with at_work(store, True, said.append):
        pass
    (line,) = said
    assert "another command is at work here since 1970-01-01" in line


@pytest.mark.parametrize("clock", [-7200.0, 0.0, 7200.0])
def test_another_machine_is_spoken_of_until_it_was_seen_unrenewed(
    store: Store, monkeypatch: pytest.MonkeyPatch, clock: float
) -> None:
    """For three minutes of this process's own clock, whatever the other one's clock says."""
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    renews = replace(OWN_LEASE, host="elsewhere", started=time.time() + clock, renewed=time.time() + clock)
    killed = replace(renews, id="1" * 16)
    first, other = put(store, renews), put(store, killed)
    said: list[str] = []
    with at_work(store, False, said.append):
        assert len(said) == 2 and all("on elsewhere" in line for line in said)
        assert all(("last renewed" in line) == (clock != 0) for line in said)
    now[0] += module.VALID_SECONDS - 1
    store.delete(first)
    second = put(store, renews, 1)
    assert {lease.id for lease in others_at_work(store)} == {renews.id, killed.id}
    now[0] += 1
    assert [lease.id for lease in others_at_work(store)] == [renews.id]
    remove_stale_leases(store)
    assert list(read_leases(store)) == [second] and store.size(other) is None


def test_a_lease_that_looks_abandoned_says_so() -> None:
    elsewhere = replace(OWN_LEASE, host="elsewhere")
    assert replace(elsewhere, renewed=time.time() - 100).words().endswith("on elsewhere)")
    assert re.search(r"last renewed \d\d.*: it was killed, or a clock is wrong\)", elsewhere.words())
    assert not OWN_LEASE.is_overdue


def test_of_two_on_this_machine_the_older_process_goes_on(store: Store) -> None:
    """Though its clock, or that of the other one, is hours ahead."""
    younger = str(int(process_born(os.getppid())) + 1)
    parent = replace(OWN_LEASE, process=os.getppid(), born=process_born(os.getppid()), started=time.time() + 7200)
    assert _came_first(parent, replace(OWN_LEASE, born=younger, started=1.0))
    put(store, parent)
    with pytest.raises(RefineError, match="another command is at work"), at_work(store, False, print):
        pytest.fail("it went on")


@pytest.mark.parametrize("what", ["gone", "its number was given again"])
def test_what_a_killed_command_leaves_is_removed(store: Store, what: str) -> None:
    number, born = dead_process()
    lease = OWN_LEASE if what != "gone" else replace(OWN_LEASE, process=number)
    put(store, replace(lease, born=born))
    with at_work(store, False, print):
        assert len(read_leases(store)) == 1
    assert read_leases(store) == {}


def test_of_two_that_start_at_once_the_first_goes_on(store: Store) -> None:
    put(store, replace(OWN_LEASE, started=time.time() + 100))  # its lease is there, it came later
    with at_work(store, False, print):
        assert len(read_leases(store)) == 2


def test_it_is_renewed_under_new_names(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RENEWED_SECONDS", 0.001)
    failures = iter([OSError("no space"), None])
    create = store.create

    def creating(name: str, data: bytes | Path) -> None:
        if not name.endswith("-00000000.json") and (error := next(failures, None)):
            raise error
        create(name, data)

    monkeypatch.setattr(store, "create", creating)
    with at_work(store, False, print):
        for _ in range(10_000):
            if any("-00000003" in name for name in read_leases(store)):
                break
        (lease,) = others_at_work(store)
        assert lease.renewed > lease.started
    assert read_leases(store) == {}


def test_what_is_no_lease_is_left_alone(store: Store) -> None:
    names = ["at_work/notes.txt", f"at_work/{'2' * 16}-00000000.json"]
    for name in names:
        store.create(name, b"mine")
    with at_work(store, False, print):
        pass
    assert store.list() == sorted(names)
    remove_work(store)
    assert store.list() == names[:1]


def test_a_bucket_that_lets_nobody_delete(monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_gcs("corpus") as server:
        server.use(monkeypatch)
        server.on_call = lambda call: Fault("status", 403) if call.kind == "delete" else None
        store = open_store("gs://corpus/work")
        with at_work(store, True, print):
            pass
        assert len(read_leases(store)) == 1


@one_commit_in_four
def test_a_run_on_a_run(small: Path, forks: ForkServer, tmp_path: Path) -> None:
    """This process is the first command; refine and inspect see it from theirs."""
    arguments = command(small, tmp_path / "out", "--set", "failures.grace=0", "--set", "failures.max_ratio=0.0")
    assert forks.run(*arguments).code == 1  # the prefix is claimed, the run is not at its end
    with at_work(LocalStore(str(tmp_path / "out/work")), False, print):
        done = forks.run(*command(small, tmp_path / "out"))
        assert done.code == 1 and "another command is at work here since " in done.err, done.err
        assert f"(process {os.getpid()} on {socket.gethostname()}); wait for its end" in done.err
        assert "a command is at work here since " in forks.run("inspect", tmp_path / "out").out
    done = forks.run(*command(small, tmp_path / "out"))
    assert done.code == 0, done.err
    assert "at work" not in forks.run("inspect", tmp_path / "out").out
