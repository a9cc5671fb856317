"""A cache whose folder fails, whose users are killed, and that many processes share."""

import errno
import fcntl
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from refinery.loader.read.remote.cache import BlockCache
from refinery.loader.storage.fetch import ReadCounters
from tests.loader.cached_blocks import FILE, OVERHEAD, SIZE, bytes_on_disk, content, key, path_of, small, stored, take


@pytest.fixture
def cache(tmp_path: Path) -> BlockCache:
    return BlockCache(tmp_path, 1 << 30, ReadCounters())


def test_abandoned_files_are_removed(tmp_path: Path) -> None:
    """A killed writer's file is removed once it is old and unlocked; a running writer's stays."""
    cache = small(tmp_path, 4)
    folder = path_of(cache, 0).parent
    folder.mkdir()
    for name, age in ((".tmp-dead", 3600), (".tmp-alive", 3600), (".tmp-young", 0)):
        (folder / name).write_bytes(bytes(100))
        os.utime(folder / name, (time.time() - age,) * 2)
    with (folder / ".tmp-alive").open("rb") as alive:
        fcntl.flock(alive, fcntl.LOCK_EX)
        for block in range(6):
            assert cache.store(key(block), content(block))
    assert {path.name for path in folder.glob(".tmp-*")} == {".tmp-alive", ".tmp-young"}


def test_a_file_system_without_locks(cache: BlockCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for a process that cannot be there."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    monkeypatch.setattr(fcntl, "flock", refuse)
    with cache.fetching(FILE, 0) as mine:
        assert mine
    assert not before or len(os.listdir("/proc/self/fd")) == before


def test_a_killed_process_releases_its_lock(cache: BlockCache) -> None:
    script = (
        "import sys, time; from pathlib import Path; from refinery.loader.read.remote.cache import *\n"
        "from refinery.loader.storage.fetch import ReadCounters\n"
        "with BlockCache(Path(sys.argv[1]), 1, ReadCounters()).fetching(sys.argv[2], 0) as mine:\n"
        "    print(mine, flush=True); time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", script, cache.folder, FILE], stdout=subprocess.PIPE)
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"True\n"
        with cache.fetching(FILE, 0) as mine:
            assert not mine
        child.kill()
    with cache.fetching(FILE, 0) as mine:
        assert mine


@pytest.fixture
def unwritable(tmp_path: Path) -> Iterator[Path]:
    """Files in place of the cache's folders: unlike missing permissions, they also stop root."""
    (tmp_path / "blocks").write_bytes(b"")
    (tmp_path / "locks").write_bytes(b"")
    yield tmp_path


def test_no_folder(unwritable: Path, caplog: pytest.LogCaptureFixture) -> None:
    cache = BlockCache(unwritable, 1 << 20, ReadCounters())
    assert not cache.may_store()
    cache._not_before = 0.0
    assert not cache.store(key(0), content(0))
    with cache.fetching(FILE, 0) as mine:
        assert mine  # no locks available
    assert take(cache, 0) is None
    assert cache._counters.cache_errors == 3
    assert [record.levelno for record in caplog.records] == [logging.WARNING]  # once
    assert "continuing without it" in caplog.text


def test_a_full_disk(cache: BlockCache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def full(descriptor: int, data: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        assert not cache.store(key(0), content(0))
        assert not cache.store(key(1), content(1))
    assert list((cache.folder / "blocks").glob("*/.tmp-*")) == []
    assert (cache._counters.cache_errors, len(caplog.records)) == (1, 1)
    cache._not_before = 0.0  # half a minute later
    assert cache.store(key(0), content(0))
    assert take(cache, 0) == content(0)


HAMMER = """
import os, random, signal, sys
from pathlib import Path
from refinery.loader.read.remote.block_file import DamagedBlock, Key
from refinery.loader.read.remote.cache import BlockCache
from refinery.loader.storage.fetch import ReadCounters
folder, file, bound, size = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for seed in sys.stdin:
    if os.fork() == 0:
        break
else:
    sys.exit()
rng = random.Random(int(seed))
counters = ReadCounters()
cache = BlockCache(folder, bound, counters)
print("on", os.getpid(), flush=True)
while True:
    block = rng.randrange(24)
    data = random.Random(block).randbytes(size)
    key = Key(file, block)
    opened = cache.open(key, None)
    if opened is not None:
        found = bytes(opened.read(0, size))
        opened.free()
        if found != data:
            print("WRONG", block, flush=True)
        if rng.random() < 0.3:
            cache.done(key)
    else:
        with cache.fetching(file, block // 4) as mine:
            if mine:
                cache.store(key, data)
    if counters.repairs or counters.cache_errors:
        print("DAMAGED", counters, flush=True)
"""


def test_processes_and_sigkill(tmp_path: Path) -> None:
    """Four processes at one folder, killed at any moment, 12 times: no wrong byte, no damage, the bound holds. They are
    forks of one that has imported everything: a process that is killed while it does hammers nothing.
    """
    bound = 12 * (SIZE + OVERHEAD)
    command = [sys.executable, "-c", HAMMER, *map(str, [tmp_path, FILE, bound, SIZE])]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, text=True, **pipes) as nursery:  # type: ignore[call-overload]

        def start(seed: int) -> int:
            nursery.stdin.write(f"{seed}\n")
            nursery.stdin.flush()
            line = nursery.stdout.readline()
            assert line.startswith("on "), line + nursery.communicate()[0]
            return int(line.removeprefix("on "))

        rng = random.Random(3)
        processes = [start(seed) for seed in range(4)]
        highest = 0
        for round_ in range(12):
            time.sleep(rng.uniform(0.01, 0.05))
            highest = max(highest, bytes_on_disk_now(tmp_path))
            os.kill(processes.pop(0), signal.SIGKILL)
            processes.append(start(10 + round_))
        for process in processes:
            os.kill(process, signal.SIGKILL)
        assert nursery.communicate()[0] == ""
    assert highest > 0
    assert highest <= bound
    # Files of killed processes do no harm.
    cache = BlockCache(tmp_path, bound, ReadCounters())
    for block in range(24):
        assert cache.store(key(block), content(block))
        assert take(cache, block) == content(block)
    assert cache._counters.repairs == 0


def bytes_on_disk_now(folder: Path) -> int:
    """Of a folder that other processes are using; whoever adds, names or evicts a block waits meanwhile."""
    with (folder / "usage").open("ab") as usage:  # which the first block makes
        fcntl.flock(usage, fcntl.LOCK_EX)
        return bytes_on_disk(folder)


def test_threads(tmp_path: Path) -> None:
    cache = small(tmp_path, 6)
    wrong: list[int] = []

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(150):
            block = rng.randrange(12)
            found = take(cache, block)
            if found is None:
                cache.store(key(block), content(block))
            elif found != content(block):
                wrong.append(block)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert (cache._counters.repairs, cache._counters.cache_errors) == (0, 0)
    assert bytes_on_disk(tmp_path) <= cache.max_bytes


def test_no_space_left(cache: BlockCache, caplog: pytest.LogCaptureFixture) -> None:
    """/dev/full accepts no bytes, here for the count of bytes in use."""
    (cache.folder / "usage").symlink_to("/dev/full")
    assert not cache.store(key(0), content(0))
    assert cache._counters.cache_errors == 1
    assert "No space left on device" in caplog.text
    (cache.folder / "usage").unlink()
    cache._not_before = 0.0
    assert cache.store(key(0), content(0)) and take(cache, 0) == content(0)
    assert list((cache.folder / "blocks").glob("*/.tmp-*")) == []


def test_the_folder_is_removed_during_use(cache: BlockCache) -> None:
    """It is recreated; an open block can still be read."""
    cache.store(key(0), content(0))
    opened = cache.open(key(0), None)
    assert opened is not None
    shutil.rmtree(cache.folder)
    assert opened.read(0, SIZE) == content(0)
    opened.free()
    assert take(cache, 0) is None
    with cache.fetching(FILE, 0) as mine:
        assert mine
    assert cache.store(key(1), content(1)) and take(cache, 1) == content(1)
    shutil.rmtree(cache.folder)
    assert cache.store(key(2), content(2)) and take(cache, 2) == content(2)
    assert (cache._counters.cache_errors, cache._counters.repairs) == (0, 0)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")  # Python 3.12 and later
def test_a_read_only_folder() -> None:
    """In a child that is not root: cached blocks are served and verified, nothing is stored, nothing fails."""
    with tempfile.TemporaryDirectory() as name:  # readable for other users, unlike pytest's folder
        folder = Path(name)
        cache = BlockCache(folder, 1 << 30, ReadCounters())
        cache.store(key(0), content(0))
        cache.store(key(1), content(1))
        path_of(cache, 1).write_bytes(path_of(cache, 1).read_bytes()[:-1] + b"!")
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                if os.geteuid() == 0:
                    os.setresuid(65534, 65534, 65534)
                other = BlockCache(folder, 1 << 30, ReadCounters())
                assert take(other, 0) == content(0)
                assert take(other, 1) is None  # damaged, and cannot be removed
                assert not other.store(key(2), content(2))
                with other.fetching(FILE, 0) as mine:
                    assert mine
                other.done(key(0))
                assert take(other, 0) == content(0)
                assert other._counters.repairs == 1 and other._counters.cache_errors > 0
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        for path in (folder, *folder.rglob("*")):
            if path.is_dir():
                path.chmod(0o755)


@pytest.mark.parametrize("years", [-30, 30])
def test_wrong_clocks(tmp_path: Path, years: int) -> None:
    """Blocks and temporary files with wrong timestamps are served, evicted and removed."""
    cache = small(tmp_path, 4)
    when = time.time() + years * 365 * 86400
    for block in range(3):
        cache.store(key(block), content(block))
        os.utime(path_of(cache, block), (when, when))
    left = path_of(cache, 0).parent / ".tmp-left"
    left.write_bytes(bytes(100))
    os.utime(left, (when, when))
    assert take(cache, 0) == content(0)
    (tmp_path / "usage").unlink()
    for block in range(3, 12):
        assert cache.store(key(block), content(block))
        assert take(cache, block) == content(block)
        assert bytes_on_disk(tmp_path) <= cache.max_bytes
    assert not left.exists()
    assert {1, 2}.isdisjoint(stored(cache)) or years > 0
