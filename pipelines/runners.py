"""How a built pipeline is run: the local pool by default, any Beam runner by flag."""

import contextlib
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.runner import create_runner

from pipelines.local_runner import WorkerPool, local_options, run_local
from pipelines.progress import Progress, live_totals

# Beam's DirectRunner of 2.77 first tries to download another runner from the internet; the runner that it falls back to
# is asked for by its own name.
BEAM_NAMES = {"DirectRunner": "BundleBasedDirectRunner"}

Build = Callable[[beam.Pipeline], None]


class JobFailed(RuntimeError):
    """A job of another runner ended in a state that is not DONE."""


@dataclass
class Runner:
    """Runs jobs one after the other.

    name: "local" or a Beam runner's name. workers: processes of the local runner (0: run inside this process, for
    debugging). flags: Beam flags, passed through.
    """

    name: str = "local"
    workers: int = field(default_factory=lambda: os.cpu_count() or 1)
    flags: tuple[str, ...] = ()
    quiet: bool = False

    def __post_init__(self) -> None:
        if self.workers < 0:
            raise ValueError(f"--workers: {self.workers} given, 0 or more is allowed")
        if self.name != "local":
            create_runner(BEAM_NAMES.get(self.name, self.name))  # raises ValueError for a name that Beam does not know
        self.pool: WorkerPool | None = None

    @contextlib.contextmanager
    def open(self) -> Iterator["Runner"]:
        """Worker processes live as long as this context. They start at once, while the launcher still prepares."""
        logging.getLogger("apache_beam").setLevel(logging.ERROR)
        if self.name == "local" and self.workers:
            with WorkerPool(self.workers) as self.pool:
                yield self
            self.pool = None
        else:
            yield self

    def run(self, label: str, build: Build, files: int = 0) -> None:
        """Build a pipeline, run it to its end with a progress line; raises what the job raises."""
        totals = self.pool.totals if self.pool else live_totals
        with contextlib.nullcontext() if self.quiet else Progress(label, totals, files):
            if self.name == "local":
                pipeline = beam.Pipeline(runner="FnApiRunner", options=PipelineOptions(list(self.flags)))
                build(pipeline)
                run_local(pipeline, self.pool, local_options(self.workers, list(self.flags)))
            else:
                self._run_beam(build)

    def _run_beam(self, build: Build) -> None:
        name = BEAM_NAMES.get(self.name, self.name)
        options = PipelineOptions([f"--runner={name}", *self.flags], save_main_session=False)
        pipeline = beam.Pipeline(options=options)
        build(pipeline)
        state = pipeline.run().wait_until_finish()
        if state != "DONE":
            raise JobFailed(f"the job on {self.name} ended as {state}")
