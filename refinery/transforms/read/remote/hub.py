"""Data sets of the Hugging Face hub: hf://datasets/NAME@REVISION, listed by huggingface_hub, read in ranges.

The library knows the protocol (revisions, pages, access); reading goes over the plain "resolve" addresses of one
commit, where every response is checked. A branch is replaced by its commit when the run is planned, so paths, origins
and fingerprints name exactly what is read. A token is taken from HF_TOKEN, in each process that reads, and sent only to
the hub, never to where it redirects.
"""

import fnmatch
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, BinaryIO, TypeVar
from urllib.parse import quote

import re2

from refinery.loader.storage.fetch import FetchError, FetchParams, Permanent, ReadCounters, Transient, retrying
from refinery.loader.storage.http_store import HttpStore
from refinery.loader.storage.store import StorageError, check_name
from refinery.transforms.core.safe_text import safe
from refinery.transforms.read.remote.globs import bounded, fixed_folder, is_glob
from refinery.transforms.read.remote.hub_card import CARD, MAX_CARD, Config, choose_config, configs_of, patterns_of
from refinery.transforms.read.remote.path_glob import Glob
from refinery.transforms.read.remote.web import PLANNING, READING, Sha256Stream, buffered

T = TypeVar("T")

ADDRESS = re.compile(
    r"hf://datasets/(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<revision>refs/(?:convert|pr)/[\w.-]+|[^/]+))?(?:/(?P<path>.*))?"
)
COMMIT = re.compile(r"[0-9a-f]{40}")
DATA = re.compile(r".*\.(parquet|jsonl|ndjson|json|csv|tsv|txt|warc|wet)(\.(gz|zst|lz4))?", re.IGNORECASE)
MOST_FOLDERS = 20  # that are listed one by one
ASKING = FetchParams(deadline=180, max_delay=60, hedge_after=0)  # a hub that is asked too often says when to come back
REACHING = FetchParams(deadline=20, max_delay=5, hedge_after=0)  # one that gives no answer at all


@dataclass(frozen=True)
class Address:
    """name: ORGANISATION/NAME. revision: a commit, branch, tag or refs/…, "" for main. path: a file or glob, or ""."""

    name: str
    revision: str
    path: str

    def __str__(self) -> str:
        return f"hf://datasets/{self.name}@{self.revision}/{self.path}"


def parse_address(text: str) -> Address:
    """Raises ValueError for anything but hf://datasets/ORGANISATION/NAME[@REVISION][/PATH]."""
    found = ADDRESS.fullmatch(text)
    if not found:
        raise ValueError("hf://datasets/ORGANISATION/NAME, then @REVISION, /path or both, is allowed")
    return Address(found["name"], (found["revision"] or "").replace("%2F", "/"), found["path"] or "")


def endpoint() -> str:
    """The hub: HF_ENDPOINT, or the public one."""
    from huggingface_hub.constants import ENDPOINT

    return (os.environ.get("HF_ENDPOINT") or str(ENDPOINT)).rstrip("/")


def credentials() -> Mapping[str, str]:
    """The header for the hub's own host."""
    token = os.environ.get("HF_TOKEN", "").strip()
    return {"Authorization": f"Bearer {token}"} if token else {}


def asking(name: str, call: Callable[[Any], T]) -> T:
    """`call(api)`, tried again where that can help. Raises ValueError or StorageError, a line that says what to do."""
    from httpx2 import HTTPError
    from huggingface_hub import HfApi
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError

    api = HfApi(endpoint=endpoint(), token=os.environ.get("HF_TOKEN", "").strip() or False)

    def reached(until: float) -> T:
        try:
            return call(api)
        except HfHubHTTPError:
            raise
        except HTTPError as error:  # no answer
            raise Transient(f"{type(error).__name__}: {error}") from None
        except (AttributeError, KeyError, TypeError, ValueError) as error:  # of the library, over an answer
            said = safe(" ".join(str(error).split())[:200])
            raise StorageError(f"{name}: {endpoint()} gives an answer that cannot be read: {said}") from None

    def once(until: float) -> T:
        try:
            return retrying(reached, what, (0, None), REACHING, ReadCounters())
        except GatedRepoError:
            raise ValueError(f"{name} is gated; ask for access on its page, then set HF_TOKEN") from None
        except RepositoryNotFoundError:
            raise ValueError(f"no data set {name} exists, or it is private; check the name, or set HF_TOKEN") from None
        except RevisionNotFoundError:
            raise ValueError(f"{name} has no such revision") from None
        except HfHubHTTPError as error:
            status = error.response.status_code if error.response is not None else 0
            if status == 404:
                raise FileNotFoundError(name) from None
            failed = f"status {status}"
            if status not in (0, 408, 429) and status < 500:
                raise Permanent(failed) from None
            after = error.response.headers.get("Retry-After", "") if error.response is not None else ""
            raise Transient(failed, float(after) if after.isdecimal() else 0.0) from None

    what = f"{endpoint()}: {name}"
    try:
        return retrying(once, what, (0, None), ASKING, ReadCounters())
    except FetchError as error:
        raise StorageError(f"{name}: {endpoint()} cannot be asked: {error.cause}") from None


def pin(address: Address) -> Address:
    """The address with the commit that its revision stands for now."""
    if COMMIT.fullmatch(address.revision):
        return address
    info = asking(address.name, lambda api: api.dataset_info(address.name, revision=address.revision or None))
    if not COMMIT.fullmatch(info.sha or ""):
        raise StorageError(f"{address.name}: the hub names no commit for {address.revision or 'main'}")
    return Address(address.name, info.sha, address.path)


Files = dict[str, tuple[int, str]]  # path in the repository -> bytes, version


def list_files(address: Address, folder: str) -> Files:
    """Every file below a folder of a commit, with its content's hash: SHA-256 of large files, git's of others."""

    def every(api: Any) -> Files:
        tree = api.list_repo_tree(
            address.name, folder or None, recursive=True, revision=address.revision, repo_type="dataset"
        )
        return {
            check_name(entry.path): (entry.size, f"sha256:{entry.lfs.sha256}" if entry.lfs else f"git:{entry.blob_id}")
            for entry in bounded(tree)
            if hasattr(entry, "blob_id")
        }

    try:
        return asking(address.name, every)
    except FileNotFoundError:
        return {}


def list_hub(pattern: str, config: str = "", split: str = "train") -> list[tuple[str, int, str]]:
    """(path, bytes, version) of the files that an address means, pinned to a commit, in order.

    An address with a path means that file, folder or glob. One without means what the data set's card says of `config`
    and of the splits that the glob `split` matches; where a card names no files, data files whose path holds the
    split's name, or all data files where none does. Raises ValueError, OSError.
    """
    address = parse_address(pattern)
    if address.path and config:
        raise ValueError(f"config: {config!r} given beside a path in the data set, one of both is allowed")
    address = pin(address)
    if address.path:
        folder = address.path.rstrip("/") if address.path.endswith("/") else fixed_folder(address.path)
        wanted = Glob(address.path)
        found = {path: facts for path, facts in list_files(address, folder).items() if wanted.matches(path)}
        if not found and not is_glob(address.path):  # a folder
            found = list_files(address, address.path.rstrip("/"))
    else:
        found = files_of_config(address, config, split)
    named = [(str(Address(address.name, address.revision, path)), *facts) for path, facts in found.items()]
    return sorted(named)


def files_of_config(address: Address, config: str, split: str) -> Files:
    """The files of a configuration's splits."""
    configs = read_configs(address)
    if not configs:
        if config:
            raise ValueError(
                f"the card of {address.name} names no configurations; give the files, hf://datasets/{address.name}@"
                f"REVISION/{config}/*.parquet, or the converted ones, @refs/convert/parquet/{config}/{split}/*.parquet"
            )
        return files_by_name(list_files(address, ""), split)
    chosen = choose_config(address.name, configs, config)
    if not chosen.get("data_files"):
        return files_by_name(list_files(address, str(chosen.get("data_dir") or "").strip("/")), split)
    patterns = patterns_of(address.name, chosen, split)
    globs = [path for path in patterns if is_glob(path) or path.endswith("/")]
    names = {*patterns} - {*globs}  # of files and of folders
    wanted = Glob(*globs)
    return {
        path: facts
        for path, facts in _listed(address, {fixed_folder(path) for path in patterns}).items()
        if wanted.matches(path) or not names.isdisjoint(_and_folders(path))
    }


def _listed(address: Address, folders: set[str]) -> Files:
    """Every file below some folders: of all where asking for each would take long."""
    found: Files = {}
    for folder in sorted(folders) if len(folders) <= MOST_FOLDERS else [""]:
        found |= list_files(address, folder)
    return found


def _and_folders(path: str) -> Iterator[str]:
    """A path, and each folder that it is below."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def files_by_name(files: Files, split: str) -> Files:
    """Data files whose path names the split; all of them where no path names any."""
    data = {path: facts for path, facts in files.items() if DATA.fullmatch(path) and not path.startswith(".")}
    usual = _word("train|test|validation|valid|val|dev|eval|evaluation")
    if not any(usual.fullmatch(path) for path in data):
        return data if fnmatch.fnmatchcase("train", split) else {}
    wanted = _word("".join(map(_part_of_word, re.split(r"(\*|\?|\[[^\]]+\])", split))))
    return {path: facts for path, facts in data.items() if wanted.fullmatch(path)}


def _part_of_word(part: str) -> str:
    """A part of a split's glob as an expression."""
    if part in ("*", "?"):
        return "[a-zA-Z0-9]" + part.strip("?")
    if part.startswith("[") and part.endswith("]"):
        negated = part[1] in "!^"
        inside = re.escape(part[1 + negated : -1]).replace(r"\-", "-")
        return f"[{'^' if negated else ''}{inside}]"
    return re.escape(part)


def _word(pattern: str) -> Any:
    """A word in a path, by an engine that is linear for every pattern."""
    return re2.compile(f"(?:|.*[^a-zA-Z0-9])(?:{pattern})(?:[^a-zA-Z0-9].*)?")


def read_configs(address: Address) -> list[Config]:
    """`configs` of the data set's card at that commit; [] where it has none. Raises ValueError, OSError."""
    try:
        card = store_of(address.name, address.revision, PLANNING).read(CARD, 0, MAX_CARD)
    except FileNotFoundError:
        return []
    return configs_of(card, address.name)


def store_of(name: str, revision: str, params: FetchParams = READING) -> HttpStore:
    """The files of a commit as a store; its connections are kept for the next file."""
    return _store_of(f"{endpoint()}/datasets/{name}/resolve/{quote(revision, safe='')}", params, os.getpid())


@lru_cache(maxsize=64)
def _store_of(root: str, params: FetchParams, process: int) -> HttpStore:  # a fork has connections of its own
    return HttpStore(root, params, anywhere=True, headers=credentials)


def open_hub(path: str, size: int | None = None, version: str = "") -> BinaryIO:
    """A seekable, buffered stream of a file of a commit. A large file read from beginning to end is checked against the
    SHA-256 that the hub listed (StorageError)."""
    address = parse_address(path)
    if size is None:
        listed = list_files(pin(address), fixed_folder(address.path))
        if address.path not in listed:
            raise FileNotFoundError(path)
        size, version = listed[address.path]
    sha256 = version.removeprefix("sha256:") if version.startswith("sha256:") else ""
    store = store_of(address.name, address.revision or "main")
    return buffered(Sha256Stream(store, address.path, size, "", sha256))
