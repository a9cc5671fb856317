"""How a built pipeline is run: the local pool by default, any Beam runner by flag."""

import contextlib
import functools
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.runner import PipelineResult, create_runner

from refinery.pipelines.progress.output import current
from refinery.pipelines.progress.work import Work
from refinery.pipelines.runners.beam_memory import remember_what_never_changes
from refinery.pipelines.runners.capacity import DATAFLOW, least_workers, vcpus_asked_for
from refinery.pipelines.runners.dataflow.job_records import JobRecord, JobSpec
from refinery.pipelines.runners.dataflow.jobs import JobFailed, JobRunner, JobState, PollingPolicy, Watch, no_show
from refinery.pipelines.runners.dataflow.worker_package import build_package
from refinery.pipelines.runners.local_runner import WorkerPool, local_options, repeats, run_local
from refinery.pipelines.runners.notebooks import as_outside_notebooks
from refinery.pipelines.runners.portable.addresses import (
    environment_type,
    is_portable,
    job_endpoint,
    portable_problems,
    servers_of,
)
from refinery.pipelines.runners.quick_pickles import quick_pickles
from refinery.pipelines.runners.quiet_channels import quieten_channels
from refinery.pipelines.runners.scratch import scratch_space
from refinery.transforms.core.exchange.on_disk import DiskExchanges, exchange_on_disk, finish_graph
from refinery.transforms.core.live import live_totals
from refinery.transforms.core.wording import meant

# Beam's DirectRunner of 2.77 first tries to download another runner from the internet; the runner that it falls back to
# is requested by its own name.
BEAM_NAMES = {"DirectRunner": "BundleBasedDirectRunner"}
# Runners that messages name; Beam knows more.
NAMES = ("local", "DirectRunner", DATAFLOW, "FlinkRunner", "SparkRunner", "PortableRunner", "PrismRunner")
REMOTE_LINE_SECONDS = 60.0  # between progress lines of a job that may run for a day

MIN_WORKERS = "min_num_workers"  # a service option of Dataflow

# Beam flags that cannot apply to a run of several jobs.
REFUSED = {
    "--job_name": "job names are computed, so the same command finds its jobs again",
    "--template_location": "a template does not run the job",
    "--dry_run": "a job that does not run writes no report for the next one",
}

# Flags of Beam's own FnApiRunner, which DirectRunner ignores and the local runner sets itself.
IGNORED = {
    "--direct_running_mode": "workers of --runner local are processes, DirectRunner has none",
    "--direct_num_workers": "--workers says how many processes --runner local has; DirectRunner has none",
}

Build = Callable[[beam.Pipeline], None]


class Exchanges(Protocol):
    """Makes the exchanges of a job of the local runner, and ends them when it has run."""

    def begin(self, folder: Path, slots: int, repeats: bool) -> DiskExchanges:
        """The exchanges, in a folder that is not there yet; before the graph is built."""

    def end(self, pipeline: beam.Pipeline, disk: Any) -> None:
        """The job has run; what it left in `folder` is removed after this."""


def runner_name(name: str) -> str:
    """The canonical name: Beam accepts DataflowRunner in any case, with or without "Runner"."""
    return DATAFLOW if name.lower() in ("dataflow", "dataflowrunner") else name


def launch_flags(
    runner: str, flags: Sequence[str], output: str, work: str, build: Callable[[], bytes] = build_package
) -> tuple[str, ...]:
    """Beam's flags for a run: completed for Dataflow, unchanged for other runners.

    build: makes the package that workers install. Raises ValueError, one line, for what is missing and for what a run
    cannot use.
    """
    if is_portable(runner):
        for line in (*refused_flags(flags), *portable_problems(runner, flags)):
            raise ValueError(line)
    if runner_name(runner) != DATAFLOW:
        for name in [flag.partition("=")[0] for flag in flags if runner in ("local", *BEAM_NAMES)]:
            if name in IGNORED:
                raise ValueError(f"{name}: {IGNORED[name]}; leave it out")
        return tuple(flags)
    for line in refused_flags(flags):
        raise ValueError(line)
    from refinery.pipelines.runners.dataflow.launch_flags import fill_in

    return tuple(fill_in(flags, output=output, work=work, build=build))


def refused_flags(flags: Sequence[str]) -> Iterator[str]:
    """A line for each flag that cannot apply to a run of several jobs."""
    for flag in flags:
        if (why := REFUSED.get(flag.partition("=")[0])) is not None:
            yield f"{flag.partition('=')[0]}: {why}; leave it out"


def ask_dataflow(flags: Sequence[str]) -> Callable[[JobRecord], JobState | None]:
    """A function that asks Dataflow for a job's state; None where it does not know the job.

    It raises ServiceTrouble and ServiceRefusal. flags: Beam's, for credentials and the address of the service.
    """
    from refinery.pipelines.runners.dataflow.service import DataflowService

    options = PipelineOptions(list(flags))
    return lambda job: DataflowService(options, job.project, job.region).get(job.id)


@dataclass
class Runner:
    """Runs jobs one after the other.

    name: "local" or a Beam runner's name. workers: processes of the local runner (0: run inside this process, for
    debugging). flags: Beam flags, passed through. traceback: let Beam log where a job failed. say: receives lines about
    jobs on Dataflow. polling: how these are watched. scratch: where the local runner has its temporary
    files; "": where TMPDIR says.
    """

    name: str = "local"
    workers: int = field(default_factory=lambda: os.cpu_count() or 1)
    flags: tuple[str, ...] = ()
    quiet: bool = False
    traceback: bool = False
    say: Callable[[str], None] = print
    polling: PollingPolicy = field(default_factory=PollingPolicy)
    scratch: str = ""

    def __post_init__(self) -> None:
        if self.workers < 0:
            raise ValueError(f"--workers: {self.workers} given, 0 or more is allowed")
        self.name = runner_name(self.name)
        if self.name != "local":
            try:
                create_runner(BEAM_NAMES.get(self.name, self.name))
            except ValueError:  # Beam does not know it; its own message says so in several lines
                allowed = f"{', '.join(NAMES[:-1])}, {NAMES[-1]} or the class of a runner is allowed"
                hint = meant(self.name, NAMES, "") or allowed
                raise ValueError(f"--runner: {self.name!r:.80} given, {hint}") from None
        self.pool: WorkerPool | None = None
        self.code_files: tuple[str, ...] = ()
        self.seen_by_workers: tuple[str, ...] = ()
        self._names_records = False
        self._are_workers_checked = False

    def use_code(self, folder: str, files: Sequence[str]) -> None:
        """Let jobs find the modules of the user's own stages: in `folder` on this machine; elsewhere as these files."""
        self.code_files = tuple(files)
        if self.pool is not None and folder:
            self.pool.folders = [folder]

    def use_places(self, names: Sequence[str]) -> None:
        """Let jobs on other processes fail at once where workers do not see these local files under these names."""
        self.seen_by_workers = tuple(name for name in names if "://" not in name)

    @contextlib.contextmanager
    def naming_records(self, wanted: bool = True) -> Iterator[None]:
        """Inside, workers of the local runner note the record that they have in hand; a death then names it."""
        self._names_records = wanted
        try:
            yield
        finally:
            self._names_records = False

    @property
    def remote(self) -> bool:
        """Whether jobs continue without this process."""
        return self.name == DATAFLOW

    @property
    def is_portable(self) -> bool:
        """Whether a job service gets the jobs."""
        return is_portable(self.name)

    @property
    def vcpus(self) -> int:
        """vCPUs of a job on other machines; 0 where jobs run on this one."""
        return vcpus_asked_for(self.name, self.flags)

    def heartbeat(self, place: str) -> contextlib.AbstractContextManager[None]:
        """Tell Cloud Monitoring that this command is alive, where jobs continue without it. place: what it works on."""
        if not self.remote:
            return contextlib.nullcontext()
        from refinery.pipelines.runners.dataflow.heartbeat import heartbeat

        return heartbeat(PipelineOptions(list(self.flags)), place, self.say).beating()

    @contextlib.contextmanager
    def open(self) -> Iterator["Runner"]:
        """Keep the worker processes for this context. They start at once, while the launcher still prepares."""
        # Errors of local jobs are raised as well; with other runners the log may say more than the error.
        verbose = self.traceback or self.name != "local"
        logging.getLogger("apache_beam").setLevel(logging.ERROR if verbose else logging.CRITICAL)
        with as_outside_notebooks():
            if self.name == "local" and self.workers:
                self.pool = WorkerPool(self.workers)
                try:
                    yield self
                finally:
                    self.pool.end()
                    self.pool = None
            else:
                yield self

    def run(
        self,
        label: str,
        build: Build,
        work: Work | None = None,
        spec: JobSpec | None = None,
        exchanges: Exchanges | None = None,
    ) -> None:
        """Build a pipeline, run it to its end, and show how far it is; raises what the job raises.

        work: what it is to do; `build` may complete it. spec: identifies the job on Dataflow; one that already runs
        there is waited for instead. exchanges: of the local runner, where they are not its own.
        """
        if exchanges is not None and self.name != "local":
            raise ValueError(f"--runner: {self.name} given; slices run on the local runner, on any number of machines")
        if self.remote and spec is not None:
            self._run_dataflow(label, build, work, spec)
            return
        if is_portable(self.name):
            self._run_portable(label, build, work, spec)
            return
        if self.pool is not None and self.pool.ended:
            self.pool, before = WorkerPool(self.workers), self.pool
            self.pool.folders = before.folders
        if self.pool is not None:
            self.pool.names_records = self._names_records
        totals = self.pool.totals if self.pool else live_totals
        with contextlib.nullcontext() if self.quiet else current().watch(label, totals, work, self._pids):
            if self.name == "local":
                with scratch_space(self.scratch) as folder:  # a pipeline makes a temporary folder, too
                    remember_what_never_changes()
                    options = local_options(self.workers, list(self.flags))  # one list of flags: parsing takes a while
                    pipeline = beam.Pipeline(runner="FnApiRunner", options=options)
                    settings = folder / "exchanges", max(1, self.workers), repeats(options)
                    disk = exchanges.begin(*settings) if exchanges else DiskExchanges(str(settings[0]), *settings[1:])
                    exchange_on_disk(pipeline, disk)
                    with quick_pickles(), self._ending_workers():
                        build(pipeline)
                        finish_graph(pipeline)
                        run_local(pipeline, self.pool, options, folder)
                    if exchanges:
                        exchanges.end(pipeline, disk)
            else:
                state = self._start(build, self.flags).wait_until_finish()
                if state != "DONE":
                    raise JobFailed(f"the job on {self.name} ended as {state}")

    @contextlib.contextmanager
    def _ending_workers(self) -> Iterator[None]:
        """End the workers where a job fails or is interrupted: they would go on with it, and write into the folder that
        is about to be removed. The next job has others."""
        try:
            yield
        except BaseException:
            if self.pool is not None:
                self.pool.end()
            raise

    def _pids(self) -> list[int]:
        """This process and those of the pool."""
        return [os.getpid(), *(self.pool.processes if self.pool else ())]

    def _start(self, build: Build, flags: Sequence[str]) -> PipelineResult:
        name = BEAM_NAMES.get(self.name, self.name)
        pipeline = beam.Pipeline(options=PipelineOptions([f"--runner={name}", *flags], save_main_session=False))
        build(pipeline)
        return pipeline.run()

    def _run_portable(self, label: str, build: Build, work: Work | None, spec: JobSpec | None) -> None:
        """Run a job on a job service, or wait for the one that an earlier command launched there. Before the first job,
        a small one sees that workers run this code and see the run's files: they would fail later, in many ways."""
        from refinery.pipelines.runners.portable.attach import find_job
        from refinery.pipelines.runners.same_code import CheckWorkers, own_state

        is_here = environment_type(self.name, self.flags) == "LOOPBACK"  # workers are threads of this process
        if not is_here and not self._are_workers_checked:
            check = CheckWorkers(own_state(self.code_files), self.seen_by_workers)
            self._watch_portable("check of the workers", lambda pipeline: pipeline | check, None, "")
            self._are_workers_checked = True
        endpoint = job_endpoint(self.flags)
        found = find_job(endpoint, spec.name, is_here, self.say) if spec and endpoint else None
        self._watch_portable(label, build, work, spec.name if spec else "", found)

    def _watch_portable(
        self, label: str, build: Build, work: Work | None, name: str, found: PipelineResult | None = None
    ) -> None:
        """Launch a job under this name, unless one was found, and wait for its end. work: None for one not shown."""
        from refinery.pipelines.runners.portable.launch import LAUNCH_FLAGS, launching, settle_launches
        from refinery.pipelines.runners.portable.started_servers import end_servers_with_command
        from refinery.pipelines.runners.portable.watch import JobCounts, telling_of_missing_workers, wait

        end_servers_with_command()
        settle_launches()
        quieten_channels()
        servers = servers_of(self.name, self.flags)
        with launching(label, servers):
            named = [f"--job_name={name}"] if name else []
            result = found or self._start(build, (*LAUNCH_FLAGS, *self.flags, *named))
        counts, environment = JobCounts(result), environment_type(self.name, self.flags)
        totals = live_totals if environment == "LOOPBACK" else counts.totals
        is_shown = not self.quiet and work is not None
        shown = current().watch(label, totals, work, self._pids) if is_shown else contextlib.nullcontext()
        with shown, telling_of_missing_workers(counts, environment, self.say):
            wait(result, label, servers)

    def _run_dataflow(self, label: str, build: Build, work: Work | None, spec: JobSpec) -> None:
        from refinery.pipelines.runners.dataflow.service import DataflowService, translated
        from refinery.pipelines.runners.same_code import CheckWorkers, own_state

        options = PipelineOptions(list(self.flags))

        def build_and_check(pipeline: beam.Pipeline) -> None:
            build(pipeline)
            pipeline | CheckWorkers(own_state(self.code_files))

        def submit(name: str, labels: Mapping[str, str]) -> str:
            own = [f"--job_name={name}", *(f"--labels={key}={value}" for key, value in labels.items())]
            if work and work.bytes and MIN_WORKERS not in " ".join(self.flags):
                workers = least_workers(work.bytes, self.flags)
                own.append(f"--dataflow_service_options={MIN_WORKERS}={workers}")
            with _no_logs(), translated(launch=True):
                return str(self._start(build_and_check, (*self.flags, *own)).job_id())

        @contextlib.contextmanager
        def show(elapsed: float) -> Iterator[Watch]:
            watch = Watch()
            state, totals = lambda: watch.state, lambda: watch.totals
            with current().watch(label, totals, work, list, REMOTE_LINE_SECONDS, elapsed, state):
                yield watch

        connect = functools.cache(lambda project, region: DataflowService(options, project, region))
        jobs = JobRunner(connect, self.say, self.polling)
        jobs.run(spec, label, submit, no_show if self.quiet else show)


@contextlib.contextmanager
def _no_logs() -> Iterator[None]:
    """Silence Beam's client, which logs failed requests; the error that it raises is reported in one line."""
    logger = logging.getLogger("apache_beam")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)
