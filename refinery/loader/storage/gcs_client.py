"""Google's Cloud Storage client, one per process, and the classification of its errors.

google-cloud-storage is imported at first use.
"""

import contextlib
import json
import os
import re
from collections.abc import Iterator
from typing import Any

from refinery.loader.storage.fetch import Permanent, Transient, without_secrets

CONNECTIONS = 64  # kept open per process: at most this many of its threads read at once
LOGIN = "run `gcloud auth application-default login`, or give this machine a service account"
TRANSIENT = frozenset((408, 429, 500, 502, 503, 504))  # statuses after which another try may succeed
_MISSING_BUCKET = re.compile(r"(?i)\bbucket does not exist")

_clients: dict[tuple[int, str], Any] = {}


class Refusal(Permanent):
    """The service refused a request permanently, or none could be made. status: 0 if there was no response."""

    def __init__(self, status: int, cause: object) -> None:
        super().__init__(cause)
        self.status = status


class MissingBucket(Refusal):
    """There is no such bucket. (A missing object raises NotFound, which callers handle.)"""


def client() -> Any:
    """This process's google.cloud.storage.Client, shared by its threads. A forked child creates its own: two processes
    must not write to the same connections.

    Raises google.auth.exceptions.DefaultCredentialsError if there are no credentials.
    """
    # The emulator's address determines where a client connects and whether it looks for credentials.
    key = os.getpid(), os.environ.get("STORAGE_EMULATOR_HOST", "")
    found = _clients.get(key)
    if found is None:
        import requests.adapters
        from google.cloud import storage

        # Reading and writing objects needs no project; without None the client requires a default one.
        found = storage.Client(project=None)
        session = found._http
        for scheme in ("https://", "http://"):
            if not session.is_mtls:  # the mTLS adapter holds the client certificate
                session.mount(scheme, requests.adapters.HTTPAdapter(pool_maxsize=CONNECTIONS))
        close()  # of another emulator
        _clients.clear()  # those of the parent process, too, whose connections are not ours to close
        _clients[key] = found
    return found


def close() -> None:
    """Close this process's idle connections; they are reopened when needed."""
    for (process, _), found in list(_clients.items()):
        if process == os.getpid():
            found.close()


def is_missing_bucket(error: Exception) -> bool:
    """Whether a 404 is about the bucket and not about an object."""
    return bool(_MISSING_BUCKET.search(_message(error)))


@contextlib.contextmanager
def classified() -> Iterator[None]:
    """Convert the libraries' errors into Transient and Refusal.

    404 of an object, 412 and 416 stay google.api_core exceptions: callers handle them.
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
        if code in TRANSIENT or code > 504:
            raise Transient(cause, _retry_after(error), code in (429, 503)) from error
        if code == 400 and re.search(r"(?i)crc32c|checksum", text):
            raise Transient(f"the bytes were corrupted in transit: {cause}") from error
        if code == 404:
            raise MissingBucket(code, f"{cause} Create it, or correct its name") from error
        raise Refusal(code, f"{cause}{_advice(code, text)}") from error
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
    except AttributeError as error:  # the library expects every JSON response to be an object
        raise Transient(f"not a Cloud Storage response: {error}") from error


def _advice(code: int, text: str) -> str:
    if code == 400 and "requester pays" in text.lower():
        return "; name the project that pays: `requester_pays` of the source"
    if code == 401:
        return f"; these credentials were rejected: {LOGIN}"
    if code == 403:
        return (
            "; this account needs a role on the bucket: storage.objectViewer to read, .objectCreator to write, "
            ".objectUser to delete"
        )
    return ""


def _message(error: Any) -> str:
    """The service's message in one line; the library's own text begins with the whole URL."""
    response = getattr(error, "response", None)
    text = getattr(response, "text", "") or ""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        text = json.loads(text)["error"]["message"]
    return _line(text)


def _line(text: object) -> str:
    """In one line, for logs and terminals: what a server answers may have anything in it."""
    return without_secrets("".join(c if c.isprintable() else "?" for c in " ".join(str(text).split())[:300]))


def _retry_after(error: Any) -> float:
    """Seconds of the Retry-After header, 0 if there is none. Its other form, a date, is ignored."""
    response = getattr(error, "response", None)
    value = response.headers.get("Retry-After", "") if response is not None else ""
    return float(value) if re.fullmatch(r"\d{1,6}", value) else 0.0
