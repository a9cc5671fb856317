"""What every check of `refinery verify` ends with: what was read, every failure, and the verdict."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from refinery.pipelines.corpus.checks.file_checks import collect, verdict_lines


@dataclass
class Verdict:
    """The result of verify. failures: each names the file, what was found and what was expected."""

    prefix: str
    failures: list[str] = field(default_factory=list)
    documents: int = 0
    tokens: int = 0
    seconds: float = 0.0

    def read_lines(self) -> list[str]:
        """For the terminal: what was read."""
        raise NotImplementedError

    def summary_lines(self) -> list[str]:
        """For the terminal: what was read, one line per failure, and the verdict."""
        return [*self.read_lines(), *verdict_lines(self.failures)]


V = TypeVar("V", bound=Verdict)


def reach(verdict: V, what: str, check: Iterable[str]) -> V:
    """The verdict with all failures of a check and the time that it took. what: is named by a failure of the check
    itself. Never raises for what the check finds."""
    start = time.perf_counter()
    verdict.failures += collect(what, check)
    verdict.seconds = time.perf_counter() - start
    return verdict
