"""Requests in flight: more while the server answers, half as many when it refuses, urgent ones beside the others."""

import threading
import time
from collections import deque
from pathlib import Path

import pytest

from refinery.loader.format.block_checksums import CHECKSUM_BLOCK, block_checksums
from refinery.loader.format.manifest import FileEntry
from refinery.loader.read.remote.blocks import RemoteParams
from refinery.loader.read.remote.remote_bytes import RemoteBytes
from refinery.loader.storage.http_store import HttpStore
from refinery.loader.storage.pace import FIRST, MOST_BYTES, Pace
from refinery.loader.storage.store import checksums
from tests.loader.range_server import RangeServer
from tests.loader.remote_split import FETCH, check_everything, serving, source_of, wait_for
from tests.sampling import one_commit_in_four

FAR = time.monotonic() + 10_000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_slow_start_then_a_request_for_each_round(clock: list[float]) -> None:
    pace = Pace(32)
    assert pace.limit == FIRST
    for _ in range(8):
        pace.answered()
    assert pace.limit == 16  # twice as many after a round
    pace.refused(0)
    assert pace.limit == 8
    for _ in range(9):
        pace.answered()
    assert pace.limit == 9  # one more after a round
    for _ in range(10_000):
        pace.answered()
    assert pace.limit == 32


def test_refusals_of_one_burst_count_once(clock: list[float]) -> None:
    pace = Pace(32)
    for _ in range(20):
        pace.refused(0)
    assert pace.limit == FIRST // 2
    for _ in range(9):
        clock[0] += 2
        pace.refused(0)
    assert pace.limit == 1  # never none
    pace.answered()
    assert pace.limit == 2


def enters(pace: Pace, size: int, urgent: bool, seconds: float = 0.05) -> bool:
    """Whether a request starts, held by a thread until the test's end; otherwise it waits on."""
    inside = threading.Event()

    def hold() -> None:
        with pace.slot(size, urgent, FAR):
            inside.set()
            time.sleep(1)

    threading.Thread(target=hold, daemon=True).start()
    return inside.wait(seconds)


def test_urgent_requests_do_not_wait_for_others_and_both_are_bounded() -> None:
    pace = Pace(2)
    assert [enters(pace, 1, False) for _ in range(3)] == [True, True, False]
    assert [enters(pace, 1, True) for _ in range(3)] == [True, True, False]
    pace.stop()


def test_bytes_in_flight_are_bounded() -> None:
    pace = Pace(8)
    assert enters(pace, 2 * MOST_BYTES, False)  # a single one may be larger
    assert not enters(pace, 1, False)
    assert enters(pace, 2 * MOST_BYTES, True)
    pace.stop()


def test_all_that_wait_get_their_turn() -> None:
    """More than there are slots for, of several sizes and both classes."""
    pace, served = Pace(3), []

    def request(number: int) -> None:
        with pace.slot((1 + number % 3) * MOST_BYTES // 3, number % 4 == 0, FAR):
            served.append(number)
        pace.answered()

    threads = [threading.Thread(target=request, args=(number,), daemon=True) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(served) == list(range(40))


def test_nothing_starts_before_the_server_wants_it() -> None:
    pace = Pace(8)
    pace.refused(0.2)
    assert not enters(pace, 1, True, 0.02)
    started = time.monotonic()
    with pace.slot(1, True, FAR):
        assert time.monotonic() - started > 0.05


def test_waiting_ends_at_the_deadline_and_when_it_is_stopped() -> None:
    pace = Pace(1)
    with pace.slot(1, False, FAR):
        with pace.slot(1, False, time.monotonic() + 0.01):
            pass  # the caller finds that the time is over
        pace.stop()
        with pace.slot(1, False, FAR):
            pass


@pytest.mark.parametrize("status", ["429", "503"])
def test_a_server_that_refuses_is_asked_less(status: str, tmp_path: Path) -> None:
    with serving() as server, source_of(server, tmp_path, threads=4) as source:
        server.script = deque([status] * 3)
        check_everything(source)
        reader, _ = source._running()
        assert reader._fetcher.pace.limit < 4
        assert source.counters.retries == 3


@one_commit_in_four
def test_neighbouring_blocks_that_are_needed_later_are_one_request(tmp_path: Path) -> None:
    """Rows of a small corpus are anywhere: beyond the first ones, blocks of a group are fetched together."""
    size = 64 * CHECKSUM_BLOCK
    with serving() as server:
        begins = [i * 7 % 64 * CHECKSUM_BLOCK for i in range(64)]
        requests = announced(server, tmp_path, [(0, begin, begin + 9) for begin in begins], size)
    assert sorted(block for first, stop in requests for block in range(first, stop)) == list(range(64))  # each once
    first = {(i * 7 % 64, i * 7 % 64 + 1) for i in range(16)}
    assert first <= set(requests)  # what is needed first is fetched alone
    assert len(requests) <= 16 + 2 * 8 + 16  # the other 48 in the runs that are left of 8 groups


def announced(
    server: RangeServer, folder: Path, ranges: list[tuple[int, int, int]], size: int
) -> list[tuple[int, int]]:
    """The requests, in blocks, that announcing these ranges of a file of `size` zeros makes."""
    data = bytes(size)
    server.files["zeros"] = data
    entry = FileEntry("zeros", *checksums(data), block_crc32c=block_checksums(data))
    store = HttpStore(server.url, FETCH)
    params = RemoteParams(cache=folder, threads=1, stagger=0, fetch=FETCH)
    source = RemoteBytes(store, [entry], corpus="c", params=params)
    try:
        source.expect_bytes(ranges)
        wait_for(lambda: len(list((folder / "blocks").glob("*/0*"))) == size // CHECKSUM_BLOCK)
    finally:
        source.close()
        store.close()
    return [(start // CHECKSUM_BLOCK, stop // CHECKSUM_BLOCK) for _, start, stop in server.requests]
