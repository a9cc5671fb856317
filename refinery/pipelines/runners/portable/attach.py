"""A job that an earlier command launched on a job service, found again by its name.

Beam gives every portable job the name "job", so ours is among the job's options (`--job_name`). LOOPBACK workers end
with the command that launched them. Their job can never end, so it is cancelled, and the caller launches it again.
"""

from collections.abc import Callable
from typing import Any

import grpc
from apache_beam.portability.api import beam_job_api_pb2 as api
from apache_beam.portability.api import beam_job_api_pb2_grpc as services
from apache_beam.runners.portability.portable_runner import TERMINAL_STATES, PipelineResult

from refinery.pipelines.runners.portable.addresses import CONNECT_SECONDS

NAME = "beam:option:job_name:v1"


def job_service(endpoint: str) -> Any:
    """A client of the job service at "host:port"."""
    return services.JobServiceStub(grpc.insecure_channel(endpoint))


def described_options(service: Any) -> set[str]:
    """The options that the service's engine knows, as they are typed. One that does not answer, or cannot say, knows
    none."""
    try:
        found = service.DescribePipelineOptions(api.DescribePipelineOptionsRequest(), timeout=CONNECT_SECONDS)
    except grpc.RpcError:
        return set()
    return {f"--{option.name}" for option in found.options}


def running_jobs(service: Any, name: str) -> list[str]:
    """Ids of the jobs of that name that have not ended. A service that cannot list its jobs has none."""
    try:
        found = service.GetJobs(api.GetJobsRequest(), timeout=CONNECT_SECONDS).job_info
    except grpc.RpcError:
        return []
    return [job.job_id for job in found if named(job, name) and job.state not in TERMINAL_STATES]


def named(job: Any, name: str) -> bool:
    """Whether a job has this name among its options."""
    options = job.pipeline_options.fields
    return NAME in options and options[NAME].string_value == name


def find_job(endpoint: str, name: str, loses_workers: bool, say: Callable[[str], None]) -> PipelineResult | None:
    """The running job of that name, to be waited for; None where there is none.

    loses_workers: its workers ended with the command that launched it, so it is cancelled instead.
    """
    service = job_service(endpoint)
    for job in running_jobs(service, name):
        if loses_workers:
            say(f"job {job} was launched before and has lost its workers; it is cancelled and launched again")
            service.Cancel(api.CancelJobRequest(job_id=job), timeout=CONNECT_SECONDS)
            continue
        say(f"job {job} was launched before and still runs at {endpoint}; waiting for it")
        states = service.GetStateStream(api.GetJobStateRequest(job_id=job))
        messages = service.GetMessageStream(api.JobMessagesRequest(job_id=job))
        return PipelineResult(service, job, messages, states)
    return None
