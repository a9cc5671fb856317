"""A small split behind a range server: its tokens, manifest entries, and sources that read it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from refinery.loader.format.block_checksums import CHECKSUM_BLOCK, block_checksums
from refinery.loader.format.manifest import FileEntry, ShardEntry
from refinery.loader.read.local.local_source import LocalSource
from refinery.loader.read.remote.blocks import RemoteParams
from refinery.loader.read.remote.remote_source import RemoteSource
from refinery.loader.storage.fetch import FetchParams
from refinery.loader.storage.http_store import HttpStore
from refinery.loader.storage.store import checksums
from tests.loader.range_server import RangeServer, range_server

# No hedges and long timeouts, so that counts do not depend on the load of the machine.
FETCH = FetchParams(deadline=60, first_delay=0.005, max_delay=0.02, hedge_after=0)
SHORT_TIMEOUT = replace(FETCH, read_timeout=0.1)
HEDGED = replace(FETCH, hedge_after=0.05, hedge_share=1.0)
SIZES = (
    2 * CHECKSUM_BLOCK + 5000,
    3000,
    0,
    CHECKSUM_BLOCK,
)  # bytes of the shards: more than two blocks, less than one, none, just one


def tokens_of(shard: int) -> npt.NDArray[np.uint16]:
    return np.random.default_rng(shard).integers(0, 60_000, SIZES[shard] // 2, dtype=np.uint16)


TOKENS = [tokens_of(shard) for shard in range(len(SIZES))]


def name_of(shard: int) -> str:
    return f"train/web/shard-{shard:05d}-of-00004.bin"


def entries() -> list[ShardEntry]:
    found = []
    for shard, tokens in enumerate(TOKENS):
        data = tokens.tobytes()
        file = FileEntry(name_of(shard), *checksums(data), block_crc32c=block_checksums(data))
        other = FileEntry(name_of(shard)[:-3] + "idx", *checksums(b"index"))
        found.append(ShardEntry("train", "web", shard, 4, 1, len(tokens), (file, other), other))
    return found


@contextmanager
def source_of(server: RangeServer, folder: Path, **params: Any) -> Iterator[RemoteSource]:
    store = HttpStore(server.url, params.get("fetch", FETCH))
    defaults: dict[str, Any] = {"cache": folder, "threads": 2, "stagger": 0.0, "fetch": FETCH}
    chosen = RemoteParams(**defaults | params)
    source = RemoteSource(store, entries(), np.uint16, corpus="c", params=chosen)
    try:
        yield source
    finally:
        source.close()
        store.close()


def check(source: RemoteSource | LocalSource, shard: int, start: int, count: int, dtype: Any = np.int64) -> None:
    out = np.full(count, 7, dtype)
    source.read_into(shard, start, out)
    np.testing.assert_array_equal(out, TOKENS[shard][start : start + count])


def check_everything(source: RemoteSource | LocalSource) -> None:
    for shard, tokens in enumerate(TOKENS):
        for start in range(0, len(tokens), 300_000):
            check(source, shard, start, min(300_000, len(tokens) - start))


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.002)


@contextmanager
def serving() -> Iterator[RangeServer]:
    """A server with the .bin of all shards."""
    with range_server() as server:
        server.files = {name_of(shard): tokens.tobytes() for shard, tokens in enumerate(TOKENS)}
        yield server
