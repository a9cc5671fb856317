"""What is worth knowing before a launch on Dataflow, though nothing refuses it: warnings, and the quotas that the job
will ask for."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from refinery.loader.storage.fetch import FetchParams
from refinery.pipelines.runners.dataflow.bucket_facts import SCHEME, Use, known_facts
from refinery.pipelines.runners.dataflow.job_request import JobRequest
from refinery.pipelines.runners.dataflow.launch_checks import Level, lines_of
from refinery.pipelines.runners.dataflow.launch_flags import with_environment

# Of a question to a bucket: its answer is no more than advice.
QUESTION = FetchParams(deadline=4.0, connect_timeout=2.0, read_timeout=3.0, max_delay=1.0)


@dataclass(frozen=True)
class Launch:
    """flags: Beam's. output, work: where the run writes. inputs: every file that it reads by name. own_modules: of the
    user's own stages. read: bytes of each input file, as far as it was listed. looks: whether buckets are asked.
    """

    flags: Sequence[str]
    output: str = ""
    work: str = ""
    inputs: Sequence[str] = ()
    own_modules: Sequence[str] = ()
    read: Mapping[str, int] = field(default_factory=dict)
    looks: bool = True

    def job(self) -> tuple[JobRequest, list[str]]:
        """What it asks for, and buckets that did not say what they are."""
        _, given = with_environment(self.flags)
        written = [
            self.work or (f"{self.output.rstrip('/')}/work" if self.output else ""),
            given.get("temp_location"),
            given.get("staging_location"),
        ]
        places = {
            Use.INPUT: self.inputs,
            Use.OUTPUT: [self.output],
            Use.TEMPORARY: [place for place in written if place],
        }
        facts, unknown = known_facts(places, QUESTION) if self.looks else ([], [])
        read: dict[str, int] = {}
        for path, size in self.read.items():
            if path.startswith(SCHEME):
                bucket = path.split("/")[2]
                read[bucket] = read.get(bucket, 0) + size
        return JobRequest(given, self.flags, self.own_modules, facts, read), unknown


def report(launch: Launch) -> Iterator[tuple[str, Level | None, str]]:
    """(topic, level, line) of every warning, then of what is only said: buckets that could not be asked, quotas."""
    job, unknown = launch.job()
    yield from ((topic, Level.WARNING, line) for topic, line in lines_of(job, Level.WARNING))
    if unknown:
        names = ", ".join(f"{SCHEME}{name}" for name in unknown)
        command = f"gcloud storage buckets describe {SCHEME}{unknown[0]}"
        yield "buckets", None, f"{names} cannot be looked up (it takes storage.buckets.get); look yourself: {command}"
    yield "quotas", None, job.quota_line()
