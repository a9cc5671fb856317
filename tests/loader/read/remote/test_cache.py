import os
import random
import struct
from pathlib import Path

import google_crc32c
import pytest

from refinery.loader.format.block_checksums import CHECKSUM_BLOCK
from refinery.loader.read.remote.block_file import PAGE, DamagedBlock
from refinery.loader.read.remote.cache import BlockCache, default_folder, file_id
from refinery.loader.storage.fetch import ReadCounters
from tests.loader.cached_blocks import FILE, OVERHEAD, SIZE, bytes_on_disk, content, key, path_of, small, stored, take


@pytest.fixture
def cache(tmp_path: Path) -> BlockCache:
    return BlockCache(tmp_path, 1 << 30, ReadCounters())


@pytest.mark.parametrize("size", [0, 1, PAGE - 1, PAGE, PAGE + 1, CHECKSUM_BLOCK - 1, CHECKSUM_BLOCK])
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
    opened.free()
    opened.free()
    with pytest.raises(OSError):
        opened.read(0, 1)


def test_names() -> None:
    """Corpus, path, size and checksum determine the name; the pinned value keeps caches valid across releases."""
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
        BlockCache(tmp_path, -1, ReadCounters())


def test_every_flipped_bit_is_found(cache: BlockCache) -> None:
    """1,000 random bits: always detected and counted as a repair; a new store works again."""
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
        except DamagedBlock:
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


def test_changed_while_open(cache: BlockCache) -> None:
    """Changed or truncated while open: detected by the next read."""
    for change in (lambda p: os.truncate(p, PAGE), lambda p: p.write_bytes(bytes(p.stat().st_size))):
        cache.store(key(1), content(1))
        opened = cache.open(key(1), None)
        assert opened is not None
        assert opened.read(0, SIZE) == content(1)
        change(path_of(cache, 1))
        with pytest.raises(DamagedBlock):
            opened.read(PAGE, 2 * PAGE)
        opened.free()
        cache.repair(key(1))


def test_a_block_under_another_name(cache: BlockCache) -> None:
    cache.store(key(1), content(1))
    path_of(cache, 1).rename(path_of(cache, 2))
    assert cache.open(key(2), None) is None
    cache.store(key(3), content(4))
    assert take(cache, 3) is None  # undamaged, but not the expected checksum


def test_least_recently_used_is_evicted_first(tmp_path: Path) -> None:
    cache = small(tmp_path, 10)
    for block in range(10):
        assert cache.store(key(block), content(block))
        os.utime(path_of(cache, block), (1000 + block, 1000 + block))
    assert take(cache, 0) is not None  # used just now
    assert cache.store(key(10), content(10))
    assert stored(cache) == [0, *range(3, 11)]  # down to nine tenths
    assert cache._counters.evictions == 2
    assert bytes_on_disk(tmp_path) <= cache.max_bytes


def test_done_blocks_are_evicted_first(tmp_path: Path) -> None:
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
    """A cache full of open blocks stores nothing more, without waiting; closing blocks makes room."""
    cache = small(tmp_path, 4)
    opened = []
    for number in range(4):
        cache.store(key(number), content(number))
        opened.append(cache.open(key(number), None))
    other = small(tmp_path, 4)  # like another process: flock locks belong to open file descriptions, not to processes
    for each in (cache, other):
        assert not each.store(key(9), content(9))
        assert not each.may_store()
        each._not_before = 0.0
    assert stored(cache) == [0, 1, 2, 3]
    for block in opened:
        assert block is not None
        block.free()
    assert other.store(key(9), content(9))
    assert 9 in stored(cache)
    assert cache._counters.cache_errors == other._counters.cache_errors == 0


def test_larger_than_the_cache(tmp_path: Path) -> None:
    assert not BlockCache(tmp_path, 0, ReadCounters()).store(key(0), b"x")
    assert not small(tmp_path, 1).store(key(0), content(0, 2 * SIZE))
    assert stored(small(tmp_path, 1)) == []


@pytest.mark.parametrize("junk", [b"", b"123", b"\xff" * 8, bytes(8)])
def test_a_lost_count_is_restored(tmp_path: Path, junk: bytes) -> None:
    """A lost or invalid `usage` is recomputed; one that is too low exceeds the bound only until the cache is full."""
    cache = small(tmp_path, 4)
    for block in range(4):
        cache.store(key(block), content(block))
    (tmp_path / "usage").write_bytes(junk)
    for block in range(4, 10):
        assert cache.store(key(block), content(block))
    slack = 4 if junk == bytes(8) else 0
    assert bytes_on_disk(tmp_path) <= cache.max_bytes + slack * (SIZE + OVERHEAD)


def test_one_fetcher_at_a_time(cache: BlockCache, tmp_path: Path) -> None:
    other = BlockCache(tmp_path, 1, ReadCounters())
    with cache.fetching(FILE, 0) as mine:
        assert mine
        with other.fetching(FILE, 0) as again, cache.fetching(FILE, 0) as twice:
            assert twice and not again
        with other.fetching(FILE, 0) as still:
            assert not still
        with other.fetching(FILE, 1) as neighbour:
            assert neighbour
    with other.fetching(FILE, 0) as free:
        assert free


def test_golden_footer(cache: BlockCache) -> None:
    """The layout, written out: data, page checksums, magic, key, length, checksum of these."""
    cache.store(key(5), b"abc")
    table = struct.pack("<I", google_crc32c.value(b"abc"))
    footer = b"RFBLOCK1" + key(5).digest + struct.pack("<I", 3)
    tail = table + footer
    assert path_of(cache, 5).read_bytes() == b"abc" + tail + struct.pack("<I", google_crc32c.value(tail))
