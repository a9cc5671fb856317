"""The part of Cloud Dataflow's REST API that a launcher needs: state, names, counters and errors of jobs.

Beam's own client gives up a job after ten minutes without an answer, and cannot wait for a job that it did not launch.
Jobs are still launched by Beam (pipelines/runners/runner.py).
"""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import google.auth.credentials
import requests
from apache_beam.internal.gcp.auth import get_service_credentials
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions
from apache_beam.runners.dataflow.internal.apiclient import DataflowJobAlreadyExistsError
from google.api_core.client_options import ClientOptions
from google.api_core.exceptions import Conflict, GoogleAPICallError, NotFound
from google.auth.exceptions import GoogleAuthError, TransportError
from google.cloud import dataflow
from google.protobuf.json_format import ParseError

from refinery.pipelines.progress.work import OUTCOMES
from refinery.pipelines.runners.dataflow.error_lines import cut, short_error
from refinery.pipelines.runners.dataflow.jobs import JobState, NameTaken, ServiceRefusal, ServiceTrouble
from refinery.transforms.core.live import WORK

TIMEOUT = 60.0  # seconds of one request
PAGE_SIZE = 100

ERROR_LINES = 5  # shown of a job's errors
_REQUEST = re.compile(r"^[A-Z]+ https?://\S+: ")  # how the client's messages begin

_TRY_AGAIN = frozenset({408, 429, 500, 502, 503, 504})
_RATE_LIMITS = ("rateLimitExceeded", "userRateLimitExceeded", "RATE_LIMIT_EXCEEDED")


class DataflowService:
    """`jobs.Service` by REST, against the real service or a test's --dataflow_endpoint."""

    def __init__(self, options: PipelineOptions, project: str = "", region: str = "") -> None:
        """options: as for a launch. project, region: of the jobs, where they differ from the options."""
        cloud = options.view_as(GoogleCloudOptions)
        self.project: str = project or cloud.project
        self.region: str = region or cloud.region
        found = None if cloud.no_auth else get_service_credentials(options)
        shared: dict[str, Any] = {
            "credentials": found.get_google_auth_credentials()
            if found
            else google.auth.credentials.AnonymousCredentials(),  # type: ignore[no-untyped-call]
            "client_options": ClientOptions(api_endpoint=(cloud.dataflow_endpoint or "").strip().rstrip("/") or None),
            "transport": "rest",
        }
        self._jobs = dataflow.JobsV1Beta3Client(**shared)
        self._messages = dataflow.MessagesV1Beta3Client(**shared)
        self._metrics = dataflow.MetricsV1Beta3Client(**shared)
        self._place = {"project_id": self.project, "location": self.region}
        self._call: dict[str, Any] = {"retry": None, "timeout": TIMEOUT}  # the caller retries

    def get(self, job_id: str) -> JobState | None:
        with translated():
            try:
                found = _state(self._jobs.get_job(dataflow.GetJobRequest(job_id=job_id, **self._place), **self._call))
            except NotFound:
                return None
        if found.id != job_id:
            raise ServiceTrouble(f"asked for job {job_id}, it answers with {cut(repr(found.id))}")
        return found

    def list(self, name: str) -> Iterator[JobState]:
        # All jobs, not just ACTIVE ones: which of the waiting states that filter includes is not documented.
        everything = dataflow.ListJobsRequest.Filter.ALL
        request = dataflow.ListJobsRequest(filter=everything, name=name, page_size=PAGE_SIZE, **self._place)
        with translated():
            pages = _pages(self._jobs.list_jobs(request, **self._call))
            yield from [_state(job) for page in pages for job in page.jobs if job.name == name]

    def totals(self, job_id: str) -> Counter[str]:
        request = dataflow.GetJobMetricsRequest(job_id=job_id, **self._place)
        with translated():
            metrics = self._metrics.get_job_metrics(request, **self._call).metrics
        found: dict[bool, Counter[str]] = {False: Counter(), True: Counter()}
        for metric in metrics:
            context = dict(metric.name.context)
            namespace = context.get("namespace", "")
            is_ours = metric.name.origin == "user" and (metric.name.name in ("in", *OUTCOMES) or namespace == WORK)
            if is_ours and isinstance(metric.scalar, int | float):
                key = f"{namespace} {metric.name.name}"
                found[context.get("tentative") == "true"][key] += int(metric.scalar)
        return found[False] | found[True]  # committed or tentative, whichever is ahead

    def errors(self, job_id: str) -> tuple[str, ...]:
        worst = dataflow.JobMessageImportance.JOB_MESSAGE_ERROR
        request = dataflow.ListJobMessagesRequest(job_id=job_id, minimum_importance=worst, **self._place)
        with translated():
            messages = (
                m for p in _pages(self._messages.list_job_messages(request, **self._call)) for m in p.job_messages
            )
            lines = [short_error(m.message_text) for m in messages if m.message_importance == worst]
        return tuple(dict.fromkeys(lines))[-ERROR_LINES:]


@contextmanager
def translated(launch: bool = False) -> Iterator[None]:
    """Translate errors of Google's clients into those of jobs.py, each one line; NameTaken only for a launch."""
    try:
        yield
    except DataflowJobAlreadyExistsError as error:  # how Beam reports that the answer is another job
        raise NameTaken(_first_line(error)) from error
    except GoogleAPICallError as error:
        code = int(error.code or 0)
        said = cut(f"HTTP {code} {_REQUEST.sub('', error.message or '')}".strip().partition("\n")[0])
        if launch and isinstance(error, Conflict):
            raise NameTaken(said) from error
        limited = code == 403 and any(word in str(error) for word in _RATE_LIMITS)
        raise (ServiceTrouble if code in _TRY_AGAIN or limited else ServiceRefusal)(said) from error
    except GoogleAuthError as error:
        temporary = isinstance(error, TransportError) or error.retryable
        raise (ServiceTrouble if temporary else ServiceRefusal)(_first_line(error)) from error
    except (requests.exceptions.RequestException, ConnectionError, TimeoutError, ParseError) as error:
        raise ServiceTrouble(_first_line(error)) from error
    except (AttributeError, UnicodeDecodeError) as error:
        if launch:  # it may come from building the pipeline
            raise
        raise ServiceTrouble(f"not an answer of Dataflow: {_first_line(error)}") from error


def _pages(pager: Any) -> Iterator[Any]:
    """The pages of a list. Raises ServiceTrouble for a repeated page, which would never end."""
    seen: set[str] = set()
    for page in pager.pages:
        yield page
        if page.next_page_token in seen:
            raise ServiceTrouble("it returns the same page of a list again and again")
        seen.add(page.next_page_token)


def _first_line(error: Exception) -> str:
    return cut(f"{type(error).__name__}: {error}".partition("\n")[0])


def _state(job: Any) -> JobState:
    state = getattr(job.current_state, "name", f"JOB_STATE_{job.current_state}").removeprefix("JOB_STATE_")
    created = job.create_time.timestamp() if job.create_time else 0.0
    return JobState(job.id, job.name, state, created, job.replaced_by_job_id)
