"""Workers that are forks of their command see what those of a new interpreter see, and end with it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from refinery.pipelines.cli.command_line import parser_for
from refinery.pipelines.runners import forked_pool
from refinery.pipelines.shell import own_process
from tests.pipelines.runners.test_local_runner import gone

COMMAND = '''
import json, os, signal, sys, time

from refinery.pipelines.runners.forked_pool import ForkedProcess, prepare_to_fork
from refinery.pipelines.shell.interrupts import take_interrupts, leave_at_once
from refinery.pipelines.shell.own_process import begin_command


def look(found):
    """Write what a worker sees of its surroundings."""
    import ctypes

    import pyarrow

    class Held(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "o", "s", "mapped", "b", "u", "fs", "uo", "fo", "k")]

    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = Held
    libc.malloc.restype = ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    before = libc.mallinfo2().mapped
    for _ in range(3):  # glibc raises its threshold when the first one is freed, unless it was told to keep it
        block = libc.malloc(300_000)
        mapped = libc.mallinfo2().mapped - before
        libc.free(block)
    seen = {
        "environment": dict(os.environ),
        "path": sys.path,
        "signals": [str(signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)],
        "blocked": [int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, [])],
        "hook": sys.unraisablehook is sys.__unraisablehook__,
        "arrow": pyarrow.default_memory_pool().backend_name,
        "mapped": mapped,
        "held": [n for n in os.listdir("/proc/self/fd") if os.path.realpath(f"/proc/self/fd/{n}") == found],
    }
    with open(found, "w") as out:
        json.dump(seen, out)


leave_at_once()
take_interrupts()
if sys.argv[1] == "forked":
    begin_command()
prepare_to_fork()
import apache_beam as beam
from refinery.pipelines.runners.local_runner import WorkerPool, local_options, run_local

pool = WorkerPool(1)
assert isinstance(pool._process, ForkedProcess) == (sys.argv[1] == "forked")
pipeline = beam.Pipeline(runner="FnApiRunner")
pipeline | beam.Create([sys.argv[2]]) | beam.Map(look)
run_local(pipeline, pool, local_options(1, []))
print(*pool.processes, flush=True)
time.sleep(600)
'''


def seen_by_a_worker(how: str, folder: Path) -> dict[str, Any]:
    """How a worker finds its surroundings; it and the process that forked it end with their command."""
    folder.mkdir()
    found = folder / "seen.json"
    environment = {**os.environ, "PYTHONPATH": str(folder), "MALLOC_TRIM_THRESHOLD_": "1000000"}
    with found.open("w") as held:
        command = subprocess.Popen(
            [sys.executable, "-c", COMMAND, how, str(found)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=[held.fileno()],
        )
    assert command.stdout is not None
    pids = [int(pid) for pid in command.stdout.readline().split()]
    command.kill()
    command.wait()
    command.stdout.close()
    assert len(pids) == 2 and gone(pids)
    return json.loads(found.read_text().replace(str(folder), "FOLDER"))  # type: ignore[no-any-return]  # a dict


def test_a_fork_sees_what_a_new_interpreter_sees(tmp_path: Path) -> None:
    forked, started = (seen_by_a_worker(how, tmp_path / how) for how in ("forked", "started"))
    assert forked == started
    assert forked["mapped"] == 1  # a block that goes back to the system
    assert forked["arrow"] == "system" and forked["held"] == []
    assert "" not in forked["path"] and "FOLDER" in forked["path"]
    assert forked["environment"]["MALLOC_TRIM_THRESHOLD_"] == "1000000"


@pytest.mark.parametrize("is_command", [False, True])
def test_only_a_command_without_threads_may_fork(is_command: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that uses this package, a notebook, and a process of several threads start a new interpreter."""
    monkeypatch.setattr(own_process, "_is_command", is_command)
    monkeypatch.delitem(sys.modules, "pyarrow")
    monkeypatch.setattr(forked_pool, "import_beam", lambda: None)
    for threads in (2, 0, 1):  # 0: a system that does not count them
        monkeypatch.setattr(own_process, "_threads", lambda threads=threads: threads)
        monkeypatch.setattr(forked_pool.threading, "active_count", lambda: 1)
        monkeypatch.setenv("ARROW_DEFAULT_MEMORY_POOL", "mine")
        forked_pool.prepare_to_fork()
        assert os.environ["ARROW_DEFAULT_MEMORY_POOL"] == "mine"
        assert forked_pool.take_fork() == (is_command and threads == 1)
        assert not forked_pool.take_fork()  # a later pool has threads beside it
    forked_pool.prepare_to_fork()
    monkeypatch.setattr(forked_pool.threading, "active_count", lambda: 2)
    assert not forked_pool.take_fork()


def test_a_fork_is_waited_for_and_killed_as_a_program() -> None:
    process = forked_pool.ForkedProcess(lambda: os._exit(7), {"PYTHONPATH": ""})
    assert process.wait() == process.wait() == 7
    process.kill()  # its number is another process' by now, perhaps
    process.stdin.close()
    process.stdout.close()


@pytest.mark.parametrize(
    "asked",
    [
        ["refine", "x.yaml", "--output", "out"],
        ["retokenize", "x", "--tokenizer", "t.json", "--output", "out"],
        ["remove", "x", "--source", "s", "--output", "out"],
        ["train-tokenizer", "x.yaml", "--output", "t.json"],
    ],
    ids=lambda asked: asked[0],
)
@pytest.mark.parametrize("runner", ["local", "PrismRunner"])
def test_commands_with_workers_prepare_to_fork(asked: list[str], runner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Prepared(Exception):
        pass

    def prepare(given: str) -> None:
        raise Prepared(given)

    monkeypatch.setattr(forked_pool, "prepare_to_fork", prepare)
    words = [*asked, "--runner", runner]
    args, flags = parser_for(words).parse_known_args(words)
    with pytest.raises(Prepared, match=runner):
        args.run(args, flags)
