"""Verified blocks of remote files: from memory, from the cache, from the network.

A block is a MiB of a file, the unit of the published checksums. Readers get bytes only after their block was compared
with its checksum. What a reader waits for is fetched alone, one small request; what is announced arrives in the
background in runs of up to `request_bytes`.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, cast

from refinery.loader.errors import FormatError
from refinery.loader.format.block_checksums import BLOCK, block_values, parse_blocks
from refinery.loader.remote.cache import BlockCache, CachedBlock, Damaged, Key, default_folder, file_id
from refinery.loader.storage.fetch import Answer, Counters, Fetcher, FetchParams, RangeStore, WrongBytes
from refinery.loader.storage.remote_store import CorruptObject

SHORT = 2  # blocks of a sample; a longer read ahead stands back for readers that wait

Blocks = OrderedDict[Key, bytes | bytearray | memoryview]


class CorruptShard(CorruptObject):
    """The bytes of a shard are, read twice, not those of the manifest. The message has file, block, both checksums."""


@dataclass(frozen=True)
class SourceParams:
    """How a remote corpus is read.

    cache: the folder shared by the processes of a host, None for the user's own cache folder. cache_bytes: its bound,
    0 to do without. memory_bytes: for blocks that could not be cached, per process. open_blocks: kept open, per
    process, which keeps them from being evicted; never more than a 16th of the cache. request_bytes: the largest read
    ahead. threads: that read ahead, and as many for what is waited for. patience: seconds to wait for another process
    that is fetching a block before it is read twice. stagger: seconds between the starts of the threads.
    """

    cache: Path | None = None
    cache_bytes: int = 64 << 30
    memory_bytes: int = 64 << 20
    open_blocks: int = 256
    request_bytes: int = 8 << 20
    threads: int = 8
    patience: float = 1.0
    stagger: float = 0.02
    fetch: FetchParams = field(default_factory=FetchParams)

    def __post_init__(self) -> None:
        for name in ("cache_bytes", "patience", "stagger"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name}: {getattr(self, name)} given, 0 or more is allowed")
        for name in ("memory_bytes", "request_bytes"):
            if getattr(self, name) < BLOCK:
                raise ValueError(f"{name}: {getattr(self, name)} given, {BLOCK} or more is allowed")
        for name in ("open_blocks", "threads"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: {getattr(self, name)} given, 1 or more is allowed")

    @property
    def group(self) -> int:
        """Blocks in one read ahead."""
        return self.request_bytes // BLOCK

    @property
    def most_open(self) -> int:
        """Blocks kept open: the processes of a host must not fill the cache with them."""
        return max(1, min(self.open_blocks, self.cache_bytes // (16 * BLOCK)))

    @property
    def folder(self) -> Path:
        return default_folder() if self.cache is None else self.cache


@dataclass(frozen=True)
class RemoteFile:
    """A file of a corpus. crc32c: 8 hexadecimal digits. block_crc32c: the manifest's string."""

    corpus: str
    path: str
    size: int
    crc32c: str
    block_crc32c: str
    # Not functools.cached_property: until Python 3.12 it locks, and a child forked meanwhile would wait for ever.
    _made: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def id(self) -> str:
        """The name of the file's folder in the cache."""
        if "id" not in self._made:
            self._made["id"] = file_id(self.corpus, self.path, self.size, self.crc32c)
        return cast(str, self._made["id"])

    @property
    def checksums(self) -> tuple[int, ...]:
        """CRC-32C of each block. Raises FormatError where they contradict the whole file's."""
        if "checksums" not in self._made:
            self._made["checksums"] = parse_blocks(self.block_crc32c, self.size, self.crc32c, self.path)
        return cast(tuple[int, ...], self._made["checksums"])

    def length(self, block: int) -> int:
        return min(BLOCK, self.size - block * BLOCK)


class BlockReader:
    """Reads verified bytes of remote files. Safe to share between threads; not across a fork."""

    def __init__(self, store: RangeStore, params: SourceParams, counters: Counters) -> None:
        self._store = store
        self._params = params
        self._counters = counters
        self.cache = BlockCache(params.folder, params.cache_bytes, counters)
        # An attempt and its hedge for every thread that may wait for one.
        self._fetcher = Fetcher(store, params.fetch, counters, 4 * params.threads)
        self._pool = ThreadPoolExecutor(params.threads, "refinery-demand")
        self._lock = threading.Lock()
        self._demanded: dict[Key, Future[bytes | bytearray | memoryview]] = {}
        self._open: OrderedDict[Key, CachedBlock] = OrderedDict()
        self._memory: Blocks = OrderedDict()
        self._memory_bytes = 0
        self._held: set[tuple[str, int]] = set()  # groups that this process fetches some of
        self.urgent = 0  # blocks that readers wait for; a hint, so no lock

    def read(self, file: RemoteFile, start: int, stop: int) -> list[memoryview]:
        """Bytes [start, stop) of `file` in order, one piece for each block they touch; missing blocks come together.

        Raises CorruptShard, FormatError where the file is missing, FetchError.
        """
        pieces: list[memoryview | None] = []
        waiting: list[tuple[int, int, int, Future[bytes | bytearray | memoryview]]] = []
        expected = file.checksums
        for block in range(start // BLOCK, -(-stop // BLOCK)):
            begin = block * BLOCK
            inside = max(start - begin, 0), min(stop - begin, BLOCK)
            key = Key(file.id, block)
            piece = self._at_hand(key, *inside, expected)
            if piece is None:
                waiting.append((len(pieces), *inside, self._demand(file, key)))
            pieces.append(piece)
        self._counters.add(cache_hits=len(pieces) - len(waiting), cache_misses=len(waiting))
        self.urgent += len(waiting)
        try:
            for i, a, b, future in waiting:
                pieces[i] = memoryview(future.result())[a:b]
        finally:
            self.urgent -= len(waiting)
        return [piece for piece in pieces if piece is not None]

    def fetch_ahead(self, file: RemoteFile, blocks: Sequence[int]) -> bool:
        """Fetch those of `blocks` (ascending, of one group) that are not here; False where another is at it."""
        if len(blocks) <= SHORT:  # as if a reader waited, so that one who comes meanwhile waits for the same request
            with self._lock:
                keys = [key for block in blocks if (key := Key(file.id, block)) not in self._memory]
            for future in [self._demand(file, key) for key in keys if not self.cache.has(key)]:
                future.result()
            return True
        group = file.id, blocks[0] // self._params.group
        with self.cache.fetching(*group) as mine:
            if not mine:
                return False
            self._held.add(group)
            try:
                self._fetch_missing(file, blocks)
            finally:
                self._held.discard(group)
        return True

    def _fetch_missing(self, file: RemoteFile, blocks: Sequence[int]) -> None:
        with self._lock:
            here = {key.block for key in (*self._memory, *self._demanded) if key.file == file.id}
        missing = [b for b in blocks if b not in here and not self.cache.has(Key(file.id, b))]
        for _, pairs in groupby(enumerate(missing), lambda pair: pair[1] - pair[0]):
            run = [block for _, block in pairs]
            first, last = run[0], run[-1]
            if not self.cache.may_store() and not self._room((last + 1 - first) * BLOCK):
                self._counters.add(bypasses=last + 1 - first)
                continue
            data = memoryview(self._download(file, first, last + 1))
            for block in range(first, last + 1):
                part = data[(block - first) * BLOCK : (block - first + 1) * BLOCK]
                self._keep(Key(file.id, block), part, evict=False)

    def done(self, file: RemoteFile, block: int) -> None:
        """Last use of a block by this process."""
        key = Key(file.id, block)
        with self._lock:
            opened = self._open.pop(key, None)
            self._memory_bytes -= len(self._memory.pop(key, b""))
        if opened is not None:
            opened.close()
        self.cache.done(key)

    def close(self) -> None:
        self._fetcher.close()
        self._pool.shutdown(cancel_futures=True)
        with self._lock:
            for future in self._demanded.values():
                if not future.done():
                    future.set_exception(RuntimeError("closed"))
            opened = list(self._open.values())
            self._open.clear()
            self._memory.clear()
        for block in opened:
            block.close()

    def abandon(self) -> None:
        """Let go, in a child made by a fork, of what belongs to the parent."""
        for block in self._open.values():
            block.abandon()

    def _at_hand(self, key: Key, start: int, stop: int, expected: tuple[int, ...]) -> memoryview | None:
        """The bytes from memory or from the cache; None where they are in neither, or damaged."""
        with self._lock:
            data = self._memory.get(key)
            if data is not None:
                self._memory.move_to_end(key)
                return memoryview(data)[start:stop]
            block = self._open.get(key)
            if block is not None:
                self._open.move_to_end(key)
        if block is None:
            block = self.cache.open(key, expected[key.block])
            if block is None:
                return None
            self._keep_open(key, block)
        try:
            return block.read(start, stop)
        except Damaged:
            self.cache.repair(key)
        except OSError:  # closed by another thread in between, or a failing disk: the network has it still
            pass
        with self._lock:
            gone = self._open.pop(key, None)
        if gone is not None:
            gone.close()
        return None

    def _keep_open(self, key: Key, block: CachedBlock) -> None:
        with self._lock:
            closing = [old] if (old := self._open.pop(key, None)) is not None else []
            self._open[key] = block
            while len(self._open) > self._params.most_open:
                closing.append(self._open.popitem(last=False)[1])
        for old in closing:
            old.close()

    def _demand(self, file: RemoteFile, key: Key) -> "Future[bytes | bytearray | memoryview]":
        with self._lock:
            future = self._demanded.get(key)
            if future is None:
                future = self._demanded[key] = Future()
                self._pool.submit(self._serve, file, key, future)
                return future
        if not future.done():
            self._counters.add(waits=1)
        return future

    def _serve(self, file: RemoteFile, key: Key, future: "Future[bytes | bytearray | memoryview]") -> None:
        """Fetch one block, hand it over, and only then store it."""
        try:
            until = time.monotonic() + self._params.patience
            pause = 0.001
            group = file.id, key.block // self._params.group
            while True:
                with self.cache.fetching(*group) as mine:
                    data = self._at_hand(key, 0, file.length(key.block), file.checksums)
                    if data is not None:
                        future.set_result(data)
                        break
                    # What this process fetches of the group is another block, or a long run: a request for this one
                    # alone is there sooner.
                    if mine or group in self._held or time.monotonic() > until:
                        if mine:
                            self._held.add(group)
                        try:
                            fresh = self._download(file, key.block, key.block + 1)
                            future.set_result(fresh)
                            self._keep(key, fresh, evict=True)
                        finally:
                            if mine:
                                self._held.discard(group)
                        break
                if pause == 0.001:
                    self._counters.add(waits=1)
                time.sleep(pause)
                pause = min(2 * pause, 0.05)
        except BaseException as error:  # noqa: BLE001 - whoever waits gets it
            if not future.done():
                future.set_exception(error)
        finally:
            with self._lock:
                self._demanded.pop(key, None)

    def _download(self, file: RemoteFile, first: int, last: int) -> bytes | bytearray:
        """Blocks [first, last), compared with their checksums."""
        where, start, stop = self._store.url(file.path), first * BLOCK, min(last * BLOCK, file.size)
        expected = file.checksums

        def verify(answer: Answer) -> None:
            if answer.size not in (None, file.size):
                raise WrongBytes(CorruptShard(f"{where}: {answer.size} bytes found, {file.size} expected"))
            if answer.crc32c not in ("", file.crc32c):
                text = f"{where}: crc32c {answer.crc32c} of the whole object found, {file.crc32c} expected"
                raise WrongBytes(CorruptShard(text))
            if len(answer.data) != stop - start:  # stores give fewer only where the object ends
                text = f"{where}: ends at byte {start + len(answer.data)} or before, {file.size} bytes expected"
                raise WrongBytes(CorruptShard(text))
            for block, value in enumerate(block_values(answer.data), first):
                if value != expected[block]:
                    text = f"{where}: block {block}: crc32c {value:08x} found, {expected[block]:08x} expected"
                    raise WrongBytes(CorruptShard(text))

        try:
            return self._fetcher.read(file.path, start, stop, verify).data
        except FileNotFoundError:
            raise FormatError(f"{where}: missing, {file.size} bytes expected") from None

    def _keep(self, key: Key, data: bytes | bytearray | memoryview, evict: bool) -> None:
        """Store a block; where the cache cannot take it, in memory, for which others go only if `evict`."""
        if self.cache.store(key, data):
            return
        self._counters.add(bypasses=1)
        data = bytes(data)  # a part of a run must not hold all of it
        with self._lock:
            if evict:
                while self._memory and self._memory_bytes + len(data) > self._params.memory_bytes:
                    self._memory_bytes -= len(self._memory.popitem(last=False)[1])
            if key not in self._memory and self._memory_bytes + len(data) <= self._params.memory_bytes:
                self._memory[key] = data
                self._memory_bytes += len(data)

    def _room(self, size: int) -> bool:
        return self._memory_bytes + size <= self._params.memory_bytes
