"""From totals and a clock to what is shown: rates, and how long it will still take. The caller reads the clock."""

from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from refinery.pipelines.progress.work import StageCounts, Work, stage_counts

LEAST_WINDOW = 30.0  # seconds that a rate looks back at least
MOST_SAMPLES = 512
LEAST_ETA = 3.0  # seconds of work before the first guess


@dataclass(frozen=True)
class Sample:
    """Where a phase stood at a time (seconds)."""

    time: float
    fraction: float
    bytes: int
    documents: int


class Rates:
    """Speed of a phase over its last half, at least LEAST_WINDOW seconds: machines that join or leave show soon, and
    one slow file does not. Memory: MOST_SAMPLES samples."""

    def __init__(self) -> None:
        self.samples: deque[Sample] = deque()

    def add(self, sample: Sample) -> None:
        """Another sample, not older than the last one."""
        if self.samples and sample.fraction < self.samples[-1].fraction:  # the next job knows better
            self.samples.clear()
        self.samples.append(sample)
        if len(self.samples) > MOST_SAMPLES:
            self.samples = deque(s for i, s in enumerate(self.samples) if i % 2 == 0 or s is sample)

    def window(self) -> tuple[Sample, Sample] | None:
        """The first and the last sample of the time that counts; None before there are two."""
        if len(self.samples) < 2:
            return None
        last = self.samples[-1]
        length = max(LEAST_WINDOW, (last.time - self.samples[0].time) / 2)
        first = next(sample for sample in self.samples if last.time - sample.time <= length)
        first = self.samples[-2] if first is last else first
        return (first, last) if last.time > first.time else None

    def per_second(self, amount: Callable[[Sample], int]) -> float | None:
        """Of that amount; None before there are two samples."""
        if (window := self.window()) is None:
            return None
        first, last = window
        return max(0.0, (amount(last) - amount(first)) / (last.time - first.time))

    def eta(self) -> float | None:
        """Seconds until the phase is done at that speed; None where nothing says so yet."""
        if (window := self.window()) is None:
            return None
        first, last = window
        speed = (last.fraction - first.fraction) / (last.time - first.time)
        if last.fraction >= 1:
            return 0.0
        if speed <= 0 or last.time - self.samples[0].time < LEAST_ETA:
            return None
        return (1 - last.fraction) / speed


@dataclass(frozen=True)
class Snapshot:
    """How far a job is. seconds: since its phase began in this command. fraction: of the phase, None where unknown; so
    are rates, eta_seconds and memory_bytes. bytes and stages are the phase's, documents this command's."""

    label: str
    work: Work
    seconds: float = 0.0
    fraction: float | None = None
    bytes_done: int = 0
    documents: int = 0
    files_done: int = 0
    bytes_per_second: float | None = None
    documents_per_second: float | None = None
    eta_seconds: float | None = None
    memory_bytes: int | None = None
    stages: tuple[StageCounts, ...] = ()
    state: str = ""
    final: bool = False


@dataclass
class Phase:
    """What is kept of a phase between its jobs. began: when, in seconds of the clock."""

    began: float
    rates: Rates = field(default_factory=Rates)
    documents: int = 0  # of its jobs in this command that have ended
    bytes_before: int = 0  # that earlier commands have read

    def snapshot(
        self,
        label: str,
        work: Work,
        totals: Mapping[str, int],
        now: float,
        memory: int | None = None,
        state: str = "",
        final: bool = False,
    ) -> Snapshot:
        """totals: of this job alone."""
        job = 1.0 if final else work.done(totals)
        fraction = work.phase_done(job)
        read = work.bytes_before + work.bytes if final else work.bytes_done(totals)
        documents = self.documents + documents_in(totals, work)
        self.rates.add(Sample(now, fraction or 0.0, read, documents))
        counted = Counter(work.counted)
        counted.update(totals)
        seconds = max(0.0, now - self.began)
        shown = final and work.ends_phase and seconds > 0  # in the end: of the whole phase
        in_all = (read - self.bytes_before) / seconds if seconds else 0.0
        return Snapshot(
            label=label,
            work=work,
            seconds=seconds,
            fraction=fraction,
            bytes_done=read,
            documents=documents,
            files_done=work.files if final else totals.get("work files", 0),
            bytes_per_second=in_all if shown else self.rates.per_second(lambda sample: sample.bytes),
            documents_per_second=documents / seconds if shown else self.rates.per_second(lambda s: s.documents),
            eta_seconds=None if fraction is None else self.rates.eta(),
            memory_bytes=memory,
            stages=stage_counts(counted, work.stages),
            state=state,
            final=final,
        )


def documents_in(totals: Mapping[str, int], work: Work) -> int:
    """Documents that went into a job."""
    return max(0, totals.get(work.documents, 0))
