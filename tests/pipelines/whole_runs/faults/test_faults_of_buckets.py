"""Faults of Cloud Storage, a cell for each kind of fault and of call: the same bytes all the same, or a clear failure.

What passes strikes the first attempt of every single call of its kind; what does not pass strikes all of them, and
storage is given up after a second instead of two minutes.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from refinery.loader.errors import FormatError
from refinery.loader.stream.stream import TokenStream
from tests.fake_gcs import Call, FakeGcs, Fault, Hook, fake_gcs
from tests.fork_server import ForkServer
from tests.pipelines.small_runs import check_corpus, check_work, command, digests, is_accepted
from tests.pipelines.whole_runs.bucket_runs import BUCKET, PREFIX, run_in_bucket
from tests.sampling import sampled

ORPHAN = f"out/work/rejects/part-{'0' * 32}.parquet"  # what a killed worker left: a run removes it
SHORT_DEADLINE = ("shorten_deadline", {"deadline": 1.0})

LATER = [Fault("status", 429), Fault("status", 503), Fault("reset"), Fault("stall", seconds=0.2)]
UPLOADING = [Fault("lost"), Fault("corrupt request"), Fault("part of request")]
DOWNLOADING = [Fault(kind) for kind in ("short", "reset in body", "whole", "long", "lost")]
PASSING: list[tuple[str, Fault]] = [
    *(("stat", fault) for fault in LATER),
    *(("list", fault) for fault in LATER),
    *(("download", fault) for fault in (*LATER, *DOWNLOADING)),
    *(("upload", fault) for fault in (*LATER, *UPLOADING)),
    *(("delete", fault) for fault in (Fault("status", 503), Fault("lost"))),
]
LASTING: list[tuple[str, Fault]] = [
    *((kind, Fault("status", 403)) for kind in ("stat", "list", "download", "upload")),
    ("delete", Fault("status", 401)),
    *((kind, Fault("status", 503)) for kind in ("download", "upload")),
    ("upload", Fault("corrupt request")),
    ("download", Fault("wrong")),  # once is enough: what is read as a stream is not read again, but said to be wrong
]


def name_of(cell: tuple[str, Fault]) -> str:
    kind, fault = cell
    return f"{kind}: {fault.status if fault.kind == 'status' else fault.kind}"


def axes(cell: tuple[str, Fault]) -> tuple[str]:
    """Which kind of call it is: one of each kind is struck in every session."""
    return (cell[0],)


@pytest.fixture(scope="module")
def gcs() -> Iterator[FakeGcs]:
    with fake_gcs(BUCKET) as server:
        yield server


@pytest.fixture(scope="module")
def reference(small: Path, forks: ForkServer, gcs: FakeGcs) -> dict[str, str]:
    """What a run publishes when nothing happens to it."""
    return digests(run_in_bucket(forks, gcs, small))


def first_attempts(kind: str, fault: Fault, struck: list[Call]) -> Hook:
    """Strikes each call once; an attempt after it, of the same kind for the same object and range, gets through."""
    seen: set[tuple[str, str, str]] = set()

    def hook(call: Call) -> Fault | None:
        identity = (call.kind, call.name, json.dumps([call.headers.get("range"), call.query.get("prefix")]))
        if call.kind != kind or identity in seen:
            return None
        seen.add(identity)
        struck.append(call)
        return fault

    return hook


@pytest.mark.parametrize("cell", sampled("faults of buckets that pass", PASSING, 3, axes), ids=name_of)
def test_a_fault_that_passes(
    cell: tuple[str, Fault],
    small: Path,
    forks: ForkServer,
    gcs: FakeGcs,
    reference: dict[str, str],
    record_property: Callable[[str, object], None],
) -> None:
    gcs.clear()
    gcs.put(BUCKET, ORPHAN, b"left behind")
    struck: list[Call] = []
    gcs.on_call = first_attempts(*cell, struck)
    done = forks.run(*command(small, PREFIX), environment=gcs.environment, faults=[SHORT_DEADLINE])
    assert done.code == 0, done.err
    assert struck
    files = gcs.read(BUCKET, "out/")
    check_corpus(files)
    check_work(files)
    assert digests(files) == reference
    made = [name for change, _, name in gcs.changes if change != "delete"]
    assert len(made) == len(set(made))
    assert {change for change, _, _ in gcs.changes} <= {"create", "delete"}
    record_property("fault cell", name_of(cell))


@pytest.mark.parametrize("cell", sampled("faults of buckets that last", LASTING, 1), ids=name_of)
def test_a_fault_that_lasts(
    cell: tuple[str, Fault],
    small: Path,
    forks: ForkServer,
    gcs: FakeGcs,
    reference: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    gcs.use(monkeypatch)
    gcs.clear()
    gcs.put(BUCKET, ORPHAN, b"left behind")
    kind, fault = cell
    gcs.on_call = lambda call: fault if call.kind == kind else None
    done = forks.run(*command(small, PREFIX), environment=gcs.environment, faults=[SHORT_DEADLINE])
    assert done.code in (1, 2), f"{done.code}\n{done.err}"
    _, found, message = done.err.rpartition("refinery: ")
    assert found, done.err
    assert len(message.splitlines()) == 1, message
    assert "out" in message, message  # which object, or which list
    gcs.on_call = lambda call: None
    if kind == "delete":  # the last of all: the corpus is complete, and only its work folder is not tidy
        assert digests(gcs.read(BUCKET, "out/")) == reference
    else:
        assert not is_accepted(PREFIX)
        with pytest.raises(FormatError):
            TokenStream(PREFIX, sequence_length=8, batch_size=1)
    again = forks.run(*command(small, PREFIX), environment=gcs.environment)
    assert again.code == 0, again.err
    files = gcs.read(BUCKET, "out/")
    check_work(files)
    assert digests(files) == reference
    record_property("fault cell", name_of(cell))


def test_a_launcher_that_may_not_delete(
    small: Path,
    forks: ForkServer,
    gcs: FakeGcs,
    reference: dict[str, str],
    record_property: Callable[[str, object], None],
) -> None:
    """What failed attempts left behind stays until somebody may remove it, and does no harm."""
    gcs.clear()
    gcs.put(BUCKET, ORPHAN, b"left behind")
    gcs.on_call = lambda call: Fault("status", 403) if call.kind == "delete" else None
    done = forks.run(*command(small, PREFIX), environment=gcs.environment, faults=[SHORT_DEADLINE])
    assert done.code == 0, done.err
    files = gcs.read(BUCKET, "out/")
    assert digests(files) == reference
    assert ORPHAN.removeprefix("out/") in files
    gcs.on_call = lambda call: None
    again = forks.run(*command(small, PREFIX), environment=gcs.environment)
    assert again.code == 0, again.err
    check_work(gcs.read(BUCKET, "out/"))
    record_property("fault cell", "delete: 403")
