"""Python code in any thread is stopped in time, and nothing is raised after that."""

import contextlib
import multiprocessing
import subprocess
import sys
import threading
import time

import pytest

from refinery.transforms.extract import time_limit
from refinery.transforms.extract.time_limit import call_within
from tests.sampling import one_commit_in_four, scaled


@pytest.fixture(autouse=True)
def soon_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limit, "AGAIN", 0.3)


def spin(seconds: float = 60.0) -> str:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    return "done"


def spin_and_swallow() -> str:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with contextlib.suppress(Exception):  # what a library may do
            spin()
    return "done"


def swallow_everything_once() -> str:
    with contextlib.suppress(BaseException):  # what a library should not do
        spin()
    return spin()


class SpinsWhenFreed:
    """Python can only report what is raised in a finalizer."""

    def __del__(self) -> None:
        spin(0.5)


def spin_in_a_finalizer() -> str:
    SpinsWhenFreed()
    return spin()


def test_a_quick_call_returns_its_value_and_raises_its_errors() -> None:
    assert call_within(10, lambda: "value") == "value"
    with pytest.raises(KeyError):
        call_within(10, lambda: dict[str, str]()["missing"])


@pytest.mark.parametrize("function", [spin, spin_and_swallow, swallow_everything_once, spin_in_a_finalizer])
def test_a_long_call_is_stopped(function) -> None:  # type: ignore[no-untyped-def]
    assert call_within(0.2, function) is None
    assert spin(0.6) == "done"  # and nothing comes later


def test_other_errors_of_finalizers_are_still_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    class Raises:
        def __del__(self) -> None:
            raise KeyError("in a finalizer")

    call_within(1, lambda: "the hook is in place")
    reported: list[type[BaseException]] = []
    monkeypatch.setattr(time_limit, "_report_unraisable", lambda unraisable: reported.append(unraisable.exc_type))
    Raises()
    assert call_within(0.2, spin_in_a_finalizer) is None
    assert reported == [KeyError]


STEP = scaled(4, 10) / 1000


@one_commit_in_four
def test_calls_that_end_about_when_their_time_does_never_leak() -> None:
    outcomes = [call_within(0.1, lambda i=i: spin(0.09 + i * STEP)) for i in range(scaled(40, 16))]  # type: ignore[misc]
    assert set(outcomes) <= {"done", None}
    assert spin(0.3) == "done"


@one_commit_in_four
def test_other_threads_are_left_alone() -> None:
    results: dict[str, str | None] = {}
    threads = [
        threading.Thread(target=lambda: results.update(short=call_within(0.2, spin))),
        threading.Thread(target=lambda: results.update(long=call_within(30, lambda: spin(0.8)))),
        threading.Thread(target=lambda: results.update(free=spin(0.8))),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {"short": None, "long": "done", "free": "done"}


TRACED = """
import sys
from refinery.transforms.extract.time_limit import call_within

def spin():
    while True:
        pass

def trace(*_):
    return trace

assert call_within(30, lambda: "in time") == "in time"
for seconds in (30, 0.1):
    call_within(seconds, spin if seconds < 1 else list)
    sys.settrace(trace)
    (lambda: 1)()
    sys.settrace(None)
print("returned")
"""


def test_calls_are_traced_afterwards() -> None:
    """By debuggers and profilers, which Python 3.11 never comes back from while it looks for an exception in vain."""
    done = subprocess.run([sys.executable, "-c", TRACED], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("returned\n", "")


def _in_child(queue: "multiprocessing.Queue[str | None]") -> None:
    queue.put(call_within(0.2, spin))


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_it_works_in_a_forked_process() -> None:
    call_within(1, lambda: "started here")
    context = multiprocessing.get_context("fork")
    queue: multiprocessing.Queue[str | None] = context.Queue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=30) is None
    child.join()
