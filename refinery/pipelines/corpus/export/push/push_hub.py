"""A data set of Hugging Face's hub, made or brought up to date from files of a corpus or an export.

A repository is written to only if it was made here: MARKER in it says so, and which files are of it.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from refinery.loader.storage.store import StorageError, Store
from refinery.pipelines.corpus.export.push.hub_files import HubFiles
from refinery.transforms.core.safe_text import safe
from refinery.transforms.read.remote.hub import endpoint

HUB = "hub"  # the one target of --push
MARKER = ".refinery.json"
KIND = "refinery-hub"
NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
OF_A_COMMIT = 50  # files
MAX_MARKER = 64 << 20
COPIED = 8 << 20  # bytes of a remote file at once


def check_push(push: Sequence[str] | None) -> str:
    """The repository that --push names; "" without it. Raises ValueError, one line, also where there is no token."""
    if not push:
        return ""
    target, name = push
    if target != HUB:
        raise ValueError(f"--push: {target!r:.80} given, {HUB} is allowed")
    if not NAME.fullmatch(name):
        raise ValueError(f"--push: {name!r:.200} given, ORGANISATION/NAME is allowed")
    token()
    return name


def token() -> str:
    """The one in HF_TOKEN. It is taken from nowhere else, and never shown. Raises ValueError without one."""
    found = os.environ.get("HF_TOKEN", "").strip()
    if not found:
        raise ValueError("--push: HF_TOKEN is needed in the environment, a token that may write")
    return found


def push_to_hub(store: Store, files: HubFiles, name: str, public: bool, say: Callable[[str], None]) -> str:
    """Make or update the data set `name`; returns its address. public: of a new one; an old one stays as it is.

    Files that an earlier push put there and that are no longer among them are removed. Raises ValueError for a
    repository that is another's, StorageError where the hub refuses or cannot be reached. Again, it goes on: what the
    hub has already is not sent twice.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

    api = HfApi(endpoint=endpoint(), token=token())
    with explained(name):
        before = _files_before(api, name)
        if before is None:
            api.create_repo(name, repo_type="dataset", private=not public)
            say(f"{name}: a new {'public' if public else 'private'} data set")
        wanted = (*files.made, *files.stored)
        # First, and with all names of both: whatever is interrupted, the next push knows what is of it.
        _commit(api, name, [_marker(files, {*wanted, *(before or ())})], "Files of a corpus")
        for start in range(0, len(files.stored), OF_A_COMMIT):
            chosen = files.stored[start : start + OF_A_COMMIT]
            with TemporaryDirectory(prefix="refinery-push-") as scratch:
                added: list[Any] = [
                    CommitOperationAdd(path, str(_local(store, path, Path(scratch, str(number)))))
                    for number, path in enumerate(chosen)
                ]
                _commit(api, name, added, f"Files {start + 1} to {start + len(chosen)}")
            say(f"{name}: {start + len(chosen):,} of {len(files.stored):,} files are there")
        gone = sorted(set(before or ()) - set(wanted))
        last: list[Any] = [CommitOperationAdd(path, data) for path, data in files.made.items()]
        last += [CommitOperationDelete(path) for path in gone if api.file_exists(name, path, repo_type="dataset")]
        _commit(api, name, [*last, _marker(files, set(wanted))], "Card and report")
    return f"{endpoint()}/datasets/{name}"


def _marker(files: HubFiles, paths: set[str]) -> Any:
    from huggingface_hub import CommitOperationAdd

    said = {"kind": KIND, "name": files.name, "fingerprint": files.fingerprint, "files": sorted(paths)}
    return CommitOperationAdd(MARKER, json.dumps(said, indent=1).encode() + b"\n")


def _commit(api: Any, name: str, operations: Sequence[Any], message: str) -> None:
    api.create_commit(name, operations, commit_message=message, repo_type="dataset")


def _files_before(api: Any, name: str) -> list[str] | None:
    """Paths that earlier pushes put into a repository; None where there is none. Raises ValueError for another's."""
    if not api.repo_exists(name, repo_type="dataset"):
        return None
    refusal = f"{name} is there, and was not made by --push: choose another name; nothing in it was changed"
    if not api.file_exists(name, MARKER, repo_type="dataset"):
        raise ValueError(refusal)
    with TemporaryDirectory(prefix="refinery-push-") as scratch:
        path = Path(api.hf_hub_download(name, MARKER, repo_type="dataset", local_dir=scratch))
        try:
            said = json.loads(path.read_bytes() if path.stat().st_size <= MAX_MARKER else b"")
        except ValueError:
            said = None
    listed = said.get("files") if isinstance(said, dict) and said.get("kind") == KIND else None
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise ValueError(refusal)
    return [each for each in listed if each != MARKER]


def _local(store: Store, path: str, copy: Path) -> Path:
    """Where a file is on this machine; of a remote store a copy of it."""
    near = store.local_path(path)
    if near is not None:
        return near
    with store.open(path) as source, copy.open("wb") as out:
        while data := source.read(COPIED):
            out.write(data)
    return copy


@contextmanager
def explained(name: str) -> Iterator[None]:
    """What the hub's library raises, as one line without addresses that are signed, and without the token."""
    from httpx2 import HTTPError
    from huggingface_hub.errors import HfHubHTTPError

    try:
        yield
    except HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else 0
        advice = {401: "; HF_TOKEN is needed, one that may write", 403: "; HF_TOKEN is needed, one that may write"}
        raise StorageError(f"{safe(name)}: the hub answers with status {status}{advice.get(status, '')}") from None
    except HTTPError as error:
        raise StorageError(f"{safe(name)}: {endpoint()} does not answer ({type(error).__name__}): try again") from None
