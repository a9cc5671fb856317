"""Faults of network, server and cache: the tokens are right, or an error names the fault."""

import base64
import random
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import google_crc32c
import numpy as np
import pytest

from refinery.loader.errors import CorruptShard, FormatError
from refinery.loader.format.block_checksums import CHECKSUM_BLOCK, block_checksums
from refinery.loader.read.remote.blocks import BlockReader, RemoteParams
from refinery.loader.read.remote.cache import BlockCache
from refinery.loader.read.remote.remote_file import RemoteFile
from refinery.loader.read.remote.remote_source import RemoteSource
from refinery.loader.read.token_source import open_token_source
from refinery.loader.storage.fetch import FetchError, ReadCounters
from refinery.loader.storage.gcs_store import GcsStore
from refinery.loader.storage.http_store import HttpStore
from tests.fake_gcs import FakeGcs, fake_gcs
from tests.loader.range_server import FAULTS, RangeServer
from tests.loader.remote_split import (
    FETCH,
    HEDGED,
    SHORT_TIMEOUT,
    SIZES,
    TOKENS,
    check,
    check_everything,
    entries,
    name_of,
    source_of,
    wait_for,
)
from tests.sampling import sampled


@pytest.mark.parametrize("fault", sampled("faults of remote sources", FAULTS, 7))
def test_faults(server: RangeServer, tmp_path: Path, fault: str) -> None:
    """Each fault in the first and third response costs only time, never a wrong token."""
    server.script = deque([fault, "", fault])
    fetch = {"trickle": HEDGED, "stall": SHORT_TIMEOUT, "stall in body": SHORT_TIMEOUT}.get(fault, FETCH)
    with source_of(server, tmp_path, fetch=fetch) as source:
        check_everything(source)
        counters = source.counters
        assert counters.retries + counters.hedges + counters.mismatches > 0 or fault == "garbage"
        assert counters.prefetch_errors == counters.cache_errors == counters.repairs == 0
    assert not server.script


@pytest.mark.parametrize("fault", ["503", "reset", "short", "stall", "content-range", "gzip", "200"])
def test_a_permanent_fault(server: RangeServer, tmp_path: Path, fault: str) -> None:
    """An error with file, range, attempts and last cause."""
    server.script = deque([fault] * 10_000)
    fetch = replace(FETCH, deadline=0.12, read_timeout=0.05)
    with source_of(server, tmp_path, fetch=fetch) as source, pytest.raises(FetchError) as caught:
        check(source, 0, 0, 10)
    message = str(caught.value)
    assert message.startswith(f"{server.url}/{name_of(0)}: bytes 0 to {CHECKSUM_BLOCK}: ")
    assert caught.value.attempts >= 1
    assert "attempt" in message and "last: " in message


@pytest.mark.parametrize("status", ["401", "403", "400", "304"])
def test_refusals_are_not_retried(server: RangeServer, tmp_path: Path, status: str) -> None:
    server.script = deque([status])
    with source_of(server, tmp_path) as source, pytest.raises(FetchError, match=f"1 attempt in .*status {status}"):
        check(source, 0, 0, 10)


@pytest.mark.parametrize("status", ["404", "410"])
def test_a_missing_file(server: RangeServer, tmp_path: Path, status: str) -> None:
    server.script = deque([status])
    message = f"{name_of(0)}: missing, {SIZES[0]} bytes expected"
    with source_of(server, tmp_path) as source, pytest.raises(FormatError, match=message):
        check(source, 0, 0, 10)


def test_a_changed_object(server: RangeServer, tmp_path: Path) -> None:
    server.script = deque(["", "etag"])
    with source_of(server, tmp_path) as source:
        check(source, 0, 0, 10)
        with pytest.raises(FetchError, match=r'the object has changed: ETag "changed" found, .* expected'):
            check(source, 0, CHECKSUM_BLOCK // 2, 10)


def flip(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def test_a_wrong_object(server: RangeServer, tmp_path: Path) -> None:
    """The wrong block is reported after a second read; other blocks are served."""
    sound = server.files[name_of(0)]
    server.files[name_of(0)] = flip(sound, CHECKSUM_BLOCK + 9)
    values = [
        f"{google_crc32c.value(data[CHECKSUM_BLOCK : 2 * CHECKSUM_BLOCK]):08x}"
        for data in (server.files[name_of(0)], sound)
    ]
    with source_of(server, tmp_path) as source:
        check(source, 0, 0, 1000)
        with pytest.raises(
            CorruptShard, match=f"{name_of(0)}: block 1: crc32c {values[0]} found, {values[1]} expected"
        ):
            check(source, 0, CHECKSUM_BLOCK // 2, 10)
        assert source.counters.mismatches == 2
        check(source, 0, CHECKSUM_BLOCK, 1000)


def test_wrong_bytes_once(server: RangeServer, tmp_path: Path) -> None:
    server.script = deque(["wrong"])
    with source_of(server, tmp_path) as source:
        check_everything(source)
        assert source.counters.mismatches == 1


def test_the_servers_checksum(server: RangeServer, tmp_path: Path) -> None:
    """x-goog-hash is of the whole object: a different object is rejected at its first block."""
    server.goog_hash = "crc32c=" + base64.b64encode(bytes(4)).decode() + ",md5=CS9tHYTtyFntzj7B9nkkJQ=="
    with (
        source_of(server, tmp_path) as source,
        pytest.raises(CorruptShard, match="crc32c 00000000 of the whole object found"),
    ):
        check(source, 0, 0, 10)


def test_another_size(server: RangeServer, tmp_path: Path) -> None:
    server.files[name_of(3)] += b"more"
    with (
        source_of(server, tmp_path) as source,
        pytest.raises(CorruptShard, match=f"{CHECKSUM_BLOCK + 4} bytes found, {CHECKSUM_BLOCK} expected"),
    ):
        check(source, 3, 0, 10)


def test_contradicting_manifest(server: RangeServer, tmp_path: Path) -> None:
    file = RemoteFile("c", name_of(1), 3000, "00000000", block_checksums(TOKENS[1].tobytes()))
    store = HttpStore(server.url, FETCH)
    reader = BlockReader(store, RemoteParams(cache=tmp_path, fetch=FETCH), store.counters)
    with pytest.raises(FormatError, match="block_crc32c combine to"):
        reader.read(file, 0, 10)
    reader.close()
    assert server.requests == []


def damage(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    kind = rng.randrange(4)
    if kind == 0:
        del data[rng.randrange(len(data)) :]
    elif kind == 1:
        data += b"more"
    else:
        for _ in range(1 + rng.randrange(3)):
            last = min(300, len(data))  # footer and page checksums
            data[rng.randrange(len(data)) if kind == 2 else -1 - rng.randrange(last)] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def test_damaged_cache_is_repaired(server: RangeServer, tmp_path: Path) -> None:
    """Before a source opens a block and while it is open: flipped bits, truncation, appended bytes."""
    rng = random.Random(5)
    with source_of(server, tmp_path) as first:
        check_everything(first)
        for round_ in range(12):
            for path in rng.sample(sorted((tmp_path / "blocks").glob("*/0*")), 2):
                damage(path, rng)
            check_everything(first)
            if round_ % 3 == 0:
                with source_of(server, tmp_path) as fresh:
                    check_everything(fresh)
        assert first.counters.repairs > 0
        assert first.counters.mismatches == 0


def test_failed_read_ahead_is_only_counted(server: RangeServer, tmp_path: Path) -> None:
    server.scripts[name_of(0)] = deque(["403"])
    with source_of(server, tmp_path) as source:
        source.will_need([(0, 0, 10)])
        wait_for(lambda: source.counters.prefetch_errors == 1)
        check(source, 0, 0, 10)


def test_waiting_for_another_process_is_bounded(server: RangeServer, tmp_path: Path) -> None:
    """It may be suspended while it holds the lock of a group."""
    with source_of(server, tmp_path, peer_wait=0.01) as source:
        others = BlockCache(tmp_path, CHECKSUM_BLOCK, ReadCounters())
        with others.fetching(source._file(0).id, 0) as mine:
            assert mine
            check(source, 0, 0, 10)
            assert source.counters.requests == 1
            source.will_need([(0, 0, len(TOKENS[0]))])  # put back again and again


def test_a_slow_answer_is_hedged(server: RangeServer, tmp_path: Path) -> None:
    server.script = deque(["stall in body"])
    with source_of(server, tmp_path, fetch=HEDGED) as source:
        check(source, 0, 0, 10)
        assert (source.counters.hedges, source.counters.hedge_wins, source.counters.retries) == (1, 1, 0)


@pytest.fixture(scope="module")
def gcs() -> Iterator[FakeGcs]:
    with pytest.MonkeyPatch.context() as patch, fake_gcs("bucket") as server:
        server.use(patch)
        yield server


@pytest.mark.parametrize("fault", ["", "408", "429", "500", "503", "reset", "short", "wrong", "stall", "200"])
def test_gcs(gcs: FakeGcs, tmp_path: Path, fault: str) -> None:
    gcs.objects.clear()
    for shard, tokens in enumerate(TOKENS):
        gcs.put("bucket", f"p/{name_of(shard)}", tokens.tobytes())
    gcs.stall = 0.4
    gcs.script = deque([fault, "", fault])
    fetch = SHORT_TIMEOUT if fault == "stall" else FETCH
    store = GcsStore("gs://bucket/p", fetch)
    params = RemoteParams(cache=tmp_path, threads=2, fetch=fetch)
    source = open_token_source(store, entries(), np.uint16, corpus="c", params=params)
    assert isinstance(source, RemoteSource)
    check_everything(source)
    gcs.put("bucket", f"p/{name_of(0)}", b"replaced")  # cached blocks stay valid
    check_everything(source)
    source.close()
    store.close()


def test_gcs_changed_object(gcs: FakeGcs, tmp_path: Path) -> None:
    gcs.objects.clear()
    gcs.put("bucket", name_of(0), TOKENS[0].tobytes())
    store = GcsStore("gs://bucket", FETCH)
    source = RemoteSource(store, entries(), np.uint16, corpus="c", params=RemoteParams(cache=tmp_path, fetch=FETCH))
    check(source, 0, 0, 10)
    gcs.put("bucket", name_of(0), TOKENS[0].tobytes())
    with pytest.raises(FetchError, match=r"the object has changed: generation \d+ expected"):
        check(source, 0, CHECKSUM_BLOCK, 10)
    source.close()
    store.close()
