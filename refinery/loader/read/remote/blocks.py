"""Verified blocks of remote files, from memory, the disk cache or the network.

A block is a MiB of a file, the unit of the published checksums. Readers get bytes only after their block was compared
with its checksum. A block that a reader waits for is fetched by a small request of its own; announced blocks are
prefetched in runs of up to `request_bytes`.
"""

import resource
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from refinery.loader.arguments import number, of_kind, whole
from refinery.loader.errors import CorruptShard, FormatError
from refinery.loader.format.block_checksums import CHECKSUM_BLOCK
from refinery.loader.order.arrays import I64
from refinery.loader.read.remote.block_file import DamagedBlock, Key, combine_pages, page_values
from refinery.loader.read.remote.cache import BlockCache, default_folder
from refinery.loader.read.remote.cached_pieces import gather_cached
from refinery.loader.read.remote.open_blocks import OpenBlocks
from refinery.loader.read.remote.remote_file import RemoteFile
from refinery.loader.storage.fetch import FetchError, FetchParams, RangeResponse, RangeStore, ReadCounters, WrongBytes
from refinery.loader.storage.fetcher import Fetcher

SHORT = 2  # blocks of one sample; a longer prefetch yields to readers that wait
RUN_WAIT = 0.25  # seconds that a reader waits for a run that has its block, before it asks for the block alone

Data = bytes | bytearray | memoryview
_Fetched = tuple[memoryview, bytes]  # a block and the checksums of its pages


@dataclass(frozen=True)
class RemoteParams:
    """How a remote corpus is read.

    cache: folder shared by the processes of a host, None for the user's cache folder. cache_bytes: its bound, 0 for no
    cache. memory_bytes: bound per process for blocks that could not be cached. open_blocks: cached blocks kept open per
    process, which protects them from eviction and saves opening them again; never more than a 16th of the cache, nor
    than a quarter of the files that the process may open. request_bytes: largest prefetch
    request. threads: most prefetches in flight, and as many again of blocks that readers wait for; 8 at first, fewer
    when the server refuses (refinery.loader.storage.pace). peer_wait: seconds to wait for another process that is
    already fetching a block before it is fetched twice. stagger: seconds between the starts of the first 8 threads.
    fetch: timeouts and retries.
    """

    cache: Path | None = None
    cache_bytes: int = 64 << 30
    memory_bytes: int = 64 << 20
    open_blocks: int = 4096
    request_bytes: int = 8 << 20
    threads: int = 32
    peer_wait: float = 1.0
    stagger: float = 0.02
    fetch: FetchParams = field(default_factory=FetchParams)

    def __post_init__(self) -> None:
        for name in ("peer_wait", "stagger"):
            number(name, getattr(self, name), "0 or more", lambda seconds: seconds >= 0)
        least = {"memory_bytes": CHECKSUM_BLOCK, "request_bytes": CHECKSUM_BLOCK, "cache_bytes": 0}
        for name in ("open_blocks", "threads", *least):
            whole(name, getattr(self, name), least.get(name, 1))
        of_kind("cache", self.cache, Path)

    @property
    def group(self) -> int:
        """Blocks in one prefetch request."""
        return self.request_bytes // CHECKSUM_BLOCK

    @property
    def most_open(self) -> int:
        """Blocks kept open: together, the processes of a host must not fill the cache with them."""
        files = min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 1 << 20)
        return max(1, min(self.open_blocks, self.cache_bytes // (16 * CHECKSUM_BLOCK), files // 4))

    @property
    def folder(self) -> Path:
        return default_folder() if self.cache is None else self.cache


class _Missing(NamedTuple):
    """Bytes [start, stop) of a block that is neither in memory nor in the cache, and the request for it, of this reader
    or of another one, or of a run."""

    file: RemoteFile
    key: Key
    start: int
    stop: int
    future: Future[Data]
    is_own: bool


class BlockReader:
    """Reads verified bytes of remote files. Safe to share between threads; not across a fork."""

    def __init__(self, store: RangeStore, params: RemoteParams, counters: ReadCounters) -> None:
        self._store = store
        self._params = params
        self._counters = counters
        self.cache = BlockCache(params.folder, params.cache_bytes, counters)
        self._fetcher = Fetcher(store, params.fetch, counters, params.threads)
        self._pool = ThreadPoolExecutor(params.threads, "refinery-demand")
        self._lock = threading.Lock()
        self._in_flight: dict[Key, Future[Data]] = {}
        self._runs: dict[Key, Future[Data]] = {}  # of the blocks of runs that are being fetched
        self._open = OpenBlocks(self.cache, params.most_open)
        self._memory: OrderedDict[Key, Data] = OrderedDict()
        self._memory_bytes = 0
        self.urgent = 0  # blocks that readers wait for; a hint, so no lock

    @property
    def most_in_flight(self) -> int:
        """Prefetches that the server takes at once, so far."""
        return self._fetcher.pace.limit

    def read(self, file: RemoteFile, start: int, stop: int) -> list[memoryview]:
        """Bytes [start, stop) of `file` in order, one piece per block; missing blocks are fetched concurrently.

        Raises CorruptShard, FormatError if the file is missing, FetchError.
        """
        return next(self.read_several([(file, start, stop)]))

    def gather(self, files: Callable[[int], RemoteFile], pieces: I64, itemsize: int, row: int, out: I64) -> I64:
        """Copy those of `pieces` whose blocks are in the cache, verified, and return the others: as `gather_cached`."""
        left, hits = gather_cached(self._open, files, pieces, itemsize, row, out)
        self._counters.add(cache_hits=hits)
        return left

    def read_several(self, spans: Sequence[tuple[RemoteFile, int, int]]) -> Iterator[list[memoryview]]:
        """`read` of each span, in order; what is missing of any of them is asked for at once."""
        found: list[list[memoryview | _Missing]] = []
        hits = misses = 0
        for file, start, stop in spans:
            pieces: list[memoryview | _Missing] = []
            for block in range(start // CHECKSUM_BLOCK, -(-stop // CHECKSUM_BLOCK)):
                begin = block * CHECKSUM_BLOCK
                inside = max(start - begin, 0), min(stop - begin, CHECKSUM_BLOCK)
                key = Key(file.id, block)
                piece = self._local(file, key, *inside)
                if piece is None:
                    misses += 1
                    known = self._arriving(key) or self._in_flight.get(key)
                    pieces.append(_Missing(file, key, *inside, known or self._request(file, key), known is None))
                else:
                    hits += 1
                    pieces.append(piece)
            found.append(pieces)
        self._counters.add(cache_hits=hits, cache_misses=misses)
        self.urgent += misses
        try:
            for pieces in found:
                yield [self._result(piece) if isinstance(piece, _Missing) else piece for piece in pieces]
        finally:
            self.urgent -= misses

    def _arriving(self, key: Key) -> Future[Data] | None:
        """The future of a block in a run that is being fetched."""
        with self._lock:
            return self._runs.get(key)

    def _result(self, missing: "_Missing") -> memoryview:
        """Its bytes. A run may take long: then the block is asked for alone. So it is if a request failed that had been
        sent for another reader: its time began earlier."""
        file, key, start, stop, future, is_own = missing
        try:
            in_run = self._arriving(key) is future
            return memoryview(future.result(RUN_WAIT if in_run else None))[start:stop]
        except (FutureTimeout, CancelledError, FetchError):
            if is_own:
                raise
        return memoryview(self._request(file, key).result())[start:stop]

    def fetch_ahead(self, file: RemoteFile, blocks: Sequence[int]) -> bool:
        """Fetch the missing ones of `blocks` (ascending, in one group), except those that this process is already
        fetching; False if another process is fetching some of the group."""
        if len(blocks) <= SHORT:  # like a reader's request, so a reader arriving meanwhile shares it
            with self._lock:
                keys = [key for block in blocks if (key := Key(file.id, block)) not in self._memory]
            for future in [self._request(file, key) for key in keys if not self.cache.has(key)]:
                future.result()
            return True
        with self.cache.fetching(file.id, blocks[0] // self._params.group) as mine:
            if mine:
                self._fetch_missing(file, blocks)
        return mine

    def _fetch_missing(self, file: RemoteFile, blocks: Sequence[int]) -> None:
        with self._lock:
            here = {key.block for key in (*self._memory, *self._in_flight, *self._runs) if key.file == file.id}
        missing = [b for b in blocks if b not in here and not self.cache.has(Key(file.id, b))]
        for _, pairs in groupby(enumerate(missing), lambda pair: pair[1] - pair[0]):
            run = [block for _, block in pairs]
            first, last = run[0], run[-1]
            if not self.cache.may_store() and not self._fits_in_memory((last + 1 - first) * CHECKSUM_BLOCK):
                self._counters.add(bypasses=last + 1 - first)
                continue
            arriving: dict[Key, Future[Data]] = {Key(file.id, block): Future() for block in run}
            with self._lock:
                self._runs.update(arriving)
            try:
                blocks_there = self._download(file, first, last + 1, urgent=False)
                for future, (part, _) in zip(arriving.values(), blocks_there, strict=True):
                    future.set_result(part)
                for key, (part, table) in zip(arriving, blocks_there, strict=True):
                    self._keep(key, part, table, evict=False)
            finally:
                with self._lock:
                    for key, future in arriving.items():
                        if self._runs.get(key) is future:
                            del self._runs[key]
                        future.cancel()  # if the run failed: readers ask for their blocks alone

    def done(self, file: RemoteFile, block: int) -> None:
        """This process will not read the block again."""
        key = Key(file.id, block)
        with self._lock:
            self._memory_bytes -= len(self._memory.pop(key, b""))
        self._open.close(key)
        self.cache.done(key)

    def close(self) -> None:
        self._fetcher.close()
        self._pool.shutdown(cancel_futures=True)
        with self._lock:
            for future in self._in_flight.values():
                if not future.done():
                    future.set_exception(RuntimeError("closed"))
            self._memory.clear()
        self._open.close_all()

    def abandon(self) -> None:
        """In a forked child: close inherited descriptors without releasing the parent's locks."""
        self._open.abandon()

    def _local(self, file: RemoteFile, key: Key, start: int, stop: int) -> memoryview | None:
        """The bytes from memory or from the cache; None if they are in neither, or damaged."""
        with self._lock:
            data = self._memory.get(key)
            if data is not None:
                self._memory.move_to_end(key)
                return memoryview(data)[start:stop]
        held = self._open.hold([(file, key.block)])
        if held[0] is None:
            return None
        try:
            return held[0].read(start, stop)
        except DamagedBlock:
            self.cache.repair(key)
        except OSError:  # a failing disk: fetch it again
            pass
        finally:
            self._open.release(held)
        self._open.close(key)
        return None

    def _request(self, file: RemoteFile, key: Key) -> Future[Data]:
        """The future of a block: that of a request already in flight, or of a new one."""
        with self._lock:
            future = self._in_flight.get(key)
            if future is None:
                future = self._in_flight[key] = Future()
                try:
                    self._pool.submit(self._serve, file, key, future)
                except BaseException:  # interrupted: nobody may serve it
                    self._in_flight.pop(key, None)
                    raise
                return future
        if not future.done():
            self._counters.add(waits=1)
        return future

    def _serve(self, file: RemoteFile, key: Key, future: Future[Data]) -> None:
        """Fetch one block, deliver it, and only then store it."""
        try:
            until = time.monotonic() + self._params.peer_wait
            pause = 0.001
            group = file.id, key.block // self._params.group
            while True:
                with self.cache.fetching(*group) as mine:
                    data = self._local(file, key, 0, file.length(key.block))
                    if data is not None:
                        future.set_result(data)
                        break
                    if mine or time.monotonic() > until:
                        ((fresh, table),) = self._download(file, key.block, key.block + 1)
                        future.set_result(fresh)
                        self._keep(key, fresh, table, evict=True)
                        break
                if pause == 0.001:
                    self._counters.add(waits=1)
                time.sleep(pause)
                pause = min(2 * pause, 0.05)
        except BaseException as error:  # noqa: BLE001 - raised in the threads that wait for the future
            if not future.done():
                future.set_exception(error)
        finally:
            with self._lock:
                self._in_flight.pop(key, None)

    def _download(self, file: RemoteFile, first: int, last: int, urgent: bool = True) -> list[_Fetched]:
        """Blocks [first, last), compared with their checksums, which those of their pages are combined to: every byte
        is hashed once, and copied only into the cache's file."""
        found: dict[int, list[_Fetched]] = {}  # by the response's bytes: hedged requests may both be answered
        where, start, stop = self._store.url(file.path), first * CHECKSUM_BLOCK, min(last * CHECKSUM_BLOCK, file.size)
        expected = file.checksums

        def verify(response: RangeResponse) -> None:
            if response.size not in (None, file.size):
                raise WrongBytes(CorruptShard(f"{where}: {response.size} bytes found, {file.size} expected"))
            if response.crc32c not in ("", file.crc32c):
                text = f"{where}: crc32c {response.crc32c} of the whole object found, {file.crc32c} expected"
                raise WrongBytes(CorruptShard(text))
            if len(response.data) != stop - start:  # stores return fewer bytes only where the object ends
                text = f"{where}: ends at byte {start + len(response.data)} or before, {file.size} bytes expected"
                raise WrongBytes(CorruptShard(text))
            data, blocks = memoryview(response.data), []
            for block in range(first, last):
                part = data[(block - first) * CHECKSUM_BLOCK : (block - first + 1) * CHECKSUM_BLOCK]
                table = page_values(part)
                value = combine_pages(table, len(part))
                if value != expected[block]:
                    text = f"{where}: block {block}: crc32c {value:08x} found, {expected[block]:08x} expected"
                    raise WrongBytes(CorruptShard(text))
                blocks.append((part, table))
            found[id(response.data)] = blocks

        try:
            return found[id(self._fetcher.read(file.path, start, stop, verify, urgent).data)]
        except FileNotFoundError:
            raise FormatError(f"{where}: missing, {file.size} bytes expected") from None

    def _keep(self, key: Key, data: Data, table: bytes, evict: bool) -> None:
        """Store a block in the cache, or else in memory, where `evict` says whether other blocks make room for it."""
        if self.cache.store(key, data, table):
            return
        self._counters.add(bypasses=1)
        data = bytes(data)  # a slice would keep its whole run in memory
        with self._lock:
            if evict:
                while self._memory and self._memory_bytes + len(data) > self._params.memory_bytes:
                    self._memory_bytes -= len(self._memory.popitem(last=False)[1])
            if key not in self._memory and self._memory_bytes + len(data) <= self._params.memory_bytes:
                self._memory[key] = data
                self._memory_bytes += len(data)

    def _fits_in_memory(self, size: int) -> bool:
        return self._memory_bytes + size <= self._params.memory_bytes
