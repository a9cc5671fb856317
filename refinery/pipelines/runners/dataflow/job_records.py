"""Names of jobs that outlive their launcher, and their records in the work location.

Two small sealed files per job, both created exclusively: jobs/KEY.ID.json when it is launched or found, and
jobs/KEY.ID.end.json when its end is noticed. Nothing is overwritten: two launchers write the same bytes, no permission
to delete is needed, and earlier attempts stay visible. Records only serve to find a job again and to report on it; what
a job has done is known from its report alone.
"""

import contextlib
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from refinery.loader.errors import FormatError
from refinery.loader.format.manifest import SCHEMA_VERSION, seal, unseal
from refinery.loader.storage.store import StorageConflict, Store

# Names of the records in a work location.
JOB = re.compile(
    r"jobs/(?P<key>(?:clean|export)-[0-9]{5}|dedup|shards|records)\.(?P<id>[A-Za-z0-9_-]{1,128})(?P<end>\.end)?\.json"
)

NAME_CHARS = 63  # Dataflow: [a-z]([-a-z0-9]{0,61}[a-z0-9])?
DIGEST_CHARS = 10

_RECORD = ("id", "name", "project", "region", "link")
# Fields of a record that go into commands and links unchanged.
_PLAIN = {"project": re.compile(r"[a-z0-9][a-z0-9.:-]{0,127}"), "region": re.compile(r"[a-z0-9-]{1,63}")}


@dataclass(frozen=True)
class JobSpec:
    """Identifies a job of a run: another attempt at the same job has the same name.

    recipe: the recipe's name, of any characters. phase: clean, dedup, shards, records or export; wave: number of a
    wave of clean, or of a job of an export.
    identity: distinguishes it from the jobs of other runs; it holds the phase's fingerprint, prefix and work location.
    work: the work location, which holds the records. report: the file there that the job writes last.
    """

    recipe: str
    phase: str
    wave: int | None
    identity: tuple[str, ...]
    work: str
    report: str

    @property
    def key(self) -> str:
        """The key in names of records: clean-00003, dedup, shards, records."""
        return self.phase if self.wave is None else f"{self.phase}-{self.wave:05d}"

    @property
    def digest(self) -> str:
        """Ten hexadecimal digits of the identity."""
        return hashlib.sha256("\0".join(self.identity).encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_CHARS]

    @property
    def name(self) -> str:
        """The job's name, within Dataflow's character set and length; a long recipe name is cut.

        >>> JobSpec("Größe 1", "clean", 3, ("fingerprint",), "work", "clean/wave-00003.json").name
        'refinery-gr-e-1-clean-00003-e09feb9f9d'
        """
        tail = f"-{self.key}-{self.digest}"
        recipe = re.sub("[^a-z0-9]+", "-", self.recipe.lower()).strip("-")
        return f"refinery-{recipe}"[: NAME_CHARS - len(tail)].rstrip("-") + tail

    @property
    def labels(self) -> dict[str, str]:
        """Labels of the job, for billing and search. Dataflow: up to 63 of a-z 0-9 _ - each."""
        return {"refinery-phase": self.phase, "refinery-run": self.digest}


@dataclass(frozen=True)
class JobRecord:
    """A job that was launched. key: of its JobSpec. state: as in Dataflow's API without JOB_STATE_; "" until it has
    ended.

    errors: the job's own error messages, shortened (pipelines/runners/dataflow/service.py).
    """

    key: str
    id: str
    name: str
    project: str
    region: str
    link: str
    state: str = ""
    errors: tuple[str, ...] = ()


def console_link(project: str, region: str, job_id: str) -> str:
    """The job's page in the Google Cloud console."""
    return f"https://console.cloud.google.com/dataflow/jobs/{region}/{job_id}?project={project}"


def cancel_command(job: JobRecord) -> str:
    """The command that cancels the job."""
    return f"gcloud dataflow jobs cancel {job.id} --region={job.region} --project={job.project}"


def record_job(store: Store, spec: JobSpec, job_id: str, project: str, region: str) -> JobRecord:
    """Record that this job was launched for the spec. Raises ValueError for an invalid id."""
    path = f"jobs/{spec.key}.{job_id}.json"
    if not JOB.fullmatch(path):
        raise ValueError(
            f"{spec.name}: the service calls the job {job_id[:200]!r}, letters, digits, _ and - are allowed"
        )
    job = JobRecord(spec.key, job_id, spec.name, project, region, console_link(project, region, job_id))
    payload = {"schema_version": SCHEMA_VERSION, "kind": "refinery-job"}
    store.create(path, seal(payload | {name: getattr(job, name) for name in _RECORD}))
    return job


def record_end(store: Store, job: JobRecord, state: str, errors: Sequence[str] = ()) -> None:
    """Record how the job ended; the first launcher that notices wins."""
    payload = {"schema_version": SCHEMA_VERSION, "kind": "refinery-job-end", "state": state, "errors": list(errors)}
    with contextlib.suppress(StorageConflict):  # another launcher recorded the end before all messages had arrived
        store.create(f"jobs/{job.key}.{job.id}.end.json", seal(payload))


def read_jobs(store: Store, key: str = "") -> list[JobRecord]:
    """The records of all jobs, or of those with one key, in order of key and time (ids of Dataflow start with their
    time).

    Raises FormatError for a damaged record. Cost: a listing, and one or two small reads per job.
    """
    places = {name: match for name in store.list("jobs") if (match := JOB.fullmatch(name))}
    found = []
    for name, match in sorted(places.items(), key=lambda place: (place[1]["key"], place[1]["id"])):
        if match["end"] or (key and match["key"] != key):
            continue
        fields = _read(store, name, _RECORD)
        if fields["id"] != match["id"]:
            raise FormatError(f"{store.url(name)}: it describes another job, {fields['id']!r:.80}")
        for text, shape in _PLAIN.items():
            if not shape.fullmatch(fields[text]):
                raise FormatError(f"{store.url(name)}: {text}: {fields[text]!r:.80} found, which is not valid")
        record = {text: fields[text] for text in _RECORD}
        record["link"] = console_link(record["project"], record["region"], record["id"])
        end = f"{name.removesuffix('.json')}.end.json"
        if end in places:
            ended = _read(store, end, ("state",))
            errors = ended.get("errors")
            record |= {
                "state": ended["state"],
                "errors": tuple(map(str, errors)) if isinstance(errors, list) else (),
            }
        found.append(JobRecord(match["key"], **record))
    return found


def _read(store: Store, name: str, texts: Sequence[str]) -> dict[str, Any]:
    payload = unseal(store.read(name), store.url(name))
    for text in texts:
        if not isinstance(payload.get(text), str):
            raise FormatError(f"{store.url(name)}: {text}: {payload.get(text)!r:.80} found, a text expected")
    return payload
