"""Keys for S3: found as AWS's own tools find them, renewed before they expire, never written to a message.

In order: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (AWS_SESSION_TOKEN); a web identity (AWS_WEB_IDENTITY_TOKEN_FILE,
AWS_ROLE_ARN); the profile of AWS_PROFILE in the AWS command line's files (keys, or a `credential_process`, which every
kind of login can provide: `aws configure export-credentials --format process`); a container's role; an instance's
role. Where none of these gives anything, requests are not signed, which public buckets allow.
"""

import json
import os
import shlex
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from refinery.loader.storage.aws import roles
from refinery.loader.storage.aws.keys import Credentials, CredentialsError, of_answer
from refinery.loader.storage.aws.settings import read_profile

EARLY = 300.0  # seconds before they expire, from which on new ones are asked for
PROCESS_SECONDS = 60.0
# What decides where keys come from: with other values of these they are looked for anew.
VARIABLES = (
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN",
    "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_METADATA_ENDPOINT",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_EC2_METADATA_DISABLED", "HOME",
)  # fmt: skip


Find = Callable[[], Credentials | None]


class Provider:
    """The keys of one environment. Safe to share between threads: one of them renews, the others wait."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._lock = threading.Lock()
        self._kept: Credentials | None = None
        self._asked = False

    def get(self) -> Credentials | None:
        """Keys that are valid for some minutes, None if there are none. Raises CredentialsError."""
        with self._lock:
            kept = self._kept
            if not self._asked or (kept and kept.expires and kept.expires - time.time() < EARLY):
                self._kept, self._asked = self._find(), True
            return self._kept

    def renew(self, refused: Credentials) -> Credentials | None:
        """Keys that replace those that have expired according to the service; None if there are none. Raises
        CredentialsError."""
        with self._lock:
            if not self._asked or self._kept == refused:
                self._kept, self._asked = self._find(), True
            return self._kept if self._kept != refused else None


_providers: dict[tuple[Any, ...], Provider] = {}


def provider() -> Provider:
    """That of the environment as it is now, the same for all stores of a process. Asks nobody yet."""
    # A forked child begins anew: a thread of its parent may have held a lock.
    key = (os.getpid(), *(os.environ.get(name, "") for name in VARIABLES))
    found = _providers.get(key)
    if found is None:
        _providers.clear()
        found = _providers.setdefault(key, Provider(find_credentials))
    return found


def find_credentials() -> Credentials | None:
    """The first keys of all places, None if none has any. Raises CredentialsError for a place that should have some."""
    return next(filter(None, (find() for find in places())), None)


def places() -> Iterator[Find]:
    """Where to look, in order."""
    yield from_environment
    yield roles.from_web_identity
    yield from_profile
    yield roles.from_container
    yield roles.from_instance


def from_environment() -> Credentials | None:
    access, secret = os.environ.get("AWS_ACCESS_KEY_ID", ""), os.environ.get("AWS_SECRET_ACCESS_KEY", "")
    if not access and not secret:
        return None
    if not access or not secret:
        missing = "AWS_SECRET_ACCESS_KEY" if access else "AWS_ACCESS_KEY_ID"
        raise CredentialsError(f"{missing} is not set, and the other half of the key is")
    return Credentials(access, secret, os.environ.get("AWS_SESSION_TOKEN", ""), source="AWS_ACCESS_KEY_ID")


def from_profile() -> Credentials | None:
    """Of the AWS command line's files. Raises CredentialsError for a named profile that has no keys."""
    named = os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE") or ""
    facts, shown = read_profile(), f"the profile {named or 'default'!r}"
    if facts.get("aws_access_key_id") and facts.get("aws_secret_access_key"):
        token = facts.get("aws_session_token", "")
        return Credentials(facts["aws_access_key_id"], facts["aws_secret_access_key"], token, source=shown)
    if command := facts.get("credential_process"):
        return _from_process(command, shown)
    if named:
        kinds = "keys or a credential_process are allowed (aws configure export-credentials --format process)"
        raise CredentialsError(f"AWS_PROFILE: {shown} has neither keys nor a credential_process; {kinds}")
    return None


def _from_process(command: str, shown: str) -> Credentials:
    try:
        done = subprocess.run(  # noqa: S603 - the user's own file names it
            shlex.split(command), capture_output=True, timeout=PROCESS_SECONDS, check=False
        )
        answer = json.loads(done.stdout) if not done.returncode else None
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise CredentialsError(f"{shown}: its credential_process failed ({type(error).__name__})") from None
    if answer is None:
        raise CredentialsError(f"{shown}: its credential_process failed with exit status {done.returncode}")
    return of_answer(answer, f"the credential_process of {shown}", ("SecretAccessKey", "SessionToken"))
