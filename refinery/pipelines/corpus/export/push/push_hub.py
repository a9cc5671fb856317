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

from refinery.loader.errors import FormatError
from refinery.loader.storage.store import StorageError, Store
from refinery.pipelines.corpus.export.push.hub_files import HubFiles
from refinery.transforms.core.safe_text import safe
from refinery.transforms.read.remote.hub import endpoint

HUB = "hub"  # the one target of --push
MARKER = ".refinery.json"
KIND = "refinery-hub"
NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
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
    repository that is another's, FormatError for a file that is not the one of the manifest, StorageError where the hub
    refuses, cannot be reached, or somebody else writes to the repository meanwhile. Again, it goes on: what the
    hub has already is not sent twice.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

    api = HfApi(endpoint=endpoint(), token=token())
    with explained(name):
        to = Repository(api, name)
        before = to.files_before()
        if before is None:
            to.create(public)
            say(f"{name}: a new {'public' if public else 'private'} data set")
        wanted = (*files.made, *files.stored)
        # First, and with all names of both: whatever is interrupted, the next push knows what is of it.
        to.commit([_marker(files, {*wanted, *(before or ())})], "Files of a corpus")
        stored = list(files.stored)
        for start in range(0, len(stored), OF_A_COMMIT):
            chosen = stored[start : start + OF_A_COMMIT]
            with TemporaryDirectory(prefix="refinery-push-") as scratch:
                added = [
                    _checked(
                        CommitOperationAdd(path, str(_local(store, path, Path(scratch, str(number))))), store, files
                    )
                    for number, path in enumerate(chosen)
                ]
                to.commit(added, f"Files {start + 1} to {start + len(chosen)}")
            say(f"{name}: {start + len(chosen):,} of {len(stored):,} files are there")
        gone = sorted(set(before or ()) - set(wanted))
        last: list[Any] = [CommitOperationAdd(path, data) for path, data in files.made.items()]
        last += [CommitOperationDelete(path, is_folder=False) for path in gone if to.has(path)]
        to.commit([*last, _marker(files, set(wanted))], "Card and report")
    return f"{endpoint()}/datasets/{name}"


def _checked(added: Any, store: Store, files: HubFiles) -> Any:
    """A file that is to be sent, if it is the one that the manifest lists: a damaged one is never published, nor what
    somebody put, or linked, in its place."""
    path = added.path_in_repo
    if added.upload_info.sha256.hex() != files.stored[path]:
        raise FormatError(f"{store.url(path)}: damaged: its sha256 is not that of the manifest; it was not sent")
    return added


class Repository:
    """A data set of the hub. Each commit names the one before it, which was looked at or made here. The hub refuses it
    where somebody else has written meanwhile."""

    def __init__(self, api: Any, name: str) -> None:
        self.api, self.name, self.head = api, name, ""

    def create(self, public: bool) -> None:
        """Make it. The hub refuses that if it has been made meanwhile."""
        self.api.create_repo(self.name, repo_type="dataset", private=not public)
        self.head = self._newest()

    def _newest(self) -> str:
        return str(self.api.repo_info(self.name, repo_type="dataset").sha)

    def commit(self, operations: Sequence[Any], message: str) -> None:
        """Add one commit."""
        made = self.api.create_commit(
            self.name, operations, commit_message=message, repo_type="dataset", parent_commit=self.head
        )
        self.head = str(made.oid)

    def has(self, path: str) -> bool:
        """Whether a file of that path is there."""
        return bool(self.api.file_exists(self.name, path, repo_type="dataset", revision=self.head))

    def files_before(self) -> list[str] | None:
        """Paths that earlier pushes put there; None where no such data set is. Raises ValueError for another's."""
        if not self.api.repo_exists(self.name, repo_type="dataset"):
            return None
        self.head = self._newest()
        refusal = f"{self.name} exists and was not made by --push; choose another name (nothing was changed in it)"
        if not self.has(MARKER) or self._marker_size() > MAX_MARKER:
            raise ValueError(refusal)
        with TemporaryDirectory(prefix="refinery-push-") as scratch:
            path = Path(
                self.api.hf_hub_download(self.name, MARKER, repo_type="dataset", revision=self.head, local_dir=scratch)
            )
            try:
                said = json.loads(path.read_bytes() if path.stat().st_size <= MAX_MARKER else b"")
            except (ValueError, RecursionError):
                said = None
        listed = said.get("files") if isinstance(said, dict) and said.get("kind") == KIND else None
        if not isinstance(listed, list) or not all(isinstance(each, str) and is_inside(each) for each in listed):
            raise ValueError(refusal)
        return [each for each in listed if each != MARKER]

    def _marker_size(self) -> int:
        """Bytes that the hub says, before anything is downloaded."""
        from huggingface_hub import hf_hub_url

        where = hf_hub_url(self.name, MARKER, repo_type="dataset", revision=self.head, endpoint=endpoint())
        return int(self.api.get_hf_file_metadata(url=where).size or 0)


def is_inside(path: str) -> bool:
    """Whether a path names a file below a repository, and nothing else."""
    return all(part not in ("", ".", "..") for part in path.split("/"))


def _marker(files: HubFiles, paths: set[str]) -> Any:
    from huggingface_hub import CommitOperationAdd

    said = {"kind": KIND, "name": files.name, "fingerprint": files.fingerprint, "files": sorted(paths)}
    return CommitOperationAdd(MARKER, json.dumps(said, indent=1).encode() + b"\n")


def _local(store: Store, path: str, copy: Path) -> Path:
    """Where a file is on this machine; of a remote store a copy of it."""
    near = store.local_path(path)
    if near is not None:
        return near
    with store.open(path) as source, copy.open("wb") as out:
        while data := source.read(COPIED):
            out.write(data)
    return copy


ADVICE = {
    401: "; HF_TOKEN is needed, one that may write",
    403: "; HF_TOKEN is needed, one that may write",
    409: "; somebody else made or changed it meanwhile: run the command again",
    412: "; somebody else changed it meanwhile: run the command again",
}


@contextmanager
def explained(name: str) -> Iterator[None]:
    """What the hub's libraries raise, as one line without addresses that are signed, and without the token."""
    from httpx2 import HTTPError
    from huggingface_hub.errors import HfHubHTTPError

    try:
        yield
    except HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else 0
        raise StorageError(f"{safe(name)}: the hub answers with status {status}{ADVICE.get(status, '')}") from None
    except HTTPError as error:
        raise StorageError(f"{safe(name)}: {endpoint()} does not answer ({type(error).__name__}): try again") from None
    except (json.JSONDecodeError, UnicodeError) as error:
        raise _unusable(name, error) from None
    except (OSError, ValueError, FormatError):  # of the corpus and this machine, and refusals: lines already
        raise
    except Exception as error:  # noqa: BLE001 - an upload that fails, or an answer without the fields that it should have
        raise _unusable(name, error) from None


def _unusable(name: str, error: Exception) -> StorageError:
    return StorageError(
        f"{safe(name)}: {endpoint()} gives an answer that cannot be used, or an upload fails "
        f"({type(error).__name__}): run the command again, which goes on"
    )
