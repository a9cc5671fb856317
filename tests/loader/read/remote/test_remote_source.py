import multiprocessing
import os
import shutil
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refinery.loader.errors import CorruptShard, FormatError
from refinery.loader.format.block_checksums import CHECKSUM_BLOCK
from refinery.loader.format.manifest import FileEntry, read_manifest
from refinery.loader.format.shard_files import read_file
from refinery.loader.read.corpus import Corpus
from refinery.loader.read.remote.block_file import Key
from refinery.loader.read.remote.blocks import RemoteParams
from refinery.loader.read.remote.cache import BlockCache, file_id
from refinery.loader.read.remote.open_blocks import OpenBlocks
from refinery.loader.read.remote.remote_file import RemoteFile
from refinery.loader.read.remote.remote_source import RemoteSource
from refinery.loader.storage.fetch import ReadCounters
from refinery.loader.storage.http_store import HttpStore
from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import checksums
from tests.corpus_factory import build_corpus
from tests.loader.range_server import RangeServer
from tests.loader.remote_split import (
    FETCH,
    SIZES,
    TOKENS,
    check,
    check_everything,
    entries,
    name_of,
    source_of,
    wait_for,
)
from tests.sampling import one_commit_in_four


def test_every_token(server: RangeServer, tmp_path: Path) -> None:
    with source_of(server, tmp_path) as source:
        check_everything(source)
        for dtype in (np.uint16, np.int32, np.int64):
            check(source, 0, CHECKSUM_BLOCK // 2 - 10, 20, dtype)  # across two blocks
        check(source, 2, 0, 0)
        check(source, 0, len(TOKENS[0]), 0)
    sent = len(server.requests)
    with source_of(server, tmp_path) as source:  # like another process of the host
        check_everything(source)
        assert source.counters.requests == source.counters.cache_misses == 0
    assert len(server.requests) == sent
    assert sum(stop - start for _, start, stop in server.requests) == sum(SIZES)  # each byte was requested once


def test_pieces_of_a_batch_are_asked_for_together(server: RangeServer, tmp_path: Path) -> None:
    """Pieces near each other are one read, in whatever rows they are; each block is requested once."""
    near = [(9, 0, 5 + 40 * i, 30, 30 * i) for i in range(20)] + [(10, 0, 17, 300, 0)]
    edge = CHECKSUM_BLOCK // 2
    far = [(10, 1, 0, 1500, 300), (10, 0, edge - 7, 20, 1800), (11, 0, 5, 9, 2), (11, 2, 0, 0, 0)]
    pieces = np.array(near + far, np.int64)
    out = np.full((3, 2000), -1)
    expected = out.copy()
    for row, shard, start, count, place in pieces.tolist():
        expected[row - 9, place : place + count] = TOKENS[shard][start : start + count]
    with source_of(server, tmp_path) as source:
        source.read_pieces(pieces, 9, out)
        assert (out == expected).all()
        assert source.counters.cache_misses == 4  # near, across an edge (twice), and of the other shard
        assert len({(path, start) for path, start, _ in server.requests}) == len(server.requests)
        reader, _ = source._running()
        wait_for(lambda: not reader._in_flight)  # blocks are delivered first and stored then
        source.read_pieces(pieces[:20], 9, out)
        assert source.counters.cache_hits == 1
        for wrong in ((9, 0, -1, 2, 0), (9, 1, 1499, 2, 0)):
            with pytest.raises(ValueError, match="is allowed"):
                source.read_pieces(np.array([wrong]), 9, out)
        with pytest.raises(ValueError, match="piece 0 is 5 tokens"):
            source.read_pieces(np.array([(9, 0, 0, 5, 1996)]), 9, out)


def test_a_batch_of_more_blocks_than_are_kept_open(
    server: RangeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are opened by turns: all at once they could be more than the process may open, or the whole cache."""
    pieces = np.array([(0, 0, 5, 1 << 20, 0), (1, 3, 9, 1000, 7), (1, 1, 100, 50, 2000), (0, 0, 3, 2, 1 << 20)])
    expected = np.full((2, (1 << 20) + 2), -1)
    for row, shard, start, count, place in pieces.tolist():
        expected[row, place : place + count] = TOKENS[shard][start : start + count]
    held: list[int] = []
    hold = OpenBlocks.hold
    monkeypatch.setattr(OpenBlocks, "hold", lambda self, wanted: (held.append(len(wanted)), hold(self, wanted))[1])
    with source_of(server, tmp_path) as source:
        source.read_pieces(pieces, 0, np.full_like(expected, -1))
        reader, _ = source._running()
        wait_for(lambda: not reader._in_flight)
    for most in (1, 2):
        with source_of(server, tmp_path, open_blocks=most) as source:
            out = np.full_like(expected, -1)
            held.clear()
            source.read_pieces(pieces, 0, out)
            assert (out == expected).all()
            assert sum(held) == source.counters.cache_hits == 5 and max(held) == most


@pytest.mark.parametrize(("start", "count"), [(-1, 2), (0, 2000), (1499, 2), (1501, 0)])
def test_outside_of_a_shard(server: RangeServer, tmp_path: Path, start: int, count: int) -> None:
    with source_of(server, tmp_path) as source, pytest.raises(ValueError, match="0 to 1500 is allowed"):
        source.read_into(1, start, np.empty(count, np.int64))


def test_read_ahead(server: RangeServer, tmp_path: Path) -> None:
    with source_of(server, tmp_path) as source:
        ranges = [(shard, 0, len(tokens)) for shard, tokens in enumerate(TOKENS)]
        source.will_need(ranges)
        wait_for(lambda: len(list((tmp_path / "blocks").glob("*/0*"))) == 5)
        assert len(server.requests) == 3  # one for each shard that is not empty
        check_everything(source)
        assert (source.counters.cache_misses, len(server.requests)) == (0, 3)
        source.will_need(ranges)
        source.done_with(ranges)
        with pytest.raises(ValueError):
            source.will_need([(1, 0, 1501)])
    for path in (tmp_path / "blocks").glob("*/*"):
        assert path.stat().st_mtime == 0  # first to be evicted


def test_first_samples_are_fetched_first_and_alone(server: RangeServer, tmp_path: Path) -> None:
    with source_of(server, tmp_path, threads=1) as source:
        source.will_need(
            [(0, CHECKSUM_BLOCK // 2 + 5, CHECKSUM_BLOCK // 2 + 9), (3, 7, 8), (0, 0, len(TOKENS[0])), (3, 0, 10)]
        )
        wait_for(lambda: len(list((tmp_path / "blocks").glob("*/0*"))) == 4)
    size = len(TOKENS[0]) * 2
    expected = [
        (0, CHECKSUM_BLOCK, 2 * CHECKSUM_BLOCK),
        (3, 0, CHECKSUM_BLOCK),
        (0, 0, CHECKSUM_BLOCK),
        (0, 2 * CHECKSUM_BLOCK, size),
    ]
    assert server.requests == [(name_of(shard), start, stop) for shard, start, stop in expected]


def test_blocks_are_done_when_all_their_ranges_are_done(server: RangeServer, tmp_path: Path) -> None:
    with source_of(server, tmp_path) as source:
        check_everything(source)
        half = CHECKSUM_BLOCK // 4
        source.done_with([(0, 0, half), (0, CHECKSUM_BLOCK // 2, CHECKSUM_BLOCK)])

        def done() -> list[int]:
            return sorted(int(p.name, 16) for p in (tmp_path / "blocks").glob("*/*") if p.stat().st_mtime == 0)

        assert done() == [1]
        source.done_with([(0, half, CHECKSUM_BLOCK // 2)])
        assert done() == [0, 1]


def test_a_reader_shares_a_short_prefetch(server: RangeServer, tmp_path: Path) -> None:
    with source_of(server, tmp_path) as source:
        source.will_need([(3, 0, 10)])
        wait_for(lambda: len(server.requests) == 1)
        check(source, 3, 0, 1000)
        assert len(server.requests) == 1


def test_a_reader_does_not_wait_for_a_long_prefetch(server: RangeServer, tmp_path: Path) -> None:
    """If the prefetch of the group stalls, the requested block is fetched by a separate small request."""
    server.scripts[name_of(0)] = deque(["stall"])
    with source_of(server, tmp_path, peer_wait=60) as source:
        source.will_need([(0, 0, len(TOKENS[0]))])
        wait_for(lambda: len(server.requests) == 1)
        check(source, 0, 0, 10)
        assert server.requests[1] == (name_of(0), 0, CHECKSUM_BLOCK)


def test_without_a_cache(server: RangeServer, tmp_path: Path) -> None:
    """With cache_bytes=0 blocks are kept in memory, up to memory_bytes."""
    with source_of(server, tmp_path, cache_bytes=0, memory_bytes=CHECKSUM_BLOCK) as source:
        check_everything(source)
        source.will_need([(0, 0, len(TOKENS[0]))])
        check(source, 3, 0, 10)
        sent = len(server.requests)
        check(source, 3, 10, 1000)
        assert source.counters.bypasses > 0
        assert len(server.requests) - sent <= 1  # the prefetch may be fetching it
    assert list((tmp_path / "blocks").glob("*/*")) == []


def test_a_cache_without_room(server: RangeServer, tmp_path: Path) -> None:
    """Full of blocks in use by another process: blocks bypass it at once, and prefetching uses free memory only."""
    full = BlockCache(tmp_path, CHECKSUM_BLOCK + 10_000, ReadCounters())
    key = Key(file_id("other", "x", CHECKSUM_BLOCK, ""), 0)
    assert full.store(key, bytes(CHECKSUM_BLOCK))
    used = full.open(key, None)
    assert used is not None
    with source_of(server, tmp_path, cache_bytes=full.max_bytes, memory_bytes=CHECKSUM_BLOCK) as source:
        source.will_need([(0, 0, len(TOKENS[0]))])
        check_everything(source)
        assert source.counters.bypasses > 0
        assert (source.counters.evictions, source.counters.cache_errors) == (0, 0)
    assert used.read(0, CHECKSUM_BLOCK) == bytes(CHECKSUM_BLOCK)
    used.free()


def test_a_folder_that_cannot_be_written(server: RangeServer, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_bytes(b"")
    with source_of(server, tmp_path / "file") as source:
        check_everything(source)
        assert source.counters.cache_errors > 0
    assert len(caplog.records) == 1


def test_a_folder_removed_during_use(server: RangeServer, tmp_path: Path) -> None:
    """All tokens are delivered, whatever a thread is writing at that moment."""
    with source_of(server, tmp_path / "cache") as source:
        for _ in range(3):
            check_everything(source)
            source.will_need([(0, 0, len(TOKENS[0]))])
            shutil.rmtree(tmp_path / "cache", ignore_errors=True)
        check_everything(source)
        source.done_with([(shard, 0, len(tokens)) for shard, tokens in enumerate(TOKENS)])
        check_everything(source)
        assert source.counters.repairs == source.counters.mismatches == 0


def test_a_small_cache(server: RangeServer, tmp_path: Path) -> None:
    """Two blocks fit: all tokens are delivered, no open block is evicted, the bound holds."""
    bound = 2 * CHECKSUM_BLOCK + 1000
    with source_of(server, tmp_path, cache_bytes=bound) as source:
        for _ in range(2):
            check_everything(source)
            assert sum(path.stat().st_size for path in (tmp_path / "blocks").glob("*/*")) <= bound
        assert source.counters.evictions > 0


def test_threads_fetch_a_block_once(server: RangeServer, tmp_path: Path) -> None:
    with source_of(server, tmp_path) as source:
        threads = [threading.Thread(target=check, args=(source, 3, i, 100)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert server.requests == [(name_of(3), 0, CHECKSUM_BLOCK)]
        assert source.counters.cache_hits + source.counters.cache_misses == 8


def _rank(url: str, folder: Path, results: Any) -> None:
    store = HttpStore(url, FETCH)
    params = RemoteParams(cache=folder, threads=2, fetch=FETCH, peer_wait=30)
    source = RemoteSource(store, entries(), np.uint16, corpus="c", params=params)
    try:
        check_everything(source)
        results.put(source.counters.requests)
    finally:
        source.close()
        store.close()


@one_commit_in_four
def test_ranks_of_a_host_fetch_a_block_once(server: RangeServer, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    ranks = [context.Process(target=_rank, args=(server.url, tmp_path, results)) for _ in range(3)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
        assert rank.exitcode == 0
    assert sum(results.get() for _ in ranks) == len(server.requests) == 5
    results.close()
    results.join_thread()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")  # Python 3.12 and later
def test_in_a_forked_child(server: RangeServer, tmp_path: Path) -> None:
    """Like a DataLoader worker: the parent's threads, locks and connections are not used, and its locks stay locked."""
    with source_of(server, tmp_path) as source:
        check(source, 0, 0, 10)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                check_everything(source)
                source.close()
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        check_everything(source)


def test_closed(server: RangeServer, tmp_path: Path) -> None:
    with source_of(server, tmp_path) as source:
        source.will_need([(0, 0, 10)])
        source.close()
        source.close()
        with pytest.raises(RuntimeError, match="closed"):
            check(source, 0, 0, 10)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cache_bytes": -1}, "cache_bytes: -1 given"),
        ({"peer_wait": -1}, "peer_wait: -1 given"),
        ({"memory_bytes": 1}, "memory_bytes: 1 given"),
        ({"request_bytes": CHECKSUM_BLOCK - 1}, "request_bytes: .* given"),
        ({"threads": 0}, "threads: 0 given"),
        ({"open_blocks": 0}, "open_blocks: 0 given"),
    ],
)
def test_params(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RemoteParams(**changes)


def test_corpus_over_http(server: RangeServer, tmp_path: Path) -> None:
    root = build_corpus(tmp_path / "corpus")
    server.files = {f"c/{p.relative_to(root)}": p.read_bytes() for p in root.rglob("*") if p.is_file()}
    server.script = deque(["503", "reset", "", "short"])
    store = HttpStore(f"{server.url}/c", FETCH)
    corpus = Corpus(store)
    assert corpus.manifest == read_manifest(open_store(root))
    for remote, local in zip(corpus.shards(), Corpus(str(root)).shards(), strict=True):
        assert [list(remote[i]) for i in range(len(remote))] == [list(local[i]) for i in range(len(local))]
        assert remote.provenance().equals(local.provenance())
        assert read_file(store, remote.entry.idx) == (root / remote.entry.idx.path).read_bytes()
    with pytest.raises(FormatError, match=r"is not a corpus: manifest.json is missing"):
        read_manifest(HttpStore(f"{server.url}/other", FETCH))
    store.close()


def test_read_file(server: RangeServer) -> None:
    server.files["x"] = b"index"
    store = HttpStore(server.url, FETCH)
    entry = FileEntry("x", *checksums(b"index"))
    server.script = deque(["wrong"])
    assert read_file(store, entry) == b"index"
    server.files["x"] = b"inDex"
    with pytest.raises(CorruptShard, match=r"x: crc32c \w+ found, \w+ expected; sha256 \w+ found, "):
        read_file(store, entry)
    with pytest.raises(FormatError, match="y: missing, 5 bytes expected"):
        read_file(store, replace(entry, path="y"))
    store.close()


def test_imports() -> None:
    """Reading over https imports neither Google's libraries nor Beam nor torch."""
    script = (
        "import sys; from refinery.loader.read.token_source import open_token_source; "
        "from refinery.loader.storage.open_store import open_store;"
        "open_store('https://host/x'); open_store('gs://b/x');"
        "assert not {'google.cloud.storage', 'requests', 'apache_beam', 'torch'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_a_group_that_this_process_is_fetching_is_fetched_beside_it(server: RangeServer, tmp_path: Path) -> None:
    """A thread that stores one block of a group does not keep the others waiting, to be asked for one by one."""
    with source_of(server, tmp_path) as source:
        reader, _ = source._running()
        file = source._file(0)
        with reader.cache.fetching(file.id, 0) as mine:
            assert mine
            source.will_need([(0, 0, len(TOKENS[0]))])
            wait_for(lambda: all(reader.cache.has(Key(file.id, block)) for block in range(3)))


def test_a_group_that_another_process_is_fetching_is_asked_for_again(
    server: RangeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = BlockCache(tmp_path, 1 << 24, ReadCounters())  # locks are its own, as another process's are
    with source_of(server, tmp_path) as source:
        reader, _ = source._running()
        file, fetch, found = source._file(0), reader.fetch_ahead, []

        def noted(file: RemoteFile, blocks: Sequence[int]) -> bool:
            found.append(fetch(file, blocks))
            return found[-1]

        monkeypatch.setattr(reader, "fetch_ahead", noted)
        with other.fetching(file.id, 0) as mine:
            assert mine
            source.will_need([(0, 0, len(TOKENS[0]))])
            wait_for(lambda: len(found) == 3)
            assert not any(found)
            assert not server.requests
        wait_for(lambda: all(reader.cache.has(Key(file.id, block)) for block in range(3)))
        check_everything(source)
        assert source.counters.prefetch_dropped == 0
