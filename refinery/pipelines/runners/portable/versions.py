"""Whether the engine of a portable runner has versions that Beam works with: Java, the job server, Flink, Spark.

Beam itself finds out when a job runs, in a traceback of Java's.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

import requests
from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    PipelineOptions,
    PortableOptions,
    PrismRunnerOptions,
    SparkRunnerOptions,
)
from apache_beam.runners.portability.job_server import JavaJarJobServer
from apache_beam.utils.subprocess_server import JavaHelper, JavaJarServer
from apache_beam.version import __version__ as BEAM
from urllib3.exceptions import HTTPError

from refinery.pipelines.runners.portable.addresses import CONNECT_SECONDS, FLINK_ITSELF
from refinery.pipelines.runners.portable.note import Note

OLDEST_JAVA = 8  # of Beam's job servers (beam.apache.org/get-started/quickstart-java)
OLDEST_JAVA_OF_FLINK_2 = 11  # nightlies.apache.org/flink: Java compatibility
JAR_VERSION = re.compile(r"-(\d+\.\d+\.\d+)(?:-SNAPSHOT)?\.jar$")


def versions(runner: str, flags: Sequence[str]) -> Iterator[Note]:
    """What fits and what does not. Costs up to CONNECT_SECONDS for Java and for a server; silent ones are not named:
    portable_problems does."""
    options = PipelineOptions(list(flags))
    starts_server = runner in ("FlinkRunner", "SparkRunner") and not options.view_as(PortableOptions).job_endpoint
    flink, spark = options.view_as(FlinkRunnerOptions), options.view_as(SparkRunnerOptions)
    if starts_server:
        yield from java(flink.flink_version if runner == "FlinkRunner" else "")
        jar = flink.flink_job_server_jar if runner == "FlinkRunner" else spark.spark_job_server_jar
        which = f"flink:{flink.flink_version}" if runner == "FlinkRunner" else f"spark:{spark.spark_version}"
        yield from job_server(jar or "", which)
    if runner == "FlinkRunner" and flink.flink_master not in FLINK_ITSELF:
        yield from flink_cluster(flink.flink_master, flink.flink_version)
    if runner == "SparkRunner" and spark.spark_rest_url:
        yield from spark_cluster(spark.spark_rest_url, spark.spark_version)
    if runner == "PrismRunner" and not options.view_as(PrismRunnerOptions).prism_location:
        yield Note(
            "warning",
            f"--prism_location is not given: Beam downloads Prism {BEAM} from GitHub at the first launch, which needs "
            "the internet",
        )


def java(flink: str) -> Iterator[Note]:
    """The Java that Beam starts. flink: version of the job server for Flink, or ""."""
    program = JavaHelper.get_java()
    if shutil.which(program) is None:
        return  # portable_problems says so
    try:
        done = subprocess.run(  # noqa: S603 - the program that Beam itself would start
            [program, "-version"], capture_output=True, text=True, timeout=CONNECT_SECONDS, check=False
        )
        found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    except (OSError, subprocess.TimeoutExpired):
        found = None
    if found is None:
        yield Note("warning", f"`{program} -version` does not say a version; run it by hand")
        return
    least = OLDEST_JAVA_OF_FLINK_2 if flink.startswith("2.") else OLDEST_JAVA
    what = f"the job server for Flink {flink}" if flink else "the job server"
    if int(found[1]) < least:
        yield Note("problem", f"{program} is Java {found[1]}, but {what} needs {least} or newer; set JAVA_HOME to one")
    else:
        yield Note("ok", f"Java {found[1]}; {what} needs {least} or newer")


def job_server(jar: str, which: str) -> Iterator[Note]:
    """The job server of Beam that the runner starts. jar: a path or address, "" for Beam's own. which: "flink:2.1"."""
    named = JAR_VERSION.search(jar)
    if named and named[1] != BEAM:
        yield Note("problem", f"job server: {jar} has Beam {named[1]}; give the one of Beam {BEAM}, or none")
    elif jar and "://" not in jar and not os.path.isfile(jar):
        yield Note("problem", f"job server: {jar} is not a file; correct the path, or leave the flag out")
    elif not jar:
        own = os.path.basename(JavaJarJobServer.path_to_beam_jar(f":runners:{which}:job-server:shadowJar"))
        if os.path.isfile(os.path.join(JavaJarServer.JAR_CACHE, own)):
            yield Note("ok", f"job server: {own} is in Beam's cache")
        else:
            yield Note(
                "warning",
                f"job server: {own} is not in Beam's cache; the launch downloads it from Maven Central, which needs "
                "the internet, or give its path by flag",
            )


def answer(address: str, path: str) -> Any:
    """The JSON answer of a REST service; None where there is none."""
    url = address if "://" in address else f"http://{address}"
    if not url.startswith(("http://", "https://")):
        return None
    try:
        with requests.get(url.rstrip("/") + path, timeout=CONNECT_SECONDS, allow_redirects=False, stream=True) as found:
            return json.loads(found.raw.read(1 << 20, decode_content=True)) if found.ok else None
    except (OSError, ValueError, HTTPError):
        return None


def flink_cluster(address: str, wanted: str) -> Iterator[Note]:
    """Flink's own version, which its REST service says at /config."""
    found = answer(address, "/config")
    version = found.get("flink-version") if isinstance(found, dict) else None
    if not isinstance(version, str):
        return
    known = FlinkRunnerOptions.PUBLISHED_FLINK_VERSIONS
    own = ".".join(version.split(".")[:2])
    if own == wanted:
        yield Note("ok", f"Flink {version} at {address}")
    elif own in known:
        yield Note(
            "problem",
            f"Flink {version:.40} at {address}, but Beam's job server is for {wanted}: give --flink_version={own}",
        )
    else:
        yield Note(
            "problem", f"Flink {version:.40} at {address}, but Beam {BEAM} has job servers only for {', '.join(known)}"
        )


def spark_cluster(address: str, wanted: str) -> Iterator[Note]:
    """Spark's own version, which every answer of its REST service says."""
    found = answer(address, "/v1/submissions/status/none")
    version = found.get("serverSparkVersion") if isinstance(found, dict) else None
    if isinstance(version, str):
        fits = version.split(".")[0] == wanted
        line = f"Spark {version:.40} at {address}"
        yield (
            Note("ok", line) if fits else Note("problem", f"{line}, but Beam {BEAM} has a job server only for {wanted}")
        )
