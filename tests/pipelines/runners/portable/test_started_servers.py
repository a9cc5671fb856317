"""A server that a command starts ends with it, however that ends."""

import os
import signal
import subprocess
import sys
import time

import pytest

from refinery.pipelines.runners.dataflow.jobs import JobFailed
from refinery.pipelines.runners.portable import launch
from refinery.pipelines.runners.portable.addresses import Address

# A command that starts a server, lets it end with itself, says its number and waits.
COMMAND = """
import os, subprocess, sys, time
from refinery.pipelines.runners.portable.started_servers import end_with_command
server = subprocess.Popen(["sleep", "300"])
end_with_command(server.pid)
print(server.pid, flush=True)
if sys.argv[1] == "exit":
    os._exit(0)
time.sleep(300)
"""


def is_there(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("how", ["exit", "killed"])
def test_a_server_ends_with_its_command(how: str) -> None:
    with subprocess.Popen([sys.executable, "-c", COMMAND, how], stdout=subprocess.PIPE, text=True) as command:
        assert command.stdout is not None
        server = int(command.stdout.readline())
        if how == "killed":
            os.kill(command.pid, signal.SIGKILL)
        command.wait()
    for _ in range(1_000):
        if not is_there(server):
            return
        time.sleep(0.01)
    os.kill(server, signal.SIGKILL)
    pytest.fail("the server is still there")


def test_a_job_service_that_is_gone_is_said_before_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "no_answer", lambda address: "connection refused")
    with (
        pytest.raises(JobFailed, match=r"clean: the job service at localhost:1 is gone .connection refused.. Start it"),
        launch.launching("clean", [Address("--job_endpoint", "localhost:1", "the job service", "")]),
    ):
        pytest.fail("no job is launched")
