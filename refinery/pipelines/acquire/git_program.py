"""The git program, told to read objects and nothing else.

Why git: it is what repositories are written and served by, its parsers have met hostile input for twenty years, and it
runs in a process of its own, with limits. pygit2 and dulwich parse what a stranger packed inside this process.

No configuration is read but ours, no hook, filter, credential helper or prompt can run, and only the protocols named
are spoken. Repositories are never opened as such: see git_objects.py.
"""

import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from refinery.loader.storage.fetch import without_secrets
from refinery.pipelines.acquire.tree_files import RepositoryError

MEMORY = 4 << 30  # bytes of data that git may hold: a shallow fetch of Linux takes under 1 GB
POLL = 0.5  # seconds between two looks at the size of what is fetched
SAID = 300  # characters of git's own words in an error
# Where git finds the network and its certificates; everything else of the environment stays behind.
PASSED: tuple[str, ...] = ("PATH", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO")
PASSED += ("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY")
SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.commitGraph=false",
    "core.packedGitLimit=512m",
    "core.packedGitWindowSize=64m",
    "credential.helper=",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "transfer.bundleURI=false",
    "http.followRedirects=initial",
    "http.lowSpeedLimit=1000",
    "http.lowSpeedTime=60",
)


def environment(home: Path, protocols: str) -> dict[str, str]:
    """Variables of git's process. home: an empty folder. protocols: "https", or "none"."""
    kept = {name: os.environ[name] for name in PASSED if name in os.environ}
    return kept | {
        "HOME": str(home),
        "LC_ALL": "C",
        "GIT_ALLOW_PROTOCOL": protocols,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(home),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
    }


def start_git(
    arguments: Sequence[str],
    folder: Path,
    errors: int,
    protocols: str = "none",
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.PIPE,
) -> "subprocess.Popen[bytes]":
    """git in a session of its own, with `folder` as its home and place. errors: where it says what goes wrong.

    Raises RepositoryError where git is not installed.
    """
    program = shutil.which("git")
    if program is None:
        raise RepositoryError("git is not installed; clones and addresses of repositories need it, tarballs do not")
    command = [program, "--no-optional-locks", "--no-pager"]
    command += [word for setting in SETTINGS for word in ("-c", setting)]
    process = subprocess.Popen(  # noqa: S603 - no shell, and arguments of ours but for a checked address and tag
        [*command, *arguments],
        cwd=folder,
        env=environment(folder, protocols),
        stdin=stdin,
        stdout=stdout,
        stderr=errors,
        start_new_session=True,
    )
    if hasattr(resource, "prlimit"):  # Linux; before git has read a byte of what it is given
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(process.pid, resource.RLIMIT_DATA, (MEMORY, MEMORY))
    return process


def end_git(process: "subprocess.Popen[bytes]") -> None:
    """Kill git with everything that it started, and close its pipes."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe:
            with contextlib.suppress(OSError):
                pipe.close()


def run_git(arguments: Sequence[str], folder: Path, timeout: float, most: int, protocols: str = "none") -> bytes:
    """What git prints, up to a megabyte. most: bytes that may come to lie in `folder`.

    Raises RepositoryError with git's own last words, beyond `timeout` seconds, and beyond `most` bytes.
    """
    until = time.monotonic() + timeout
    log, answer = folder / "errors", folder / "answer"
    with log.open("wb") as errors, answer.open("wb") as out:
        process = start_git(arguments, folder, errors.fileno(), protocols, stdout=out.fileno())
        try:
            while process.poll() is None:
                if time.monotonic() > until:
                    raise RepositoryError(f"git {arguments[0]} took more than {timeout:g} s (--timeout)")
                if folder_size(folder) > most:
                    raise RepositoryError(f"more than {most >> 20:,} MiB arrived")
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(POLL)
        finally:
            end_git(process)
    if process.returncode:
        raise RepositoryError(reason_of(log))
    with answer.open("rb") as stream:
        return stream.read(1 << 20)


def folder_size(folder: Path) -> int:
    """Bytes of the files below a folder, some of which may be going."""
    total = 0
    for base, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(base, name)).st_size
    return total


def reason_of(log: Path) -> str:
    """Why git failed, in its last words: one line, without credentials or control characters."""
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - 4096))
        text = stream.read().decode(errors="replace")
    lines = [line.removeprefix("fatal: ").removeprefix("error: ") for line in text.splitlines() if line.strip()]
    said = without_secrets(re.sub(r"[^ -~]+", " ", lines[-1] if lines else "no reason given"))
    if "terminal prompts disabled" in text:
        return "it asks for a login, or does not exist; clone it yourself, and name the clone in the list"
    return f"git: {said[:SAID]}"
