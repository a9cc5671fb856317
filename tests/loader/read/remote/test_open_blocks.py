"""Cached blocks kept open: who holds one, who closes it, and which are closed first."""

import os
import threading
from pathlib import Path

import google_crc32c
import pytest

from refinery.loader.errors import FormatError
from refinery.loader.format.block_checksums import block_checksums
from refinery.loader.read.remote.block_file import CachedBlock, Key
from refinery.loader.read.remote.cache import BlockCache
from refinery.loader.read.remote.open_blocks import OpenBlocks
from refinery.loader.read.remote.remote_file import RemoteFile
from refinery.loader.storage.fetch import ReadCounters
from tests.loader.cached_blocks import content


def made(cache: BlockCache, number: int) -> RemoteFile:
    """A file of one block, which is cached."""
    data = content(number)
    file = RemoteFile("corpus", f"{number}.bin", len(data), f"{google_crc32c.value(data):08x}", block_checksums(data))
    assert cache.store(Key(file.id, 0), data)
    return file


@pytest.fixture
def cache(tmp_path: Path) -> BlockCache:
    return BlockCache(tmp_path, 1 << 24, ReadCounters())


def is_open(block: CachedBlock | None) -> bool:
    assert block is not None
    try:
        os.fstat(block.descriptor)
    except OSError:
        return False
    return True


def test_a_block_that_is_held_stays_open(cache: BlockCache) -> None:
    opened, file = OpenBlocks(cache, 2), made(cache, 0)
    for end in (lambda: opened.close(Key(file.id, 0)), opened.close_all):
        (first,) = opened.hold([(file, 0)])
        (second,) = opened.hold([(file, 0)])
        assert first is second
        end()
        end()
        assert is_open(first)
        opened.release([first])
        assert is_open(first)
        opened.release([second, None])
        assert not is_open(first)
    (again,) = opened.hold([(file, 0)])
    opened.release([again])
    assert is_open(again)  # for whoever needs it next
    opened.close_all()
    assert not is_open(again)


def test_those_used_last_stay(cache: BlockCache) -> None:
    opened, files = OpenBlocks(cache, 2), [made(cache, number) for number in range(3)]
    found = opened.hold([(files[0], 0), (files[1], 0)])
    opened.release(found)
    opened.release(opened.hold([(files[0], 0)]))
    (third,) = opened.hold([(files[2], 0)])
    assert [is_open(block) for block in (*found, third)] == [True, False, True]
    held = opened.hold([(files[1], 0), (files[0], 0)])  # pushes out the third, and then itself asks for the first
    assert [is_open(block) for block in (*held, third)] == [True, True, True]
    opened.release([*held, third])
    opened.close_all()
    assert not any(is_open(block) for block in (*held, third))


def test_what_is_not_there(cache: BlockCache) -> None:
    opened, file = OpenBlocks(cache, 2), made(cache, 0)
    missing = RemoteFile("corpus", "other.bin", file.size, file.crc32c, file.block_crc32c)
    found = opened.hold([(missing, 0), (file, 0)])
    assert found[0] is None
    assert is_open(found[1])
    opened.release(found)
    opened.close_all()


def test_an_error_releases_what_was_held(cache: BlockCache) -> None:
    opened, file = OpenBlocks(cache, 2), made(cache, 0)
    (block,) = opened.hold([(file, 0)])
    opened.release([block])
    wrong = RemoteFile("corpus", "wrong.bin", file.size, "00000000", file.block_crc32c)
    with pytest.raises(FormatError):
        opened.hold([(file, 0), (wrong, 0)])
    opened.close_all()
    assert not is_open(block)


def test_a_block_of_another_length(cache: BlockCache) -> None:
    """Whoever can write to the folder can make a block whose checksum is right and whose length is not."""
    opened, file = OpenBlocks(cache, 2), made(cache, 0)
    longer = RemoteFile("corpus", "0.bin", file.size + 1, file.crc32c, file.block_crc32c)
    object.__setattr__(longer, "id", file.id)
    longer._computed["checksums"] = file.checksums
    assert opened.hold([(longer, 0)]) == [None]
    assert not cache.has(Key(file.id, 0))


def test_threads_that_close_what_others_read(cache: BlockCache) -> None:
    """No descriptor is closed under a reader, and none is left open."""
    opened, files = OpenBlocks(cache, 2), [made(cache, number) for number in range(4)]
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    wrong: list[object] = []

    def read(seed: int) -> None:
        for turn in range(150):
            chosen = [(files[(seed + turn + i) % 4], 0) for i in range(2)]
            held = opened.hold(chosen)
            for (file, _), block in zip(chosen, held, strict=True):
                if block is None or bytes(block.read(0, 50)) != content(files.index(file))[:50]:
                    wrong.append(block)
            if turn % 3 == seed % 3:
                opened.close(Key(chosen[0][0].id, 0))
            opened.release(held)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    opened.close_all()
    assert not wrong
    assert before is None or len(os.listdir("/proc/self/fd")) == before
