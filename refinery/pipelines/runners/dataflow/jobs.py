"""Run a job on Dataflow to its end, whoever launched it: the launcher may die at any moment and be restarted.

A job's name is computed (pipelines/runners/dataflow/job_records.py), and the service never runs two jobs of one name at
once. The name is the lock: it covers the time between launching a job and recording it, and two launchers at once. A
job that failed or was cancelled releases its name, so the next attempt uses the same one.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from refinery.loader.storage.open_store import open_store
from refinery.loader.storage.store import Store
from refinery.pipelines.runners.dataflow.job_records import (
    JobRecord,
    JobSpec,
    cancel_command,
    read_jobs,
    record_end,
    record_job,
)

# Final states of google.dataflow.v1beta3.JobState.
ENDED = frozenset({"DONE", "FAILED", "CANCELLED", "UPDATED", "DRAINED"})
AGAIN = "Run the same command to resume: finished work is kept, and a job that has ended is launched again."

T = TypeVar("T")


class JobFailed(RuntimeError):
    """A job on another runner ended in a state other than DONE, or could not be launched or watched."""


class LauncherLeft(KeyboardInterrupt):
    """Ctrl-C while a job runs remotely. The message says that the job continues, and how to wait for it or cancel
    it.
    """


class ServiceTrouble(Exception):
    """A temporary failure of the service or the network. The message is one line."""


class ServiceRefusal(Exception):
    """The service refuses a request for good. The message is one line."""


class NameTaken(Exception):
    """A job of that name is already running."""


@dataclass(frozen=True)
class JobState:
    """A job as the service reports it. state: as in the API, without JOB_STATE_. created: seconds since 1970, 0 if
    unknown.

    replaced_by: id of the job that took over from an UPDATED one.
    """

    id: str
    name: str
    state: str
    created: float = 0.0
    replaced_by: str = ""

    @property
    def ended(self) -> bool:
        return self.state in ENDED


class Service(Protocol):
    """Jobs of one project and region. Every method raises ServiceTrouble and ServiceRefusal."""

    project: str
    region: str

    def get(self, job_id: str) -> JobState | None:
        """State of a job; None where the service does not know it (which happens with new jobs now and then)."""

    def list(self, name: str) -> Iterator[JobState]:
        """Every job of that name in the last weeks, running or ended."""

    def totals(self, job_id: str) -> Counter[str]:
        """Running totals, "stage outcome" -> documents and "work unit" -> amount. For display
        only.
        """

    def errors(self, job_id: str) -> tuple[str, ...]:
        """The job's own error messages as short lines without any document's content, oldest first."""


@dataclass(frozen=True)
class PollingPolicy:
    """How a job is polled, in seconds. now, sleep: the clock, for tests.

    first_poll, max_poll: pauses between requests for the state, growing by half. counters: pause between requests for
    the counters. give_up: how long the service may be unreachable. denied: how long it may deny knowing a job that
    exists, or fail to accept one. error_messages: how long to wait for a failed job's messages, which arrive late.
    """

    first_poll: float = 1.0
    max_poll: float = 20.0
    counters: float = 30.0
    give_up: float = 3600.0
    denied: float = 120.0
    error_messages: float = 40.0
    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


@dataclass
class Watch:
    """The state of a job that is waited for, for a display to read."""

    state: str = ""
    totals: Counter[str] = field(default_factory=Counter)


Show = Callable[[float], AbstractContextManager[Watch]]  # of the seconds that the job has already run
Submit = Callable[[str, Mapping[str, str]], str]  # name, labels -> id of the launched job


def no_show(seconds: float) -> AbstractContextManager[Watch]:
    """Show nothing."""
    return nullcontext(Watch())


@dataclass
class JobRunner:
    """Runs jobs to their end, one after the other.

    connect: the service in a project and region; "" means those of this command. say: receives lines for the user.
    """

    connect: Callable[[str, str], Service]
    say: Callable[[str], None] = print
    polling: PollingPolicy = field(default_factory=PollingPolicy)

    def run(self, spec: JobSpec, label: str, submit: Submit, show: Show = no_show) -> None:
        """Return when the job is DONE or its report is there. A running job is waited for; `submit`, which raises
        NameTaken, ServiceTrouble or ServiceRefusal, launches one only if there is none.

        Raises JobFailed with the job's errors, LauncherLeft for Ctrl-C while it runs.
        """
        store = open_store(spec.work)
        job = self._find(spec, store) or self._launch(spec, store, submit)
        while job is not None:
            end = self._wait(job, label, show)
            errors = self._note_end(store, job, end)
            if end.state == "UPDATED" and end.replaced_by:
                job = record_job(store, spec, end.replaced_by, job.project, job.region)
                continue
            if end.state == "DONE":
                return
            if store.size(spec.report) is None:
                raise JobFailed(
                    "\n  ".join([f"{label}: the job ended as {end.state}: {job.link}", *errors]) + f"\n{AGAIN}"
                )
            self.say(f"job {job.id} ended as {end.state}, but its report is there: its work is complete")
            return

    # --- which job ----------------------------------------------------------------------------------------------

    def _find(self, spec: JobSpec, store: Store) -> JobRecord | None:
        """The running job, by its record or else by its name. Records the ends of those that have ended."""
        for job in reversed([job for job in read_jobs(store, spec.key) if not job.state]):
            found = self._state(job)
            if found is None:
                self.say(f"{job.project} does not know job {job.id} any more")
                record_end(store, job, "UNKNOWN")
            elif found.ended:
                errors = self._note_end(store, job, found)
                self.say("\n  ".join([f"job {job.id} has ended as {found.state}: {job.link}", *errors]))
                if found.state == "UPDATED" and found.replaced_by:
                    return record_job(store, spec, found.replaced_by, job.project, job.region)
            else:
                return self._adopt(store, job, found.state)
        return self._find_by_name(spec, store)

    def _find_by_name(self, spec: JobSpec, store: Store) -> JobRecord | None:
        service = self.connect("", "")
        running = [job for job in self._ask(None, lambda: list(service.list(spec.name))) if not job.ended]
        if not running:
            return None
        job = record_job(store, spec, running[0].id, service.project, service.region)
        return self._adopt(store, job, running[0].state)

    def _adopt(self, store: Store, job: JobRecord, state: str) -> JobRecord | None:
        if state != "CANCELLING":
            self.say(f"job {job.id} was launched before and is {state}; waiting for it: {job.link}")
            return job
        # its result is not needed, but its name is free only when it has ended
        self.say(f"job {job.id} is being cancelled; waiting for its end: {job.link}")
        self._note_end(store, job, self._wait(job, "cancelling", no_show))
        return None

    def _launch(self, spec: JobSpec, store: Store, submit: Submit) -> JobRecord | None:
        """Launch a job, or find one that another launcher has just launched; None: the report has appeared
        meanwhile.
        """
        service, unlisted, failed = self.connect("", ""), 0.0, 0.0
        while store.size(spec.report) is None:  # checked after every look at the jobs: one of them may just have ended
            try:
                job_id = submit(spec.name, spec.labels)
            except NameTaken:
                # Launched by another process between our lookup and our launch. It may be listed late, or have ended
                # again.
                if (found := self._find_by_name(spec, store)) is not None:
                    return found
                if unlisted > self.polling.denied:
                    place = f"{service.project} in {service.region}"
                    raise JobFailed(f"{spec.name}: {place} runs a job of that name, but does not list it") from None
                unlisted += self.polling.max_poll
                self.polling.sleep(self.polling.max_poll)
            except (ServiceTrouble, ServiceRefusal) as error:
                # Safe to retry whatever became of the request: if it created a job, the name is taken.
                if isinstance(error, ServiceRefusal) or failed > self.polling.denied:
                    raise JobFailed(f"{spec.name}: the job could not be launched: {error}\n{AGAIN}") from error
                failed += self.polling.max_poll
                self.say(f"{spec.name}: not launched yet, retrying: {error}")
                self.polling.sleep(self.polling.max_poll)
            else:
                job = record_job(store, spec, job_id, service.project, service.region)
                self.say(f"job {job.id} is launched: {job.link}")
                return job
        return None

    # --- waiting ------------------------------------------------------------------------------------------------

    def _wait(self, job: JobRecord, label: str, show: Show) -> JobState:
        try:
            return self._watch(job, label, show)
        except KeyboardInterrupt:
            raise LauncherLeft(
                f"{label}: the launcher stops; job {job.id} continues: {job.link}\n{how_to(job)}"
            ) from None

    def _watch(self, job: JobRecord, label: str, show: Show) -> JobState:
        polling = self.polling
        pause, counted = polling.first_poll, 0.0
        found = self._state(job)
        ran = max(0.0, polling.now() - found.created) if found and found.created else 0.0
        with show(ran) as watch:
            while found is not None:
                watch.state = found.state
                if found.ended or polling.now() >= counted + polling.counters:
                    watch.totals = self._totals(job) or watch.totals
                    counted = polling.now()
                if found.ended:
                    return found
                polling.sleep(pause)
                pause = min(pause * 1.5, polling.max_poll)
                found = self._state(job, watch)
        raise JobFailed(f"{label}: {job.project} does not know job {job.id}: {job.link}\n{AGAIN}")

    def _note_end(self, store: Store, job: JobRecord, end: JobState) -> tuple[str, ...]:
        """Record the end; returns the error messages of a job that failed."""
        errors = self._error_messages(job) if end.state == "FAILED" else ()
        record_end(store, job, end.state, errors)
        return errors

    def _state(self, job: JobRecord, watch: Watch | None = None) -> JobState | None:
        """The job's state; None only after the service has denied knowing it for a while."""
        service = self.connect(job.project, job.region)
        deadline, pause = self.polling.now() + self.polling.denied, self.polling.first_poll
        while (found := self._ask(job, lambda: service.get(job.id), watch)) is None and self.polling.now() < deadline:
            self.polling.sleep(pause)
            pause = min(pause * 2, self.polling.max_poll)
        return found

    def _totals(self, job: JobRecord) -> Counter[str]:
        try:
            return self.connect(job.project, job.region).totals(job.id)
        except (ServiceTrouble, ServiceRefusal):
            return Counter()  # only for display

    def _error_messages(self, job: JobRecord) -> tuple[str, ...]:
        deadline = self.polling.now() + self.polling.error_messages
        while True:
            try:
                errors = self.connect(job.project, job.region).errors(job.id)
            except ServiceTrouble:
                errors = ()
            except ServiceRefusal as error:
                return (f"its messages cannot be read: {error}",)
            if errors or self.polling.now() >= deadline:
                return errors
            self.polling.sleep(5 * self.polling.first_poll)

    def _ask(self, job: JobRecord | None, ask: Callable[[], T], watch: Watch | None = None) -> T:
        """The result of `ask`, retried with growing pauses while that may help."""
        start, pause = self.polling.now(), self.polling.first_poll
        while True:
            try:
                return ask()
            except (ServiceTrouble, ServiceRefusal) as error:
                waited = self.polling.now() - start
                if isinstance(error, ServiceRefusal) or waited > self.polling.give_up:
                    goes_on = f"job {job.id} may still run: {job.link}\n{how_to(job)}" if job else AGAIN
                    raise JobFailed(f"no answer from Dataflow: {error}\n{goes_on}") from error
                if watch is not None:
                    watch.state = f"no answer for {waited:.0f} s, retrying ({error})"
            self.polling.sleep(pause)
            pause = min(pause * 2, self.polling.max_poll)


def how_to(job: JobRecord) -> str:
    """How to wait for a running job again, and how to cancel it."""
    return f"wait for it:  run the same command again\ncancel it:    {cancel_command(job)}"
