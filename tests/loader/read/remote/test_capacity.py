"""A cache that is too small is replaced by memory or refused, before anything is read."""

import logging
from pathlib import Path
from typing import Any

import pytest

from refinery.loader import OrderParams, RemoteParams, TokenStream
from refinery.loader.format.block_checksums import CHECKSUM_BLOCK as MIB
from refinery.loader.read.remote import capacity
from refinery.loader.read.remote.capacity import MARGIN, fit_cache
from refinery.loader.storage.open_store import open_store
from tests.loader.numbered import build_numbered
from tests.loader.range_server import range_server
from tests.sampling import one_commit_in_four


def fit(bound: int, memory: int = 64, corpus: int = 1000, live: int = 40, **more: Any) -> RemoteParams:
    """All in MiBs; `live` with the margin."""
    params = RemoteParams(cache_bytes=bound * MIB, memory_bytes=memory * MIB, **more)
    return fit_cache(params, corpus * MIB, lambda: live * MIB - MARGIN)


def test_what_is_large_enough_stays(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert fit(45, cache=tmp_path).cache_bytes == 45 * MIB  # a tenth is free after an eviction
    assert fit(16, corpus=10, cache=tmp_path).cache_bytes == 16 * MIB  # the whole corpus fits: nothing is computed
    assert not caplog.records


@pytest.mark.parametrize("ranks, enough", [("2", 85), ("8", 325), ("64", 1116), ("", 0), ("x", 0)])
def test_ranks_that_share_it_are_told(
    ranks: str, enough: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", ranks)
    assert fit(45, cache=tmp_path).cache_bytes == 45 * MIB
    assert [f"cache_bytes of {enough * MIB} is enough for all" in caplog.text] == [bool(caplog.records)] == [enough > 0]
    caplog.clear()
    fit(max(45, enough), cache=tmp_path)
    assert not enough or not caplog.records


@pytest.mark.parametrize("cache", [1, 39, 44])
def test_memory_takes_the_place_of_a_small_cache(cache: int, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "refinery.loader"):
        found = fit(cache, cache=tmp_path)
    assert (found.cache_bytes, found.memory_bytes) == (0, 64 * MIB)
    assert f"cache_bytes is {cache * MIB}, {40 * MIB} bytes are read from at a time" in caplog.text


def test_no_cache_is_no_news_while_memory_suffices(caplog: pytest.LogCaptureFixture) -> None:
    assert fit(0).cache_bytes == 0 and not caplog.records


@pytest.mark.parametrize("cache", [0, 44])
def test_neither_is_refused_with_what_to_do(cache: int, tmp_path: Path) -> None:
    message = rf"cache_bytes is {cache * MIB} and memory_bytes {39 * MIB}, but {40 * MIB} bytes .* {45 * MIB} or more"
    with pytest.raises(ValueError, match=message):
        fit(cache, memory=39, cache=tmp_path)
    assert fit(45, memory=39, cache=tmp_path).cache_bytes == 45 * MIB  # as it says


def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(capacity.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 30 * MIB}))
    (tmp_path / "usage").write_bytes((10 * MIB).to_bytes(8, "little"))  # of the cache itself: it may evict these
    with caplog.at_level(logging.WARNING, "refinery.loader"):
        assert fit(1 << 16, cache=tmp_path).cache_bytes == 0
    assert f"the cache's disk has room for {40 * MIB} bytes" in caplog.text
    (tmp_path / "usage").write_bytes((20 * MIB).to_bytes(8, "little"))
    assert fit(1 << 16, cache=tmp_path).cache_bytes == 1 << 36
    assert fit(1 << 16, cache=tmp_path / "not" / "there" / "yet").cache_bytes == 0


@one_commit_in_four
def test_a_stream_over_http(tmp_path: Path) -> None:
    """Fetched about once, with a cache for everything, with one that is too small, and with none."""
    corpus = build_numbered(tmp_path / "c", {"a": [[500_000] * 3], "b": [[700_000] * 3]}, vocab_size=7_000_000)
    store, order, weights = open_store(corpus), OrderParams(block=64, lanes=2, window=2), {"a": 1, "b": 2}
    with range_server() as server:
        server.files = {name: store.read(name) for name in store.list()}
        found = []
        for number, (cache, memory) in enumerate([(1 << 10, 1), (4, 64), (0, 64)]):
            remote = RemoteParams(
                cache=tmp_path / str(number), cache_bytes=cache * MIB, memory_bytes=memory * MIB, stagger=0
            )
            options: dict[str, Any] = {"order": order, "epochs": 1, "remote": remote, "weights": weights}
            with TokenStream(server.url, 2000, 8, **options) as stream:
                found.append([batch["input_ids"].tobytes() for batch in stream])
                assert stream.telemetry.snapshot()["counters"]["bytes"] < 1.1 * 14_400_000
        assert found[0] == found[1] == found[2]
        none = RemoteParams(cache=tmp_path / "none", cache_bytes=0, memory_bytes=MIB)
        with pytest.raises(ValueError, match="blocks would be fetched again and again"):
            TokenStream(server.url, 2000, 8, order=order, weights=weights, remote=none)
