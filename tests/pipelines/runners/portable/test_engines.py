"""What a portable runner's engine lacks, beside servers that do not answer: paths that workers do not see, versions."""

import json
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from apache_beam.utils.subprocess_server import JavaJarServer
from apache_beam.version import __version__ as BEAM

from refinery.pipelines.runners.portable import versions as versions_module
from refinery.pipelines.runners.portable.versions import flink_cluster, java, job_server, spark_cluster, versions
from refinery.pipelines.runners.portable.visible_paths import check_seen, unseen
from refinery.transforms.core.data_text.plain_yaml import RecipeError

HERE = ["--job_endpoint=localhost:1", "--environment_type=EXTERNAL", "--environment_config=localhost:2"]
AWAY = ["--job_endpoint=localhost:1", "--environment_type=EXTERNAL", "--environment_config=pool.example:2"]


def kinds(runner: str, flags: Sequence[str], path: str) -> list[str]:
    return [note.what for note in unseen(runner, flags, [("--output", path), ("--work", "gs://bucket/work")])]


@pytest.mark.parametrize(
    ("runner", "flags", "path", "found"),
    [
        ("FlinkRunner", [], "out/web", []),  # LOOPBACK
        ("FlinkRunner", ["--flink_master=host:8081"], "/data/web", ["problem"]),  # DOCKER
        ("PortableRunner", ["--job_endpoint=localhost:1"], "out/web", ["problem"]),
        ("PortableRunner", ["--job_endpoint=localhost:1"], "s3://bucket/web", []),
        ("PortableRunner", HERE, "/data/web", []),
        ("PortableRunner", HERE, "out/web", ["warning"]),
        ("PortableRunner", AWAY, "/data/web", ["warning"]),
        ("PortableRunner", AWAY, "out/web", ["problem"]),
        ("PortableRunner", ["--job_endpoint=host:1", "--environment_type=PROCESS"], "/data/web", ["warning"]),
        ("PortableRunner", ["--job_endpoint=:1", "--environment_type=PROCESS"], "/data/web", []),  # no address: said
    ],
)
def test_local_paths_of_workers_elsewhere(runner: str, flags: Sequence[str], path: str, found: Sequence[str]) -> None:
    assert kinds(runner, flags, path) == found


def test_what_workers_cannot_see_ends_a_run() -> None:
    with pytest.raises(RecipeError, match=r"^--output: 'out' given, a relative path that workers at pool\.example"):
        check_seen("PortableRunner", AWAY, [("--output", "out")])
    check_seen("PortableRunner", AWAY, [("--output", "/mnt/out")])


@pytest.fixture
def java_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose bin/java prints what is written to it."""
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\ncat "$(dirname "$0")/version" >&2\n')
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    return program.parent / "version"


@pytest.mark.parametrize(
    ("said", "flink", "what", "words"),
    [
        ('openjdk version "17.0.9" 2023-10-17', "2.1", "ok", "Java 17; the job server for Flink 2.1 needs 11"),
        ('java version "1.8.0_391"', "1.19", "ok", "Java 8"),
        ('java version "1.8.0_391"', "2.0", "problem", "is Java 8, but the job server for Flink 2.0 needs 11"),
        ('java version "1.7.0_80"', "", "problem", "is Java 7, but the job server needs 8"),
        ("The operation couldn't be completed.", "", "warning", "does not say a version"),
    ],
)
def test_java(java_home: Path, said: str, flink: str, what: str, words: str) -> None:
    java_home.write_text(said)
    (note,) = java(flink)
    assert note.what == what and words in note.line


def test_without_java_nothing_is_said_twice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert list(java("")) == []


def test_job_servers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(JavaJarServer, "JAR_CACHE", str(tmp_path))
    jar = tmp_path / f"beam-runners-flink-2.1-job-server-{BEAM}.jar"

    def found(given: str) -> tuple[str, str]:
        (note,) = job_server(given, "flink:2.1") or [None]
        return note.what, note.line

    assert found("")[0] == "warning" and jar.name in found("")[1] and "Maven Central" in found("")[1]
    assert found(str(jar)) == ("problem", f"job server: {jar} is not a file; correct the path, or leave the flag out")
    jar.touch()
    assert found("") == ("ok", f"job server: {jar.name} is in Beam's cache")
    assert list(job_server(str(jar), "flink:2.1")) == []
    what, line = found("https://example.org/beam-runners-flink-2.1-job-server-2.1.0.jar")
    assert what == "problem" and f"has Beam 2.1.0; give the one of Beam {BEAM}" in line


@pytest.fixture
def rest() -> Iterator[tuple[str, dict[str, object]]]:
    """The address of a service, and its answers by path."""
    answers: dict[str, object] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(answers[self.path]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield "127.0.0.1:{1}".format(*server.server_address[:2]), answers
        server.shutdown()


def test_clusters_say_their_versions(rest: tuple[str, dict[str, object]]) -> None:
    address, answers = rest

    def flink(version: object) -> list[tuple[str, str]]:
        answers["/config"] = {"flink-version": version}
        return [(note.what, note.line) for note in flink_cluster(address, "2.1")]

    assert flink("2.1.0") == [("ok", f"Flink 2.1.0 at {address}")]
    ((what, line),) = flink("1.20.2")
    assert what == "problem" and line.endswith("give --flink_version=1.20")
    ((what, line),) = flink("1.14.0")
    assert what == "problem" and "has job servers only for 1.19, " in line
    assert flink(None) == [] and flink(7) == []
    answers["/config"] = []
    assert list(flink_cluster(f"http://{address}/", "2.1")) == []
    answers["/v1/submissions/status/none"] = {"success": False, "serverSparkVersion": "3.5.1"}
    assert [note.what for note in spark_cluster(f"http://{address}", "3")] == ["ok"]
    answers["/v1/submissions/status/none"] = {"success": False, "serverSparkVersion": "4.0.0"}
    assert [note.what for note in spark_cluster(f"http://{address}", "3")] == ["problem"]
    assert list(flink_cluster("127.0.0.1:9", "2.1")) == []  # nobody listens: portable_problems says so


def test_which_versions_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    for name in ("java", "job_server", "flink_cluster", "spark_cluster"):
        monkeypatch.setattr(versions_module, name, lambda *given, name=name: asked.append(f"{name}{given}") or ())
    flags = ["--flink_master=host:8081", "--flink_version=2.0"]
    assert list(versions("FlinkRunner", flags)) == []
    assert asked == ["java('2.0',)", "job_server('', 'flink:2.0')", "flink_cluster('host:8081', '2.0')"]
    asked.clear()
    assert list(versions("FlinkRunner", [*flags, "--job_endpoint=x:1"])) == []
    assert asked == ["flink_cluster('host:8081', '2.0')"]
    asked.clear()
    list(versions("SparkRunner", ["--spark_rest_url=host:6066"]))
    assert asked == ["java('',)", "job_server('', 'spark:3')", "spark_cluster('host:6066', '3')"]
    (note,) = versions("PrismRunner", [])
    assert note.what == "warning" and "downloads Prism" in note.line
    assert list(versions("PortableRunner", ["--job_endpoint=x:1"])) == []
