"""The pool of worker processes: reused between jobs, never waited on when dead, never left behind."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.runners.worker import data_plane

from refinery.pipelines.runners.local_runner import WorkerDied, WorkerPool, local_options, run_local
from refinery.pipelines.runners.runner import Runner
from tests.sampling import one_commit_in_four


def job(folder: str) -> beam.Pipeline:
    pipeline = beam.Pipeline(runner="FnApiRunner")
    numbers = pipeline | beam.Create(range(8))
    keyed = numbers | "pid" >> beam.Map(lambda n: (n, os.getpid()))
    keyed | "write" >> beam.MapTuple(lambda n, pid: Path(folder, f"{n}-{pid}").touch())
    return pipeline


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def gone(pids: list[int]) -> bool:
    deadline = time.monotonic() + 20
    while any(alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(alive(pid) for pid in pids)


@pytest.fixture(scope="module")
def pools() -> Iterator[list[WorkerPool]]:
    """Those that these tests had, gone at their end."""
    made: list[WorkerPool] = []
    with ExitStack() as stack:
        stack.callback(lambda: [pool.__exit__() for pool in made])
        yield made
        pids = [pid for pool in made for pid in pool.pids]
    assert gone(pids)


@pytest.fixture
def pool(pools: list[WorkerPool]) -> WorkerPool:
    """Two processes: those of the test before, where none of them was killed."""
    if not pools or pools[-1].died.is_set():
        pools.append(WorkerPool(2))
    return pools[-1]


def test_a_job_leaves_no_folder_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beam makes one for each pipeline; whether it fails or not."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    runner = Runner("local", 0, quiet=True)
    runner.run("good", lambda pipeline: pipeline | beam.Create([str(tmp_path / "ran")]) | beam.Map(os.mkdir))
    with pytest.raises(ZeroDivisionError):
        runner.run("bad", lambda pipeline: 1 // 0)
    assert {path.name for path in tmp_path.rglob("*")} == {"temporary", "ran"}


@one_commit_in_four
def test_jobs_share_the_same_processes(pool: WorkerPool, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        run_local(job(str(tmp_path / name)), pool, local_options(2, []))
        found = [path.name.split("-") for path in (tmp_path / name).iterdir()]
        assert sorted(int(n) for n, _ in found) == list(range(8))
        assert {int(pid) for _, pid in found} == set(pool.pids)


def test_a_failing_stage_raises_its_own_error(pool: WorkerPool) -> None:
    pipeline = beam.Pipeline(runner="FnApiRunner")
    pipeline | beam.Create([0]) | beam.Map(lambda x: 1 // x)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        run_local(pipeline, pool, local_options(2, []))


@one_commit_in_four
def test_workers_end_with_a_killed_launcher() -> None:
    script = "import time\nfrom refinery.pipelines.runners.local_runner import WorkerPool\npool = WorkerPool(2)\n"
    script += "print(*pool.pids, flush=True)\ntime.sleep(600)"
    launcher = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert launcher.stdout is not None
    pids = [int(pid) for pid in launcher.stdout.readline().split()]
    launcher.kill()
    launcher.wait()
    launcher.stdout.close()
    assert len(pids) == 2 and gone(pids)


def timed_flushes() -> int:
    """Threads of this process that flush one of Beam's data buffers every now and then."""
    threads = [thread for thread in threading.enumerate() if isinstance(thread, data_plane.PeriodicThread)]
    return sum(thread._function.__qualname__.startswith("TimeBased") for thread in threads)


def test_no_buffer_is_flushed_by_time(pool: WorkerPool, tmp_path: Path) -> None:
    """Such a flush, in a thread of its own, loses an element that is written meanwhile."""

    def look(number: int) -> tuple[int, int]:
        (tmp_path / f"{number}").write_text(str(timed_flushes()))
        return number % 2, number

    pipeline = beam.Pipeline(runner="FnApiRunner")
    looked = pipeline | beam.Create(range(8)) | beam.Map(look)  # a buffer towards the shuffle is open then
    looked | beam.GroupByKey() | "look again" >> beam.MapTuple(lambda key, _: look(10 + key))
    run_local(pipeline, pool, local_options(2, []))
    found = {int(path.name): path.read_text() for path in tmp_path.iterdir()}
    assert found == dict.fromkeys([*range(8), 10, 11], "0")

    stream = data_plane.ClosableOutputStream.create(lambda data: None, lambda data: None, 1000)  # as Beam's own workers
    assert timed_flushes() == 1
    stream.close()


def test_a_killed_worker_is_an_error_not_a_hang(pool: WorkerPool) -> None:
    """The last test: what it leaves is of no use to others."""
    pipeline = beam.Pipeline(runner="FnApiRunner")
    pipeline | beam.Create([1, 2]) | beam.Map(lambda _: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(WorkerDied, match="signal 9"):
        run_local(pipeline, pool, local_options(1, []))
