"""What a portable runner would lack, as one line each, before anything runs."""

import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from refinery.pipelines.runners.portable.addresses import (
    environment_type,
    host_and_port,
    no_answer,
    portable_problems,
)

POOL = "--environment_type=EXTERNAL"


@pytest.fixture
def free() -> str:
    """An address where nobody listens."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return "127.0.0.1:{1}".format(*server.getsockname())


@pytest.fixture
def served() -> Iterator[str]:
    """An address where connections open."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield "127.0.0.1:{1}".format(*server.getsockname())


@pytest.mark.parametrize(
    ("runner", "flags", "kind"),
    [
        ("PrismRunner", [], "LOOPBACK"),
        ("PrismRunner", ["--environment_type=external"], "EXTERNAL"),
        ("FlinkRunner", [], "LOOPBACK"),
        ("FlinkRunner", ["--flink_master=host:8081"], "DOCKER"),
        ("SparkRunner", [], "LOOPBACK"),
        ("SparkRunner", ["--spark_master_url=local[4]"], "LOOPBACK"),
        ("SparkRunner", ["--spark_master_url=spark://host:7077"], "DOCKER"),
        ("PortableRunner", ["--job_endpoint=host:1"], "DOCKER"),
        ("PortableRunner", ["--job_endpoint=host:1", "--environment_type=PROCESS"], "PROCESS"),
    ],
)
def test_where_workers_run(runner: str, flags: Sequence[str], kind: str) -> None:
    assert environment_type(runner, flags) == kind


@pytest.mark.parametrize(
    ("runner", "flags", "said"),
    [
        ("PortableRunner", ["--environment_type=LOOPBACK"], "--job_endpoint=HOST:PORT is missing"),
        ("PortableRunner", ["--job_endpoint=FREE", "--environment_type=LOOPBACK"], "the job service at FREE"),
        ("PortableRunner", ["--job_endpoint=SERVED"], "Beam's own image, which has no Refinery"),
        ("PortableRunner", ["--job_endpoint=SERVED", POOL], "--environment_config=HOST:PORT is missing"),
        ("PortableRunner", ["--job_endpoint=SERVED", POOL, "--environment_config=FREE"], "the worker pool at FREE"),
        ("PortableRunner", ["--job_endpoint=SERVED", POOL, '--environment_config={"url": "FREE"}'], "pool at FREE"),
        ("PortableRunner", ["--job_endpoint=SERVED", "--environment_type=PODS"], "PODS given, LOOPBACK, EXTERNAL"),
        (
            "PortableRunner",
            ["--job_endpoint=SERVED", "--environment_type=LOOPBACK", "--environment_config=image"],
            "--environment_config: has no effect with LOOPBACK workers",
        ),
        ("FlinkRunner", ["--flink_master=FREE", "--environment_type=LOOPBACK"], "Flink's REST service at FREE"),
        ("FlinkRunner", ["--flink_master=http://FREE", "--environment_type=LOOPBACK"], "REST service at http://FREE"),
        ("SparkRunner", ["--spark_master_url=spark://FREE", "--environment_type=LOOPBACK"], "Spark's master"),
        ("PrismRunner", ["--prism_location=/no/prism"], "/no/prism is not a file"),
    ],
)
def test_what_is_missing_is_one_line(
    runner: str, flags: Sequence[str], said: str, free: str, served: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    given = [flag.replace("FREE", free).replace("SERVED", served) for flag in flags]
    (line,) = portable_problems(runner, given)
    assert said.replace("FREE", free) in line and "\n" not in line


@pytest.mark.parametrize(
    ("runner", "flags"),
    [
        ("PrismRunner", []),
        ("PortableRunner", ["--job_endpoint=SERVED", "--environment_type=LOOPBACK"]),
        ("PortableRunner", ["--job_endpoint=SERVED", POOL, "--environment_config=SERVED"]),
        ("PortableRunner", ["--job_endpoint=SERVED", POOL, "--environment_option=external_service_address=SERVED"]),
        ("PortableRunner", ["--job_endpoint=embed", "--environment_type=LOOPBACK"]),
        ("PortableRunner", ["--job_endpoint=SERVED", "--environment_config=registry.example/refinery:1"]),
    ],
)
def test_what_is_complete_has_no_problem(runner: str, flags: Sequence[str], served: str) -> None:
    assert list(portable_problems(runner, [flag.replace("SERVED", served) for flag in flags])) == []


def test_a_job_server_in_java_needs_java(monkeypatch: pytest.MonkeyPatch, served: str) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert "`java` is not on the path" in next(portable_problems("FlinkRunner", []))
    here = [f"--job_endpoint={served}", "--environment_type=LOOPBACK"]
    assert list(portable_problems("FlinkRunner", here)) == []  # the server runs already


def test_a_program_without_the_right_to_run(tmp_path: Path) -> None:
    (tmp_path / "prism").write_bytes(b"")
    assert "cannot be executed" in next(portable_problems("PrismRunner", [f"--prism_location={tmp_path / 'prism'}"]))


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("host:80", ("host", 80)),
        ("http://host:8081", ("host", 8081)),
        ("https://host", ("host", 80)),
        ("[::1]:8099", ("::1", 8099)),
        ("spark://host:7077", ("host", 7077)),
    ],
)
def test_addresses_are_read(address: str, found: tuple[str, int]) -> None:
    assert host_and_port(address) == found


@pytest.mark.parametrize("address", ["", ":8099", "host:port", "host:99999999", "http://"])
def test_what_is_no_address_is_said(address: str) -> None:
    assert "HOST:PORT is needed" in no_answer(address)


def test_an_address_that_swallows_connections_is_given_up() -> None:
    """A full backlog: the connection neither opens nor fails."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        address = server.getsockname()
        waiting = [socket.socket() for _ in range(8)]
        try:
            for each in waiting:
                each.setblocking(False)
                each.connect_ex(address)
            assert no_answer("{}:{}".format(*address), seconds=0.2) == "no connection within 0 s"
        finally:
            for each in waiting:
                each.close()
