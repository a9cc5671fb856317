"""Progress of a running job: one line that is rewritten on a terminal, a new line now and then elsewhere."""

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import TextIO

from refinery.transforms.core.counters import LIVE

LINE_SECONDS = 10.0  # between lines where the output is not a terminal


def live_totals() -> Counter[str]:
    """Totals of this process, in the form that worker pools report."""
    return Counter({f"{stage} {outcome}": n for (stage, outcome), n in LIVE.copy().items()})


def describe(totals: Counter[str], seconds: float, files: str) -> str:
    """One line: files, documents, documents/s, then what each stage has dropped so far."""
    counted = ("read kept", "kept-documents read", "url-duplicates in", "exact-duplicates in")
    documents = next((totals[name] for name in counted if totals[name]), 0)
    parts = [files] if files else []
    parts += [f"{documents:,} documents", f"{documents / max(seconds, 0.001):,.0f} documents/s"]
    lost: Counter[str] = Counter()
    for key, count in totals.items():
        stage, outcome = key.rsplit(" ", 1)
        if outcome in ("dropped", "dead"):
            lost[stage] += count
    parts += [f"{stage} -{count:,}" for stage, count in lost.items() if count > 0]
    return "  ".join(part for part in parts if part)


class Progress:
    """Shows a job's progress while it runs: `with Progress("clean 1/3", totals, files=12): ...`.

    totals: returns running totals that only grow; their values at the start are subtracted. every: seconds between
    lines where the output is not a terminal. elapsed: seconds that the job has already run. state: returns the text
    shown after the label.
    """

    def __init__(
        self,
        label: str,
        totals: Callable[[], Counter[str]],
        files: int = 0,
        out: TextIO | None = None,
        every: float = LINE_SECONDS,
        elapsed: float = 0.0,
        state: Callable[[], str] = str,
    ) -> None:
        self.label = label
        self.totals = totals
        self.every = every
        self.elapsed = elapsed
        self.state = state
        self.files = files
        self.out = out or sys.stderr
        self.live = self.out.isatty()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Progress":
        self.start = time.monotonic() - self.elapsed
        self.base = self.totals()
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if kind is None:
            self._show(final=True)

    def _run(self) -> None:
        while not self._stop.wait(0.5 if self.live else self.every):
            self._show()

    def _show(self, final: bool = False) -> None:
        seconds = time.monotonic() - self.start
        now = self.totals()
        now.subtract(self.base)
        files = f"{self.files if final else now['files done']}/{self.files} files" if self.files else ""
        said = [self.label, self.state(), f"{seconds:.0f} s", describe(now, seconds, files)]
        line = "  ".join(part for part in said if part)
        if self.live:
            self.out.write("\r\x1b[K" + line[:200] + ("\n" if final else ""))
        else:
            self.out.write(line + "\n")
        self.out.flush()
