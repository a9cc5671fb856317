"""What was submitted: sealed records below the work location, from which a run is resumed and its jobs are found.

cluster/submission-00000.json has the arguments; cluster/jobs-00000.json the ids of its jobs, once they are known. Each
further submission of a run has the next number.
"""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from refinery.loader.errors import FormatError, written_by_a_run
from refinery.loader.format.manifest import SCHEMA_VERSION, seal, unseal
from refinery.loader.storage.store import Store
from refinery.pipelines.runners.cluster.record_names import FOLDER, RECORD
from refinery.pipelines.runners.cluster.slurm import JOB_ID, read_jobs

KIND, JOBS_KIND = "refinery-submission", "refinery-submitted-jobs"


@dataclass(frozen=True)
class Submitted:
    """words: of `refine`, as they were typed; ending: those that only the last command takes. folder: where. scratch:
    as given. scripts: the folder of the scripts. sbatch: further options. throttle: tasks at once, 0 for all. missing:
    what was submitted, step -> slices. written: UNIX seconds."""

    words: Sequence[str]
    ending: Sequence[str]
    folder: str
    scratch: str
    scripts: str
    workers: int
    sbatch: Sequence[str] = ()
    throttle: int = 0
    missing: Mapping[str, Sequence[int]] = field(default_factory=dict)
    written: int = field(default_factory=lambda: round(time.time()))


def next_number(store: Store) -> int:
    """The number of the next record. Cost: a listing."""
    return max((int(found["number"]) for found in _records(store)), default=-1) + 1


def write_submission(store: Store, number: int, submitted: Submitted) -> None:
    """Record what is about to be submitted, exclusively."""
    head = {"schema_version": SCHEMA_VERSION, "kind": KIND}
    store.create(f"{FOLDER}/submission-{number:05d}.json", seal(head | asdict(submitted)))


def write_jobs(store: Store, number: int, jobs: Mapping[str, Sequence[str]]) -> None:
    """Record the ids of its jobs, exclusively."""
    payload = {
        "schema_version": SCHEMA_VERSION,
        "kind": JOBS_KIND,
        "jobs": {step: [*ids] for step, ids in jobs.items()},
    }
    store.create(f"{FOLDER}/jobs-{number:05d}.json", seal(payload))


def last_submission(store: Store) -> Submitted | None:
    """The newest record; None where nothing was submitted. Raises FormatError for a damaged one."""
    numbers = [int(found["number"]) for found in _records(store) if found["what"] == "submission"]
    return _read(store, max(numbers)) if numbers else None


def all_jobs(store: Store) -> dict[str, list[str]]:
    """Step -> ids of its jobs, of all submissions: those recorded, and those that submit.sh noted beside the scripts.
    Raises FormatError for a damaged record."""
    found = [_read_jobs(store, int(record["number"])) for record in _records(store) if record["what"] == "jobs"]
    if last := last_submission(store):
        found.append(read_jobs(last.scripts))
    steps = dict.fromkeys(step for jobs in found for step in jobs)
    return {step: list(dict.fromkeys(id_ for jobs in found for id_ in jobs.get(step, ()))) for step in steps}


def _records(store: Store) -> list[re.Match[str]]:
    return [found for name in store.list(FOLDER) if (found := RECORD.fullmatch(name))]


def _read(store: Store, number: int) -> Submitted:
    name = f"{FOLDER}/submission-{number:05d}.json"
    payload = unseal(store.read(name), store.url(name))
    with written_by_a_run(f"{store.url(name)}: the record of a submission is"):
        fields: dict[str, Any] = {field: payload[field] for field in Submitted.__dataclass_fields__}
        texts = (
            *fields["words"],
            *fields["ending"],
            *fields["sbatch"],
            fields["folder"],
            fields["scratch"],
            fields["scripts"],
        )
        whole = (fields["workers"], fields["throttle"], fields["written"])
        slices = [slice_ for each in fields["missing"].values() for slice_ in each]
        if not all(isinstance(text, str) for text in texts) or not all(type(n) is int for n in (*whole, *slices)):
            raise FormatError(f"{store.url(name)}: not as `refinery cluster` writes it")
        return Submitted(**fields)


def _read_jobs(store: Store, number: int) -> dict[str, list[str]]:
    name = f"{FOLDER}/jobs-{number:05d}.json"
    payload = unseal(store.read(name), store.url(name))
    with written_by_a_run(f"{store.url(name)}: the record of jobs is"):
        jobs = {str(step): [str(id_) for id_ in ids] for step, ids in payload["jobs"].items()}
    if not all(JOB_ID.fullmatch(id_) for ids in jobs.values() for id_ in ids):
        raise FormatError(f"{store.url(name)}: an id of a job is not a number")
    return jobs
