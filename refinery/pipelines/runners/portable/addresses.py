"""What the flags of a portable runner name: a job service, a master, a pool of workers, programs. Checked before
anything runs. Beam itself waits for minutes, then prints a traceback."""

import contextlib
import json
import os
import shutil
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    PipelineOptions,
    PortableOptions,
    PrismRunnerOptions,
    SparkRunnerOptions,
)

CONNECT_SECONDS = 5.0
PORTABLE = ("PortableRunner", "PrismRunner", "FlinkRunner", "SparkRunner")
# Masters that a runner starts itself (apache_beam.runners.portability: flink_runner, spark_runner).
FLINK_ITSELF = ("[local]", "[auto]", "[collection]")
SPARK_ITSELF = "local"
SERVICE = "the job service"
EMBEDDED = "embed"  # a job endpoint: Beam's job service inside the launching process
ENVIRONMENTS = ("LOOPBACK", "EXTERNAL", "PROCESS", "DOCKER")


@dataclass(frozen=True)
class Address:
    """A host and port that a flag names. what: the server there. hint: what to do where nobody answers."""

    flag: str
    value: str
    what: str
    hint: str


def is_portable(runner: str) -> bool:
    """Whether Beam hands this runner's jobs to a job service."""
    return runner in PORTABLE


def job_endpoint(flags: Sequence[str]) -> str:
    """The address of a job service that other commands can reach, too; "" where the runner starts its own."""
    given = str(PipelineOptions(list(flags)).view_as(PortableOptions).job_endpoint or "")
    return "" if given == EMBEDDED else given


def environment_type(runner: str, flags: Sequence[str]) -> str:
    """Where a job's workers run, by the flags or the runner's default: one of ENVIRONMENTS."""
    options = PipelineOptions(list(flags))
    given = options.view_as(PortableOptions).environment_type
    if given:
        return str(given).upper()
    flink = options.view_as(FlinkRunnerOptions).flink_master
    spark = options.view_as(SparkRunnerOptions).spark_master_url
    starts_itself = (
        runner == "PrismRunner"
        or (runner == "FlinkRunner" and flink in FLINK_ITSELF)
        or (runner == "SparkRunner" and str(spark).startswith(SPARK_ITSELF))
    )
    return "LOOPBACK" if starts_itself else "DOCKER"


def portable_problems(runner: str, flags: Sequence[str]) -> Iterator[str]:
    """A line for each thing that a portable runner would lack: flags, programs, servers that do not answer.

    Cost: up to CONNECT_SECONDS for each address.
    """
    options = PipelineOptions(list(flags))
    portable = options.view_as(PortableOptions)
    kind = environment_type(runner, flags)
    if kind not in ENVIRONMENTS:
        yield f"--environment_type: {kind} given, {', '.join(ENVIRONMENTS)} are allowed"
    if runner == "PortableRunner" and not portable.job_endpoint:
        yield "--job_endpoint=HOST:PORT is missing: PortableRunner needs the address of a job service"
    if kind == "DOCKER" and not (portable.environment_config or portable.environment_options):
        yield (
            "--environment_type: the default, DOCKER, starts workers from Beam's own image, which has no Refinery; "
            "give --environment_type=LOOPBACK (workers here), EXTERNAL with --environment_config=HOST:PORT of a worker "
            "pool, or --environment_config=IMAGE with an image that has this version"
        )
    if kind == "EXTERNAL" and not external_address(portable):
        yield "--environment_config=HOST:PORT is missing: EXTERNAL workers come from a worker pool at that address"
    if kind == "LOOPBACK" and portable.environment_config:
        yield "--environment_config: has no effect with LOOPBACK workers; leave it out"
    yield from missing_programs(runner, options)
    for address in addresses(runner, options, kind):
        if why := no_answer(address.value):
            yield f"{address.flag}: {address.what} at {address.value} does not answer ({why}); {address.hint}"


def missing_programs(runner: str, options: PipelineOptions) -> Iterator[str]:
    """Programs that the runner starts on this machine."""
    if options.view_as(PortableOptions).job_endpoint:
        return
    prism = options.view_as(PrismRunnerOptions).prism_location
    if runner == "PrismRunner" and prism and "://" not in prism:
        if not os.path.isfile(prism):
            yield f"--prism_location: {prism} is not a file; `go install` of Beam's sdks/v2/go/cmd/prism builds it"
        elif not os.access(prism, os.X_OK):
            yield f"--prism_location: {prism} cannot be executed; run chmod +x on it"
    if runner in ("FlinkRunner", "SparkRunner") and shutil.which("java") is None:
        yield (
            f"{runner}: it starts a job server in Java, and `java` is not on the path; install it, or start the job "
            "server elsewhere and give --job_endpoint=HOST:PORT"
        )


def servers_of(runner: str, flags: Sequence[str]) -> list[Address]:
    """`addresses`, by flags alone."""
    return list(addresses(runner, PipelineOptions(list(flags)), environment_type(runner, flags)))


def addresses(runner: str, options: PipelineOptions, kind: str) -> Iterator[Address]:
    """Every server that must answer before a job can run."""
    portable = options.view_as(PortableOptions)
    flink = options.view_as(FlinkRunnerOptions).flink_master
    spark = options.view_as(SparkRunnerOptions)
    if portable.job_endpoint and portable.job_endpoint != EMBEDDED:
        hint = "start the job service, or correct the address"
        yield Address("--job_endpoint", portable.job_endpoint, SERVICE, hint)
    elif runner == "FlinkRunner" and flink not in FLINK_ITSELF:
        hint = "start the cluster, or leave the flag out: Flink then runs on this machine"
        yield Address("--flink_master", flink, "Flink's REST service", hint)
    elif runner == "SparkRunner" and spark.spark_rest_url:
        yield Address("--spark_rest_url", spark.spark_rest_url, "Spark's REST service", "start it, or correct the URL")
    elif runner == "SparkRunner" and "://" in str(spark.spark_master_url):
        hint = "start the master, or correct the URL"
        yield Address("--spark_master_url", spark.spark_master_url, "Spark's master", hint)
    if kind == "EXTERNAL" and (pool := external_address(portable)):
        hint = "start it: python -m refinery.pipelines.runners.worker_pool --service_port PORT"
        yield Address("--environment_config", pool, "the worker pool", hint)


def external_address(portable: PortableOptions) -> str:
    """The worker pool's address: plain, or the "url" of a JSON object. "" where there is none."""
    for option in portable.environment_options or ():
        name, _, value = str(option).partition("=")
        if name == "external_service_address":
            return value
    config = str(portable.environment_config or "")
    if config.startswith("{"):
        with contextlib.suppress(ValueError):
            return str(json.loads(config).get("url", ""))
        return ""
    return config


def host_and_port(address: str) -> tuple[str, int]:
    """Of "host:port" or a URL; port 80 where it names none. Raises ValueError for what is not an address."""
    parts = urlsplit(address if "://" in address else f"//{address}")
    if not parts.hostname:
        raise ValueError("it names no host")
    return parts.hostname, parts.port or 80


def no_answer(address: str, seconds: float = CONNECT_SECONDS) -> str:
    """Why nobody can be reached there; "" where a connection opens."""
    try:
        with socket.create_connection(host_and_port(address), timeout=seconds):
            return ""
    except ValueError as error:
        return f"{error}; HOST:PORT is needed"
    except TimeoutError:
        return f"no connection within {seconds:.0f} s"
    except OSError as error:
        return (error.strerror or str(error)).lower()
