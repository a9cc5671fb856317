"""Beam that was imported without its connectors has them all as soon as something asks for one."""

import json
import subprocess
import sys
from typing import Any

from tests.sampling import one_commit_in_four

LOOK = """
import json, sys
from refinery.pipelines.runners.beam_parts import import_beam
if sys.argv[1] == "later":
    import_beam()
import apache_beam as beam
from apache_beam.internal.metrics import metric
from apache_beam.io.filesystems import FileSystems
from apache_beam.runners.dataflow import dataflow_runner
from apache_beam.typehints.typehints import is_consistent_with
from apache_beam.utils import retry
from apache_beam.internal.http_client import get_new_http
left_out = ("apache_beam.io.gcp.", "apitools", "beartype", "google.cloud.", "httplib2", "pymongo")
before = [name for name in sys.modules if name.startswith(left_out)]
seen = {
    "error": isinstance(ValueError(), metric.HttpError),
    "missing": hasattr(beam.io, "ReadFromNowhere"),
    "name": beam.io.ReadFromBigQuery.__module__,
    "names": sorted(name for name in dir(beam.io) if not name.startswith("__")),
    "mongo": beam.io.ReadFromMongoDB.__module__,
    "storage": type(FileSystems.get_filesystem("gs://bucket/object")).__name__,
    "file": type(FileSystems.get_filesystem("/folder/file")).__name__,
    "state": str(dataflow_runner.dataflow_api.JobState.JOB_STATE_DONE),
}
from apitools.base.py.exceptions import HttpError
from google.api_core.exceptions import NotFound
errors = HttpError({"status": 404}, b"", ""), NotFound(""), ValueError()
hints = (3, int), (bool, int), (int, str), (int | str, int | str | None)
seen["types"] = [is_consistent_with(*pair) for pair in hints]
seen["client"] = type(get_new_http()).__module__
kinds = metric.HttpError, retry.HttpError, retry.GoogleAPICallError
seen["errors"] = [[isinstance(error, kind) for error in errors] for kind in kinds]
print(json.dumps([len(before), seen]))
"""


def look(how: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", LOOK, how], capture_output=True, text=True, check=True)
    found: tuple[int, dict[str, Any]] = tuple(json.loads(done.stdout.splitlines()[-1]))
    return found


@one_commit_in_four
def test_what_was_left_out_is_there_when_it_is_asked_for() -> None:
    (left_out, later), (at_once, whole) = look("later"), look("whole")
    assert left_out == 0 < at_once
    assert later == whole
    assert (
        not later["missing"]
        and later["storage"] == "GCSFileSystem"
        and later["errors"] == [[True, False, False]] * 2 + [[False, True, False]]
    )
