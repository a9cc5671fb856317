"""Google's client for Cloud Storage, once per process, and what its errors mean: the one place that decides.

google-cloud-storage is imported at the first use.
"""

import contextlib
import json
import os
import re
from collections.abc import Iterator
from typing import Any

from refinery.loader.storage.fetch import Permanent, Transient, without_secrets

CONNECTIONS = 64  # kept open per process: as many as its threads may read with at once
LOGIN = "run `gcloud auth application-default login`, or give this machine a service account"
_TRANSIENT = frozenset((408, 429, 500, 502, 503, 504))
_MISSING_BUCKET = re.compile(r"(?i)\bbucket does not exist")

_clients: dict[tuple[int, str], Any] = {}


class Refusal(Permanent):
    """The service has refused a request for good, or there is no way to ask. status: 0 where there was no answer."""

    def __init__(self, status: int, cause: object) -> None:
        super().__init__(cause)
        self.status = status


class MissingBucket(Refusal):
    """There is no such bucket. What is missing inside one is an object, and left to whoever asked for it."""


def client() -> Any:
    """This process's google.cloud.storage.Client, shared by its threads. A forked child makes one of its own: two
    processes must not write to the same connections.

    Raises google.auth.exceptions.DefaultCredentialsError where there are no credentials.
    """
    # The emulator's address decides where a client connects, and whether it looks for credentials.
    key = os.getpid(), os.environ.get("STORAGE_EMULATOR_HOST", "")
    found = _clients.get(key)
    if found is None:
        import requests.adapters
        from google.cloud import storage

        # Objects need no project: without None the client insists on a default one.
        found = storage.Client(project=None)
        session = found._http
        for scheme in ("https://", "http://"):
            if not session.is_mtls:  # whose adapter holds the client's certificate
                session.mount(scheme, requests.adapters.HTTPAdapter(pool_maxsize=CONNECTIONS))
        _clients.clear()  # of the parent, or of another emulator
        _clients[key] = found
    return found


def close() -> None:
    """Close this process's idle connections; they are opened again when needed."""
    for (process, _), found in list(_clients.items()):
        if process == os.getpid():
            found.close()


def is_missing_bucket(error: Exception) -> bool:
    """Whether a 404 is about the bucket and not about an object."""
    return bool(_MISSING_BUCKET.search(_message(error)))


@contextlib.contextmanager
def classified() -> Iterator[None]:
    """Turn the libraries' errors into Transient and Refusal.

    404 of an object, 412 and 416 stay what they are in google.api_core.exceptions: they are answers.
    """
    import requests
    import urllib3
    from google.api_core import exceptions
    from google.auth.exceptions import GoogleAuthError, TransportError

    try:
        yield
    except exceptions.GoogleAPICallError as error:
        code = int(error.code or 0)
        if code in (412, 416) or (code == 404 and not is_missing_bucket(error)):
            raise
        text = _message(error)
        cause = f"status {code}" + (f": {text}" if text else "")
        if code in _TRANSIENT or code > 504:
            raise Transient(cause, _retry_after(error)) from error
        if code == 400 and re.search(r"(?i)crc32c|checksum", text):
            raise Transient(f"the bytes changed on their way: {cause}") from error
        if code == 404:
            raise MissingBucket(code, f"{cause} Make it, or mend its name") from error
        raise Refusal(code, f"{cause}{_advice(code)}") from error
    except GoogleAuthError as error:
        if isinstance(error, TransportError) or error.retryable:
            raise Transient(error) from error
        raise Refusal(0, f"no valid Google credentials ({_line(error)}): {LOGIN}") from error
    except requests.exceptions.SSLError as error:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            raise Refusal(0, f"the server's certificate is not trusted: {_line(error)}") from error
        raise Transient(error) from error
    except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
        raise Transient(error) from error
    except AttributeError as error:  # of the library, which takes every JSON for an object
        raise Transient(f"an answer that is none of Cloud Storage's: {error}") from error


def _advice(code: int) -> str:
    if code == 401:
        return f"; these credentials are not accepted: {LOGIN}"
    if code == 403:
        return (
            "; whoever runs this needs a role on the bucket: storage.objectViewer to read, .objectCreator to write, "
            ".objectUser to delete"
        )
    return ""


def _message(error: Any) -> str:
    """What the service said, in one line; the library's own text begins with the whole address."""
    response = getattr(error, "response", None)
    text = getattr(response, "text", "") or ""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        text = json.loads(text)["error"]["message"]
    return _line(text)


def _line(text: object) -> str:
    return without_secrets(" ".join(str(text).split())[:300])


def _retry_after(error: Any) -> float:
    """Seconds that the service asks for, 0 for none. Its other form, a date, is left to the backoff."""
    response = getattr(error, "response", None)
    value = response.headers.get("Retry-After", "") if response is not None else ""
    return float(value) if re.fullmatch(r"\d{1,6}", value) else 0.0
