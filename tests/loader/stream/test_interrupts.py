"""A KeyboardInterrupt at any call inside the loader, and threads that share a stream: nothing is lost or repeated.

Python delivers a signal when a function is entered and when one written in C returns: the events of sys.setprofile.
"""

import contextlib
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from refinery.loader import TokenStream
from refinery.loader.order.order import OrderParams
from refinery.loader.stream.prefetch import Prefetcher
from refinery.loader.stream.telemetry import FOLD, Telemetry
from tests.loader.numbered import build_numbered
from tests.sampling import ROOT, one_commit_in_four, spread

PLACES = ("/loader/", "threading.py", "weakref.py")


class Interrupt:
    """Raises KeyboardInterrupt at event number `at`, counted from 0, of this thread; counts them otherwise."""

    def __init__(self, at: int = -1) -> None:
        self.at, self.seen = at, 0

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event not in ("call", "c_return") or not any(place in name for place in PLACES) or "/tests/" in name:
            return
        self.seen += 1
        if self.seen - 1 == self.at:
            raise KeyboardInterrupt

    def __enter__(self) -> "Interrupt":
        sys.setprofile(self)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_numbered(tmp_path_factory.mktemp("corpus"), {"a": [[40, 3], [70]], "b": [[55]]})


def stream(corpus: Path | str, **options: Any) -> TokenStream:
    shape = {"sequence_length": 7, "batch_size": 3, "order": OrderParams(2, 4, 2), "epochs": 2}
    return TokenStream(corpus, **(shape | options))


def delivered(one: TokenStream, states: list[Any], interrupt: Interrupt) -> list[bytes]:
    """All batches; wherever the interrupt comes, the state is that after those that were delivered."""
    found: list[bytes] = []
    while True:
        try:
            with interrupt:
                batch = next(one)
        except KeyboardInterrupt:
            assert one.state_dict() == states[len(found)]
            continue
        except StopIteration:
            return found
        found.append(batch["input_ids"].tobytes())


@one_commit_in_four
@pytest.mark.parametrize("prefetch, worker", [(0, (0, 1)), (1, (0, 1)), (3, (1, 2))])
def test_an_interrupt_anywhere(corpus: Path, prefetch: int, worker: tuple[int, int]) -> None:
    """In a process of its own: in one that has run thousands of tests, CPython 3.11 was seen to go round in its opcode
    for tracing (DO_TRACING, ceval.c) for ever, at the first call with a profile function."""
    alone(f"interrupt_anywhere({str(corpus)!r}, {prefetch}, {worker})")


def alone(call: str) -> None:
    """Call a function of this file in a new interpreter."""
    code = f"import {__name__} as tests; tests.{call}"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr


def interrupt_anywhere(corpus: str, prefetch: int, worker: tuple[int, int]) -> None:
    options = {"prefetch": prefetch, "worker": worker[0], "workers": worker[1]}
    with stream(corpus, **options) as one:
        whole, states = [], [one.state_dict()]
        for batch in one:
            whole.append(batch["input_ids"].tobytes())
            states.append(one.state_dict())
    with stream(corpus, **options) as one:
        counting = Interrupt()
        assert delivered(one, states, counting) == whole
    assert counting.seen > 300
    for at in sorted(spread(f"interrupts, prefetch {prefetch}", range(counting.seen), 16)):
        with stream(corpus, **options) as one:
            assert delivered(one, states, Interrupt(at)) == whole, at
            assert json.dumps(one.state_dict()) == json.dumps(states[-1])


def test_an_interrupt_inside_the_start_of_the_thread() -> None:
    alone("interrupt_starts()")


def interrupt_starts() -> None:
    """Whether it comes before the thread runs or after, the prefetcher can be closed, and no thread is left."""
    for at in range(1000):
        ahead = Prefetcher(iter(range(3)))
        interrupt = Interrupt(at)
        try:
            with interrupt:
                next(ahead)
        except KeyboardInterrupt:
            with contextlib.suppress(RuntimeError):  # finished, unless it came before anything was begun
                next(ahead)
        ahead.close()
        if interrupt.seen <= at:
            break
    assert 20 < at < 900
    while any(thread.is_alive() for thread in threading.enumerate() if thread.name == "prefetch"):
        time.sleep(0.001)  # or fail by the test's time limit
    threading._limbo.clear()  # type: ignore[attr-defined]  # those that an interrupt kept from starting, which stay there


def test_threads_that_share_a_stream_take_turns(corpus: Path) -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for prefetch in (0, 1):
            with stream(corpus, batch_size=1, epochs=20, prefetch=prefetch) as one:
                expected = sorted(batch["input_ids"].tobytes() for batch in one)
            found: list[bytes] = []
            with stream(corpus, batch_size=1, epochs=20, prefetch=prefetch) as one:

                def take(one: TokenStream = one, found: list[bytes] = found) -> None:
                    for batch in one:
                        found.append(batch["input_ids"].tobytes())
                        if len(found) % 10 == 0:
                            assert one.state_dict()["usage"] is not None

                threads = [threading.Thread(target=take) for _ in range(4)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                assert one.state_dict()["epoch"] == 20
            assert sorted(found) == expected
    finally:
        sys.setswitchinterval(before)


def test_an_interrupted_fold_loses_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    telemetry = Telemetry()
    fold = telemetry._fold
    monkeypatch.setattr(telemetry, "_fold", lambda: (_ for _ in ()).throw(KeyboardInterrupt))
    for _ in range(FOLD - 1):
        telemetry.record(1)
    with pytest.raises(KeyboardInterrupt):
        telemetry.record(1)
    monkeypatch.setattr(telemetry, "_fold", fold)
    for _ in range(FOLD):
        telemetry.record(1)
    assert telemetry.snapshot()["steps"] == 2 * FOLD


def test_an_interrupt_while_the_lock_is_given_back_is_that_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """threading.Condition.wait, interrupted once its lock is free: leaving the `with` is then an error of the lock."""
    ahead = Prefetcher(iter(range(3)))
    channel = ahead._channel
    channel._maker = -1  # another thread

    def wait() -> None:
        channel._lock.release()
        raise KeyboardInterrupt

    monkeypatch.setattr(channel._changed, "wait", wait)
    with pytest.raises(KeyboardInterrupt):
        ahead.close()
