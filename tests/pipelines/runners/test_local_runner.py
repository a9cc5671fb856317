"""The pool of worker processes: reused between jobs, never waited on when dead, never left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import apache_beam as beam
import pytest

from refinery.pipelines.runners.local_runner import WorkerDied, WorkerPool, local_options, run_local
from tests.sampling import scaled


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


def test_jobs_share_the_same_processes(tmp_path: Path) -> None:
    with WorkerPool(2) as pool:
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            run_local(job(str(tmp_path / name)), pool, local_options(2, []))
        pids = pool.pids
    for name in ("one", "two"):
        found = [path.name.split("-") for path in (tmp_path / name).iterdir()]
        assert sorted(int(n) for n, _ in found) == list(range(8))
        assert {int(pid) for _, pid in found} == set(pids)
    assert gone(pids)


def test_a_killed_worker_is_an_error_not_a_hang() -> None:
    pipeline = beam.Pipeline(runner="FnApiRunner")
    pipeline | beam.Create([1, 2]) | beam.Map(lambda _: os.kill(os.getpid(), signal.SIGKILL))
    with WorkerPool(2) as pool, pytest.raises(WorkerDied, match="signal 9"):
        run_local(pipeline, pool, local_options(2, []))


def test_a_failing_stage_raises_its_own_error() -> None:
    pipeline = beam.Pipeline(runner="FnApiRunner")
    pipeline | beam.Create([0]) | beam.Map(lambda x: 1 // x)
    with WorkerPool(1) as pool, pytest.raises(RuntimeError, match="ZeroDivisionError"):
        run_local(pipeline, pool, local_options(1, []))


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


BLOCKS = scaled(150, 50)  # of a megabyte, which the launcher holds several times over


def slow_blocks(seed: int) -> Iterator[tuple[int, bytes]]:
    """Large elements over some seconds: what a flush by time from another thread would tear."""
    for number in range(BLOCKS):
        time.sleep(0.02)
        yield 0, bytes([seed, number % 256]) * 500_000


def test_no_element_is_lost_on_the_way(tmp_path: Path) -> None:
    def count(_: int, blocks: Iterable[bytes]) -> None:
        (tmp_path / "found").write_text(str(len({block[:2] for block in blocks})))

    pipeline = beam.Pipeline(runner="FnApiRunner")
    blocks = pipeline | beam.Create([1, 2]) | "blocks" >> beam.FlatMap(slow_blocks).with_output_types(tuple[int, bytes])
    blocks | beam.GroupByKey() | "count" >> beam.MapTuple(count)
    with WorkerPool(2) as pool:
        run_local(pipeline, pool, local_options(2, []))
    assert (tmp_path / "found").read_text() == str(2 * BLOCKS)
