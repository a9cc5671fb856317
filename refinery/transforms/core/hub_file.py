"""A file of a Hugging Face repository, by a name that says which version: hf://ORG/NAME@COMMIT, hf://ORG/NAME@COMMIT/FILE,
or hf://datasets/ORG/NAME@COMMIT/FILE.

Only a commit is a version that stays; a branch or a tag may be another one tomorrow, and on another worker.
"""

import os
import re
import time
from functools import partial
from pathlib import Path

HUB = "hf://"
NAMED = re.compile(
    r"hf://(?P<kind>datasets/(?=[^/@]+/))?(?P<repository>[\w.-]+(?:/[\w.-]+)?)(?:@(?P<revision>[^/]*))?(?:/(?P<file>.+))?"
)
COMMIT = re.compile(r"[0-9a-f]{40}")
TOKENIZER = "tokenizer.json"
REACH_SECONDS = 10


def parse_hub(path: str) -> tuple[str, str, str]:
    """Repository, commit, and file, by default tokenizer.json. Raises OSError, one line, for another form."""
    found = NAMED.fullmatch(path)
    if found is None or not COMMIT.fullmatch(found["revision"] or ""):
        raise OSError(
            f"{path}: hf://ORG/NAME@COMMIT is allowed, with the 40 digits of a commit: its files never change"
        )
    return found["repository"], found["revision"], found["file"] or TOKENIZER


def read_hub_file(path: str) -> bytes:
    """The file's bytes, from the library's cache, without the network, if they are there. HF_TOKEN, HF_ENDPOINT and
    HF_HUB_CACHE are obeyed.

    Raises OSError, one line; within REACH_SECONDS twice where the hub gives no answer.
    """
    repository, revision, file = parse_hub(path)
    import huggingface_hub  # takes half a second, and only those that name such a file need it

    download = partial(
        huggingface_hub.hf_hub_download,
        repository,
        file,
        revision=revision,
        repo_type="dataset" if path.startswith(f"{HUB}datasets/") else None,
        cache_dir=os.environ.get("HF_HUB_CACHE") or None,
        endpoint=os.environ.get("HF_ENDPOINT") or None,
    )
    try:
        return Path(download(local_files_only=True)).read_bytes()
    except OSError:  # not there yet
        _reach(path)
    try:
        return Path(download()).read_bytes()
    except Exception as error:  # the library's errors have no common class
        said = " ".join(str(error).split())[:200] or type(error).__name__
        raise OSError(f"{path}: {said}") from error


def _reach(path: str) -> None:
    """Raises OSError where the hub gives no answer, of whatever status, twice. The library itself would try for half a
    minute, print each attempt, and then say little."""
    from httpx2 import HTTPError
    from huggingface_hub import get_session
    from huggingface_hub.constants import ENDPOINT

    endpoint = (os.environ.get("HF_ENDPOINT") or str(ENDPOINT)).rstrip("/")
    for attempt in (1, 2):
        try:
            get_session().head(f"{endpoint}/api/health", timeout=REACH_SECONDS)
            return
        except HTTPError as error:
            if attempt == 2:
                raise OSError(f"{path}: {endpoint} gives no answer ({error or type(error).__name__})") from None
            time.sleep(1)
