"""Whether workers run the code and the libraries that launched their job.

A job's graph names classes; the worker image decides what they do. With an outdated image the fingerprint would be
wrong.

No `from __future__ import annotations` here: Beam reads these hints.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError

import apache_beam as beam

from refinery.pipelines.run.fingerprint import PHASE_LIBRARIES, library_versions
from refinery.pipelines.runners.worker_package import package_digest


class StaleWorker(RuntimeError):
    """Workers run other code or other libraries than the launcher of their job."""


def own_state() -> dict[str, str]:
    """What must be equal on both sides: digest of the code, versions of Python, Unicode and deciding libraries."""
    found = {"code": package_digest()}
    for phase in PHASE_LIBRARIES:
        found |= library_versions(phase)
    return found


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


def worker_state() -> dict[str, str]:
    """`own_state`, or the code alone where a library is missing, which differs from every launcher's."""
    try:
        return own_state()
    except PackageNotFoundError:
        return {"code": package_digest()}


class _Compare(beam.DoFn):
    def __init__(self, launcher: Mapping[str, str]) -> None:
        self.launcher = dict(launcher)

    def process(self, _: bytes) -> None:
        refuse_difference(self.launcher, worker_state())


@dataclass
class CheckWorkers(beam.PTransform):
    """Fail the job within its first minute if its workers run other code or other libraries than its launcher.

    One worker looks: all start from the same image.
    """

    launcher: Mapping[str, str] = field(default_factory=own_state)

    def __post_init__(self) -> None:
        super().__init__("check-workers")

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection:
        return begin | "start" >> beam.Impulse() | "compare" >> beam.ParDo(_Compare(self.launcher))
