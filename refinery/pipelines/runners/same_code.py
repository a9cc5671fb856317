"""Whether workers run the code and the libraries that launched their job.

A job's graph names classes; the worker image decides what they do. With an outdated image the fingerprint would be
wrong.

No `from __future__ import annotations` here: Beam reads these hints.
"""

import hashlib
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import apache_beam as beam

from refinery.pipelines.recipe.recipe import find_lane, lane_names
from refinery.pipelines.runners.dataflow.worker_package import package_digest


class UnseenFile(RuntimeError):
    """A worker does not see a local file that its launcher has written or named."""


class StaleWorker(RuntimeError):
    """Workers run code or libraries that differ from those of the launcher of their job."""


def own_state(files: Sequence[str] = ()) -> dict[str, str]:
    """What must be equal on both sides: digests of the code and of these files of the user's own stages (names below an
    entry of sys.path), versions of Python, Unicode and deciding libraries."""
    found = {"code": package_digest(), **{name: file_digest(name) for name in files}}
    found |= {name: version(name) for name in deciding_libraries()}
    return found | {"python": "{}.{}".format(*sys.version_info[:2]), "unicode": unicodedata.unidata_version}


def deciding_libraries() -> list[str]:
    """Distributions that decide the result of a stage of any lane."""
    lanes = [find_lane(name) for name in lane_names()]
    libraries = [part.libraries for lane in lanes for part in lane.stages]
    libraries += [sink.libraries for lane in lanes for sink in (lane.parts, lane.writer)]
    return sorted({name for names in libraries for name in names})


def file_digest(name: str) -> str:
    """SHA-256 of a file as an import would find it, "missing" if it is not there."""
    places = [Path(folder, name) for folder in sys.path]
    found = next((place for place in places if place.is_file()), None)
    return "missing" if found is None else hashlib.sha256(found.read_bytes()).hexdigest()


def refuse_difference(launcher: Mapping[str, str], worker: Mapping[str, str]) -> None:
    """Raises StaleWorker, naming what differs, unless both are the same."""
    differing = [
        f"{name} {worker.get(name, 'missing')[:20]} on the worker, {launcher[name][:20]} where it was launched"
        for name in launcher
        if launcher[name] != worker.get(name)
    ]
    if differing:
        raise StaleWorker(
            f"this worker does not run what its job's fingerprint names: {'; '.join(differing)}. Build the image from "
            "the launcher's code, push it under a new tag and name it with --sdk_container_image"
        )


def worker_state(files: Sequence[str] = ()) -> dict[str, str]:
    """`own_state`, or the code alone where a library is missing, which differs from every launcher's."""
    try:
        return own_state(files)
    except PackageNotFoundError:
        return {"code": package_digest()}


def refuse_unseen(files: Sequence[str]) -> None:
    """Raises UnseenFile for the first of these that does not exist for this worker."""
    for name in files:
        if not Path(name).exists():
            raise UnseenFile(
                f"this worker does not see {name}: give absolute paths on storage that every worker mounts, or a bucket"
            )


class _Compare(beam.DoFn):
    def __init__(self, launcher: Mapping[str, str], files: Sequence[str] = ()) -> None:
        self.launcher = dict(launcher)
        self.files = tuple(files)

    def process(self, _: bytes) -> None:
        refuse_unseen(self.files)
        refuse_difference(self.launcher, worker_state([name for name in self.launcher if name.endswith(".py")]))


@dataclass
class CheckWorkers(beam.PTransform):
    """Fail the job in its first minute if its workers run code or libraries that differ from its launcher's, or do not
    see its files.

    One worker looks: all start from the same image. files: local files that workers must see, too.
    """

    launcher: Mapping[str, str] = field(default_factory=own_state)
    files: Sequence[str] = ()

    def __post_init__(self) -> None:
        super().__init__("check-workers")

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection:
        return begin | "start" >> beam.Impulse() | "compare" >> beam.ParDo(_Compare(self.launcher, self.files))
