"""Google credentials and buckets: there or not, of which kind, and whether an answer comes at all.

No secret is shown, and nothing waits for more than a few seconds.
"""

import json
import os
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

from refinery.loader.storage.fetch import FetchError, FetchParams, Transient
from refinery.loader.storage.gcs_client import LOGIN
from refinery.loader.storage.open_store import open_with
from refinery.loader.storage.store import StorageError
from refinery.pipelines.runners.doctor.finding import Finding, ok, problem, within

SECONDS = 5.0  # that an answer may take; with a network it takes a tenth of that
REQUEST = FetchParams(deadline=4.0, connect_timeout=2.0, read_timeout=3.0, max_delay=1.0)
VARIABLE = "GOOGLE_APPLICATION_CREDENTIALS"
EMULATOR = "STORAGE_EMULATOR_HOST"
NETWORK = "check the network, and whether it reaches storage.googleapis.com"

# Kinds of credentials: by the `type` of their file and by the module of google-auth that holds them.
KINDS = {
    "authorized_user": "a person's login",
    "service_account": "a service account's key",
    "external_account": "a federated identity",
    "external_account_authorized_user": "a federated person's login",
    "impersonated_service_account": "an impersonated service account",
    "google.oauth2.credentials": "a person's login",
    "google.oauth2.service_account": "a service account's key",
    "google.auth.compute_engine.credentials": "this machine's service account",
    "google.auth.impersonated_credentials": "an impersonated service account",
    "google.auth.identity_pool": "a federated identity",
    "google.auth.aws": "a federated identity",
    "google.auth.pluggable": "a federated identity",
}


def google(places: Iterable[str], needed: bool = False) -> Iterator[Finding]:
    """Credentials, then a line for each bucket. places: of any storage, only gs:// ones count. needed: also without
    such a place (a launch on Dataflow).
    """
    buckets = sorted({place.split("/")[2] for place in places if place.startswith("gs://")})
    if not buckets and not needed:
        yield ok("Google credentials", f"{credentials_file()}; none are needed, since nothing named is on gs://")
        return
    found = credentials()
    yield found
    if found.state == "ok":
        yield from reach([f"gs://{bucket}" for bucket in buckets])


def credentials_file() -> str:
    """Which kind of file there is for Google's libraries: "a person's login in …", or "none found"."""
    named = os.environ.get(VARIABLE, "")
    folder = os.environ.get("CLOUDSDK_CONFIG") or str(Path.home() / ".config" / "gcloud")
    file = Path(named or f"{folder}/application_default_credentials.json")
    try:
        kind = json.loads(file.read_bytes())["type"]
    except FileNotFoundError:
        return f"{VARIABLE} names a file that does not exist" if named else "none found"
    except (OSError, ValueError, KeyError, TypeError):
        return f"{VARIABLE if named else file} is not a file of credentials"
    where = VARIABLE if named else "gcloud's folder"
    return f"{KINDS.get(kind if isinstance(kind, str) else '', 'credentials of an unsupported kind')} ({where})"


def credentials() -> Finding:
    """What Google's libraries find, as they do it: the variable, gcloud's folder, the machine's metadata server."""
    if os.environ.get(EMULATOR):
        return ok("Google credentials", f"none are needed: {EMULATOR} names an emulator")
    import google.auth
    from google.auth.exceptions import GoogleAuthError

    def find() -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a person's login without a project to be billed: a launch asks for one
            return type(google.auth.default()[0]).__module__

    try:
        kind = within(SECONDS, find)
    except TimeoutError as error:
        return problem("Google credentials", f"{credentials_file()}, and {error} from this machine's own: {LOGIN}")
    except (GoogleAuthError, OSError, ValueError) as error:  # its text may quote the file
        return problem("Google credentials", f"{credentials_file()} ({type(error).__name__}): {LOGIN}")
    return ok("Google credentials", KINDS.get(kind, f"of an unknown kind ({kind})"))


def reach(places: Iterable[str], network: str = NETWORK) -> Iterator[Finding]:
    """Whether each bucket can be listed. After one that gave no answer the others are not asked. network: what to look
    at then."""
    silent = ""
    for place in places:
        if silent:
            yield problem(place, f"not asked, since {silent} gave no answer; solve that first")
            continue
        try:
            within(SECONDS, open_with(place, REQUEST).check)
        except TimeoutError as error:
            silent = place
            yield problem(place, f"{error}: {network}")
        except StorageError as error:
            if error.status or not is_silent(error):
                yield problem(place, str(error).partition(": ")[2])
                continue
            silent = place
            yield problem(place, f"it cannot be reached within {REQUEST.deadline:g} seconds: {network}")
        except ValueError as error:
            yield problem(place, str(error))
        else:
            yield ok(place, "can be listed; writing was not tried")


def is_silent(error: StorageError) -> bool:
    """Whether a request got no answer, rather than one that refuses it."""
    cause = error.__cause__
    return isinstance(cause, FetchError) and isinstance(cause.cause, Transient)
