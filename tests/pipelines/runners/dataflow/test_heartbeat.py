"""The launcher's heartbeat: what Cloud Monitoring is sent, and what happens where it is not taken."""

import re
import threading
from pathlib import Path
from typing import Any

import pytest
import requests

from refinery.pipelines.runners.dataflow.heartbeat import METRIC, RESOURCE, Heartbeat
from refinery.pipelines.runners.runner import Runner
from tests.fake_dataflow import FakeDataflow, fake_dataflow

MONITORING = Path(__file__).parents[4] / "terraform/modules/monitoring"
PLACE = "gs://corpus/web"


def values(server: FakeDataflow) -> list[int]:
    return [int(series["points"][0]["value"]["int64Value"]) for series in server.points]


def on(server: FakeDataflow, said: list[str], **more: Any) -> Heartbeat:
    return Heartbeat(requests.Session(), "project", "region", PLACE, said.append, server.url, **more)


def test_a_series_is_that_of_the_run_and_its_last_value_is_zero() -> None:
    said: list[str] = []
    with fake_dataflow() as server:
        flags = (*server.flags, "--project=project", "--region=region")
        with Runner("DataflowRunner", flags=flags, say=said.append).heartbeat(PLACE):
            pass
        assert values(server) == [1, 0]
        first = server.points[0]
        assert first["metric"] == {"type": METRIC}
        assert first["resource"]["type"] == RESOURCE
        assert {series["resource"]["labels"]["job"] for series in server.points} == {PLACE}
        assert set(first["resource"]["labels"]) == {"project_id", "location", "namespace", "job", "task_id"}
        assert re.fullmatch(r"20\d\d-\d\d-\d\dT[\d:.]+\+00:00", first["points"][0]["interval"]["endTime"])
    assert said == []


def test_it_beats_until_the_end_and_zero_follows_an_error() -> None:
    said: list[str] = []
    with fake_dataflow() as server:
        heart = on(server, said, beat_seconds=0.001)
        with pytest.raises(KeyboardInterrupt), heart.beating():
            while len(server.points) < 5:
                threading.Event().wait(0.001)
            raise KeyboardInterrupt
        assert values(server) == [1] * (len(server.points) - 1) + [0]
    assert said == []


@pytest.mark.parametrize("status", [400, 403, 404, 500])
def test_what_is_not_taken_is_said_once_and_disturbs_nothing(status: int) -> None:
    said: list[str] = []
    with fake_dataflow() as server:
        server.points_status = status
        with on(server, said).beating():
            pass
        assert values(server) == [1, 0]
    assert len(said) == 1 and f"HTTP {status}" in said[0] and "roles/monitoring.metricWriter" in said[0]


def test_a_point_too_early_is_no_news() -> None:
    """What Cloud Monitoring answers when another launcher of the run wrote within five seconds."""
    said: list[str] = []
    with fake_dataflow() as server:
        heart = on(server, said)
        heart.send(1)
        server.points_status = 400
        heart.send(1)
    assert said == []


def test_no_service_at_all_is_said_once() -> None:
    said: list[str] = []
    heart = Heartbeat(requests.Session(), "project", "region", PLACE, said.append, "http://127.0.0.1:9")
    with heart.beating():
        pass
    assert len(said) == 1 and "ConnectionError" in said[0]


def test_local_runs_have_none() -> None:
    with Runner("local").heartbeat(PLACE):
        assert "heartbeat" not in {thread.name for thread in threading.enumerate()}


def test_terraform_describes_and_watches_this_metric() -> None:
    texts = {path.name: path.read_text() for path in MONITORING.glob("*.tf")}
    assert f'type         = "{METRIC}"' in texts["heartbeat.tf"]
    asked = METRIC.replace("/", ":", 1).replace(".", "_").replace("/", "_")
    assert texts["heartbeat.tf"].count(asked) == 1
    assert f'monitored_resource=\\"{RESOURCE}\\"' in texts["heartbeat.tf"]
