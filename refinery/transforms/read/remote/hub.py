"""Data sets of the Hugging Face hub: hf://datasets/NAME@REVISION, listed by huggingface_hub, read in ranges.

The library knows the protocol (revisions, pages, access); reading goes over the plain "resolve" addresses of one
commit, where every response is checked. A branch is replaced by its commit when the run is planned, so paths, origins
and fingerprints name exactly what is read. A token is taken from HF_TOKEN, in each process that reads, and sent only to
the hub, never to where it redirects.
"""

import fnmatch
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, BinaryIO, TypeVar
from urllib.parse import quote

import yaml

from refinery.loader.storage.fetch import FetchError, FetchParams, Permanent, ReadCounters, Transient, retrying
from refinery.loader.storage.http_store import HttpStore
from refinery.loader.storage.store import StorageError, check_name
from refinery.transforms.core.safe_text import safe
from refinery.transforms.core.wording import meant
from refinery.transforms.read.remote.globs import bounded, fixed_folder, glob_regex, is_glob
from refinery.transforms.read.remote.web import PLANNING, READING, Sha256Stream, buffered

T = TypeVar("T")

ADDRESS = re.compile(
    r"hf://datasets/(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<revision>refs/(?:convert|pr)/[\w.-]+|[^/]+))?(?:/(?P<path>.*))?"
)
COMMIT = re.compile(r"[0-9a-f]{40}")
DATA = re.compile(r".*\.(parquet|jsonl|ndjson|json|csv|tsv|txt|warc|wet)(\.(gz|zst|lz4))?", re.IGNORECASE)
SPLIT_WORD = r"(?:^|.*[^a-zA-Z0-9])({})(?:[^a-zA-Z0-9].*)?"
CARD = "README.md"
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
        wanted = glob_regex(address.path)
        found = {path: facts for path, facts in list_files(address, folder).items() if wanted.fullmatch(path)}
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
    folder = str(chosen.get("data_dir") or "").strip("/")
    patterns = [
        f"{folder}/{path}" if folder else path
        for name, path in splits_of(chosen.get("data_files"))
        if fnmatch.fnmatchcase(name, split)
    ]
    if not chosen.get("data_files"):
        below = list_files(address, folder)
        return files_by_name(below, split)
    if not patterns:
        names = sorted({name for name, _ in splits_of(chosen.get("data_files"))})
        raise ValueError(f"split: {split!r} given, {address.name} has {', '.join(names)}{meant(split, names)}")
    found: Files = {}
    for path in patterns:
        below = list_files(address, fixed_folder(path))
        inside = re.compile(
            f"(?:{glob_regex(path).pattern})(?:/.*)?" if not is_glob(path) else glob_regex(path).pattern
        )
        if not is_glob(path) and path not in below:
            below = below | list_files(address, path)
        found |= {name: facts for name, facts in below.items() if inside.fullmatch(name)}
    return found


def files_by_name(files: Files, split: str) -> Files:
    """Data files whose path names the split; all of them where no path names any."""
    data = {path: facts for path, facts in files.items() if DATA.fullmatch(path) and not path.startswith(".")}
    usual = re.compile(SPLIT_WORD.format("train|test|validation|valid|val|dev|eval|evaluation"))
    if not any(usual.fullmatch(path) for path in data):
        return data if fnmatch.fnmatchcase("train", split) else {}
    wanted = re.compile(SPLIT_WORD.format(glob_regex(split).pattern.replace("[^/]", "[a-zA-Z0-9]")))
    return {path: facts for path, facts in data.items() if wanted.fullmatch(path)}


def choose_config(name: str, configs: Sequence[Mapping[str, Any]], config: str) -> Mapping[str, Any]:
    """The configuration of that name; for "" the only one, the one marked as default, or the one of that name."""
    names = [str(entry.get("config_name", "default")) for entry in configs]
    if config:
        matching = [entry for entry, known in zip(configs, names, strict=True) if known == config]
    else:
        matching = [entry for entry in configs if entry.get("default")] if len(configs) > 1 else list(configs)
        matching = matching or [entry for entry, known in zip(configs, names, strict=True) if known == "default"]
    if not matching:
        shown = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
        raise ValueError(f"config: {config!r} given, {name} has {shown}")
    return matching[0]


def splits_of(data_files: Any) -> Iterator[tuple[str, str]]:
    """(split, path) pairs of a card's `data_files`, in any of its forms."""
    if isinstance(data_files, str):
        yield "train", data_files
    elif isinstance(data_files, Mapping):
        for split, paths in data_files.items():
            yield from ((str(split), str(path)) for path in ([paths] if isinstance(paths, str) else paths))
    elif isinstance(data_files, list):
        for entry in data_files:
            if isinstance(entry, Mapping):
                paths = entry.get("path", [])
                split = str(entry.get("split", "train"))
                yield from ((split, str(path)) for path in ([paths] if isinstance(paths, str) else paths))
            else:
                yield "train", str(entry)


def read_configs(address: Address) -> list[Mapping[str, Any]]:
    """`configs` of the data set's card at that commit; [] where it has none."""
    store = store_of(address.name, address.revision, PLANNING)
    try:
        text = store.read(CARD).decode("utf-8", "replace")
    except FileNotFoundError:
        return []
    head = re.match(r"\ufeff?---\s*\n(.*?)\n---\s*(\n|$)", text, re.DOTALL)
    try:
        data = yaml.safe_load(head[1]) if head else None
    except yaml.YAMLError:
        raise ValueError(f"the card of {address.name} cannot be read; name the files themselves") from None
    configs = data.get("configs") if isinstance(data, dict) else None
    return [entry for entry in configs if isinstance(entry, dict)] if isinstance(configs, list) else []


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
