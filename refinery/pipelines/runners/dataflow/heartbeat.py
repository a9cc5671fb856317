"""The launcher's heartbeat: a metric in Cloud Monitoring, so an alert can fire when the launcher of a run dies.

A job on Dataflow goes on without its launcher, and nothing begins after it. While a command waits for jobs there, it
writes 1 into METRIC every minute, and 0 when it ends in order, with an error or by Ctrl-C. A value of 1 that nobody
followed up is a launcher that was killed, or whose machine is gone: the alert launcher-died. The series is named
by the run's place and nothing else, so the same command, given again anywhere, continues it.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import google.auth.credentials
import requests
from apache_beam.internal.gcp.auth import get_service_credentials
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions
from google.auth.exceptions import GoogleAuthError
from google.auth.transport.requests import AuthorizedSession

from refinery.transforms.core.safe_text import safe

METRIC = "custom.googleapis.com/refinery/launcher/at_work"
RESOURCE = "generic_task"  # its labels are those of Heartbeat.point
SERVICE = "https://monitoring.googleapis.com"
BEAT_SECONDS = 60.0  # Cloud Monitoring takes a point of a series every 5 seconds at most
TIMEOUT = 15.0  # of one request: the command never waits longer for it at its end


@dataclass
class Heartbeat:
    """The series of one run.

    place: the prefix that the command works on. region: of its jobs. say: told once if the beats do not arrive; the
    command goes on without them.
    """

    session: requests.Session
    project: str
    region: str
    place: str
    say: Callable[[str], None]
    service: str = SERVICE
    beat_seconds: float = BEAT_SECONDS
    has_arrived: bool = False
    was_said: bool = False

    @contextmanager
    def beating(self) -> Iterator[None]:
        """1 at once and every minute while the context lasts, 0 at its end. Raises nothing of its own."""
        ended = threading.Event()
        thread = threading.Thread(target=self._beat, args=(ended,), name="heartbeat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _beat(self, ended: threading.Event) -> None:
        self.send(1)
        while not ended.wait(self.beat_seconds):
            self.send(1)
        self.send(0)

    def send(self, value: int) -> None:
        """One point; at most TIMEOUT seconds."""
        try:
            answer = self.session.post(
                f"{self.service}/v3/projects/{self.project}/timeSeries",
                json={"timeSeries": [self.point(value, time.time())]},
                timeout=TIMEOUT,
                allow_redirects=False,
            )
        except (requests.RequestException, GoogleAuthError) as error:
            self._complain(type(error).__name__)
            return
        self.has_arrived |= answer.status_code == 200
        # 400 is also what a second launcher of the run is told, whose point came within the same seconds.
        if answer.status_code != 200 and not (answer.status_code == 400 and self.has_arrived):
            self._complain(f"HTTP {answer.status_code}")

    def point(self, value: int, now: float) -> dict[str, Any]:
        """A TimeSeries of one point, as Cloud Monitoring's API v3 takes it. now: UNIX seconds."""
        labels = {
            "project_id": self.project,
            "location": self.region,
            "namespace": "refinery",
            "job": safe(self.place)[:1024],  # the API's limit
            "task_id": "launcher",
        }
        return {
            "metric": {"type": METRIC},
            "resource": {"type": RESOURCE, "labels": labels},
            "metricKind": "GAUGE",
            "valueType": "INT64",
            "points": [
                {
                    "interval": {"endTime": datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds")},
                    "value": {"int64Value": str(value)},
                }
            ],
        }

    def _complain(self, why: str) -> None:
        if not self.was_said:
            self.was_said = True
            self.say(
                f"the launcher's heartbeat is not taken ({why}): no alert notices if this command dies. The account "
                "needs roles/monitoring.metricWriter, and the project monitoring.googleapis.com"
            )


def heartbeat(options: PipelineOptions, place: str, say: Callable[[str], None]) -> Heartbeat:
    """A heartbeat with the credentials, project and region of a launch, at the service or a test's endpoint."""
    cloud = options.view_as(GoogleCloudOptions)
    found = None if cloud.no_auth else get_service_credentials(options)
    session = requests.Session()
    if found is not None:
        credentials: google.auth.credentials.Credentials = found.get_google_auth_credentials()
        session = AuthorizedSession(credentials, refresh_timeout=TIMEOUT)  # type: ignore[no-untyped-call]
    endpoint = (cloud.dataflow_endpoint or "").strip().rstrip("/")
    service = SERVICE if not endpoint or endpoint.endswith("googleapis.com") else endpoint
    return Heartbeat(session, cloud.project, cloud.region, place, say, service)
