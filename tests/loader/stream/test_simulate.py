"""The simulation against a direct count over all positions, and the consistency of its figures."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from refinery.loader import RemoteParams, TokenStream
from refinery.loader.format.block_checksums import CHECKSUM_BLOCK
from refinery.loader.order.order import Order, OrderParams
from refinery.loader.storage.open_store import open_store
from refinery.loader.stream import simulate as module
from refinery.loader.stream.schedule import rows_of_rank
from refinery.loader.stream.simulate import SimulateParams, format_report, main, simulate
from tests.loader.numbered import build_numbered
from tests.loader.range_server import range_server
from tests.sampling import one_commit_in_four

SMALL = SimulateParams(
    tokens=10**9 + 5,
    world_size=32,
    ranks_per_host=4,
    sequence_length=1024,
    batch_size=4,
    shard_tokens=10**8,
    tokens_per_second=2000,
    hours=1000,
    order=OrderParams(block=1024, lanes=8, window=8),
)


@pytest.fixture(scope="module")
def small() -> dict[str, Any]:
    return simulate(SMALL)


def test_an_epoch_is_simulated_at_most(small: dict[str, Any]) -> None:
    assert small["samples_delivered"] == small["samples_in_epoch"] == -(-(10**9 + 5) // 1024)
    assert small["hours"] < 1000 and small["hosts"] == 8


def test_a_lane_per_host_is_read_about_once(small: dict[str, Any]) -> None:
    assert small["hosts_per_window_mean"] == 1
    assert 1 < small["read_amplification"] < 1.6  # 2 MB blocks that start anywhere in 1 MiB blocks of a file
    assert small["bytes_per_second_fetched"] == pytest.approx(
        small["bytes_per_second_delivered"] * small["read_amplification"], rel=1e-4
    )


@one_commit_in_four
@pytest.mark.parametrize("lanes, hosts_per_window", [(4, 2), (2, 4), (1, 8), (16, 1)])
def test_fewer_lanes_than_hosts_are_read_by_several(small: dict[str, Any], lanes: int, hosts_per_window: int) -> None:
    found = simulate(replace(SMALL, order=OrderParams(1024, lanes, 8)))
    assert found["hosts_per_window_mean"] == hosts_per_window
    # Each reads all of it, but a MiB that two of its windows share only once.
    assert hosts_per_window <= found["read_amplification"] + 1e-3
    assert found["read_amplification"] < small["read_amplification"] * hosts_per_window * 1.1


def test_world_sizes_coprime_to_the_lanes_are_expensive(small: dict[str, Any]) -> None:
    found = simulate(replace(SMALL, world_size=28))
    assert found["hosts_per_window_mean"] > 3 * small["hosts_per_window_mean"]


def test_counts_equal_a_walk_through_every_position() -> None:
    """First position at which each host opens each window, by a loop over ranks and rows."""
    params = replace(SMALL, tokens=3 * 10**6, sequence_length=256, order=OrderParams(16, 8, 4), hours=1)
    order = Order(11719, seed=1, epoch=0, block=16, lanes=8, window=4)
    seen: dict[tuple[int, int], int] = {}
    for begin in range(0, order.n, 128):
        for rank in range(32):
            for j in rows_of_rank(rank, 32, 4, 8).tolist():
                if begin + j < order.n:
                    start = int(order.windows([begin + j])[0, 0])
                    seen[start, rank // 4] = min(begin + j, seen.get((start, rank // 4), order.n))
    row_host = np.empty(128, np.int64)
    for rank in range(32):
        row_host[rows_of_rank(rank, 32, 4, 8)] = rank // 4
    opened = module._opened(order.windows, order.n, row_host, 8)
    assert {(start, host): first for start, _, host, first in opened.tolist()} == seen
    assert simulate(params)["samples_in_epoch"] == order.n


@pytest.mark.parametrize("order", [OrderParams(), OrderParams(block=64, lanes=4, window=4)], ids=["default", "blocks"])
def test_a_measured_run_fetches_what_was_computed(tmp_path: Path, order: OrderParams) -> None:
    """An epoch of two hosts over http, each with a cache of its own: small blocks share MiBs, which are read once."""
    corpus = build_numbered(tmp_path / "corpus", {"a": [[500_000]] * 4}, vocab_size=3_000_000)
    store, fetched = open_store(corpus), 0
    with range_server() as server:
        server.files = {name: store.read(name) for name in store.list()}
        for rank in range(2):
            remote = RemoteParams(cache=tmp_path / str(rank), stagger=0)
            shape: dict[str, Any] = {"sequence_length": 500, "batch_size": 4, "order": order, "epochs": 1}
            with TokenStream(server.url, rank=rank, world_size=2, remote=remote, **shape) as stream:
                assert sum(1 for _ in stream) == 500
                fetched += stream.telemetry.snapshot()["counters"]["bytes"]
    computed = simulate(
        SimulateParams(
            2_000_000, 2, 1, 500, 4, token_bytes=4, shard_tokens=500_000, tokens_per_second=1e6, hours=1, order=order
        )
    )
    size = 8_000_000
    assert computed["read_amplification"] == pytest.approx(fetched / size, rel=0.05)
    assert size < fetched <= 2 * size * 1.01


def test_a_cache_that_is_too_small_loses_what_windows_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows of 8 single samples far apart: each MiB is read for many windows, unless it is still there."""
    monkeypatch.setattr(module, "_as_kept", lambda params, *_: params)  # as if the ranks of a host together needed more
    spread = replace(SMALL, world_size=1, order=OrderParams(block=1, lanes=8, window=8), tokens=4 * 10**6)
    enough, short = simulate(spread), simulate(replace(spread, cache_bytes=1 << 20))
    assert enough["read_amplification"] == pytest.approx(1, rel=1e-3)
    assert short["read_amplification"] > 30
    sizes = [replace(spread, cache_bytes=size << 20) for size in (2, 4, 6, 16)]
    found = [simulate(params)["read_amplification"] for params in sizes]
    assert found == sorted(found, reverse=True) and found[-1] == enough["read_amplification"]


def test_a_cache_that_streams_do_not_use_is_memory_or_refused(capsys: pytest.CaptureFixture[str]) -> None:
    spread = replace(SMALL, world_size=2, order=OrderParams(block=1, lanes=8, window=8), tokens=4 * 10**6)
    short = simulate(replace(spread, cache_bytes=1 << 20))
    assert short["cache_in_memory"] and short["hosts"] == 2  # two ranks of one host, each with its own
    assert short["read_amplification"] == pytest.approx(2, rel=1e-2)
    assert not simulate(spread)["cache_in_memory"]
    with pytest.raises(SystemExit):
        main(["--tokens", "1e9", "--world-size", "1", "--cache-bytes", "1e7"])
    assert "cache_bytes is 10000000 and memory_bytes 67108864, but" in capsys.readouterr().err


def test_caches_hold_the_open_windows(small: dict[str, Any]) -> None:
    """Each of 8 hosts has a lane: its window of 8 blocks of 2 MB, and for a quarter of the time the next one."""
    window = 8 * 1024 * 1024 * 2
    assert window < small["cache_bytes_per_host_max"] < 2.2 * window * 1.5
    assert small["cache_bytes_per_host_max"] % CHECKSUM_BLOCK == 0
    tight = simulate(replace(SMALL, order=OrderParams(1024, 8, 4)))
    assert tight["cache_bytes_per_host_max"] < 0.7 * small["cache_bytes_per_host_max"]


def test_windows_of_hosts_do_not_open_together(small: dict[str, Any]) -> None:
    assert small["bytes_per_second_fetched_worst_minute"] < 5 * small["bytes_per_second_fetched"]


def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--tokens", "1e7", "--world-size", "4", "--hours", "0.5", "--lanes", "8", "--ranks-per-host", "2"]
    assert main(arguments) == 0
    text = capsys.readouterr().out
    assert "4 ranks on 2 hosts" in text and "amplification" in text
    assert main([*arguments, "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    params = SimulateParams(10**7, 4, 2, hours=0.5, order=OrderParams(lanes=8))
    assert figures == simulate(params)
    assert format_report(params, figures) + "\n" == text


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--tokens", "0"], "argument --tokens: '0' given, a whole number of 1 or more is allowed"),
        (["--tokens", "1.5"], "argument --tokens: '1.5' given, a whole number of 1 or more"),
        (["--tokens", "inf"], "argument --tokens: 'inf' given, a whole number of 1 or more"),
        (["--tokens", "1e999999"], "argument --tokens: '1e999999' given, a whole number of 1 or more"),
        (["--tokens", "1e29"], f"tokens: {10**29} given, 1 to {2**60} is allowed"),
        (["--world-size", "x"], "argument --world-size: 'x' given, a whole number of 1 or more is allowed"),
        (["--world-size", "2e6"], "world_size: 2000000 given, 1 to 1048576 is allowed"),
        (["--batch-size", "1e5"], "batch_size: 100000 given, 1 to 32768 is allowed for 2048 ranks"),
        (["--cache-bytes", "5"], "cache_bytes: 5 given, 1048576 or more is allowed"),
        (["--shard-tokens", "5"], "shard_tokens: 5 given, 1000000 or more is allowed for so many tokens"),
        (["--tokens", "1e14", "--hours", "1e9"], "hours: 1000000000.0 given, fewer are allowed; at most 8589934592"),
        (["--hours", "nan"], "argument --hours: 'nan' given, a finite number above 0 is allowed"),
        (["--tokens-per-second", "fast"], "argument --tokens-per-second: 'fast' given, a finite number above 0"),
        (["--token-bytes", "3"], "token_bytes: 3 given, 2 or 4 is allowed"),
        (["--seed", "one"], "argument --seed: 'one' given, a whole number is allowed"),
        (["--seed", "1e25"], f"seed: {10**25} given, {-(2**63)} to {2**64 - 1} is allowed"),
        (["--lanes", "0"], "argument --lanes: '0' given, a whole number of 1 or more"),
        (["--window", "1e9"], "window: 1000000000 given, 1 to 16777216 is allowed"),
    ],
)
def test_wrong_arguments_are_named(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err
