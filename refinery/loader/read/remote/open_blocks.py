"""Cached blocks that are kept open: reading from one again needs no look at its folder, and no process evicts it."""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence

from refinery.loader.read.remote.block_file import CachedBlock, Key
from refinery.loader.read.remote.cache import BlockCache
from refinery.loader.read.remote.remote_file import RemoteFile

Place = tuple[str, int]  # a Key, or the same as a plain tuple


class OpenBlocks:
    """The `most` blocks of a cache that were used last. Safe to share between threads; not across a fork.

    Between `hold` and `release` a block's descriptor stays open, whoever closes the block meanwhile: its number would
    soon belong to another file.
    """

    def __init__(self, cache: BlockCache, most: int) -> None:
        self._cache, self.most = cache, most
        self._blocks: OrderedDict[Place, CachedBlock] = OrderedDict()
        self._users: dict[CachedBlock, int] = {}  # of those that are held
        self._lock = threading.Lock()

    def hold(self, wanted: Sequence[tuple[RemoteFile, int]]) -> list[CachedBlock | None]:
        """Blocks of files, each held once more; None for those that are not cached. Cost: a microsecond for one that is
        open, some 30 for another. Raises FormatError, and then holds none."""
        found: list[CachedBlock | None] = []
        try:
            with self._lock:
                for file, number in wanted:
                    found.append(self._take((file.id, number)))
            for i, (file, number) in enumerate(wanted):
                if found[i] is None:
                    found[i] = self._open(file, number)
        except BaseException:  # checksums that contradict each other, or an interrupt: nobody else can release them
            self.release(found)
            raise
        return found

    def release(self, blocks: Iterable[CachedBlock | None]) -> None:
        closing = []
        with self._lock:
            for block in blocks:
                if block is not None:
                    self._users[block] -= 1
                    if not self._users[block]:
                        del self._users[block]
                        if block.closed:
                            closing.append(block)
        for block in closing:
            block.free()

    def close(self, key: Key) -> None:
        with self._lock:
            block = self._blocks.pop(key, None)
            closing = self._end([] if block is None else [block])
        for each in closing:
            each.free()

    def close_all(self) -> None:
        with self._lock:
            closing = self._end(self._blocks.values())
            self._blocks.clear()
        for block in closing:
            block.free()

    def abandon(self) -> None:
        """In a forked child: close inherited descriptors without releasing the parent's locks."""
        for block in self._blocks.values():
            block.abandon()

    def _take(self, place: Place) -> CachedBlock | None:
        block = self._blocks.get(place)
        if block is not None:
            self._blocks.move_to_end(place)
            self._users[block] = self._users.get(block, 0) + 1
        return block

    def _open(self, file: RemoteFile, number: int) -> CachedBlock | None:
        key = Key(file.id, number)
        block = self._cache.open(key, file.checksums[number])
        if block is None:
            return None
        if block.length != file.length(number):
            block.free()
            self._cache.repair(key)
            return None
        with self._lock:
            over = [old] if (old := self._blocks.pop(key, None)) is not None else []
            self._blocks[key] = block
            self._users[block] = 1
            while len(self._blocks) > self.most:
                over.append(self._blocks.popitem(last=False)[1])
            closing = self._end(over)
        for each in closing:
            each.free()
        return block

    def _end(self, blocks: Iterable[CachedBlock]) -> list[CachedBlock]:
        """Mark blocks as closed; those that nobody holds."""
        unused = []
        for block in blocks:
            block.closed = True
            if block not in self._users:
                unused.append(block)
        return unused
