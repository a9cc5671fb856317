"""Blocks of a made-up file in a cache: shared by the tests of the cache."""

import random
from pathlib import Path

import google_crc32c

from refinery.loader.format.block_checksums import CHECKSUM_BLOCK
from refinery.loader.read.remote.block_file import PAGE, Key
from refinery.loader.read.remote.cache import BlockCache, file_id
from refinery.loader.storage.fetch import ReadCounters

FILE = file_id("corpus", "train/web/shard-00000-of-00001.bin", 10 * CHECKSUM_BLOCK, "00000000")
SIZE = 3 * PAGE + 100  # of most blocks here
OVERHEAD = 4 * 4 + 32


def content(block: int, size: int = SIZE) -> bytes:
    return random.Random(block).randbytes(size)


def key(block: int) -> Key:
    return Key(FILE, block)


def take(cache: BlockCache, block: int, size: int = SIZE) -> bytes | None:
    """The whole block, None if it is not cached."""
    opened = cache.open(key(block), google_crc32c.value(content(block, size)))
    if opened is None:
        return None
    try:
        return bytes(opened.read(0, size))
    finally:
        opened.free()


def path_of(cache: BlockCache, block: int) -> Path:
    return cache.folder / "blocks" / FILE / f"{block:08x}"


def stored(cache: BlockCache) -> list[int]:
    return sorted(int(path.name, 16) for path in (cache.folder / "blocks").glob("*/*") if path.name[0] != ".")


def bytes_on_disk(folder: Path) -> int:
    return sum(path.stat().st_size for path in (folder / "blocks").glob("*/*"))


def small(tmp_path: Path, blocks: int) -> BlockCache:
    return BlockCache(tmp_path, blocks * (SIZE + OVERHEAD), ReadCounters())
