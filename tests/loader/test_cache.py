import fcntl
import logging
import os
import random
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import google_crc32c
import pytest

from loader.block_checksums import BLOCK
from loader.cache import PAGE, BlockCache, Damaged, Key, default_folder, file_id
from loader.fetch import Counters

FILE = file_id("corpus", "train/web/shard-00000-of-00001.bin", 10 * BLOCK, "00000000")
SIZE = 3 * PAGE + 100  # of most blocks here
OVERHEAD = 4 * 4 + 32


def content(block: int, size: int = SIZE) -> bytes:
    return random.Random(block).randbytes(size)


def key(block: int) -> Key:
    return Key(FILE, block)


@pytest.fixture
def cache(tmp_path: Path) -> BlockCache:
    return BlockCache(tmp_path, 1 << 30, Counters())


def take(cache: BlockCache, block: int, size: int = SIZE) -> bytes | None:
    """The whole block, None where it is not there."""
    opened = cache.open(key(block), google_crc32c.value(content(block, size)))
    if opened is None:
        return None
    try:
        return bytes(opened.read(0, size))
    finally:
        opened.close()


def path_of(cache: BlockCache, block: int) -> Path:
    return cache.folder / "blocks" / FILE / f"{block:08x}"


def stored(cache: BlockCache) -> list[int]:
    return sorted(int(path.name, 16) for path in (cache.folder / "blocks").glob("*/*") if path.name[0] != ".")


def bytes_on_disk(folder: Path) -> int:
    return sum(path.stat().st_size for path in (folder / "blocks").glob("*/*"))


@pytest.mark.parametrize("size", [0, 1, PAGE - 1, PAGE, PAGE + 1, BLOCK - 1, BLOCK])
def test_round_trip(cache: BlockCache, size: int) -> None:
    data = content(0, size)
    assert cache.open(key(0), None) is None
    assert cache.store(key(0), data)
    assert cache.store(key(0), memoryview(bytearray(data)))  # a second time is fine
    assert take(cache, 0, size) == data
    opened = cache.open(key(0), None)
    assert opened is not None
    assert (opened.length, opened.crc32c) == (size, google_crc32c.value(data))
    for start, stop in ((0, size), (size // 3, size // 2), (size // 2, size), (size // 2, size // 2)):
        assert opened.read(start, stop) == data[start:stop]
    opened.close()
    opened.close()
    with pytest.raises(OSError):
        opened.read(0, 1)


def test_names() -> None:
    """Another corpus, path, size or checksum is another file; the pinned value keeps caches valid across releases."""
    ids = {file_id(*args) for args in [("c", "p", 1, "a"), ("d", "p", 1, "a"), ("c", "q", 1, "a"), ("c", "p", 2, "a")]}
    assert len(ids) == 4
    assert file_id("c", "p", 1, "a") == "5d36a0bd3f1607c7d05f159414ae4f63"


def test_default_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "refinery"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder() == tmp_path / ".cache" / "refinery"


def test_bound_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="max_bytes: -1 given"):
        BlockCache(tmp_path, -1, Counters())


def test_every_flipped_bit_is_found(cache: BlockCache) -> None:
    """1,000 random bits: never other bytes, always a repair; the next store serves again."""
    rng = random.Random(1)
    size = PAGE + 100
    assert cache.store(key(7), content(7, size))
    path = path_of(cache, 7)
    sound = path.read_bytes()
    for flips in range(1000):
        damaged = bytearray(sound)
        damaged[rng.randrange(len(sound)) if flips % 2 else -1 - rng.randrange(40)] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            found = take(cache, 7, size)
        except Damaged:
            cache.repair(key(7))
            found = None
        assert found is None
        assert not path.exists()
    assert cache.store(key(7), content(7, size)) and take(cache, 7, size) == content(7, size)
    assert cache._counters.repairs == 1000


@pytest.mark.parametrize("size", [0, 1, 20, 31, 32, 40, PAGE, SIZE, SIZE + OVERHEAD - 1, SIZE + OVERHEAD + 1])
def test_truncated_or_longer(cache: BlockCache, size: int) -> None:
    cache.store(key(1), content(1))
    os.truncate(path_of(cache, 1), size)
    assert take(cache, 1) is None
    assert cache._counters.repairs == 1


def test_torn_under_the_reader(cache: BlockCache) -> None:
    """Changed or cut while it is open: found at the next read."""
    for change in (lambda p: os.truncate(p, PAGE), lambda p: p.write_bytes(bytes(p.stat().st_size))):
        cache.store(key(1), content(1))
        opened = cache.open(key(1), None)
        assert opened is not None
        assert opened.read(0, SIZE) == content(1)
        change(path_of(cache, 1))
        with pytest.raises(Damaged):
            opened.read(PAGE, 2 * PAGE)
        opened.close()
        cache.drop(key(1))


def test_a_block_under_a_foreign_name(cache: BlockCache) -> None:
    cache.store(key(1), content(1))
    path_of(cache, 1).rename(path_of(cache, 2))
    assert cache.open(key(2), None) is None
    cache.store(key(3), content(4))
    assert take(cache, 3) is None  # sound, but not the bytes of the checksum


def small(tmp_path: Path, blocks: int) -> BlockCache:
    return BlockCache(tmp_path, blocks * (SIZE + OVERHEAD), Counters())


def test_least_recently_used_goes_first(tmp_path: Path) -> None:
    cache = small(tmp_path, 10)
    for block in range(10):
        assert cache.store(key(block), content(block))
        os.utime(path_of(cache, block), (1000 + block, 1000 + block))
    assert take(cache, 0) is not None  # used just now
    assert cache.store(key(10), content(10))
    assert stored(cache) == [0, *range(3, 11)]  # down to nine tenths
    assert cache._counters.evictions == 2
    assert bytes_on_disk(tmp_path) <= cache.max_bytes


def test_what_is_done_goes_first(tmp_path: Path) -> None:
    cache = small(tmp_path, 10)
    for block in range(10):
        cache.store(key(block), content(block))
    cache.done(key(9))
    cache.done(key(8))
    assert take(cache, 8) is not None  # needed again
    cache.done(key(99))
    cache.store(key(10), content(10))
    assert 9 not in stored(cache)
    assert 8 in stored(cache)


def test_open_blocks_stay(tmp_path: Path) -> None:
    """Full of blocks in use: nothing more is stored, nobody waits, and closing makes room."""
    cache = small(tmp_path, 4)
    opened = []
    for number in range(4):
        cache.store(key(number), content(number))
        opened.append(cache.open(key(number), None))
    other = small(tmp_path, 4)  # as another process: flock knows descriptions, not processes
    for each in (cache, other):
        assert not each.store(key(9), content(9))
        assert not each.may_store()
        each._not_before = 0.0
    assert stored(cache) == [0, 1, 2, 3]
    for block in opened:
        assert block is not None
        block.close()
    assert other.store(key(9), content(9))
    assert 9 in stored(cache)
    assert cache._counters.cache_errors == other._counters.cache_errors == 0


def test_larger_than_the_cache(tmp_path: Path) -> None:
    assert not BlockCache(tmp_path, 0, Counters()).store(key(0), b"x")
    assert not small(tmp_path, 1).store(key(0), content(0, 2 * SIZE))
    assert stored(small(tmp_path, 1)) == []


@pytest.mark.parametrize("junk", [b"", b"123", b"\xff" * 8, bytes(8)])
def test_the_count_is_found_again(tmp_path: Path, junk: bytes) -> None:
    """A lost or torn `usage` costs a look at the folder, not the bound (too low a count only until it is next full)."""
    cache = small(tmp_path, 4)
    for block in range(4):
        cache.store(key(block), content(block))
    (tmp_path / "usage").write_bytes(junk)
    for block in range(4, 10):
        assert cache.store(key(block), content(block))
    slack = 4 if junk == bytes(8) else 0
    assert bytes_on_disk(tmp_path) <= cache.max_bytes + slack * (SIZE + OVERHEAD)


def test_leftovers_are_swept(tmp_path: Path) -> None:
    """A killed writer's file counts until it is old and unlocked; a living writer's stays."""
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


def test_one_fetcher_at_a_time(cache: BlockCache, tmp_path: Path) -> None:
    other = BlockCache(tmp_path, 1, Counters())
    with cache.fetching(FILE, 0) as mine:
        assert mine
        with other.fetching(FILE, 0) as again, cache.fetching(FILE, 0) as twice:
            assert not again and not twice
        with other.fetching(FILE, 1) as neighbour, other.fetching(FILE, None) as whole:
            assert neighbour and whole
    with other.fetching(FILE, 0) as free:
        assert free


def test_a_dead_holder_frees_its_lock(cache: BlockCache) -> None:
    script = (
        "import sys, time; from pathlib import Path; from loader.cache import *; from loader.fetch import Counters\n"
        "with BlockCache(Path(sys.argv[1]), 1, Counters()).fetching(sys.argv[2], 0) as mine:\n"
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
    """A file where the cache's folders should be: fails for root too, unlike permissions."""
    (tmp_path / "blocks").write_bytes(b"")
    (tmp_path / "locks").write_bytes(b"")
    yield tmp_path


def test_no_folder(unwritable: Path, caplog: pytest.LogCaptureFixture) -> None:
    cache = BlockCache(unwritable, 1 << 20, Counters())
    assert not cache.may_store()
    cache._not_before = 0.0
    assert not cache.store(key(0), content(0))
    with cache.fetching(FILE, 0) as mine:
        assert mine  # nobody to agree with
    assert take(cache, 0) is None
    assert cache._counters.cache_errors == 3
    assert [record.levelno for record in caplog.records] == [logging.WARNING]  # once
    assert "reading goes on without it" in caplog.text


def test_a_full_disk(cache: BlockCache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert not cache.store(key(0), content(0))
        assert not cache.store(key(1), content(1))
    assert list((cache.folder / "blocks").glob("*/.tmp-*")) == []
    assert (cache._counters.cache_errors, len(caplog.records)) == (1, 1)
    cache._not_before = 0.0  # half a minute later
    assert cache.store(key(0), content(0))
    assert take(cache, 0) == content(0)


HAMMER = """
import random, sys
from pathlib import Path
from loader.cache import BlockCache, Damaged, Key
from loader.fetch import Counters
folder, seed, file, bound, size = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
rng = random.Random(seed)
counters = Counters()
cache = BlockCache(folder, bound, counters)
print("on", flush=True)
while True:
    block = rng.randrange(24)
    data = random.Random(block).randbytes(size)
    key = Key(file, block)
    opened = cache.open(key, None)
    if opened is not None:
        found = bytes(opened.read(0, size))
        opened.close()
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
    """Four processes at one folder, killed at any moment, 12 times: no wrong byte, no damage, the bound holds."""
    bound = 12 * (SIZE + OVERHEAD)

    def start(seed: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", HAMMER, *map(str, [tmp_path, seed, FILE, bound, SIZE])]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    rng = random.Random(3)
    processes = [start(seed) for seed in range(4)]
    output = ""
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "on\n"
    highest = 0
    for round_ in range(12):
        time.sleep(rng.uniform(0.02, 0.1))
        highest = max(highest, bytes_on_disk_now(tmp_path))
        victim = processes.pop(0)
        victim.send_signal(signal.SIGKILL)
        output += victim.communicate()[0]
        processes.append(start(10 + round_))
    for process in processes:
        process.kill()
        output += process.communicate()[0]
    assert set(output.split("\n")) <= {"on", ""}, output
    assert highest > 0
    assert highest <= bound
    # What the killed left behind harms nobody.
    cache = BlockCache(tmp_path, bound, Counters())
    for block in range(24):
        assert cache.store(key(block), content(block))
        assert take(cache, block) == content(block)
    assert cache._counters.repairs == 0


def bytes_on_disk_now(folder: Path) -> int:
    """Of a folder that others change: what is gone counts nothing."""
    total = 0
    for path in (folder / "blocks").glob("*/*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            continue
    return total


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


def test_golden_footer(cache: BlockCache) -> None:
    """The layout, by hand: data, page checksums, magic, key, length, checksum of those."""
    cache.store(key(5), b"abc")
    table = struct.pack("<I", google_crc32c.value(b"abc"))
    footer = b"RFBLOCK1" + key(5).digest + struct.pack("<I", 3)
    tail = table + footer
    assert path_of(cache, 5).read_bytes() == b"abc" + tail + struct.pack("<I", google_crc32c.value(tail))
