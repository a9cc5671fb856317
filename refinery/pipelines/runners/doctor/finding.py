"""What the doctor says: one line each, ok, a warning or a problem."""

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

T = TypeVar("T")


class State(StrEnum):
    """ok: as it should be. warning: a run may fail or be slow. problem: a run will fail."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Finding:
    """check: what was looked at. text: one sentence; of a warning or a problem it says what to do next."""

    check: str
    state: State
    text: str

    def line(self) -> str:
        """As people read it; an error's further lines are joined."""
        return f"{self.state:<8} {self.check}: {' '.join(self.text.split())}"


def ok(check: str, text: str) -> Finding:
    return Finding(check, State.OK, text)


def warning(check: str, text: str) -> Finding:
    return Finding(check, State.WARNING, text)


def problem(check: str, text: str) -> Finding:
    return Finding(check, State.PROBLEM, text)


def within(seconds: float, call: Callable[[], T]) -> T:
    """`call()`, or TimeoutError after so many seconds; raises what the call raises.

    For calls that reach over the network, whose own retries take minutes. One that is late goes on in a daemon thread,
    whose answer nobody reads.
    """
    answers: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            answers.put((call(), None))
        except BaseException as error:  # noqa: BLE001 - raised below, in the thread that asked
            answers.put((None, error))

    threading.Thread(target=run, daemon=True).start()
    try:
        value, error = answers.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"no answer within {seconds:g} seconds") from None
    if error is not None:
        raise error
    return value  # type: ignore[return-value]  # of a call that raised nothing
