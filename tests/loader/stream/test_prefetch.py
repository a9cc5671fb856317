"""Prefetching: order, bounds, errors with their traceback, and that no thread is left behind."""

import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from refinery.loader.stream import prefetch
from refinery.loader.stream.prefetch import Prefetcher

ROOT = Path(__file__).parents[3]
FOREVER = 10**18  # ns


@pytest.fixture(params=["thread", "caller", "either"])
def maker(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Items are made by the thread unless requested first, by the caller only, or by either."""
    if request.param == "thread":
        monkeypatch.setattr(prefetch, "BACK_TO_BACK_NS", 0)
    if request.param == "caller":
        monkeypatch.setattr(prefetch, "BACK_TO_BACK_NS", FOREVER)
        monkeypatch.setattr(prefetch, "BACK_TO_BACK_CALLS", 0)


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "prefetch"]


def wait_until(true: Callable[[], bool]) -> None:
    """Or fail by the test's time limit."""
    while not true():
        time.sleep(0.001)


def explode(at: int, error: BaseException | None = None) -> Iterator[int]:
    yield from range(at)
    raise error or ZeroDivisionError("in the source")


@pytest.mark.parametrize("depth", [0, 1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 2, 50])
@pytest.mark.usefixtures("maker")
def test_every_item_once_and_in_order(depth: int, count: int) -> None:
    with Prefetcher(iter(range(count)), depth) as ahead:
        assert list(ahead) == list(range(count))
        assert list(ahead) == []  # the end stays the end
    assert threads() == []


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_never_more_than_depth_items_ahead(depth: int) -> None:
    made = []

    def source() -> Iterator[int]:
        for i in range(20):
            made.append(i)
            yield i

    with Prefetcher(source(), depth) as ahead:
        assert made == []  # nothing is made before the first request
        for i in range(20):
            assert next(ahead) == i
            wait_until(lambda i=i: len(made) >= min(i + 1 + depth, 20))  # type: ignore[misc]
            assert len(made) <= i + 1 + depth


@pytest.mark.parametrize("depth", [0, 1])
@pytest.mark.usefixtures("maker")
def test_an_error_is_raised_in_order_with_its_traceback(depth: int) -> None:
    ahead = Prefetcher(explode(2), depth)
    assert [next(ahead), next(ahead)] == [0, 1]
    with pytest.raises(ZeroDivisionError, match="in the source") as caught:
        next(ahead)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert frames[-1].name == "explode"
    with pytest.raises(RuntimeError, match="the last delivery"):  # not StopIteration, the end of the data
        next(ahead)
    ahead.close()
    assert threads() == []


@pytest.mark.usefixtures("maker")
def test_base_exceptions_are_raised_too() -> None:
    with Prefetcher(explode(0, SystemExit(3))) as ahead, pytest.raises(SystemExit):
        next(ahead)


@pytest.mark.usefixtures("maker")
def test_close_ends_thread_and_source() -> None:
    closed = []

    def source() -> Iterator[int]:
        try:
            while True:
                yield 1
        finally:
            closed.append(threading.current_thread())

    ahead = Prefetcher(source())
    assert next(ahead) == 1 and len(threads()) == 1
    ahead.close()
    ahead.close()
    assert threads() == [] and len(closed) == 1
    with pytest.raises(RuntimeError, match="closed"):
        next(ahead)


def test_close_before_the_first_item_starts_nothing() -> None:
    ahead = Prefetcher(explode(0))
    ahead.close()
    with pytest.raises(RuntimeError, match="closed"):
        next(ahead)
    assert threads() == []


@pytest.mark.parametrize("cycle", [False, True])
@pytest.mark.usefixtures("maker")
def test_the_thread_ends_with_the_last_reference(cycle: bool) -> None:
    ahead = Prefetcher(iter(range(10**9)))
    assert next(ahead) == 0
    if cycle:
        ahead.me = ahead  # type: ignore[attr-defined]
    del ahead
    gc.collect()
    wait_until(lambda: threads() == [])


@pytest.mark.usefixtures("maker")
def test_an_interrupt_while_waiting_finishes_it_and_loses_no_state() -> None:
    """The caller's state is that of the last delivery; another prefetcher continues from there."""
    gate = threading.Event()

    def source(first: int) -> Iterator[int]:
        for i in range(first, 5):
            if i == 2:
                gate.wait()
            yield i

    ahead, state, seen = Prefetcher(source(0)), 0, []
    interrupt = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        for item in ahead:
            seen.append(item)
            state = item + 1
    interrupt.join()
    with pytest.raises(RuntimeError, match="interrupted"):
        next(ahead)
    gate.set()
    ahead.close()
    assert threads() == []
    seen += list(Prefetcher(source(state)))
    assert seen == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("depth", [1, 3])
def test_a_back_to_back_caller_makes_its_items_itself(monkeypatch: pytest.MonkeyPatch, depth: int) -> None:
    monkeypatch.setattr(prefetch, "BACK_TO_BACK_NS", FOREVER)

    def source() -> Iterator[int]:
        while True:
            yield threading.get_ident()

    others = set(threads())  # of tests before this one, ending
    with Prefetcher(source(), depth) as ahead:
        makers = [next(ahead) for _ in range(100)]
        assert set(makers[prefetch.BACK_TO_BACK_CALLS + depth :]) == {threading.get_ident()}
        assert len(set(threads()) - others) == 1
        monkeypatch.setattr(prefetch, "BACK_TO_BACK_NS", 0)  # the caller no longer calls back to back
        wait_until(lambda: len(ahead._channel._ready) == depth)
        assert threading.get_ident() not in [next(ahead) for _ in range(depth)]


@pytest.mark.usefixtures("maker")
def test_the_source_is_never_run_twice_at_a_time() -> None:
    """A generator would raise ValueError; this source counts concurrent calls."""
    inside, together = [0], []

    class Source:
        def __init__(self) -> None:
            self.left = 300

        def __iter__(self) -> "Source":
            return self

        def __next__(self) -> int:
            inside[0] += 1
            time.sleep(0.0001 * (self.left % 3))
            together.append(inside[0])
            inside[0] -= 1
            self.left -= 1
            if self.left < 0:
                raise StopIteration
            return self.left

    with Prefetcher(Source(), 2) as ahead:
        seen = []
        for i, item in enumerate(ahead):
            seen.append(item)
            time.sleep(0.0001 * (i % 5 // 4))
    assert seen == list(range(300))[::-1]
    assert set(together) == {1}


@pytest.mark.usefixtures("maker")
def test_close_from_another_thread_waits_for_the_current_item() -> None:
    gate, inside, closed = threading.Event(), threading.Event(), []

    def source() -> Iterator[int]:
        try:
            yield 0
            inside.set()
            gate.wait()
            yield 1
        finally:
            closed.append(True)

    ahead, raised = Prefetcher(source()), []

    def take() -> None:
        try:
            while True:
                next(ahead)
        except RuntimeError as error:
            raised.append(error)

    caller, closer = threading.Thread(target=take), threading.Thread(target=ahead.close)
    caller.start()
    inside.wait()
    closer.start()
    wait_until(lambda: ahead._channel.stopped)
    assert not closed
    gate.set()
    closer.join()
    caller.join()
    assert closed == [True] and threads() == []
    assert "closed" in str(raised[0])


def test_waiting_and_lead_are_distinguished() -> None:
    gate, made = threading.Event(), []

    def source() -> Iterator[int]:
        gate.wait()
        for i in range(2):
            made.append(i)
            yield i

    with Prefetcher(source()) as ahead:
        opener = threading.Timer(0.02, gate.set)
        opener.start()
        first = ahead.take()
        wait_until(lambda: len(made) == 2)
        time.sleep(0.02)
        second = ahead.take()
        opener.join()
    assert first.item == 0 and first.wait_ns > 0 and first.lead_ns == 0
    assert second.item == 1 and second.wait_ns == 0 and second.lead_ns > 0
    assert second.queue_ns == 0


@pytest.mark.parametrize("depth", [0, 1])
def test_the_part_of_a_wait_in_which_another_thread_made_the_item(depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that only the source moves. Who makes an item is decided by the threads; without one, the caller."""
    now, makers = [0], []

    def source() -> Iterator[int]:
        now[0] += 1000
        makers.append(threading.current_thread())
        yield 1

    monkeypatch.setattr(time, "perf_counter_ns", lambda: now[0])
    with Prefetcher(source(), depth) as ahead:
        found = ahead.take()
    own = makers == [threading.current_thread()]
    assert found.queue_ns == (0 if own else found.wait_ns)
    assert found.wait_ns == 1000 if own else found.wait_ns in (0, 1000)
    assert own or depth


@pytest.mark.usefixtures("maker")
def test_many_short_lived_prefetchers_leave_no_thread() -> None:
    for i in range(50):
        with contextlib.suppress(ZeroDivisionError), Prefetcher(explode(3), depth=2) as ahead:
            for _ in range(i % 5):
                next(ahead)
    assert threads() == []


def test_the_process_ends_while_the_thread_is_ahead() -> None:
    script = (
        "from refinery.loader.stream.prefetch import Prefetcher; import itertools\n"
        "p = Prefetcher(itertools.count()); print(next(p))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")


def test_a_fork_after_the_first_item_is_refused() -> None:
    """The thread does not exist in the child: waiting for it would never end."""
    script = """
import os, threading, warnings
from refinery.loader.stream.prefetch import Prefetcher
warnings.simplefilter("ignore")
ahead = Prefetcher(iter(range(5)))
next(ahead)
held, release = threading.Event(), threading.Event()
def hold():  # like the thread at the moment of the fork
    with ahead._channel._changed:
        held.set()
        release.wait()
threading.Thread(target=hold).start()
held.wait()
child = os.fork()
if child == 0:
    try:
        next(ahead)
    except RuntimeError as error:
        ahead.close()  # must not wait for a thread or a lock of the parent
        os._exit(42 if "forked" in str(error) else 1)
    os._exit(0)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
release.set()
print(code, next(ahead))
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("42 1\n", "")


def test_depth_below_zero() -> None:
    with pytest.raises(ValueError, match="depth: -1 given"):
        Prefetcher(iter([1]), -1)
